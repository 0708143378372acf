package arch

import (
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

// gelu are the names of GELU: the exact function and its approximations, which
// the runtime does not tell apart.
var gelu = []string{"gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"}

// no is what keys of features must be that the architecture does not have.
var no = []string{"false"}

// gpt2 has position embeddings and layers whose weights are stored transposed.
// Sources: gpt2.py of the reference's converter; unlike it, the table leaves out
// the buffers of the causal mask that older checkpoints hold.
var gpt2 = &Arch{
	Name:      "gpt2",
	Classes:   []string{"GPT2LMHeadModel"},
	Tokenizer: tokenizer.ClassGPT2,
	Metadata: []Row{
		{Key: keyBlockCount, Type: gguf.Uint32Type, From: blockCountKeys, Required: true},
		{Key: "context_length", Type: gguf.Uint32Type, From: []string{"n_ctx", "n_positions"}, Required: true},
		{Key: "embedding_length", Type: gguf.Uint32Type, From: []string{"n_embd"}, Required: true},
		{Key: "feed_forward_length", Derive: innerOr4("n_embd")},
		{Key: keyHeadCount, Type: gguf.Uint32Type, From: []string{"n_head"}, Required: true},
		{Key: "attention.layer_norm_epsilon", Type: gguf.Float32Type, From: []string{"layer_norm_epsilon"}, Required: true},
		{Key: gguf.KeyFileType},
	},
	Unused: []string{"n_positions", "reorder_and_upcast_attn"},
	Expect: []Expect{
		{"activation_function", gelu},
		{"scale_attn_weights", []string{"true"}},
		{"scale_attn_by_inverse_layer_idx", no},
		{"add_cross_attention", no},
	},
	Rename: []Rename{{Prefix: "transformer.", With: ""}},
	Tensors: []TensorRow{
		{HF: "wte", GGUF: "token_embd"},
		{HF: "wpe", GGUF: "position_embd"},
		{HF: "ln_f", GGUF: "output_norm", Bias: NeedBias},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "h.{bid}.ln_1", GGUF: "blk.{bid}.attn_norm", Bias: NeedBias},
		{HF: "h.{bid}.attn.c_attn", GGUF: "blk.{bid}.attn_qkv", Transform: transpose, Bias: NeedBias},
		{HF: "h.{bid}.attn.c_proj", GGUF: "blk.{bid}.attn_output", Transform: transpose, Bias: NeedBias},
		{HF: "h.{bid}.ln_2", GGUF: "blk.{bid}.ffn_norm", Bias: NeedBias},
		{HF: "h.{bid}.mlp.c_fc", GGUF: "blk.{bid}.ffn_up", Transform: transpose, Bias: NeedBias},
		{HF: "h.{bid}.mlp.c_proj", GGUF: "blk.{bid}.ffn_down", Transform: transpose, Bias: NeedBias},
		// the mask and the number that stands for minus infinity in it
		{HF: "h.{bid}.attn.bias"},
		{HF: "h.{bid}.attn.masked_bias"},
	},
}

// ruGPT3XL is GPT-2 in a layout of its own: queries, keys and values apart, and
// no transposed weights. Source: RuGPT3XLModel of the reference.
var ruGPT3XL = &Arch{
	Name:      "gpt2",
	Classes:   []string{"RuGPT3XLForCausalLM"},
	Tokenizer: tokenizer.ClassGPT2,
	Metadata:  commonRows,
	Expect: []Expect{
		{"activation_function", gelu}, {"hidden_act", gelu},
		{"rope_scaling", nil},
	},
	Tensors: []TensorRow{
		{HF: "model.embed_tokens", GGUF: "token_embd"},
		{HF: "model.embed_positions", GGUF: "position_embd"},
		{HF: "model.norm", GGUF: "output_norm", Bias: NeedBias},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm", Bias: NeedBias},
		{HF: "model.layers.{bid}.self_attn.{part}_proj", GGUF: "blk.{bid}.attn_qkv", Parts: []string{"q", "k", "v"}, Bias: NeedBias},
		{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output", Bias: NeedBias},
		{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.ffn_norm", Bias: NeedBias},
		{HF: "model.layers.{bid}.mlp.up_proj", GGUF: "blk.{bid}.ffn_up", Bias: NeedBias},
		{HF: "model.layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down", Bias: NeedBias},
	},
}

// starcoder is GPT-2 with one head of keys and values. Source: starcoder.py of
// the reference.
var starcoder = &Arch{
	Name:      "starcoder",
	Classes:   []string{"GPTBigCodeForCausalLM"},
	Tokenizer: tokenizer.ClassGPT2,
	Metadata: []Row{
		{Key: "context_length", Type: gguf.Uint32Type, From: []string{"n_positions"}, Required: true},
		{Key: "embedding_length", Type: gguf.Uint32Type, From: []string{"n_embd"}, Required: true},
		{Key: "feed_forward_length", Derive: innerOr4("n_embd")},
		{Key: keyBlockCount, Type: gguf.Uint32Type, From: blockCountKeys, Required: true},
		{Key: keyHeadCount, Type: gguf.Uint32Type, From: []string{"n_head"}, Required: true},
		{Key: keyHeadCountKV, Const: gguf.Uint32(1)},
		{Key: "attention.layer_norm_epsilon", Type: gguf.Float32Type, From: []string{"layer_norm_epsilon"}, Required: true},
		{Key: gguf.KeyFileType},
	},
	Unused: []string{"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "inference_runner", "max_batch_size", "max_sequence_length", "pad_key_length",
		"pre_allocate_kv_cache", "validate_runner_input", "n_ctx"},
	Expect: []Expect{
		{"activation_function", gelu},
		{"multi_query", []string{"true"}},
		{"scale_attn_weights", []string{"true"}},
		{"add_cross_attention", no},
	},
	Tensors: slices.Concat(gpt2Tensors(nil), []TensorRow{{HF: "transformer.wpe", GGUF: "position_embd"}}),
}

// codeshell is GPT-2 with rope and groups of heads. Source: codeshell.py of the
// reference.
var codeshell = &Arch{
	Name:      "codeshell",
	Classes:   []string{"CodeShellForCausalLM"},
	Tokenizer: tokenizer.ClassGPT2,
	Metadata: []Row{
		{Key: "context_length", Type: gguf.Uint32Type, From: []string{"n_positions"}, Required: true},
		{Key: "embedding_length", Type: gguf.Uint32Type, From: []string{"n_embd"}, Required: true},
		{Key: "feed_forward_length", Derive: innerOr4("n_embd")},
		{Key: keyBlockCount, Type: gguf.Uint32Type, From: blockCountKeys, Required: true},
		{Key: keyHeadCount, Type: gguf.Uint32Type, From: []string{"n_head"}, Required: true},
		{Key: keyHeadCountKV, Type: gguf.Uint32Type, From: []string{"num_query_groups"}, Required: true},
		{Key: "attention.layer_norm_epsilon", Type: gguf.Float32Type, From: []string{"layer_norm_epsilon"}, Required: true},
		{Key: gguf.KeyFileType},
		{Key: "rope.freq_base", Const: gguf.Float32(10000)},
		{Key: "rope.scaling.type", Const: gguf.String("linear")},
		{Key: "rope.scaling.factor", Const: gguf.Float32(1)},
	},
	Unused: []string{"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "group_query_attention", "n_ctx"},
	Expect: []Expect{
		{"activation_function", gelu},
		{"position_embedding_type", []string{"rope"}},
		{"scale_attn_weights", []string{"true"}},
		{"rope_scaling", nil},
		{"rope_theta", []string{"10000", "10000.0"}},
		{"add_cross_attention", no},
	},
	Tensors: gpt2Tensors(nil),
}

// gpt2Tensors returns the rows of the names of GPT-2, all with biases, where
// nothing is transposed; qkv is for the joined weights of attention.
func gpt2Tensors(qkv *Transform) []TensorRow {
	return []TensorRow{
		{HF: "transformer.wte", GGUF: "token_embd"},
		{HF: "transformer.ln_f", GGUF: "output_norm", Bias: NeedBias},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "transformer.h.{bid}.ln_1", GGUF: "blk.{bid}.attn_norm", Bias: NeedBias},
		{HF: "transformer.h.{bid}.attn.c_attn", GGUF: "blk.{bid}.attn_qkv", Transform: qkv, Bias: NeedBias},
		{HF: "transformer.h.{bid}.attn.c_proj", GGUF: "blk.{bid}.attn_output", Bias: NeedBias},
		{HF: "transformer.h.{bid}.ln_2", GGUF: "blk.{bid}.ffn_norm", Bias: NeedBias},
		{HF: "transformer.h.{bid}.mlp.c_fc", GGUF: "blk.{bid}.ffn_up", Bias: NeedBias},
		{HF: "transformer.h.{bid}.mlp.c_proj", GGUF: "blk.{bid}.ffn_down", Bias: NeedBias},
	}
}

// innerOr4 returns the width of the MLP: n_inner, or four times the model's under
// key. The reference takes the latter whatever n_inner is, which no loader accepts
// when they differ.
func innerOr4(key string) Derive {
	return func(c *Config) (gguf.Value, bool, error) {
		if n, ok, err := c.Int("n_inner"); err != nil || ok && !c.Reference {
			return uint32Of(n, ok, err)
		}
		return times(4, key)(c)
	}
}

// times returns factor times the value of a key that must be there.
func times(factor int64, key string) Derive {
	return func(c *Config) (gguf.Value, bool, error) {
		n, err := c.Require(key)
		if err == nil && (n < 0 || n > maxWidth) {
			err = wrongType(key, "a number of elements", n)
		}
		return uint32Of(factor*n, true, err)
	}
}

// maxWidth bounds the numbers that widths are computed from; the largest known
// models have 262144 columns.
const maxWidth = 1 << 28

// transpose exchanges the dimensions of a matrix; biases stay as they are.
var transpose = &Transform{
	Name:    "transpose",
	Forward: func(_ Layer, s rows.Source) (rows.Source, error) { return transposed(s) },
	Inverse: func(_ *Keys, s rows.Source) (rows.Source, error) { return transposed(s) },
}

func transposed(s rows.Source) (rows.Source, error) {
	switch n := len(s.NE()); n {
	case 1:
		return s, nil
	case 2:
		return rows.Transpose(s)
	default:
		return nil, fault.Errorf(fault.Broken, "dimensions %s, want a matrix", gguf.Shape(s.NE()))
	}
}
