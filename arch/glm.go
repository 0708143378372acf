package arch

import (
	"slices"

	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

// glm4 is GLM-4 of April 2025 and its successors without experts. Source: the GLM
// classes of the reference's converter.
var glm4 = &table.Arch{
	Name:      "glm4",
	Shapes:    shape.Rules{Tensors: shape.GateInUp},
	Classes:   []string{"Glm4ForCausalLM"},
	Body:      table.Body{Classes: []string{"Glm4Model"}, Prefix: "model."},
	Tokenizer: tokenizer.ClassGLM4,
	Metadata:  slices.Concat(parts.CommonRows, []table.Row{{Key: "rope.dimension_count", Derive: parts.PartialRope(0.5)}}),
	Expect:    []table.Expect{parts.SiLU},
	Tensors: slices.Concat(parts.EmbedRows, parts.AttentionRows(table.MayBias, table.NoBias), []table.TensorRow{
		{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "model.layers.{bid}.post_self_attn_layernorm", GGUF: "blk.{bid}.post_attention_norm"},
		{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.ffn_norm"},
		{HF: "model.layers.{bid}.post_mlp_layernorm", GGUF: "blk.{bid}.post_ffw_norm"},
		{HF: "model.layers.{bid}.mlp.gate_up_proj", GGUF: "blk.{bid}.ffn_up"}, // the gate first
		{HF: "model.layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down"},
	}),
}

// glm4moe is GLM-4.5 and its successors. The layer that predicts further tokens
// is kept after the others.
var glm4moe = &table.Arch{
	Name:      "glm4moe",
	Shapes:    shape.Rules{Dims: shape.Table{"n_ff_exp": shape.SharedWidth}},
	Classes:   []string{"Glm4MoeForCausalLM"},
	Body:      table.Body{Classes: []string{"Glm4MoeModel"}, Prefix: "model."},
	Tokenizer: tokenizer.ClassGLM,
	Fused:     table.FusedQKV,
	NextN:     parts.Numbered,
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		{Key: "rope.dimension_count", Derive: parts.PartialRope(0.5)},
		parts.Optional(parts.UintRow("expert_count", "n_routed_experts")),
		parts.Optional(parts.UintRow("expert_feed_forward_length", "moe_intermediate_size")),
		parts.Optional(parts.UintRow("expert_shared_count", "n_shared_experts")),
		parts.Optional(parts.UintRow("leading_dense_block_count", "first_k_dense_replace")),
		{Key: "expert_gating_func", Const: gguf.Uint32(parts.GatingFuncs["sigmoid"])},
		parts.Optional(parts.FloatRow("expert_weights_scale", "routed_scaling_factor")),
		parts.Optional(parts.BoolRow("expert_weights_norm", "norm_topk_prob")),
		parts.NextNRow,
	}),
	Unused: []string{"use_qk_norm"}, // the norms show it
	Expect: []table.Expect{parts.SiLU},
	Tensors: slices.Concat(parts.EmbedRows, parts.AttentionRows(table.MayBias, table.NoBias), []table.TensorRow{
		{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.post_attention_norm"},
	}, parts.Only(parts.IsTrue("use_qk_norm"), parts.QKNormRows),
		parts.Only(parts.DenseFirst, parts.MLPRows), parts.Only(parts.MoEAfter, slices.Concat(parts.ExpertRows, []table.TensorRow{parts.CorrectionRow})), parts.Only(parts.SharedAfter, parts.SharedExpertRows),
		parts.Only(parts.NextN, parts.NextNRows)),
}
