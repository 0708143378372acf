package arch

import (
	"slices"

	"ggforge/arch/hparams"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

// LoadMistral reads params.json, and returns with it the table of the model.
func LoadMistral(files hparams.Files) (*hparams.View, *table.Arch, error) {
	data, err := hparams.ReadConfig(files, hparams.ParamsFile)
	if err != nil {
		return nil, nil, err
	}
	c, err := hparams.ParseParams(data)
	if err != nil {
		return nil, nil, err
	}
	c.With(files)
	for _, key := range []string{"moe", "quantization"} {
		if !hparams.IsNo(c.Value(key)) {
			return nil, nil, fault.Errorf(fault.Unsupported, "%s: models with the key %q are not converted yet", hparams.ParamsFile, key)
		}
	}
	a := mistralFormat
	if c.Has("llama_4_scaling") {
		a = mistral3Format
	}
	return c, a, nil
}

// mistralFormat is a dense model in Mistral's own format. Heads are laid out as
// the file has them. Source: the MistralModel class of the reference's converter.
var mistralFormat = &table.Arch{
	Name:      "llama",
	Shapes:    shape.WholeHeadRotates,
	Tokenizer: tokenizer.ClassMistral,
	Metadata: slices.Concat(parts.With(parts.CommonRows), []table.Row{
		{Key: "rope.dimension_count", Type: gguf.Uint32Type, From: []string{"head_dim"}, Required: true},
		{Key: "rope.scaling.type", Derive: mistralYarn(func(map[string]any) (gguf.Value, bool, error) { return gguf.String("yarn"), true, nil })},
		{Key: "rope.scaling.factor", Derive: mistralYarnFloat("factor")},
		{Key: "rope.scaling.yarn_beta_fast", Derive: mistralYarnFloat("beta")},
		{Key: "rope.scaling.yarn_beta_slow", Derive: mistralYarnFloat("alpha")},
		{Key: "rope.scaling.yarn_log_multiplier", Derive: mistralYarn(func(yarn map[string]any) (v gguf.Value, ok bool, err error) {
			scales, ok, err := hparams.AsBool("yarn.apply_scale", yarn["apply_scale"])
			if err == nil && !ok {
				err = hparams.WrongType("yarn.apply_scale", "true or false", nil)
			}
			if scales {
				return gguf.Float32(0), true, err
			}
			return gguf.Float32(1), err == nil, err
		})},
		{Key: "rope.scaling.original_context_length", Derive: mistralYarn(func(yarn map[string]any) (gguf.Value, bool, error) {
			n, ok, err := hparams.AsInt("yarn.original_max_position_embeddings", yarn["original_max_position_embeddings"])
			if err == nil && !ok {
				err = hparams.WrongType("yarn.original_max_position_embeddings", "an integer", nil)
			}
			return table.Uint32Of(n, ok, err)
		})},
	}),
	Unused: []string{"vision_encoder", "max_seq_len", "sliding_window", "max_batch_size", "model_type", "use_biases", "tied_embeddings"},
	Expect: []table.Expect{{Key: "activation", Values: []string{"silu"}}, {Key: "causal", Values: []string{"true"}}},
	Tensors: []table.TensorRow{
		{HF: "tok_embeddings", GGUF: "token_embd"},
		{HF: "norm", GGUF: "output_norm"},
		{HF: "output", GGUF: "output", Optional: true},
		{HF: "layers.{bid}.attention_norm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "layers.{bid}.attention.wq", GGUF: "blk.{bid}.attn_q"},
		{HF: "layers.{bid}.attention.wk", GGUF: "blk.{bid}.attn_k"},
		{HF: "layers.{bid}.attention.wv", GGUF: "blk.{bid}.attn_v"},
		{HF: "layers.{bid}.attention.wo", GGUF: "blk.{bid}.attn_output"},
		{HF: "layers.{bid}.ffn_norm", GGUF: "blk.{bid}.ffn_norm"},
		{HF: "layers.{bid}.feed_forward.w1", GGUF: "blk.{bid}.ffn_gate"},
		{HF: "layers.{bid}.feed_forward.w2", GGUF: "blk.{bid}.ffn_down"},
		{HF: "layers.{bid}.feed_forward.w3", GGUF: "blk.{bid}.ffn_up"},
	},
}

// mistral3Format is a model whose attention is scaled with the position.
var mistral3Format = &table.Arch{
	Name:      "mistral3",
	Tokenizer: tokenizer.ClassMistral,
	Metadata: slices.Concat(mistralFormat.Metadata, []table.Row{
		{Key: "attention.temperature_scale", Derive: func(c *hparams.View) (gguf.Value, bool, error) {
			f, ok, err := hparams.AsFloat("llama_4_scaling.beta", c.Sub("llama_4_scaling")["beta"])
			if err == nil && !ok {
				err = hparams.WrongType("llama_4_scaling.beta", "a number", nil)
			}
			return table.Float32Of(f, ok, err)
		}},
	}),
	Unused:  mistralFormat.Unused,
	Expect:  mistralFormat.Expect,
	Tensors: mistralFormat.Tensors,
}

// mistralYarn derives a value from the settings of yarn, if the model has them.
func mistralYarn(of func(yarn map[string]any) (gguf.Value, bool, error)) table.Derive {
	return func(c *hparams.View) (v gguf.Value, ok bool, err error) {
		yarn := c.Sub("yarn")
		if yarn == nil {
			return v, false, nil
		}
		return of(yarn)
	}
}

func mistralYarnFloat(key string) table.Derive {
	return mistralYarn(func(yarn map[string]any) (gguf.Value, bool, error) {
		f, ok, err := hparams.AsFloat("yarn."+key, yarn[key])
		if err == nil && !ok {
			err = hparams.WrongType("yarn."+key, "a number", nil)
		}
		return table.Float32Of(f, ok, err)
	})
}
