package arch

import (
	"cmp"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

// LoadMistral reads params.json. A missing or broken file gives an error of kind
// fault.Broken.
func LoadMistral(files config.Files) (*config.Config, error) {
	data, err := config.ReadConfig(files, config.ParamsFile)
	if err != nil {
		return nil, err
	}
	return config.ParseParams(data)
}

// mistralFormat is a dense model in Mistral's own format, whose heads already have the file's order of rows. Source:
// the MistralModel class of the reference's converter.
var mistralFormat = &table.Arch{
	Name:      "llama",
	Shapes:    shape.WholeHeadRotates,
	Tokenizer: tokenizer.Tekken{},
	Fused:     table.FusedQKV,
	Metadata:  mistralRows,
	Unused:    mistralUnused,
	Expect:    mistralExpect,
	Variants:  []*table.Arch{mistral3Format, mistralMoEFormat},
	Variant: func(c *config.View) (*table.Arch, error) {
		if q := c.Sub("quantization"); q.Members() != nil {
			if format, ok, err := q.String("qformat_weight"); err != nil || !ok || format != "fp8_e4m3" {
				return nil, cmp.Or(err, fault.Errorf(fault.Unsupported,
					"%s: weights quantized as %q: want \"fp8_e4m3\"", config.ParamsFile, format))
			}
		}
		if !config.IsNo(c.Value("moe")) {
			return mistralMoEFormat, nil
		}
		if c.Has("llama_4_scaling") {
			return mistral3Format, nil
		}
		return nil, nil
	},
	Tensors: mistralTensors,
	Graph:   parts.LlamaGraph,
}

// mistral3Format is a dense model with attention temperature.
var mistral3Format = &table.Arch{
	Name:      "mistral3",
	Tokenizer: tokenizer.Tekken{},
	Fused:     table.FusedQKV,
	Metadata:  slices.Concat(mistralRows, []table.Row{mistralTemperature}),
	Unused:    mistralUnused,
	Expect:    mistralExpect,
	Tensors:   mistralTensors,
	Graph:     parts.Mistral3Graph,
}

// mistralTemperature is the row for models with attention temperature.
var mistralTemperature = table.Row{Key: "attention.temperature_scale",
	Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
		if !c.Has("llama_4_scaling") {
			return v, false, nil
		}
		f, err := c.Sub("llama_4_scaling").RequireFloat("beta")
		return table.Float32Of(f, true, err)
	}}

// mistralMoEFormat is an MoE model with DeepSeek's MLA. It always has YaRN scaling. Source: the reference's
// MistralMoeModel.
var mistralMoEFormat = &table.Arch{
	Name:      "deepseek2",
	Tokenizer: tokenizer.Tekken{},
	Metadata: slices.Concat(parts.Override(parts.MLAMetadata,
		parts.FloatRow("attention.layer_norm_rms_epsilon", "norm_eps")),
		parts.Override(mistralYarnRows, table.Row{Key: "rope.scaling.yarn_log_multiplier", Const: gguf.Float32(0.1)}),
		[]table.Row{
			mistralTemperature,
			{Key: "attention.temperature_length", Derive: func(c *config.View) (gguf.Value, bool, error) {
				n, err := c.Sub("yarn").Require("original_max_position_embeddings")
				return table.Uint32Of(n, true, err)
			}},
		}),
	Unused: slices.Concat(mistralUnused, []string{"moe", "head_dim"}, parts.MLAUnused),
	Expect: slices.Concat(mistralExpect, parts.MLAExpect),
	Tensors: slices.Concat(mistralOutsideLayers, []table.TensorRow{
		{HF: "layers.{bid}.attention_norm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "layers.{bid}.attention.wq", GGUF: "blk.{bid}.attn_q", If: parts.Not(parts.Has("q_lora_rank"))},
		{HF: "layers.{bid}.attention.wq_a", GGUF: "blk.{bid}.attn_q_a", If: parts.Has("q_lora_rank")},
		{HF: "layers.{bid}.attention.q_a_norm", GGUF: "blk.{bid}.attn_q_a_norm", If: parts.Has("q_lora_rank")},
		{HF: "layers.{bid}.attention.wq_b", GGUF: "blk.{bid}.attn_q_b", If: parts.Has("q_lora_rank")},
		{HF: "layers.{bid}.attention.wkv_a_with_mqa", GGUF: "blk.{bid}.attn_kv_a_mqa"},
		{HF: "layers.{bid}.attention.kv_a_norm", GGUF: "blk.{bid}.attn_kv_a_norm"},
		{HF: "layers.{bid}.attention.wkv_b", Split: []table.Part{
			{GGUF: "blk.{bid}.attn_k_b", Transform: parts.MLAKeysOf("n_kv_heads")},
			{GGUF: "blk.{bid}.attn_v_b", Transform: parts.MLAValuesOf("n_kv_heads")},
		}},
		{HF: "layers.{bid}.attention.wo", GGUF: "blk.{bid}.attn_output"},
		{HF: "layers.{bid}.ffn_norm", GGUF: "blk.{bid}.ffn_norm"},
	}, parts.Only(parts.DenseFirst, mistralMLP), parts.Only(parts.MoEAfter, []table.TensorRow{
		{HF: "layers.{bid}.gate", GGUF: "blk.{bid}.ffn_gate_inp"},
		{HF: "layers.{bid}.experts.{xid}.w2", GGUF: "blk.{bid}.ffn_down_exps", Experts: mistralExperts},
		{HF: "layers.{bid}.experts.{xid}.w1", GGUF: "blk.{bid}.ffn_gate_exps", Experts: mistralExperts},
		{HF: "layers.{bid}.experts.{xid}.w3", GGUF: "blk.{bid}.ffn_up_exps", Experts: mistralExperts},
	}), parts.Only(parts.SharedAfter, []table.TensorRow{
		{HF: "layers.{bid}.shared_experts.w1", GGUF: "blk.{bid}.ffn_gate_shexp"},
		{HF: "layers.{bid}.shared_experts.w3", GGUF: "blk.{bid}.ffn_up_shexp"},
		{HF: "layers.{bid}.shared_experts.w2", GGUF: "blk.{bid}.ffn_down_shexp"},
	})),
	Graph: parts.DeepSeek2Graph,
}

func mistralExperts(l table.Layer) (int64, error) { return l.Require("n_routed_experts") }

var mistralRows = slices.Concat(parts.CommonRows, []table.Row{parts.UintRow("rope.dimension_count", "head_dim")},
	mistralYarnRows)

var mistralYarnRows = []table.Row{
	{Key: "rope.scaling.type", Derive: mistralYarn(func(config.Object) (gguf.Value, bool,
		error) {
		return gguf.String("yarn"), true, nil
	})},
	{Key: "rope.scaling.factor", Derive: mistralYarnFloat("factor")},
	{Key: "rope.scaling.yarn_beta_fast", Derive: mistralYarnFloat("beta")},
	{Key: "rope.scaling.yarn_beta_slow", Derive: mistralYarnFloat("alpha")},
	{Key: "rope.scaling.yarn_log_multiplier",
		Derive: mistralYarn(func(yarn config.Object) (v gguf.Value, ok bool, err error) {
			scales, err := yarn.RequireBool("apply_scale")
			if scales {
				return gguf.Float32(0), true, err
			}
			return gguf.Float32(1), err == nil, err
		})},
	{Key: "rope.scaling.original_context_length",
		Derive: mistralYarn(func(yarn config.Object) (gguf.Value, bool, error) {
			n, err := yarn.Require("original_max_position_embeddings")
			return table.Uint32Of(n, true, err)
		})},
}

var mistralUnused = []string{"vision_encoder", "max_seq_len", "sliding_window", "max_batch_size", "model_type",
	"use_biases", "tied_embeddings"}

var mistralExpect = []table.Expect{parts.Expect("activation", "silu"), parts.Expect("causal", "true")}

var mistralOutsideLayers = []table.TensorRow{
	{HF: "tok_embeddings", GGUF: "token_embd"},
	{HF: "norm", GGUF: "output_norm"},
	{HF: "output", GGUF: "output", Optional: true},
}

var mistralTensors = slices.Concat(mistralOutsideLayers, []table.TensorRow{
	{HF: "layers.{bid}.attention_norm", GGUF: "blk.{bid}.attn_norm"},
	{HF: "layers.{bid}.attention.wq", GGUF: "blk.{bid}.attn_q"},
	{HF: "layers.{bid}.attention.wk", GGUF: "blk.{bid}.attn_k"},
	{HF: "layers.{bid}.attention.wv", GGUF: "blk.{bid}.attn_v"},
	{HF: "layers.{bid}.attention.wo", GGUF: "blk.{bid}.attn_output"},
	{HF: "layers.{bid}.ffn_norm", GGUF: "blk.{bid}.ffn_norm"},
}, mistralMLP)

var mistralMLP = []table.TensorRow{
	{HF: "layers.{bid}.feed_forward.w1", GGUF: "blk.{bid}.ffn_gate"},
	{HF: "layers.{bid}.feed_forward.w2", GGUF: "blk.{bid}.ffn_down"},
	{HF: "layers.{bid}.feed_forward.w3", GGUF: "blk.{bid}.ffn_up"},
}

// mistralYarn derives a value from the YaRN settings, no value without them.
func mistralYarn(of func(yarn config.Object) (gguf.Value, bool, error)) table.Derive {
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
		yarn := c.Sub("yarn")
		if yarn.Members() == nil {
			return v, false, nil
		}
		return of(yarn)
	}
}

func mistralYarnFloat(key string) table.Derive {
	return mistralYarn(func(yarn config.Object) (gguf.Value, bool, error) {
		f, err := yarn.RequireFloat(key)
		return table.Float32Of(f, true, err)
	})
}
