package arch

import (
	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(refact)

// refact is Refact: ALiBi, one KV head (MQA), and a gated MLP. Source: refact.py of the reference.
var refact = &table.Arch{
	Name:      "refact",
	Classes:   []string{"GPTRefactForCausalLM"},
	Tokenizer: tokenizer.BPE{Then: tokenizer.Steps{tokenizer.EndOfTurn{}}},
	Fused:     table.FusedQKV,
	Metadata: []table.Row{
		parts.UintRow("context_length", "n_positions"),
		parts.UintRow("embedding_length", "n_embd"),
		{Key: "feed_forward_length", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := refactInner(c)
			return table.Uint32Of(n, true, err)
		}},
		parts.BlockCountRow,
		parts.UintRow(table.KeyHeadCount, "n_head"),
		{Key: table.KeyHeadCountKV, Const: gguf.Uint32(1)},
		parts.FloatRow("attention.layer_norm_rms_epsilon", "layer_norm_epsilon"),
		parts.FileTypeRow,
	},
	Unused: []string{"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "attention_bias_in_fp32",
		"do_sample", "max_batch_size", "max_sequence_length", "n_inner"},
	Expect: []table.Expect{
		parts.Expect("activation_function", "silu", "swish"),
		parts.Expect("multi_query", "true"),
		parts.Expect("scale_attn_weights", "true"),
	},
	Tensors: []table.TensorRow{
		{HF: "transformer.wte", GGUF: "token_embd"},
		{HF: "transformer.ln_f", GGUF: "output_norm"},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "transformer.h.{bid}.ln_1", GGUF: "blk.{bid}.attn_norm"},
		{HF: "transformer.h.{bid}.attn.q", GGUF: "blk.{bid}.attn_q"},
		{HF: "transformer.h.{bid}.attn.kv", Split: []table.Part{
			{GGUF: "blk.{bid}.attn_k", Transform: rowsUpTo("key", refactHead)},
			{GGUF: "blk.{bid}.attn_v", Transform: rowsFrom("value", refactHead)},
		}},
		{HF: "transformer.h.{bid}.attn.c_proj", GGUF: "blk.{bid}.attn_output"},
		{HF: "transformer.h.{bid}.ln_2", GGUF: "blk.{bid}.ffn_norm"},
		{HF: "transformer.h.{bid}.mlp.gate_up_proj", Split: []table.Part{
			{GGUF: "blk.{bid}.ffn_gate", Transform: rowsUpTo("gate", refactInner)},
			{GGUF: "blk.{bid}.ffn_up", Transform: rowsFrom("up", refactInner)},
		}},
		{HF: "transformer.h.{bid}.mlp.c_proj", GGUF: "blk.{bid}.ffn_down"},
	},
	Graph: parts.Decoder(graph.RMS, graph.Attention{Scores: parts.ALiBi}, parts.SwiGLU),
}

// refactInner returns the width of the MLP: two thirds of four times the model's,
// rounded up to a multiple of 256.
func refactInner(c *config.View) (int64, error) {
	n, err := c.Require("n_embd")
	if err == nil && (n < 1 || n > config.MaxWidth) {
		err = config.WrongType("n_embd", "a number of elements", n)
	}
	return (4*n*2/3 + 255) / 256 * 256, err
}

// refactHead returns the size of a head.
func refactHead(c *config.View) (int64, error) {
	n, err := c.Require("n_embd")
	if err != nil {
		return 0, err
	}
	heads, err := c.Require("n_head")
	if err == nil && heads < 1 {
		err = config.WrongType("n_head", "a positive integer", heads)
	}
	if err != nil {
		return 0, err
	}
	return n / heads, nil
}

// rowsUpTo and rowsFrom take the first rows of a matrix and the remaining rows.

func rowsUpTo(name string, count func(*config.View) (int64, error)) *table.Transform {
	return &table.Transform{Name: name, Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		n, err := count(l.View)
		if err != nil {
			return nil, err
		}
		return rows.Slice(s, len(s.NE())-1, 0, n)
	}}
}

func rowsFrom(name string, count func(*config.View) (int64, error)) *table.Transform {
	return &table.Transform{Name: name, Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		n, err := count(l.View)
		if err != nil {
			return nil, err
		}
		ne := s.NE()
		return rows.Slice(s, len(ne)-1, n, ne[len(ne)-1])
	}}
}
