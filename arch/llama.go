package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(llama, eagle3, llamaInMultimodal, llamaEmbed, mixtral)

// llama is the Llama family: Llama 1 to 3 and Mistral. Source: the Llama class of
// the reference's converter.
var llama = &table.Arch{
	Name:      "llama",
	Shapes:    shape.WholeHeadRotates,
	Classes:   []string{"LLaMAForCausalLM", "LlamaForCausalLM", "MistralForCausalLM", "IQuestCoderForCausalLM"},
	Body:      table.Body{Classes: []string{"LlamaModel", "MistralModel"}, Prefix: "model."},
	Tokenizer: tokenizer.Llama{},
	Fused:     table.FusedQKV,
	Metadata:  parts.LlamaRows,
	Expect: []table.Expect{
		parts.SiLU,
		parts.Expect("draft_vocab_size"), // only draft models have it
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
	Graph: parts.LlamaGraph,
}

// eagle3 is an EAGLE-3 draft model: one Llama layer, whose input is the embedding and hidden states of some layers of
// the target model. Its vocabulary is mostly a small part of the target model's.
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
	Tokenizer: tokenizer.Llama{},
	Special:   []table.Special{table.Draft{}},
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
	Drop:   []table.Drop{{Prefix: "t2d", Why: table.Silent}}, // the inverse of d2t
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

// eagleLayers writes the layers whose states the draft reads; without the key, layers near the first, in the middle and
// near the last.
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

// llamaInMultimodal is the Llama inside of multimodal models: Pixtral, Voxtral, SmolVLM, Janus, Sarashina.
var llamaInMultimodal = &table.Arch{
	Name:   "llama",
	Shapes: shape.WholeHeadRotates,
	Classes: []string{"LlavaForConditionalGeneration", "VoxtralForConditionalGeneration", smolVLM, janus,
		sarashina2Vision},
	Config:    config.Rules{Outer: []string{sarashina2Vision}},
	Tokenizer: tokenizer.Llama{},
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
	Graph:   parts.LlamaGraph,
}

// The classes of llamaInMultimodal with other tensor names.
const (
	smolVLM          = "VLlama3ForCausalLM"
	janus            = "JanusForConditionalGeneration"
	sarashina2Vision = "Sarashina2VisionForCausalLM"
)

// otherParts returns rows that drop tensors outside the language model, by prefixes that mean this in one class only.
func otherParts(class string, prefixes ...string) (list []table.Drop) {
	for _, p := range prefixes {
		list = append(list, table.Drop{Prefix: p, Why: table.OtherPart, If: parts.ClassIs(class)})
	}
	return list
}

// llamaEmbed is NVIDIA's Llama Embed Nemotron: a Llama with bidirectional attention. The reference writes neither
// attention.causal nor the pooling type; runtimes know the former by the architecture.
var llamaEmbed = &table.Arch{
	Name:      "llama-embed",
	Shapes:    shape.WholeHeadRotates,
	Classes:   []string{"LlamaBidirectionalModel"},
	Tokenizer: tokenizer.Llama{},
	Fused:     table.FusedQKV,
	Metadata:  parts.LlamaRows,
	Expect:    llama.Expect,
	Rename:    parts.HeadlessNames,
	Tensors:   parts.LlamaTensors,
	Extra:     parts.Llama3Extra,
	Graph: &graph.Model{
		Norm: graph.RMS, Layer: parts.PreNorm(parts.Bidirectional(parts.Interleaved), parts.SwiGLU),
		Final: parts.OutputNorm, Head: graph.Pool{},
		Runtime: []graph.Quirk{graph.NoLogits{}},
	},
}

// mixtral is Mixtral: Llama with experts, under the same general.architecture and with the same metadata.
var mixtral = &table.Arch{
	Name:      "llama",
	Shapes:    shape.WholeHeadRotates,
	Classes:   []string{"MixtralForCausalLM"},
	Body:      table.Body{Classes: []string{"MixtralModel"}, Prefix: "model."},
	Tokenizer: tokenizer.Llama{},
	Fused:     table.FusedQKV,
	Metadata:  parts.LlamaRows,
	Expect:    llama.Expect,
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows,
		parts.PermutedRows(table.MayBias),
		parts.MixtralExperts),
	Extra: parts.Llama3Extra,
	Graph: parts.LlamaGraph,
}
