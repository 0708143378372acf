package arch

import (
	"slices"

	"ggforge/tokenizer"
)

// minimaxM2 is MiniMax's M2. Source: the MiniMaxM2 class of the
// reference's converter.
var minimaxM2 = &Arch{
	Name:      "minimax-m2",
	Classes:   []string{"MiniMaxM2ForCausalLM"},
	Tokenizer: tokenizer.ClassGPT2,
	Metadata: slices.Concat(commonRows, []Row{
		uintRow("expert_feed_forward_length", "intermediate_size"),
		uintRow("rope.dimension_count", "rotary_dim"),
	}),
	Expect: []Expect{silu, {"use_qk_norm", []string{"true"}}, {"qk_norm_type", []string{"per_layer"}}, {"use_routing_bias", []string{"true"}},
		{"shared_intermediate_size", []string{"0"}}},
	Unused: append([]string{"attn_type_list", "mtp_transformer_layers", "num_mtp_modules", "use_mtp", "layernorm_full_attention_beta", "layernorm_linear_attention_beta",
		"layernorm_mlp_beta", "output_router_logits", "router_aux_loss_coef", "mlp_intermediate_size", "shared_moe_mode", "max_model_len", "attn_window_size"}, biasKeys...),
	Tensors: slices.Concat(embedRows, normRows, attentionRows(NoBias, NoBias), qkNormRows, mixtralExperts, []TensorRow{
		{HF: "model.layers.{bid}.block_sparse_moe.e_score_correction_bias", GGUF: "blk.{bid}.exp_probs_b.bias", Exact: true},
	}),
}
