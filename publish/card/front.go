package card

import (
	"bytes"
	"cmp"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"ggforge/gguf"
)

// licences are the identifiers of licences that the hub accepts in a card. Source: its documentation,
// hub/repositories-licenses.
var licences = strings.Fields(`apache-2.0 mit openrail bigscience-openrail-m creativeml-openrail-m bigscience-bloom-rail-1.0 bigcode-openrail-m
	afl-3.0 artistic-2.0 bsl-1.0 bsd bsd-2-clause bsd-3-clause bsd-3-clause-clear c-uda cc cc0-1.0 cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0
	cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nd-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0
	cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cdla-sharing-1.0 cdla-permissive-1.0 cdla-permissive-2.0 wtfpl ecl-2.0 epl-1.0 epl-2.0 etalab-2.0 eupl-1.1
	eupl-1.2 agpl-3.0 gfdl gpl gpl-2.0 gpl-3.0 lgpl lgpl-2.1 lgpl-3.0 isc h-research intel-research lppl-1.3c ms-pl apple-ascl apple-amlr mpl-2.0
	odc-by odbl openmdw-1.0 openrail++ osl-3.0 postgresql ofl-1.1 ncsa unlicense zlib pddl lgpl-lr deepfloyd-if-license
	fair-noncommercial-research-license llama2 llama3 llama3.1 llama3.2 llama3.3 llama4 grok2-community gemma unknown other`)

// pipelines are the hub's tasks for models in GGUF files, more specific ones first.
var pipelines = strings.Fields(`image-to-video text-to-video image-to-image text-to-image any-to-any image-text-to-text audio-text-to-text video-text-to-text automatic-speech-recognition text-to-speech
	text-ranking sentence-similarity feature-extraction text-classification token-classification fill-mask translation summarization
	question-answering text-generation`)

// pair is a key of the front matter with a string or a list of strings.
type pair struct {
	key  string
	text string
	list []string
}

// frontMatter returns the lines of the front matter between its marks.
func (c *Card) frontMatter() ([]string, error) {
	m := c.metadata
	var pairs []pair
	add := func(key, text string) {
		if text = plain(text); text != "" {
			pairs = append(pairs, pair{key: key, text: text})
		}
	}
	addList := func(key string, list []string) {
		if len(list) > 0 {
			pairs = append(pairs, pair{key: key, list: list})
		}
	}
	if c.BaseModel != "" {
		add("base_model", c.BaseModel)
		add("base_model_relation", "quantized")
	}
	addList("datasets", sources(m, "general.dataset"))
	addList("language", languages(m))
	add("library_name", "gguf")
	id, name, to := license(m)
	add("license", id)
	add("license_name", name)
	add("license_link", to)
	add("pipeline_tag", c.pipeline)
	add("quantized_by", c.quantizedBy)
	addList("tags", c.tags())
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, p := range pairs {
		value := &yaml.Node{Kind: yaml.SequenceNode}
		for _, s := range p.list {
			item := new(yaml.Node)
			item.SetString(plain(s))
			value.Content = append(value.Content, item)
		}
		if p.list == nil {
			value = new(yaml.Node)
			value.SetString(p.text)
		}
		key := new(yaml.Node)
		key.SetString(p.key)
		node.Content = append(node.Content, key, value)
	}
	if index := c.modelIndex(); index != nil {
		var value yaml.Node
		if err := value.Encode(index); err != nil {
			return nil, err
		}
		key := new(yaml.Node)
		key.SetString("model-index")
		node.Content = append(node.Content, key, &value)
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(node); err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n"), nil
}

// license returns the hub's identifier of a model's licence ("other" with a name for one that the hub does not know)
// and its link.
func license(m gguf.Metadata) (id, name, to string) {
	id = strings.ToLower(plain(text(m, "general.license")))
	name, to = plain(text(m, "general.license.name")), address(text(m, "general.license.link"))
	if id == "" || slices.Contains(licences, id) {
		return id, name, to
	}
	if name == "" {
		name = id
	}
	return "other", name, to
}

// text returns a string of the metadata, "" for none.
func text(m gguf.Metadata, key string) string {
	v, _ := m.Get(key)
	s, _ := v.Str()
	return s
}

// maxList is the largest number of elements that a card takes from a list in the metadata.
const maxList = 50

// texts returns the different strings in a list of the metadata.
func texts(m gguf.Metadata, key string) (list []string) {
	v, ok := m.Get(key)
	if !ok || v.ElemType() != gguf.StringType {
		return nil
	}
	for e := range v.Elems() {
		s, _ := e.Str()
		if s = plain(s); s != "" && len(list) < maxList && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// sources returns the models or data sets of the hub in a list of the metadata, such as general.dataset.
func sources(m gguf.Metadata, list string) (ids []string) {
	for i := range maxList {
		to := text(m, list+"."+strconv.Itoa(i)+".repo_url")
		if to == "" {
			return ids
		}
		to = strings.Replace(to, hub+"datasets/", hub, 1)
		if id := HubModel(to); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// languages returns the languages that the hub accepts: codes of ISO 639.
func languages(m gguf.Metadata) (list []string) {
	for _, s := range texts(m, "general.languages") {
		s = strings.ToLower(s)
		code := len(s) == 2 || len(s) == 3
		for _, r := range s {
			code = code && 'a' <= r && r <= 'z'
		}
		if code || s == "multilingual" || s == "code" {
			list = append(list, s)
		}
	}
	return list
}

// pipelineOf returns the hub's task for a model.
func pipelineOf(m gguf.Metadata, encoder gguf.Metadata) string {
	tags := texts(m, "general.tags")
	for _, p := range pipelines {
		if slices.Contains(tags, p) {
			return p
		}
	}
	has := func(m gguf.Metadata, key string) bool { v, _ := m.Get(key); b, ok := v.Bool(); return ok && b }
	_, pooled := m.Get(gguf.ArchKey(m.Architecture(), "pooling_type"))
	switch {
	case has(encoder, "clip.has_vision_encoder"):
		return "image-text-to-text"
	case has(encoder, "clip.has_audio_encoder"):
		return "audio-text-to-text"
	case pooled:
		return "feature-extraction"
	}
	return textGeneration
}

// textGeneration is the task of a model of which nothing else is known.
const textGeneration = "text-generation"

// tags returns the tags of a card: the model's, and those for its files.
func (c *Card) tags() []string {
	tags := slices.DeleteFunc(texts(c.metadata, "general.tags"),
		func(s string) bool { return s == c.pipeline || s == "transformers" || s == "safetensors" })
	add := func(tag string, holds bool) {
		if holds && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	_, chat := c.metadata.Get("tokenizer.chat_template")
	add("gguf", true)
	add("quantized", true)
	add("imatrix", c.imatrix)
	add("conversational", chat)
	return tags
}

// The hub's form of results in a card (its documentation, hub/model-cards: model-index).
type (
	indexed struct {
		Name    string         `yaml:"name"`
		Results []indexResults `yaml:"results"`
	}
	indexResults struct {
		Task    indexName     `yaml:"task"`
		Dataset indexName     `yaml:"dataset"`
		Metrics []indexMetric `yaml:"metrics"`
	}
	indexName struct {
		Type string     `yaml:"type"`
		Name string     `yaml:"name"`
		Args *indexText `yaml:"args,omitempty"`
	}
	indexText struct {
		Chunk     int `yaml:"chunk"`
		Predicted int `yaml:"predicted"`
	}
	indexMetric struct {
		Type  string    `yaml:"type"`
		Name  string    `yaml:"name"`
		Value float64   `yaml:"value"`
		Args  indexFile `yaml:"args"`
	}
	indexFile struct {
		File   string `yaml:"file"`
		SHA256 string `yaml:"sha256"`
	}
)

// modelIndex returns the measurements of the files whose sums are known, nil for none.
func (c *Card) modelIndex() []indexed {
	results := indexResults{
		Task: indexName{Type: c.pipeline, Name: taskName(c.pipeline)},
		Dataset: indexName{Type: "text", Name: plain(c.results.Text),
			Args: &indexText{c.results.Chunk, c.results.Predicted}},
	}
	for i := range c.Files {
		f := &c.Files[i]
		sum := f.measured.SHA256
		if sum == "" {
			continue
		}
		add := func(id, name string, value *Figure, decimals int) {
			if value != nil {
				unit := math.Pow10(decimals)
				rounded := math.Round(value.Mean*unit)/unit + 0 // no -0
				results.Metrics = append(results.Metrics, indexMetric{id, name + ", " + plain(baseName(f.Path)), rounded,
					indexFile{plain(f.Path), sum}})
			}
		}
		add("kl_divergence", "KL divergence", f.KLD, 6)
		add("perplexity", "Perplexity", f.PPL, 4)
	}
	if results.Metrics == nil {
		return nil
	}
	return []indexed{{plain(cmp.Or(text(c.metadata, gguf.KeyName), filepath.Base(c.dir))), []indexResults{results}}}
}

// taskName returns the hub's name of a task for people, such as Text Generation.
func taskName(pipeline string) string {
	words := strings.Split(pipeline, "-")
	for i, w := range words {
		if w != "to" {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, " ")
}
