package arch

import (
	"slices"

	"ggforge/tokenizer"
)

// seedOSS is ByteDance's Seed-OSS. Source: the SeedOss class of the
// reference's converter.
var seedOSS = &Arch{
	Name:      "seed_oss",
	Classes:   []string{"SeedOssForCausalLM"},
	Tokenizer: tokenizer.ClassGPT2,
	Metadata:  commonRows,
	Expect:    []Expect{silu},
	Unused:    append([]string{"attention_out_bias"}, biasKeys...),
	Tensors: slices.Concat(embedRows, normRows[:1], attentionRows(MayBias, MayBias), mlpRows, []TensorRow{
		{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.post_attention_norm"},
	}),
}
