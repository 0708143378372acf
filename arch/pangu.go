package arch

import (
	"slices"

	"ggforge/tokenizer"
)

// pangu is Huawei's openPangu Embedded. Source: the PanguEmbedded class of the
// reference's converter.
var pangu = &Arch{
	Name:      "pangu-embedded",
	Classes:   []string{"PanguEmbeddedForCausalLM"},
	Tokenizer: tokenizer.ClassErnie, // the same rules
	Metadata: slices.Concat(commonRows, []Row{
		uintRow("vocab_size", "vocab_size"),
		{Key: "rope.dimension_count", Derive: ropeDimensionCount},
		{Key: "attention.key_length", Derive: ropeDimensionCount},
		{Key: "attention.value_length", Derive: ropeDimensionCount},
	}),
	Expect:  []Expect{silu},
	Unused:  biasKeys,
	Drop:    []Drop{{Prefix: "lm_head.weight", Why: silent, If: tied}},
	Tensors: slices.Concat(embedRows, normRows, attentionRows(MayBias, MayBias), mlpRows),
}
