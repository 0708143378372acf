package arch

import (
	"slices"

	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/tokenizer"
)

// minimaxM2 is MiniMax's M2. Source: the MiniMaxM2 class of the
// reference's converter.
var minimaxM2 = &table.Arch{
	Name:      "minimax-m2",
	Shapes:    shape.Rules{Tensors: shape.NormsOfHeads},
	Classes:   []string{"MiniMaxM2ForCausalLM"},
	Body:      table.Body{Classes: []string{"MiniMaxM2Model"}, Prefix: "model."},
	Tokenizer: tokenizer.ClassGPT2,
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.UintRow("expert_feed_forward_length", "intermediate_size"),
		parts.UintRow("rope.dimension_count", "rotary_dim"),
	}),
	Expect: []table.Expect{parts.SiLU, parts.Expect("use_qk_norm", "true"), parts.Expect("qk_norm_type", "per_layer"), parts.Expect("use_routing_bias", "true"),
		parts.Expect("shared_intermediate_size", "0")},
	Unused: append([]string{"attn_type_list", "mtp_transformer_layers", "num_mtp_modules", "use_mtp", "layernorm_full_attention_beta", "layernorm_linear_attention_beta",
		"layernorm_mlp_beta", "output_router_logits", "router_aux_loss_coef", "mlp_intermediate_size", "shared_moe_mode", "max_model_len", "attn_window_size"}, parts.BiasKeys...),
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.NoBias, table.NoBias), parts.QKNormRows, parts.MixtralExperts, []table.TensorRow{
		{HF: "model.layers.{bid}.block_sparse_moe.e_score_correction_bias", GGUF: "blk.{bid}.exp_probs_b.bias", Exact: true},
	}),
}
