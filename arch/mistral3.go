package arch

import (
	"encoding/json"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(mistral3)

// mistral3 is the language model of Mistral Small 3.1 and later and of Ministral
// 3. Source: the Mistral3 class of the reference's converter, without Mistral 4,
// which is DeepSeek's architecture under the same class.
var mistral3 = &table.Arch{
	Name:      "mistral3",
	Classes:   []string{"Mistral3ForConditionalGeneration", "Ministral3ForCausalLM"},
	Body:      table.Body{Classes: []string{"Ministral3Model"}, Prefix: "model."},
	Tokenizer: tokenizer.Llama{},
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.LlamaRows, []table.Row{
		{Key: "rope.scaling.yarn_log_multiplier", Derive: ministral3Rope("mscale_all_dim")},
		{Key: "attention.temperature_scale", Derive: ministral3Rope("llama_4_scaling_beta")},
	}),
	Expect:   []table.Expect{parts.SiLU, parts.Expect("model_type", "mistral", "mistral3", "ministral3")},
	Unused:   mistral3Unused,
	Tensors:  slices.Concat(parts.EmbedRows, parts.NormRows, parts.PermutedRows(table.NoBias), parts.MLPRows),
	Extra:    parts.Llama3Extra,
	Variants: []*table.Arch{mistral4},
	Variant: func(c *config.View) (*table.Arch, error) {
		if s, _, err := c.String("model_type"); err != nil || s == "mistral4" {
			return mistral4, err
		}
		return nil, nil
	},
	Graph: parts.Mistral3Graph,
}

// mistral3Unused are the keys of the vision encoder, and of biases.
var mistral3Unused = append([]string{"image_token_index", "multimodal_projector_bias", "projector_hidden_act",
	"spatial_merge_size", "vision_feature_layer"}, parts.BiasKeys...)

// mistral4 is the language model of Mistral Small 4: DeepSeek's MLA, and experts that are stacked in the checkpoint.
var mistral4 = &table.Arch{
	Name: "mistral4",
	Config: config.Rules{Types: []string{"mistral4"}, Rope: mistral4Rope,
		Derived: config.DerivedKeys{"head_dim": mistral4HeadDim}},
	Tokenizer: parts.KimiTokens,
	Fused:     table.FusedGateUp,
	Metadata:  parts.MLAMetadata,
	Expect:    append([]table.Expect{parts.Expect("attention_bias", "false")}, parts.MLAExpect...),
	Unused:    slices.Concat(mistral3Unused, parts.MLAUnused, []string{"pretraining_tp"}),
	Drop:      []table.Drop{parts.TiedHead},
	Tensors: slices.Concat(slices.DeleteFunc(slices.Clone(parts.MLATensors),
		func(row table.TensorRow) bool { return strings.Contains(row.HF, "{xid}") }), []table.TensorRow{
		{HF: "model.layers.{bid}.mlp.experts.down_proj", GGUF: "blk.{bid}.ffn_down_exps.weight", Exact: true,
			If: parts.MoEAfter},
		{HF: "model.layers.{bid}.mlp.experts.gate_up_proj", GGUF: "blk.{bid}.ffn_gate_up_exps.weight", Exact: true,
			If: parts.MoEAfter},
	}),
	Graph: parts.DeepSeekMLA(graph.MScale),
}

// ministral3Rope writes a rope setting, required for Ministral 3; other models have none.
func ministral3Rope(key string) table.Derive {
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
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

// mistral4HeadDim returns the size of an uncompressed head.
func mistral4HeadDim(v config.Values) (any, error) {
	nope, err := v.Int("qk_nope_head_dim")
	if err != nil {
		return nil, err
	}
	rope, err := v.Int("qk_rope_head_dim")
	return nope + rope, err
}

// mistral4Rope fills in the rope settings of the published model.
func mistral4Rope(s *config.RopeSettings) error {
	if len(s.Members) == 0 {
		s.Members = map[string]any{"rope_type": "yarn", "rope_theta": json.Number("10000"), "factor": json.Number("128"),
			"original_max_position_embeddings": json.Number("8192"), "beta_fast": json.Number("32"),
			"beta_slow": json.Number("1"), "mscale_all_dim": json.Number("1"), "mscale": json.Number("1"),
			"llama_4_scaling_beta": json.Number("0.1")}
	}
	return nil
}
