package parts

import (
	"encoding/json"
	"maps"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/rows"
)

// Rows that the generations of Gemma share.

// GELUTanh are the names of the activation function of all Gemma models; the first
// checkpoints of Gemma 1 call the approximation by tanh "gelu".
var GELUTanh = []string{"gelu_pytorch_tanh", "gelu"}

// SandwichNorms are the norms before and after attention and FFN.
var SandwichNorms = []table.TensorRow{
	{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
	{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.post_attention_norm"},
	{HF: "model.layers.{bid}.pre_feedforward_layernorm", GGUF: "blk.{bid}.ffn_norm"},
	{HF: "model.layers.{bid}.post_feedforward_layernorm", GGUF: "blk.{bid}.post_ffw_norm"},
}

// PerLayerRows are the tensors of per-layer inputs; model and layer are the prefixes of their names.
func PerLayerRows(model, layer string) []table.TensorRow {
	return []table.TensorRow{
		{HF: model + "per_layer_model_projection", GGUF: "per_layer_model_proj"},
		{HF: model + "per_layer_projection_norm", GGUF: "per_layer_proj_norm"},
		{HF: layer + "per_layer_input_gate", GGUF: "blk.{bid}.inp_gate"},
		{HF: layer + "per_layer_projection", GGUF: "blk.{bid}.proj"},
		{HF: layer + "post_per_layer_input_norm", GGUF: "blk.{bid}.post_norm"},
	}
}

// Gemma3Rows are CommonRows with the values that Gemma 3 has by default.
var Gemma3Rows = slices.Concat(Override(CommonRows,
	table.Row{Key: "context_length", Type: gguf.Uint32Type, From: []string{"max_position_embeddings"},
		Const: gguf.Uint32(131072)},
	table.Row{Key: table.KeyHeadCount, Type: gguf.Uint32Type, From: []string{"num_attention_heads"},
		Const: gguf.Uint32(8)},
	table.Row{Key: "attention.layer_norm_rms_epsilon", Type: gguf.Float32Type, From: []string{"rms_norm_eps"},
		Const: gguf.Float32(1e-6)},
	table.Row{Key: "attention.key_length", Type: gguf.Uint32Type, From: []string{"head_dim"}, Const: gguf.Uint32(256)},
	table.Row{Key: "attention.value_length", Type: gguf.Uint32Type, From: []string{"head_dim"},
		Const: gguf.Uint32(256)},
	table.Row{Key: "rope.freq_base", Derive: func(c *config.View) (gguf.Value, bool, error) {
		f, ok, err := c.Rope().Float("rope_theta")
		if err == nil && !ok {
			f = 1e6
		}
		return table.Float32Of(f, true, err)
	}},
	table.Row{Key: table.KeyHeadCountKV, Type: gguf.Uint32Type, From: []string{"num_key_value_heads"},
		Const: gguf.Uint32(4)},
), []table.Row{
	{Key: "final_logit_softcapping", Derive: NonZero("final_logit_softcapping")},
	{Key: "attention.sliding_window", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
		if n, ok, err := c.Int("sliding_window_pattern"); err != nil || ok && n == 1 {
			return v, false, err
		}
		n, err := c.Require("sliding_window")
		return table.Uint32Of(n, true, err)
	}},
})

// VocabRows leaves out the rows of an embedding beyond the vocabulary.
var VocabRows = &table.Transform{Name: "vocabulary-rows",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		n, err := l.Require("vocab_size")
		if ne := s.NE(); err != nil || len(ne) != 2 || ne[1] <= n {
			return s, err
		}
		return rows.Slice(s, 1, 0, n)
	}}

// Gemma3Rope makes the rope settings of both kinds of attention. Keys from before transformers 5 are for full
// attention, except rope_local_base_freq.
func Gemma3Rope(s *config.RopeSettings) error {
	scaling, _ := s.Root("rope_scaling").(map[string]any)
	if scaling != nil {
		s.Members, _ = s.Root("rope_parameters").(map[string]any)
	}
	full, err := s.Kind("full_attention")
	if err != nil {
		return err
	}
	sliding, err := s.Kind("sliding_attention")
	if err != nil {
		return err
	}
	maps.Copy(full, scaling)
	for _, k := range []struct {
		of    map[string]any
		key   string
		theta any
	}{{full, "rope_theta", json.Number("1000000")}, {sliding, "rope_local_base_freq", json.Number("10000")}} {
		_, v := s.Use(k.key)
		if v == nil {
			v = k.theta
		}
		config.SetDefault(k.of, "rope_theta", v)
		config.SetDefault(k.of, "rope_type", k.of["type"])
		s.SetLength(k.of)
	}
	s.Members = map[string]any{"full_attention": full, "sliding_attention": sliding}
	return nil
}
