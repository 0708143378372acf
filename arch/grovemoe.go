package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(groveMoE)

// groveMoE is inclusionAI's GroveMoE: experts in groups, each with a small adjugate expert. Source: the GroveMoe class
// of the reference's converter.
var groveMoE = &table.Arch{
	Name:      "grovemoe",
	Classes:   []string{"GroveMoeForCausalLM", "modeling_grove_moe.GroveMoeForCausalLM"},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.Optional(parts.UintRow("expert_feed_forward_length", "moe_intermediate_size")),
		// the three constants are in the model's code, not in its config
		{Key: "expert_chunk_feed_forward_length", Type: gguf.Uint32Type, From: []string{"head_dim"},
			Const: gguf.Uint32(128)},
		{Key: "experts_per_group", Const: gguf.Uint32(groveGroup)},
		{Key: "expert_group_scale", Const: gguf.Float32(0.05)},
	}),
	Expect: []table.Expect{parts.SiLU, parts.Expect("norm_topk_prob", "true"), parts.Expect("decoder_sparse_step", "1"),
		parts.Expect("use_sliding_window", "false")},
	Unused: append([]string{"max_window_layers", "mlp_only_layers", "sliding_window", "num_small_experts",
		"first_k_dense_replace"}, parts.BiasKeys...),
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.NoBias, table.NoBias),
		parts.QKNormRows, parts.ExpertRows, []table.TensorRow{
			{HF: "model.layers.{bid}.mlp.chunk_experts.{xid}.down_proj", GGUF: "blk.{bid}.ffn_down_chexps",
				Experts: groveChunks, Group: "chunk-experts"},
			{HF: "model.layers.{bid}.mlp.chunk_experts.{xid}.gate_proj", GGUF: "blk.{bid}.ffn_gate_chexps",
				Experts: groveChunks, Group: "chunk-experts"},
			{HF: "model.layers.{bid}.mlp.chunk_experts.{xid}.up_proj", GGUF: "blk.{bid}.ffn_up_chexps",
				Experts: groveChunks, Group: "chunk-experts"},
			{HF: "model.layers.{bid}.mlp.expert_bias"}, // the model's code does not use it
		}),
	Graph: parts.Decoder(graph.RMS, parts.GQA(parts.QKNorm, parts.NeoX), graph.MoE{
		Router: graph.Router{Score: graph.Softmax, ChosenBy: graph.Sigmoid, TopKNorm: true}, Experts: parts.SwiGLU, With: []graph.MoEOption{graph.GroupExperts{}},
	}),
}

// groveGroup is the number of experts in a group.
const groveGroup = 2

func groveChunks(l table.Layer) (int64, error) {
	n, err := l.Require(config.ExpertKeys...)
	return n / groveGroup, err
}
