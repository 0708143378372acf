// Package arch knows the model architectures: which Hugging Face classes belong
// to one, which metadata its GGUF file has and where each value comes from, and
// what each tensor of the checkpoint becomes.
//
// An architecture is a table (see Arch). Supporting one more is a file with its
// table and a line in registry; what cannot be written as a row becomes a named
// kind of row or a named transform that any architecture may use.
package arch

import (
	"fmt"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

// Arch describes one architecture, or one of several ways in which checkpoints
// of it are made: tables of the same Name differ in their classes.
type Arch struct {
	Name      string   // GGUF name, general.architecture
	Classes   []string // Hugging Face class names ("architectures" of config.json)
	Tokenizer tokenizer.Class
	// VocabSize is the length of the vocabulary; nil for the config's vocab_size.
	VocabSize func(*Config) (int64, error)
	// RawConfig takes config.json as it stands, without the defaults that the
	// transformers library has for its model_type.
	RawConfig bool
	// BlockCount is the number of layers; nil for that of the config.
	BlockCount func(*Config) (int64, error)
	Early      []Row // those before general.type
	Metadata   []Row // in the order the file has them, below the architecture's name
	// Quantized are methods of quantization whose tensors the rows take as they are.
	Quantized []string
	// RopePerAttention and RopeSections tell that the architecture knows rope
	// settings per kind of attention, or for more than one axis.
	RopePerAttention, RopeSections bool
	Dense                          bool // it knows dense modules
	// Unused are config keys that may have any value: no loader asks for them. Those
	// of rope settings begin with "rope_scaling.".
	Unused  []string
	Expect  []Expect // config keys that change arithmetic and have one meaning here
	Rename  []Rename // the first that fits is done
	Drop    []Drop
	Tensors []TensorRow // what becomes of each tensor of the checkpoint
	// KeepAll lets the rows see names that look like parts for pictures or sound.
	KeepAll bool
	Extra   []ExtraTensor
	// Instead returns the table that a config of these classes asks for, nil for
	// this one.
	Instead func(*Config) (*Arch, error)

	lookup lookup
}

// maxBlocks bounds the number of layers; the largest known models have 126.
const maxBlocks = 1 << 16

// Blocks returns the number of layers.
func (a *Arch) Blocks(c *Config) (int64, error) {
	count := a.BlockCount
	if count == nil {
		count = (*Config).BlockCount
	}
	n, err := count(c)
	if err == nil && (n < 0 || n > maxBlocks) {
		err = fault.Errorf(fault.Broken, "%s: %d layers, want at most %d", ConfigFile, n, maxBlocks)
	}
	return n, err
}

//go:generate sh -c "cd .. && go run ./internal/gen/archtable"

// registry lists the architectures; a class belongs to one of them.
var registry = []*Arch{
	llama,

	arwkv7, bert, bloom, codeshell, distilbert, euroBert, falcon, falconH1, gpt2, gptj, gptneox, jamba, jinaBertV2, jinaBertV3, mamba, mamba2, modernBert, mpt,
	neoBert, nomicBert, nomicBertMoE, refact, roberta, ruGPT3XL, rwkv4, rwkv6, rwkv6qwen2, rwkv7, starcoder, starcoder2, t5, t5encoder, whisper, xlmRoberta,

	deepseek, deepseek2, embeddingGemma, gemma, gemma2, gemma3, glm4, glm4moe, gptOSS, granite, graniteHybrid, graniteMoE, llama4, mixtral, olmo, olmo2, olmoe,
	dots1, ernie4_5moe, grok1, grok2, hunyuanMoE, qwen2, qwen2moe, qwen2vl, qwen3, qwen3moe, qwen3next, qwen3vl, qwen3vlmoe,

	afmoe, apertus, arcee, arctic, bitnet, bailingMoE, bailingMoE2, dbrx, deci, groveMoE, jais, jais2, dream, llada, lladaMoE, maincoder, mellum, minimaxM2, mistral3, nanbeige, openELM, pangu, plm, seedOSS, smallThinker,
	baichuan, chatglm, cohere2, commandR, ernie4_5, exaone, exaone4, glm, hunyuanDense, internlm2, internlm3, lfm2, lfm2moe, minicpm, minicpm3, nemotron,
	orion, phi2, phi3, phimoe, plamo, plamo2, plamo3, smollm3, stablelm, xverse,
}

// Lookup returns the architecture of a Hugging Face class. An unknown class
// gives an error of kind fault.Unsupported that lists the known ones.
func Lookup(class string) (*Arch, error) {
	for _, a := range registry {
		if slices.Contains(a.Classes, class) {
			return a, nil
		}
	}
	return nil, fault.Errorf(fault.Unsupported, "%s: architecture %q is not supported; supported are: %s",
		ConfigFile, class, strings.Join(Classes(), ", "))
}

// For returns the architecture of a model: that of its class, or what the class
// has for such a config.
func For(c *Config) (*Arch, error) {
	a, err := Lookup(c.Class)
	if err != nil || a.Instead == nil {
		return a, err
	}
	other, err := a.Instead(c)
	if err == nil && other != nil {
		a = other
	}
	return a, err
}

// All returns the tables of all architectures, sorted by name.
func All() []*Arch {
	all := slices.Clone(registry)
	slices.SortStableFunc(all, func(a, b *Arch) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Classes returns all Hugging Face class names, sorted.
func Classes() []string {
	var all []string
	for _, a := range registry {
		all = append(all, a.Classes...)
	}
	slices.Sort(all)
	return all
}

// Unread lists the config keys that nothing asked for and that might mean
// something, see Config.Unread, less those that mean nothing here.
func (a *Arch) Unread(c *Config) []string {
	return slices.DeleteFunc(c.Unread(), func(key string) bool {
		return slices.ContainsFunc(a.Unused, func(u string) bool { return key == u || strings.HasPrefix(key, u+".") })
	})
}

// KVs returns the metadata below the architecture's name, general.file_type
// among it, in the order of the reference; early holds what stands before
// general.type.
func (a *Arch) KVs(c *Config, fileType uint32) (early, m gguf.Metadata, err error) {
	for _, e := range a.Expect {
		if err := e.check(a, c); err != nil {
			return nil, nil, err
		}
	}
	for _, r := range []struct {
		key   string
		known bool
	}{
		{"full_attention", a.RopePerAttention}, {"sliding_attention", a.RopePerAttention}, {"mrope_section", a.RopeSections},
	} {
		if c.rope[r.key] != nil && !r.known {
			return nil, nil, fault.Errorf(fault.Unsupported, "%s: rope setting %q has no meaning in architecture %s", ConfigFile, r.key, a.Name)
		}
	}
	if early, err = a.kvs(c, a.Early, fileType); err != nil {
		return nil, nil, err
	}
	m, err = a.kvs(c, a.Metadata, fileType)
	return early, m, err
}

func (a *Arch) kvs(c *Config, rows []Row, fileType uint32) (m gguf.Metadata, err error) {
	for _, r := range rows {
		if r.Key == gguf.KeyFileType {
			if r.Derive != nil {
				_, ok, err := r.Derive(c)
				if err != nil {
					return nil, err
				}
				if !ok {
					continue
				}
			}
			m.Set(r.Key, gguf.Uint32(fileType))
			continue
		}
		if r.Deviates && c.Reference {
			continue
		}
		v, ok, err := r.value(c)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		key := r.Key
		if !strings.HasPrefix(key, "general.") && !strings.HasPrefix(key, "tokenizer.") && !strings.HasPrefix(key, "diffusion.") {
			key = gguf.ArchKey(a.Name, key)
		}
		m.Set(key, v)
	}
	return m, nil
}

// Expect names a config key whose value decides the arithmetic of the model,
// where the GGUF architecture knows one kind of arithmetic only.
type Expect struct {
	Key    string
	Values []string // those that mean what the architecture does, as text; an absent key does too. None: the key must be absent
}

func (e Expect) check(a *Arch, c *Config) error {
	v := c.values[e.Key]
	s := fmt.Sprint(v)
	if v == nil || slices.Contains(e.Values, s) {
		c.read[e.Key] = c.read[e.Key] || !c.defaulted[e.Key]
		return nil
	}
	if len(e.Values) == 0 {
		return fault.Errorf(fault.Unsupported, "%s: key %q has no meaning in architecture %s, and it changes the model", ConfigFile, e.Key, a.Name)
	}
	return fault.Errorf(fault.Unsupported, "%s: key %q is %q, but models of architecture %s compute with %s only",
		ConfigFile, e.Key, s, a.Name, strings.Join(e.Values, " or "))
}

func init() {
	for _, a := range registry {
		for _, t := range a.Tensors {
			for _, name := range t.outputs(0, "") {
				if strings.Contains(strings.Join(t.outputs(1, ""), " "), name) == strings.Contains(t.HF, "{bid}") && !t.dropped() {
					panic("arch: " + a.Name + ": row " + t.HF + " maps to " + name)
				}
			}
		}
	}
}
