package arch

import (
	"slices"

	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/tokenizer"
)

// llama is the Llama family: Llama 1 to 3 and Mistral. Source: the Llama class of
// the reference's converter.
var llama = &table.Arch{
	Name:      "llama",
	Shapes:    shape.WholeHeadRotates,
	Classes:   []string{"LLaMAForCausalLM", "LlamaForCausalLM", "MistralForCausalLM"},
	Body:      table.Body{Classes: []string{"LlamaModel", "MistralModel"}, Prefix: "model."},
	Tokenizer: tokenizer.ClassLlama,
	Fused:     table.FusedQKV,
	Metadata:  parts.LlamaRows,
	Expect: []table.Expect{
		parts.SiLU,
		parts.Expect("draft_vocab_size"), // a draft model for another one
	},
	Tensors: parts.LlamaTensors,
	Extra:   parts.Llama3Extra,
}

// mixtral is Mixtral: Llama with experts. It shares the name, the metadata and
// the arithmetic of its attention.
var mixtral = &table.Arch{
	Name:      "llama",
	Shapes:    shape.WholeHeadRotates,
	Classes:   []string{"MixtralForCausalLM"},
	Body:      table.Body{Classes: []string{"MixtralModel"}, Prefix: "model."},
	Tokenizer: tokenizer.ClassLlama,
	Fused:     table.FusedQKV,
	Metadata:  parts.LlamaRows,
	Expect:    llama.Expect,
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows,
		parts.PermutedRows(table.MayBias),
		parts.MixtralExperts),
	Extra: parts.Llama3Extra,
}
