package arch

import (
	"slices"

	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/tokenizer"
)

var _ = register(dots1)

// dots1 is dots.llm1: the attention of Qwen 3, experts as in DeepSeek V3. Source:
// the Dots1 class of the reference's converter.
var dots1 = &table.Arch{
	Name:      "dots1",
	Classes:   []string{"Dots1ForCausalLM"},
	Body:      table.Body{Classes: []string{"Dots1Model"}, Prefix: "model."},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.QwenMoERows, []table.Row{
		parts.UintRow("leading_dense_block_count", "first_k_dense_replace"),
		parts.UintRow("expert_shared_count", "n_shared_experts"),
		parts.FloatRow("expert_weights_scale", "routed_scaling_factor"),
		parts.BoolRow("expert_weights_norm", "norm_topk_prob"),
	}),
	Unused: []string{"topk_method", "ep_size"},
	Expect: []table.Expect{parts.SiLU, parts.Expect("moe_layer_freq", "1"),
		parts.Expect("use_sliding_window", "false")},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.MayBias, table.NoBias),
		parts.QKNormRows, parts.Only(parts.DenseFirst, parts.MLPRows),
		parts.Only(parts.MoEAfter, slices.Concat(parts.ExpertRows, parts.FusedExpertRows,
			[]table.TensorRow{parts.CorrectionRow})), parts.Only(parts.SharedAfter, parts.SharedExpertRows)),
	Graph: parts.Decoder(graph.RMS, parts.GQA(parts.QKNorm, parts.NeoX),
		parts.Sparse(parts.Experts(parts.RouterBias, graph.MayShared), parts.SwiGLU)).Reading("expert_gating_func!", "expert_weights_norm", "expert_weights_scale"),
}
