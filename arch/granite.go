package arch

import (
	"slices"

	"ggforge/gguf"
	"ggforge/tokenizer"
)

// granite is IBM's Granite 3: Llama with factors for the embedding, the scores,
// the residuals and the logits. Source: the Granite classes of the reference's
// converter, which knows no head_dim.
var granite = &Arch{
	Name:      "granite",
	Classes:   []string{"GraniteForCausalLM"},
	Tokenizer: tokenizer.ClassLlama,
	Metadata:  graniteRows,
	Expect:    []Expect{silu},
	Tensors: slices.Concat(embedRows, normRows, graniteAttention, []TensorRow{
		{HF: "model.layers.{bid}.mlp.gate_proj", GGUF: "blk.{bid}.ffn_gate", Bias: MayBias},
		{HF: "model.layers.{bid}.mlp.up_proj", GGUF: "blk.{bid}.ffn_up", Bias: MayBias},
		{HF: "model.layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down", Bias: MayBias},
	}),
}

var graniteRows = slices.Concat(without(commonRows, "attention.key_length", "attention.value_length"), []Row{
	{Key: "vocab_size", Type: gguf.Uint32Type, From: []string{"vocab_size"}, Required: true},
	{Key: "rope.dimension_count", Derive: func(c *Config) (gguf.Value, bool, error) {
		n, err := c.evenHeadDim()
		return uint32Of(n, true, err)
	}},
	{Key: "attention.scale", Derive: nonZero("attention_multiplier")},
	{Key: "embedding_scale", Derive: nonZero("embedding_multiplier")},
	{Key: "residual_scale", Derive: nonZero("residual_multiplier")},
	{Key: "logit_scale", Derive: nonZero("logits_scaling")},
})

// evenHeadDim is the size of a head as it follows from the other sizes.
func (c *Config) evenHeadDim() (int64, error) {
	hidden, err := c.Require("hidden_size")
	if err != nil {
		return 0, err
	}
	heads, err := c.heads()
	if err == nil && heads <= 0 {
		err = wrongType("num_attention_heads", "a positive integer", heads)
	}
	if err != nil {
		return 0, err
	}
	return hidden / heads, nil
}

var graniteAttention = each(each(attentionRows(MayBias, MayBias), ".q_proj", permuteQ), ".k_proj", permuteK)

// graniteMoE is Granite with experts, and maybe one that every token passes. Gate
// and up projections are one tensor, the gate first.
var graniteMoE = &Arch{
	Name:      "granitemoe",
	Classes:   []string{"GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM"},
	Tokenizer: tokenizer.ClassLlama,
	Metadata: slices.Concat(graniteRows, []Row{
		{Key: "expert_shared_feed_forward_length", Derive: func(c *Config) (gguf.Value, bool, error) {
			n, ok, err := c.Int("shared_intermediate_size")
			return uint32Of(n, ok && n != 0, err)
		}},
	}),
	Expect: []Expect{silu},
	Tensors: slices.Concat(embedRows, normRows, graniteAttention, []TensorRow{
		{HF: "model.layers.{bid}.block_sparse_moe.router.layer", GGUF: "blk.{bid}.ffn_gate_inp"},
		{HF: "model.layers.{bid}.block_sparse_moe.input_linear", Split: []Part{
			{GGUF: "blk.{bid}.ffn_gate_exps", Transform: half(0)},
			{GGUF: "blk.{bid}.ffn_up_exps", Transform: half(1)},
		}},
		{HF: "model.layers.{bid}.block_sparse_moe.output_linear", GGUF: "blk.{bid}.ffn_down_exps"},
	}, only(positive("shared_intermediate_size"), []TensorRow{
		{HF: "model.layers.{bid}.shared_mlp.input_linear", Split: []Part{
			{GGUF: "blk.{bid}.ffn_gate_shexp", Transform: half(0)},
			{GGUF: "blk.{bid}.ffn_up_shexp", Transform: half(1)},
		}},
		{HF: "model.layers.{bid}.shared_mlp.output_linear", GGUF: "blk.{bid}.ffn_down_shexp"},
	})),
}

// positive is the condition that a number is there and above 0.
func positive(key string) Cond {
	return func(l Layer) (bool, error) {
		n, _, err := l.Int(key)
		return n > 0, err
	}
}
