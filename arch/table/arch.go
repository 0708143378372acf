package table

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/shape"
	"ggforge/fault"
	"ggforge/tokenizer"
)

// Arch describes one architecture, or one of several checkpoint layouts of it: tables of the same Name differ in
// their classes.
type Arch struct {
	Name    string   // GGUF name, general.architecture
	Classes []string // Hugging Face class names ("architectures" of config.json)
	// Body has the classes of the model without its output head.
	Body      Body
	Tokenizer tokenizer.Rules
	Fused     Fused
	// VocabSize returns the size of the vocabulary; nil for the config's vocab_size.
	VocabSize func(*config.View) (int64, error)
	// Config has the rules for config.json that go beyond its keys.
	Config config.Rules
	// BlockCount returns the number of layers; nil for the config's number plus NextN's.
	BlockCount func(*config.View) (int64, error)
	// NextN describes MTP (NextN) layers that can be left out or written to a separate file; nil for all other
	// architectures.
	NextN *NextN
	// Encoder is set in tables of vision and audio encoders; nil for language models.
	Encoder     *Encoder
	HeaderFirst []Row // rows before general.type
	Metadata    []Row // in the order the file has them, below the architecture's name
	// RopePerAttention and RopeSections: the architecture has RoPE settings per kind of attention (full_attention,
	// sliding_attention), or M-RoPE sections.
	RopePerAttention, RopeSections bool
	// Unused are config keys that may have any value: no loader reads them. Those of RoPE settings begin with
	// "rope_scaling.".
	Unused  []string
	Expect  []Expect // config keys that change arithmetic and have one meaning here
	Rename  []Rename // the first match applies
	Drop    []Drop
	Tensors []TensorRow // the output of each tensor of the checkpoint
	// Shapes has the dimensions of tensors that differ from the usual ones of their names.
	Shapes shape.Rules
	// Graph is what a file of the architecture computes; nil: nobody has declared it yet. Tables of one Name have the
	// same graph, or none: files of decision models have further layers.
	Graph   *graph.Model
	Extra   []ExtraTensor
	Special []Special // properties that few tables have
	// Variant returns the table for a config, nil for this one.
	Variant func(*config.View) (*Arch, error)
	// Variants are the tables that Variant may return.
	Variants []*Arch

	lookup lookup
}

// Encoder describes a vision or audio encoder with its multimodal projector. Its file is separate: general.type is
// mmproj, and there is no vocabulary. The table also has rows that drop the language model's tensors.
type Encoder struct {
	// Parts are the encoder's sub-configs; their unread keys are reported.
	Parts []In
	// Facts are the files that tensor rows need besides config.json, see Row.Facts.
	Facts []*config.Source
}

// Fused is a set of tensors that files of an architecture may hold fused. Source:
// the lists of tensors per architecture in gguf-py's constants.py.
type Fused uint8

const (
	FusedQKV    Fused = 1 << iota // query, key and value in one, attn_qkv
	FusedGateUp                   // gate and up projections of experts in one, ffn_gate_up_exps
)

// Sources lists the files that the rows need besides config.json.
func (a *Arch) Sources() []*config.Source {
	var list []*config.Source
	for _, r := range slices.Concat(a.HeaderFirst, a.Metadata) {
		if r.Facts != nil && !slices.Contains(list, r.Facts) {
			list = append(list, r.Facts)
		}
	}
	if a.Encoder != nil {
		list = append(list, a.Encoder.Facts...)
	}
	return list
}

// Body describes checkpoints of the base model classes (LlamaModel in LlamaForCausalLM): tensor names lack Prefix, and
// there is no output head.
type Body struct {
	Classes []string
	Prefix  string
}

// Headless reports whether a checkpoint lacks the output head although it is not tied to the token embedding.
func (a *Arch) Headless(c *config.View) bool {
	return slices.Contains(a.Body.Classes, c.Class) && c.Given("tie_word_embeddings") != true
}

// Blocks returns the number of layers.
func (a *Arch) Blocks(c *config.View) (int64, error) {
	count := a.BlockCount
	switch {
	case count != nil:
	case a.NextN != nil:
		count = a.NextN.blocks
	default:
		count = (*config.View).BlockCount
	}
	n, err := count(c)
	if err == nil && (n < 0 || n > config.MaxBlocks) {
		err = fault.Errorf(fault.Broken, "%s: %d layers, want at most %d", c.FileName(), n, config.MaxBlocks)
	}
	return n, err
}
