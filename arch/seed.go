package arch

import (
	"slices"

	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/tokenizer"
)

var _ = register(seedOSS)

// seedOSS is ByteDance's Seed-OSS. Source: the SeedOss class of the
// reference's converter.
var seedOSS = &table.Arch{
	Name:      "seed_oss",
	Classes:   []string{"SeedOssForCausalLM"},
	Body:      table.Body{Classes: []string{"SeedOssModel"}, Prefix: "model."},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata:  parts.CommonRows,
	Expect:    []table.Expect{parts.SiLU},
	Unused:    append([]string{"attention_out_bias"}, parts.BiasKeys...),
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows[:1], parts.AttentionRows(table.MayBias, table.MayBias),
		parts.MLPRows, []table.TensorRow{
			{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.post_attention_norm"},
		}),
	Graph: &graph.Model{
		Norm: graph.RMS, Layer: parts.PreNormAs("post_attention_norm", parts.GQA(parts.NeoX), parts.SwiGLU),
		Final: parts.OutputNorm, Head: graph.LM{},
	},
}
