package parts

import (
	"ggforge/arch/table"
)

// BloomHeads are the keys of the number of heads of BLOOM.
var BloomHeads = []string{"n_head", "num_attention_heads"}

// Expect returns the row of a key whose value decides the arithmetic, with those
// that mean what the architecture does; without values the key must be absent.
func Expect(key string, values ...string) table.Expect {
	return table.Expect{Key: key, Values: values}
}

// SiLU is what feed-forward parts of nearly all decoders compute with.
var SiLU = table.Expect{Key: "hidden_act", Values: []string{"silu", "swish"}}

// GELU are the names of GELU: the exact function and its approximations, which
// the runtime does not distinguish.
var GELU = []string{"gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"}

// BiasKeys say which weights have a bias; the tensors show it.
var BiasKeys = []string{"attention_bias", "mlp_bias", "lm_head_bias", "use_bias", "qkv_bias", "use_qkv_bias", "bias"}

// PlainRopeType and PlainRopeFactor are for models of which the file cannot hold a
// scaling of rope frequencies.
var (
	PlainRopeType   = table.Expect{Key: "rope_type", Values: []string{"default"}, Rope: true}
	PlainRopeFactor = table.Expect{Key: "factor", Values: []string{"1"}, Rope: true}
)

// AnyTimeStep is the range of time steps that is none.
var AnyTimeStep = []string{"[0 Infinity]"}
