package arch

import (
	"slices"

	"ggforge/tokenizer"
)

// maincoder is Maincode's Maincoder. Source: the Maincoder class of the
// reference's converter.
var maincoder = &Arch{
	Name:      "maincoder",
	Classes:   []string{"MaincoderForCausalLM"},
	Tokenizer: tokenizer.ClassGPT2,
	Metadata:  slices.Concat(commonRows, []Row{optional(uintRow("rope.dimension_count", "head_dim"))}),
	Expect:    []Expect{silu},
	Unused:    biasKeys,
	Tensors:   slices.Concat(embedRows, normRows, attentionRows(NoBias, NoBias), qkNormRows, mlpRows),
}
