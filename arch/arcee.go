package arch

import (
	"slices"

	"ggforge/gguf"
	"ggforge/tokenizer"
)

// arcee and afmoe are Arcee's AFM and Trinity. Source: the classes of llama.py and
// afmoe.py of the reference's converter.
var (
	arcee = &Arch{
		Name:      "arcee",
		Classes:   []string{"ArceeForCausalLM"},
		Tokenizer: tokenizer.ClassLlama,
		Metadata:  slices.Concat(llamaRows, []Row{{Key: "pooling_type", Derive: poolingType}}),
		Expect:    []Expect{{"hidden_act", []string{"relu2"}}},
		Unused:    biasKeys,
		Tensors:   slices.Concat(embedRows, normRows, permutedRows(MayBias), withBias(MayBias, mlpRows[1:])),
		Extra:     llama.Extra,
	}
	afmoe = &Arch{
		Name:      "afmoe",
		Classes:   []string{"AfmoeForCausalLM"},
		Tokenizer: tokenizer.ClassLlama,
		Metadata: slices.Concat(llamaRows, []Row{
			optional(uintRow("expert_shared_count", "num_shared_experts")),
			optional(uintRow("expert_feed_forward_length", "moe_intermediate_size")),
			optional(uintRow("leading_dense_block_count", "num_dense_layers")),
			optional(boolRow("expert_weights_norm", "route_norm")),
			optional(floatRow("expert_weights_scale", "route_scale")),
			optional(uintRow("attention.sliding_window", "sliding_window")),
		}),
		Expect: []Expect{silu, {"mup_enabled", []string{"true"}}, {"global_attn_every_n_layers", []string{"4"}}, {"attention_bias", []string{"false"}}},
		Unused: []string{"layer_types", "load_balance_coeff", "num_expert_groups", "num_limited_groups", "use_grouped_mm", "n_group", "topk_group"},
		Tensors: slices.Concat(embedRows, attentionRows(NoBias, NoBias), qkNormRows, []TensorRow{
			{HF: "model.layers.{bid}.self_attn.gate_proj", GGUF: "blk.{bid}.attn_gate"},
			{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
			{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.post_attention_norm"},
			{HF: "model.layers.{bid}.pre_mlp_layernorm", GGUF: "blk.{bid}.ffn_norm"},
			{HF: "model.layers.{bid}.post_mlp_layernorm", GGUF: "blk.{bid}.post_ffw_norm"},
		}, only(firstDense("num_dense_layers"), mlpRows), only(not(firstDense("num_dense_layers")), slices.Concat([]TensorRow{
			{HF: "model.layers.{bid}.mlp.router.gate", GGUF: "blk.{bid}.ffn_gate_inp"},
			{HF: "model.layers.{bid}.mlp.expert_bias", GGUF: "blk.{bid}.exp_probs_b.bias", Exact: true},
			{HF: "model.layers.{bid}.mlp.experts.{xid}.gate_proj", GGUF: "blk.{bid}.ffn_gate_exps"},
			{HF: "model.layers.{bid}.mlp.experts.{xid}.up_proj", GGUF: "blk.{bid}.ffn_up_exps"},
			{HF: "model.layers.{bid}.mlp.experts.{xid}.down_proj", GGUF: "blk.{bid}.ffn_down_exps"},
		}, sharedExpertRows))),
		Extra: llama.Extra,
	}
)

// firstDense is the condition of the first layers, whose number is the value of a
// key: none when the config has no such key.
func firstDense(key string) Cond {
	return func(l Layer) (bool, error) {
		n, _, err := l.Int(key)
		return l.Bid < n, err
	}
}

// nanbeige is Nanbeige 4, whose layers may be passed several times. Source: the
// Nanbeige class of the reference's converter.
var nanbeige = &Arch{
	Name:      "nanbeige",
	Classes:   []string{"NanbeigeForCausalLM"},
	Tokenizer: tokenizer.ClassLlama,
	Metadata: slices.Concat(llamaRows, []Row{
		{Key: "num_loops", Derive: func(c *Config) (gguf.Value, bool, error) {
			n, _, err := c.Int("num_loops")
			return uint32Of(max(n, 1), true, err)
		}},
		{Key: "skip_loop_final_norm", Type: gguf.BoolType, From: []string{"skip_loop_final_norm"}, Const: gguf.Bool(false)},
	}),
	Expect:  []Expect{silu},
	Unused:  biasKeys,
	Tensors: slices.Concat(embedRows, normRows, permutedRows(NoBias), mlpRows),
	Extra:   llama.Extra,
}
