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
	Classes:   []string{"LLaMAForCausalLM", "LlamaForCausalLM", "MistralForCausalLM", "IQuestCoderForCausalLM"},
	Body:      table.Body{Classes: []string{"LlamaModel", "MistralModel"}, Prefix: "model."},
	Tokenizer: tokenizer.ClassLlama,
	Fused:     table.FusedQKV,
	Metadata:  parts.LlamaRows,
	Expect: []table.Expect{
		parts.SiLU,
		parts.Expect("draft_vocab_size"), // a draft model for another one
		parts.Expect("clip_qkv"),
	},
	Tensors: parts.LlamaTensors,
	Extra:   parts.Llama3Extra,
}

// llamaInside is the Llama inside of models that see or hear, some with names of
// their own: Pixtral and Voxtral, SmolVLM, Janus, Sarashina.
var llamaInside = &table.Arch{
	Name:      "llama",
	Shapes:    shape.WholeHeadRotates,
	Classes:   []string{"LlavaForConditionalGeneration", "VoxtralForConditionalGeneration", smolVLM, janus, sarashina2Vision},
	Tokenizer: tokenizer.ClassLlama,
	Fused:     table.FusedQKV,
	Metadata:  parts.LlamaRows,
	Unused: slices.Concat(parts.TowerKeys, []string{"vq_config", "generation_config", "neftune_noise_alpha", "is_llama_config", "pixel_shuffle_factor",
		"use_reentrant_checkpointing", "perceiver_config"}),
	Expect: slices.Concat(llama.Expect, []table.Expect{parts.Expect("qk_layer_norms", "false"), parts.Expect("rope_interleaved", "false")}),
	Rename: []table.Rename{
		{Prefix: "model.text_model.", With: "model.", If: parts.ClassIs(smolVLM)},
		{Prefix: "llm.", With: "", If: parts.ClassIs(sarashina2Vision)},
	},
	Drop: slices.Concat(
		otherParts(janus, "model.aligner.", "model.vqmodel.", "model.generation_embeddings.", "model.generation_aligner.", "model.generation_head."),
		otherParts(sarashina2Vision, "norm."),
	),
	Tensors: parts.LlamaTensors,
	Extra:   parts.Llama3Extra,
}

// The classes among them that have names of their own.
const (
	smolVLM          = "VLlama3ForCausalLM"
	janus            = "JanusForConditionalGeneration"
	sarashina2Vision = "Sarashina2VisionForCausalLM"
)

// otherParts leaves out what models of a class have besides the language model
// under names that do not show it.
func otherParts(class string, prefixes ...string) (list []table.Drop) {
	for _, p := range prefixes {
		list = append(list, table.Drop{Prefix: p, Why: table.OtherPart, If: parts.ClassIs(class)})
	}
	return list
}

// llamaEmbed is NVIDIA's Llama Embed Nemotron: a Llama whose tokens see each other.
// The reference writes neither that nor how the states are pooled, but loaders know
// the former by the name of the architecture.
var llamaEmbed = &table.Arch{
	Name:      "llama-embed",
	Shapes:    shape.WholeHeadRotates,
	Classes:   []string{"LlamaBidirectionalModel"},
	Tokenizer: tokenizer.ClassLlama,
	Fused:     table.FusedQKV,
	Metadata:  parts.LlamaRows,
	Expect:    llama.Expect,
	Rename:    parts.BareNames,
	Tensors:   parts.LlamaTensors,
	Extra:     parts.Llama3Extra,
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
