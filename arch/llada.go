package arch

import (
	"slices"

	"ggforge/gguf"
	"ggforge/tokenizer"
)

// lladaMoE is inclusionAI's LLaDA-MoE, a diffusion model. Source: the LLaDAMoE
// class of the reference's converter.
var lladaMoE = &Arch{
	Name:      "llada-moe",
	Classes:   []string{"LLaDAMoEModel", "LLaDAMoEModelLM"},
	Tokenizer: tokenizer.ClassGPT2,
	Metadata: slices.Concat(commonRows, []Row{
		optional(uintRow("expert_feed_forward_length", "expert_intermediate_size")),
		{Key: "tokenizer.ggml.mask_token_id", Const: gguf.Uint32(156895)},
		{Key: "attention.causal", Const: gguf.Bool(false)},
		{Key: "diffusion.shift_logits", Const: gguf.Bool(false)},
	}),
	Expect: []Expect{silu, {"norm_topk_prob", []string{"false"}}, {"qk_layernorm", []string{"true"}}, {"clip_qkv", nil}, {"num_shared_experts", []string{"0"}}},
	Unused: append([]string{"dense_intermediate_size", "moe_layer_freq", "multi_gate", "routed_scaling_factor", "router_num_group", "router_topk_group", "shared_expert_intermediate_size",
		"partial_rotary_factor", "output_dropout", "moe_router_score_function", "moe_router_enable_expert_bias", "moe_router_topk_scaling_factor", "first_k_dense_replace"}, biasKeys...),
	Tensors: slices.Concat(embedRows, normRows, attentionRows(NoBias, NoBias), qkNormRows, expertRows),
}

// dream and llada are diffusion models, which see what follows: HKU's Dream, a
// Qwen 2, and GSAI's LLaDA, a Llama under names of its own. Source: the classes of
// dream.py and llada.py of the reference's converter.
var (
	dream = &Arch{
		Name:      "dream",
		Classes:   []string{"DreamModel"},
		Tokenizer: tokenizer.ClassDream,
		Metadata: slices.Concat(commonRows, []Row{
			{Key: "pooling_type", Derive: poolingType},
			{Key: "attention.causal", Const: gguf.Bool(false)},
			optional(uintRow("tokenizer.ggml.mask_token_id", "mask_token_id")),
		}),
		Expect:  []Expect{silu},
		Unused:  append([]string{"max_window_layers", "sliding_window", "use_sliding_window", "use_mrope"}, biasKeys...),
		Tensors: slices.Concat(embedRows, normRows, attentionRows(MayBias, NoBias), mlpRows),
	}
	llada = &Arch{
		Name:      "llada",
		Classes:   []string{"LLaDAModelLM"},
		Tokenizer: tokenizer.ClassLLaDA,
		Metadata: slices.Concat(commonRows, []Row{
			{Key: "pooling_type", Derive: poolingType},
			uintRow("vocab_size", "vocab_size"),
			{Key: "rope.dimension_count", Derive: func(c *Config) (v gguf.Value, ok bool, err error) {
				if n, ok, err := c.Int("head_dim"); err != nil || ok {
					return uint32Of(n, ok, err)
				}
				heads, err := c.Require("num_attention_heads", "n_heads")
				if err != nil {
					return v, false, err
				}
				hidden, err := c.Require("hidden_size", "d_model")
				return uint32Of(hidden/max(heads, 1), true, err)
			}},
			{Key: "context_length", Derive: orElse(4096, "max_sequence_length")},
			{Key: "embedding_length", Derive: orElse(4096, "d_model")},
			{Key: "feed_forward_length", Derive: orElse(12288, "mlp_hidden_size")},
			{Key: "attention.causal", Const: gguf.Bool(false)},
			{Key: "diffusion.shift_logits", Const: gguf.Bool(false)},
		}),
		Expect: []Expect{
			{"activation_type", []string{"silu"}}, {"block_type", []string{"llama"}}, {"layer_norm_type", []string{"rms"}}, {"rope", []string{"true"}}, {"alibi", []string{"false"}},
			{"include_bias", []string{"false"}}, {"attention_layer_norm", []string{"false"}}, {"scale_logits", []string{"false"}}, {"input_emb_norm", []string{"false"}},
			{"weight_tying", []string{"false"}},
		},
		Unused: []string{"alibi_bias_max", "attention_layer_norm_with_affine", "bias_for_layer_norm", "block_group_size", "embedding_size", "flash_attention", "include_qkv_bias", "init_cutoff_factor",
			"init_fn", "init_std", "layer_norm_with_affine", "mlp_ratio", "multi_query_attention", "precision", "rope_full_precision", "d_model"},
		Tensors: []TensorRow{
			{HF: "model.transformer.wte", GGUF: "token_embd"},
			{HF: "model.transformer.ln_f", GGUF: "output_norm"},
			{HF: "model.transformer.ff_out", GGUF: "output"},
			{HF: "model.transformer.blocks.{bid}.attn_norm", GGUF: "blk.{bid}.attn_norm"},
			{HF: "model.transformer.blocks.{bid}.q_proj", GGUF: "blk.{bid}.attn_q", Transform: permuteQ},
			{HF: "model.transformer.blocks.{bid}.k_proj", GGUF: "blk.{bid}.attn_k", Transform: permuteK},
			{HF: "model.transformer.blocks.{bid}.v_proj", GGUF: "blk.{bid}.attn_v"},
			{HF: "model.transformer.blocks.{bid}.attn_out", GGUF: "blk.{bid}.attn_output"},
			{HF: "model.transformer.blocks.{bid}.ff_norm", GGUF: "blk.{bid}.ffn_norm"},
			{HF: "model.transformer.blocks.{bid}.ff_proj", GGUF: "blk.{bid}.ffn_gate"},
			{HF: "model.transformer.blocks.{bid}.up_proj", GGUF: "blk.{bid}.ffn_up"},
			{HF: "model.transformer.blocks.{bid}.ff_out", GGUF: "blk.{bid}.ffn_down"},
		},
	}
)
