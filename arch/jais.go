package arch

import (
	"slices"

	"ggforge/tokenizer"
)

// jais2 is Inception's Jais 2. Source: the Jais2 class of the
// reference's converter.
var jais2 = &Arch{
	Name:      "jais2",
	Classes:   []string{"Jais2ForCausalLM"},
	Tokenizer: tokenizer.ClassGPT2,
	Metadata:  slices.Concat(commonRows, []Row{{Key: "rope.dimension_count", Derive: ropeDimensionCount}}),
	Expect:    []Expect{{"hidden_act", []string{"relu2"}}},
	Unused:    biasKeys,
	Tensors: slices.Concat(embedRows[:1], embedRows[2:], withBias(NeedBias, embedRows[1:2]), withBias(NeedBias, normRows),
		attentionRows(MayBias, MayBias), withBias(MayBias, mlpRows[1:])),
}
