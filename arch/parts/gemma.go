package parts

import (
	"slices"

	"ggforge/arch/hparams"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/rows"
)

// What the generations of Gemma share.

// GELUTanh are the names of the activation function of all Gemma models; the first
// checkpoints of Gemma 1 call the approximation by tanh "gelu".
var GELUTanh = []string{"gelu_pytorch_tanh", "gelu"}

// Gemma3Rows are CommonRows with the values that Gemma 3 has by default.
var Gemma3Rows = slices.Concat(With(CommonRows,
	table.Row{Key: "context_length", Type: gguf.Uint32Type, From: []string{"max_position_embeddings"}, Const: gguf.Uint32(131072)},
	table.Row{Key: table.KeyHeadCount, Type: gguf.Uint32Type, From: []string{"num_attention_heads"}, Const: gguf.Uint32(8)},
	table.Row{Key: "attention.layer_norm_rms_epsilon", Type: gguf.Float32Type, From: []string{"rms_norm_eps"}, Const: gguf.Float32(1e-6)},
	table.Row{Key: "attention.key_length", Type: gguf.Uint32Type, From: []string{"head_dim"}, Const: gguf.Uint32(256)},
	table.Row{Key: "attention.value_length", Type: gguf.Uint32Type, From: []string{"head_dim"}, Const: gguf.Uint32(256)},
	table.Row{Key: "rope.freq_base", Derive: func(c *hparams.View) (gguf.Value, bool, error) {
		f, ok, err := c.Rope().Float("rope_theta")
		if err == nil && !ok {
			f = 1e6
		}
		return table.Float32Of(f, true, err)
	}},
	table.Row{Key: table.KeyHeadCountKV, Type: gguf.Uint32Type, From: []string{"num_key_value_heads"}, Const: gguf.Uint32(4)},
), []table.Row{
	{Key: "final_logit_softcapping", Derive: NonZero("final_logit_softcapping")},
	{Key: "attention.sliding_window", Derive: func(c *hparams.View) (v gguf.Value, ok bool, err error) {
		if n, ok, err := c.Int("sliding_window_pattern"); err != nil || ok && n == 1 {
			return v, false, err
		}
		n, err := c.Require("sliding_window")
		return table.Uint32Of(n, true, err)
	}},
})

// VocabRows leaves out the rows of an embedding beyond the vocabulary.
var VocabRows = &table.Transform{Name: "vocabulary-rows", Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
	n, err := l.Require("vocab_size")
	if ne := s.NE(); err != nil || len(ne) != 2 || ne[1] <= n {
		return s, err
	}
	return rows.Slice(s, 1, 0, n)
}}
