package arch

import (
	"slices"

	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/tokenizer"
)

var _ = register(pangu)

// pangu is Huawei's openPangu Embedded. Source: the PanguEmbedded class of the
// reference's converter.
var pangu = &table.Arch{
	Name:      "pangu-embedded",
	Classes:   []string{"PanguEmbeddedForCausalLM"},
	Tokenizer: tokenizer.SentencePiece{Then: tokenizer.Steps{tokenizer.AddSpacePrefix{}}}, // the same rules
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.UintRow("vocab_size", "vocab_size"),
		parts.RopeDimensionRow,
		{Key: "attention.key_length", Derive: parts.RopeDimensionCount},
		{Key: "attention.value_length", Derive: parts.RopeDimensionCount},
	}),
	Expect: []table.Expect{parts.SiLU},
	Unused: parts.BiasKeys,
	Drop:   []table.Drop{{Prefix: "lm_head.weight", Why: table.Silent, If: parts.Tied}},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.MayBias, table.MayBias),
		parts.MLPRows),
	Graph: parts.Decoder(graph.RMS, parts.GQA(parts.NeoX), parts.SwiGLU),
}
