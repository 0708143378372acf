package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ggforge/arch/config"
)

// checkpoint is what is known of a model: its class, its config.json and, if TENSORS is given, its tensors.
type checkpoint struct {
	class  string
	config []byte
	root   map[string]any // config.json
	names  []string       // of tensors, in the order of the file; without "language_model."
	shapes map[string][]int64
	others []string // names of tensors of vision and audio encoders
	layers int      // of the model, without MTP (NextN) layers
	mtp    []string // names of tensors of layers after the model's
	wants  []*want  // patterns of names, in the order of names
	byName map[string]*want

	vocabulary  string // "spm" or "bpe"; "" if it is unknown
	unknownType bool   // the defaults of model_type do not count
	tokenizerOf *known // the model whose tokenizer is taken, nil until it is known
}

// want is a pattern of names of the checkpoint: a tensor in some layers.
type want struct {
	pattern string
	layers  []int // sorted; nil outside of layers
	experts int   // number of tensors in each layer, for {xid}
	atom    *atom // the rows that map it, nil for none
}

// readCheckpoint parses the two inputs. tensors may be nil.
func readCheckpoint(class string, configJSON, tensors []byte, unknownType bool) (*checkpoint, error) {
	c := &checkpoint{unknownType: unknownType, class: class, config: configJSON, shapes: map[string][]int64{}}
	d := json.NewDecoder(bytes.NewReader(configJSON))
	d.UseNumber()
	if err := d.Decode(&c.root); err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	view, err := c.view()
	if err != nil {
		return nil, err
	}
	n, err := view.BlockCount()
	if err != nil {
		return nil, err
	}
	c.layers = int(n)
	names, err := c.readNames(tensors)
	if err != nil {
		return nil, err
	}
	c.setNames(names)
	return c, nil
}

// view returns a view of config.json with the names of tensors, in which every key is unread.
func (c *checkpoint) view() (*config.View, error) {
	cfg, err := config.Parse(withClass(c.config, c.class, c.unknownType), nil)
	if err != nil {
		return nil, err
	}
	return cfg.View(config.Options{}).With(config.Facts{Tensors: c.names}), nil
}

// withClass returns config.json with architectures = [class], and without a model_type whose defaults are known if
// unknown.
func withClass(text []byte, class string, unknown bool) []byte {
	var m map[string]json.RawMessage
	if json.Unmarshal(text, &m) != nil {
		return text
	}
	m["architectures"], _ = json.Marshal([]string{class})
	if unknown {
		delete(m, "model_type")
	}
	out, err := json.Marshal(m)
	if err != nil {
		return text
	}
	return out
}

// readNames returns the names of a model.safetensors.index.json, of a safetensors file or its header as JSON, or of a
// text with one name at the beginning of each line.
func (c *checkpoint) readNames(data []byte) ([]string, error) {
	if len(data) > 8 && data[0] != '{' { // a safetensors file?
		if n := binary.LittleEndian.Uint64(data); n <= uint64(len(data)-8) && data[8] == '{' {
			data = data[8 : 8+n]
		}
	}
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		var names []string
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) > 0 && !strings.HasPrefix(f[0], "#") {
				names = append(names, f[0])
			}
		}
		return names, nil
	}
	var index struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("TENSORS: %w", err)
	}
	if index.Map != nil {
		return slices.SortedFunc(maps.Keys(index.Map), natural), nil
	}
	var header map[string]json.RawMessage
	if err := json.Unmarshal(data, &header); err != nil {
		return nil, fmt.Errorf("TENSORS: %w", err)
	}
	delete(header, "__metadata__")
	for name, text := range header {
		var t struct{ Shape []int64 }
		if err := json.Unmarshal(text, &t); err != nil {
			return nil, fmt.Errorf("TENSORS: %s: %w", name, err)
		}
		c.shapes[bare(name)] = t.Shape
	}
	return slices.SortedFunc(maps.Keys(header), natural), nil
}

// natural compares names with numbers by their value.
func natural(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(x), len(y)) {
		n, err := strconv.Atoi(x[i])
		m, err2 := strconv.Atoi(y[i])
		switch {
		case err == nil && err2 == nil && n != m:
			return n - m
		case x[i] != y[i]:
			return strings.Compare(x[i], y[i])
		}
	}
	return len(x) - len(y)
}

// bare returns a name without the component of language models in multimodal ones.
func bare(name string) string { return strings.ReplaceAll(name, "language_model.", "") }

// otherParts are components of the names of vision and audio encoders.
var otherParts = []string{"visual", "vision_tower", "vision_model", "vision_encoder", "audio_tower", "audio_encoder",
	"multi_modal_projector", "mm_projector", "vit", "sam_model", "talker", "code2wav", "token2wav", "projector"}

// buffers are suffixes of tensors without parameters.
var buffers = []string{".rotary_emb.inv_freq", ".attention.masked_bias", ".attention.bias"}

// setNames sorts names into those of the model, of MTP layers and of encoders, and makes the patterns.
func (c *checkpoint) setNames(names []string) {
	c.byName = map[string]*want{}
	seen := map[string]map[[2]int]bool{}
	for _, name := range names {
		name = bare(name)
		comps := strings.Split(name, ".")
		switch {
		case slices.ContainsFunc(comps, func(s string) bool { return slices.Contains(otherParts, s) }):
			c.others = append(c.others, name)
			continue
		case slices.ContainsFunc(buffers, func(s string) bool { return strings.HasSuffix(name, s) }):
			continue
		}
		pattern, bid, xid := patternOf(name)
		if bid >= c.layers || strings.HasPrefix(name, "mtp.") || strings.HasPrefix(name, "model.mtp.") {
			c.mtp = append(c.mtp, name)
			continue
		}
		c.names = append(c.names, name)
		w := c.byName[pattern]
		if w == nil {
			w = &want{pattern: pattern}
			c.byName[pattern], seen[pattern] = w, map[[2]int]bool{}
			c.wants = append(c.wants, w)
		}
		if seen[pattern][[2]int{bid, xid}] {
			continue
		}
		seen[pattern][[2]int{bid, xid}] = true
		if bid >= 0 && !slices.Contains(w.layers, bid) {
			w.layers = append(w.layers, bid)
		}
		w.experts = max(w.experts, xid+1)
	}
	for _, w := range c.wants {
		slices.Sort(w.layers)
	}
}

// want returns the pattern of that name, nil if the checkpoint has none.
func (c *checkpoint) want(pattern string) *want { return c.byName[pattern] }

// everyLayer reports whether a tensor is in all layers.
func (c *checkpoint) everyLayer(w *want) bool { return len(w.layers) == c.layers }

// patternOf returns a name with {bid} in place of the number of its layer and {xid} in place of that of an expert, and
// both numbers, -1 for none. Placeholders stay.
func patternOf(name string) (pattern string, bid, xid int) {
	bid, xid = -1, -1
	comps := strings.Split(name, ".")
	for i, s := range comps {
		n, err := strconv.Atoi(s)
		if err != nil || i == 0 {
			continue
		}
		switch expert := strings.Contains(comps[i-1], "expert"); {
		case expert && xid < 0:
			xid, comps[i] = n, "{xid}"
		case !expert && bid < 0 && !slices.Contains(comps[:i], "{bid}") && layerList.has(comps[i-1]):
			bid, comps[i] = n, "{bid}"
		}
	}
	return strings.Join(comps, "."), bid, xid
}

// layerList are the names of lists of layers.
var layerList = set("layers", "layer", "h", "blocks", "block", "encoder_layers", "decoder_layers")

type stringSet map[string]bool

func set(names ...string) stringSet {
	s := stringSet{}
	for _, name := range names {
		s[name] = true
	}
	return s
}

func (s stringSet) has(name string) bool { return s[name] }

// keys returns the keys of config.json, those of the language model of a multimodal model among them.
func keysOf(root map[string]any) map[string]any {
	all := maps.Clone(root)
	for _, path := range [][]string{{"text_config"}, {"thinker_config", "text_config"}, {"llm_config"},
		{"language_config"}} {
		m := root
		for _, key := range path {
			m, _ = m[key].(map[string]any)
		}
		maps.Copy(all, m)
	}
	return all
}

// vocabularyIn returns the kind of the tokenizer's files in a folder.
func vocabularyIn(dir string) string {
	switch {
	case exists(dir, "tokenizer.model"):
		return "spm"
	case exists(dir, "tokenizer.json"):
		return "bpe"
	}
	return ""
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// readFile reads an input; "" is none.
func readFile(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	return os.ReadFile(path)
}
