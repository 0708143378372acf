package arch

import (
	"slices"

	"ggforge/arch/hparams"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

// mistral3 is the language model of Mistral Small 3.1 and later and of Ministral
// 3. Source: the Mistral3 class of the reference's converter, without Mistral 4,
// which is DeepSeek's architecture under the same class.
var mistral3 = &table.Arch{
	Name:      "mistral3",
	Classes:   []string{"Mistral3ForConditionalGeneration", "Ministral3ForCausalLM"},
	Body:      table.Body{Classes: []string{"Ministral3Model"}, Prefix: "model."},
	Tokenizer: tokenizer.ClassLlama,
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.LlamaRows, []table.Row{
		{Key: "rope.scaling.yarn_log_multiplier", Derive: ministral3Rope("mscale_all_dim")},
		{Key: "attention.temperature_scale", Derive: ministral3Rope("llama_4_scaling_beta")},
	}),
	Expect:  []table.Expect{parts.SiLU, parts.Expect("model_type", "mistral", "mistral3", "ministral3")},
	Unused:  append([]string{"image_token_index", "multimodal_projector_bias", "projector_hidden_act", "spatial_merge_size", "vision_feature_layer"}, parts.BiasKeys...),
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.PermutedRows(table.NoBias), parts.MLPRows),
	Extra:   parts.Llama3Extra,
}

// ministral3Rope reads a rope setting that Ministral 3 must have, and others have
// not.
func ministral3Rope(key string) table.Derive {
	return func(c *hparams.View) (v gguf.Value, ok bool, err error) {
		if s, _, err := c.String("model_type"); err != nil || s != "ministral3" {
			return v, false, err
		}
		if s, _, err := c.RopeScaling(); err != nil || s != "yarn" {
			if err == nil {
				err = parts.UnsupportedPattern("rope_parameters", "the yarn type")
			}
			return v, false, err
		}
		f, err := c.Rope().RequireFloat(key)
		return table.Float32Of(f, err == nil, err)
	}
}
