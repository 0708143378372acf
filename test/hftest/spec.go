package hftest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"ggforge/arch"
	"ggforge/arch/config"
)

// Spec describes the checkpoints of one architecture.
type Spec struct {
	Name        string   // of the spec and of the directory
	Config      string   // config.json; $bos and the like are replaced by the tokenizer's values
	Tokenizer   string   // kind of the tokenizer files, see tokenizerOf
	AddedTokens []string // special tokens after those of the kind (spm, gemma, bpe:…)
	Pre         string   // name of the pre-tokenizer; "" is the kind's
	Tensors     string   // table of the tensors, see the package comment
	DType       string   // of the weights, unless the variant has one; "" is BF16
	// further files, by path; "" removes one of the tokenizer's. Folders do not apply to "./NAME"
	Files map[string]string
	// subfolders for files, by patterns of names; files that match none are in the checkpoint's directory
	Folders    map[string]string
	ExtraFiles map[string]string // tables of the tensors in safetensors files next to the model's, by their paths
	// JSON object of the values next to the tensors in PyTorch's files of ExtraFiles; names of tensors are keys joined
	// by slashes
	Pickled  string
	Variants []Variant // in addition to those of Standard
	Encoder  bool      // the vision or audio encoder is converted (--mmproj)
	NoEdge   bool      // no values of edge: with them the reference's result depends on the CPU
	OneFile  bool      // no variant has shards: the reference takes one file
	Sharded  bool      // all variants have shards: the reference asks for their index

	// Target is the spec of a draft's target model; its checkpoint is written into the draft's directory, $target in
	// flags.
	Target string

	// Base is the base model of an adapter, which the reference finds in the hub's cache; its Name is the hash of a
	// commit. The adapter's tensors are in ExtraFiles.
	Base *Spec

	// Settings for the reference.
	RawConfig       bool   // read the raw config.json, which transformers would misread
	NoLazy          bool   // with --no-lazy: its lazy evaluation fails
	NoReference     string // reason for the lack of a reference result; "" if there is one
	GeneratesNoText bool   // the model generates no text: in the reference's runtime all text has probability 0
	// OracleFlags are arguments of the oracle's refconvert.py if the reference requires the sizes of one published
	// model.
	OracleFlags []string
	NoLoad      string // reason why the reference's runtime cannot use the file; "" if it can

	published *published // nil except for specs of Published
}

// Variant is one way of making the checkpoint of a Spec.
type Variant struct {
	Name   string
	Set    string // JSON object merged into config.json; null removes a key
	Seed   uint64
	DType  string   // "" is the spec's
	Shards int      // more than 1 writes an index
	Edge   bool     // the first row of each matrix starts with the values of edge (values.go)
	Out    string   // output type of the conversion; "" is f16
	Flags  []string // further flags of the conversion, which both converters have
	Ring   bool     // weights repeat after about a million: fast for large checkpoints
	Blank  bool     // weights are zero: faster, for tests of names, dimensions and metadata
}

// Standard are the variants that every spec has.
var Standard = []Variant{
	{Name: "plain", Seed: 1},
	{Name: "edge", Seed: 2, DType: "F32", Shards: 3, Edge: true, Out: "q8_0"},
}

// All returns the variants of the spec: those of Standard, then its own.
func (s *Spec) All() []Variant {
	all := slices.Concat(Standard, s.Variants)
	for i := range all {
		v := &all[i]
		if v.Out == "" {
			v.Out = "f16"
		}
		if v.DType == "" {
			v.DType = s.DType
		}
		if v.DType == "" {
			v.DType = "BF16"
		}
		v.Edge = v.Edge && !s.NoEdge
		if s.Sharded {
			v.Shards = max(v.Shards, 2)
		}
		if s.OneFile {
			v.Shards = 0
		}
		if s.Target != "" {
			v.Flags = append([]string{"--target-model-dir", "$target"}, v.Flags...)
		}
		if s.Encoder {
			v.Flags = append([]string{"--mmproj"}, v.Flags...)
		}
	}
	return all
}

// Bare returns a variant whose config.json has only the keys for the shapes and for the choice of the architecture; the
// converter's defaults supply the rest.
func (s *Spec) Bare() (Variant, error) {
	v := Variant{Name: "bare", Seed: 9, DType: cmp.Or(s.DType, "BF16"), Out: "f16"}
	cfg, err := s.config(v)
	if err != nil {
		return v, err
	}
	shapes := identifier.FindAllString(s.Tensors, -1)
	for _, table := range s.ExtraFiles {
		shapes = append(shapes, identifier.FindAllString(table, -1)...)
	}
	if s.Base != nil {
		shapes = append(shapes, identifier.FindAllString(s.Base.Tensors, -1)...)
	}
	list := func(m object) object {
		drop := object{}
		for key := range m {
			if !bareKeys[key] && !slices.Contains(shapes, key) {
				drop[key] = nil
			}
		}
		return drop
	}
	drop := list(cfg)
	for _, path := range textPaths {
		if text := member(cfg, path); text != nil {
			merge(drop, wrap(path, list(text)))
		}
	}
	v.Set = string(marshal(drop))
	return v, nil
}

// textPaths are the paths of the language model's configuration in a multimodal model's.
var textPaths = [][]string{{"text_config"}, {"thinker_config", "text_config"}}

// member returns the object at a path, nil if there is none.
func member(m object, path []string) object {
	for _, key := range path {
		m, _ = m[key].(object)
	}
	return m
}

// wrap returns an object with m at a path.
func wrap(path []string, m object) object {
	for _, key := range slices.Backward(path) {
		m = object{key: m}
	}
	return m
}

var identifier = regexp.MustCompile(`[a-zA-Z_][a-zA-Z0-9_]*`)

// bareKeys are keys that Bare keeps in any case.
var bareKeys = map[string]bool{"architectures": true, "model_type": true, "auto_map": true, "text_config": true,
	"thinker_config": true, "vision_config": true,
	"quantization_config": true, "vocab_size": true, "num_attention_heads": true, "num_key_value_heads": true,
	"n_head": true, "head_dim": true,
	"n_layers": true, "num_hidden_layers": true, "n_layer": true, "num_layers": true, "intermediate_size": true,
	"layer_types": true}

// PreTokenizer returns the name of the pre-tokenizer, which cannot be recognized by such small vocabularies; "" if the
// tokenizer has none or it is not needed.
func (s *Spec) PreTokenizer() string {
	if s.Encoder {
		return ""
	}
	return tokenizerOf(s).pre
}

// Class returns the Hugging Face class, which decides the architecture.
func (s *Spec) Class() string {
	c, err := s.config(Variant{})
	if err != nil {
		panic(err)
	}
	read := arch.ReadDecision
	if s.Base != nil {
		read = arch.ReadAdapterDecision
	}
	decision, err := read(sideFiles{s, marshal(c)})
	if err != nil {
		panic(fmt.Sprintf("hftest: %s: %v", s.Name, err))
	}
	parse := arch.ParseConfig
	switch {
	case decision != nil:
		return decision.Class
	case s.Encoder:
		parse = func(data []byte) (*config.Config, error) { return arch.ParseEncoder("", data) }
	}
	cfg, err := parse(marshal(c))
	if err != nil {
		panic(fmt.Sprintf("hftest: %s: %v", s.Name, err))
	}
	return cfg.Class
}

// sideFiles reads the files of a spec's checkpoint except the weights.
type sideFiles struct {
	*Spec
	config []byte
}

func (f sideFiles) ReadFile(name string) ([]byte, error) {
	if name == path.Join(f.folder(config.ConfigFile), config.ConfigFile) {
		return f.config, nil
	}
	for file, text := range f.Files {
		if path.Clean(file) == name {
			return []byte(text), nil
		}
	}
	return nil, fs.ErrNotExist
}

var specs []*Spec

func add(s Spec) {
	for _, other := range specs {
		if other.Name == s.Name {
			panic(fmt.Sprintf("hftest: two specs %s", s.Name))
		}
	}
	specs = append(specs, &s)
}

// Specs returns the specs of language models, sorted by name.
func Specs() []*Spec { return sorted(false) }

// Encoders returns the specs of vision and audio encoders, sorted by name.
func Encoders() []*Spec { return sorted(true) }

func sorted(encoders bool) []*Spec {
	list := slices.DeleteFunc(slices.Clone(specs), func(s *Spec) bool { return s.Encoder != encoders })
	slices.SortFunc(list, func(a, b *Spec) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Lookup returns the spec of that name, nil if there is none.
func Lookup(name string) *Spec {
	for _, s := range specs {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// config returns config.json of a variant. Numbers keep their spelling.
func (s *Spec) config(v Variant) (map[string]any, error) {
	text := s.Config
	facts := tokenizerOf(s).facts
	// longest name first: a name may be the prefix of another
	for _, name := range slices.SortedFunc(maps.Keys(facts), func(a, b string) int { return len(b) - len(a) }) {
		text = strings.ReplaceAll(text, "$"+name, fmt.Sprint(facts[name]))
	}
	c, err := parseObject(text)
	if err != nil {
		return nil, fmt.Errorf("hftest: %s: config.json: %w", s.Name, err)
	}
	if v.Set != "" {
		change, err := parseObject(v.Set)
		if err != nil {
			return nil, fmt.Errorf("hftest: %s: variant %s: %w", s.Name, v.Name, err)
		}
		merge(c, change)
	}
	return c, nil
}

func parseObject(text string) (map[string]any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("text after the object")
	}
	return m, nil
}

// merge merges change into c: objects member by member, null removes (RFC 7386).
func merge(c, change map[string]any) {
	for k, v := range change {
		if v == nil {
			delete(c, k)
			continue
		}
		if sub, ok := v.(map[string]any); ok {
			if old, ok := c[k].(map[string]any); ok {
				merge(old, sub)
				continue
			}
		}
		c[k] = v
	}
}

// marshal is json.MarshalIndent without escapes of <, > and &.
func marshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		panic(err) // maps of JSON values only
	}
	return b.Bytes()
}
