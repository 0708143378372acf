package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/gguf"
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
	Tensors:  parts.LlamaTensors,
	Extra:    parts.Llama3Extra,
	Variants: []*table.Arch{eagle3},
	Variant: func(c *config.View) (*table.Arch, error) {
		if layers, _, err := c.Int("num_hidden_layers"); err != nil || layers != 1 || !c.Has("draft_vocab_size") {
			return nil, err
		}
		return eagle3, nil
	},
}

// eagle3 is an EAGLE-3 draft: one layer of Llama that sees, next to the embedding, the
// states of some layers of the model that it drafts for. It mostly has few of that
// model's tokens in its output.
var eagle3 = &table.Arch{
	Name: "eagle3",
	Shapes: shape.Rules{
		Dims: shape.Table{"n_seen": "#target_layers * @target_hidden_size"},
		Tensors: shape.Table{"attn_q": "2 * n_embd, n_embd_q", "attn_k": "2 * n_embd, n_embd_k",
			"attn_v": "2 * n_embd, n_embd_v", "attn_norm_2": "n_embd",
			"fc": "n_seen, n_embd", "output_norm": "n_embd | n_seen", "output": "n_embd, ?n_draft", "d2t": "?n_draft"},
		Relations: shape.WholeHeadRotates.Relations,
	},
	Classes:   []string{"LlamaForCausalLMEagle3", "Eagle3LlamaForCausalLM", "Eagle3Speculator", "Eagle3DraftModel"},
	Tokenizer: tokenizer.ClassLlama,
	Draft:     true,
	HeaderFirst: []table.Row{
		{Key: "target_layers", Derive: eagleLayers},
		{Key: "target_hidden_size", Derive: func(c *config.View) (gguf.Value, bool, error) {
			if n, ok, err := c.RawConfig().Int("target_hidden_size"); ok || err != nil {
				return table.Uint32Of(n, ok, err)
			}
			target, err := parts.DraftTarget(c)
			if err != nil {
				return gguf.Value{}, false, err
			}
			n, err := target.Require("hidden_size")
			return table.Uint32Of(n, true, err)
		}},
		{Key: "norm_before_residual", Type: gguf.BoolType, From: []string{"norm_before_residual"},
			Const: gguf.Bool(false)},
		{Key: "norm_before_fc", Type: gguf.BoolType, From: []string{"norm_before_fc"}, Const: gguf.Bool(false)},
	},
	Metadata: parts.LlamaRows,
	Expect:   []table.Expect{parts.SiLU, parts.Expect("num_hidden_layers", "1")},
	Unused: slices.Concat([]string{"speculators_config", "speculators_model_type", "speculators_version",
		"eagle_config", "fc_norm", "embed_requires_grad",
		"has_no_defaults_at_init"}, parts.BiasKeys),
	Rename: append([]table.Rename{{Prefix: "midlayer.", With: "model.layers.0."}}, parts.HeadlessNames...),
	Drop:   []table.Drop{{Prefix: "t2d", Why: table.Silent}}, // d2t the other way round
	Tensors: slices.Concat([]table.TensorRow{
		{HF: "model.embed_tokens", GGUF: "token_embd", Optional: true},
		{HF: "model.norm", GGUF: "output_norm"},
		{HF: "lm_head", GGUF: "output", Optional: true, Transform: parts.DraftHead},
		{HF: "fc", GGUF: "fc"},
		{HF: "input_norm", GGUF: "enc.output_norm", Optional: true},
		{HF: "model.layers.{bid}.hidden_norm", GGUF: "blk.{bid}.attn_norm_2"},
		{HF: "d2t", Exact: true, Optional: true, GGUF: "d2t", Type: table.Always(gguf.TypeI64), Kind: table.Last{},
			Transform: parts.DraftTokens},
	}, parts.NormRows, parts.PermutedRows(table.MayBias), parts.WithBias(table.MayBias, parts.MLPRows)),
	Extra: parts.Llama3Extra,
}

// eagleLayers writes the layers whose states the draft sees: near the first, in the
// middle and near the last, if its config.json does not say.
func eagleLayers(c *config.View) (v gguf.Value, ok bool, err error) {
	layers, _, err := c.RawConfig().Ints("eagle_aux_hidden_state_layer_ids")
	if err == nil && len(layers) == 0 {
		target, err := parts.DraftTarget(c)
		if err != nil {
			return v, false, err
		}
		n, err := target.BlockCount()
		if err != nil {
			return v, false, err
		}
		layers = []int64{2, n / 2, n - 3}
	}
	return parts.PerLayer(layers, err)
}

// llamaInMultimodal is the Llama inside of multimodal models, some with names of
// their own: Pixtral and Voxtral, SmolVLM, Janus, Sarashina.
var llamaInMultimodal = &table.Arch{
	Name:   "llama",
	Shapes: shape.WholeHeadRotates,
	Classes: []string{"LlavaForConditionalGeneration", "VoxtralForConditionalGeneration", smolVLM, janus,
		sarashina2Vision},
	Tokenizer: tokenizer.ClassLlama,
	Fused:     table.FusedQKV,
	Metadata:  parts.LlamaRows,
	Unused: slices.Concat(parts.MultimodalKeys, []string{"vq_config", "generation_config", "neftune_noise_alpha",
		"is_llama_config", "pixel_shuffle_factor",
		"use_reentrant_checkpointing", "perceiver_config"}),
	Expect: slices.Concat(llama.Expect, []table.Expect{parts.Expect("qk_layer_norms", "false"),
		parts.Expect("rope_interleaved", "false")}),
	Rename: []table.Rename{
		{Prefix: "model.text_model.", With: "model.", If: parts.ClassIs(smolVLM)},
		{Prefix: "llm.", With: "", If: parts.ClassIs(sarashina2Vision)},
	},
	Drop: slices.Concat(
		otherParts(janus, "model.aligner.", "model.vqmodel.", "model.generation_embeddings.",
			"model.generation_aligner.", "model.generation_head."),
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

// otherParts leaves out what models of a class have in addition to the language model
// under names that do not show it.
func otherParts(class string, prefixes ...string) (list []table.Drop) {
	for _, p := range prefixes {
		list = append(list, table.Drop{Prefix: p, Why: table.OtherPart, If: parts.ClassIs(class)})
	}
	return list
}

// llamaEmbed is NVIDIA's Llama Embed Nemotron: a Llama with bidirectional attention. The reference writes neither
// that nor how the states are pooled, but loaders know the former by the name of the architecture.
var llamaEmbed = &table.Arch{
	Name:      "llama-embed",
	Shapes:    shape.WholeHeadRotates,
	Classes:   []string{"LlamaBidirectionalModel"},
	Tokenizer: tokenizer.ClassLlama,
	Fused:     table.FusedQKV,
	Metadata:  parts.LlamaRows,
	Expect:    llama.Expect,
	Rename:    parts.HeadlessNames,
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
