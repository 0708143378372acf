package arch

import (
	"slices"

	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/tokenizer"
)

var _ = register(maincoder)

// maincoder is Maincode's Maincoder. Source: the Maincoder class of the
// reference's converter.
var maincoder = &table.Arch{
	Name:      "maincoder",
	Classes:   []string{"MaincoderForCausalLM"},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.CommonRows,
		[]table.Row{parts.Optional(parts.UintRow("rope.dimension_count", "head_dim"))}),
	Expect: []table.Expect{parts.SiLU},
	Unused: parts.BiasKeys,
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.NoBias, table.NoBias),
		parts.QKNormRows, parts.MLPRows),
	Graph: parts.Decoder(graph.RMS, parts.GQA(parts.Interleaved, parts.QKNorm), parts.SwiGLU),
}
