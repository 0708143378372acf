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
