package arch

import (
	"slices"

	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(rnd1)

// rnd1 is Radical Numerics' RND1, a Qwen 3 with experts that was trained to fill in
// masked tokens. Source: the RND1 class of the reference's converter.
var rnd1 = &table.Arch{
	Name:      "rnd1",
	Classes:   []string{"RND1"},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.QwenMoERows, []table.Row{
		{Key: "attention.causal", Const: gguf.Bool(false)},
		parts.Optional(parts.UintRow("tokenizer.ggml.mask_token_id", "mask_token_id")),
	}),
	Expect: []table.Expect{parts.SiLU, parts.Expect("norm_topk_prob", "true"),
		parts.Expect("decoder_sparse_step", "1"), parts.Expect("mlp_only_layers", "[]")},
	Unused: []string{"moe_backend", "num_diffusion_steps", "max_window_layers"},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.NoBias, table.NoBias),
		parts.QKNormRows, parts.ExpertRows, parts.FusedExpertRows),
	Graph: &graph.Model{
		Dims: graph.Dims{"n_ff_exp": parts.SharedWidth},
		Norm: graph.RMS,
		Layer: parts.PreNorm(parts.Bidirectional(parts.QKNorm, parts.NeoX),
			parts.Experts(parts.RouterTopK, graph.NoShared)),
		Final: parts.OutputNorm, Head: graph.LM{},
		Runtime: []graph.Quirk{graph.NoCache{}},
	},
}
