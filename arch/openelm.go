package arch

import (
	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(openELM)

// openELM is Apple's OpenELM, whose layers differ in width. Source: the OpenELM
// class of the reference's converter.
var openELM = &table.Arch{
	Name:       "openelm",
	Classes:    []string{"OpenELMForCausalLM"},
	Tokenizer:  tokenizer.SentencePiece{Builtin: "llama-spm"},
	Fused:      table.FusedQKV,
	BlockCount: func(c *config.View) (int64, error) { return c.Require("num_transformer_layers") },
	Metadata: []table.Row{
		parts.UintRow(table.KeyBlockCount, "num_transformer_layers"),
		parts.UintRow("context_length", "max_context_length"),
		parts.UintRow("embedding_length", "model_dim"),
		{Key: "feed_forward_length", Derive: func(c *config.View) (gguf.Value, bool,
			error) {
			return parts.PerLayer(openELMWidths(c))
		}},
		{Key: table.KeyHeadCount, Derive: func(c *config.View) (gguf.Value, bool,
			error) {
			return parts.PerLayer(c.LayerInts("num_query_heads"))
		}},
		{Key: table.KeyHeadCountKV, Derive: func(c *config.View) (gguf.Value, bool,
			error) {
			return parts.PerLayer(c.LayerInts("num_kv_heads"))
		}},
		parts.FloatRow("rope.freq_base", "rope_freq_constant"),
		{Key: "attention.layer_norm_rms_epsilon", Const: gguf.Float32(1e-6)}, // constant in the model's code
		parts.UintRow("rope.dimension_count", "head_dim"),
		parts.UintRow("attention.key_length", "head_dim"),
		parts.UintRow("attention.value_length", "head_dim"),
		parts.FileTypeRow,
	},
	Expect: []table.Expect{
		parts.Expect("activation_fn_name", "swish", "silu"),
		parts.Expect("ffn_with_glu", "true"),
		parts.Expect("normalization_layer_name", "rms_norm"),
		parts.Expect("normalize_qk_projections", "true"),
		parts.Expect("share_input_output_layers", "true"),
	},
	Unused: []string{"num_gqa_groups", "qkv_multipliers", "rope_max_length"},
	Tensors: []table.TensorRow{
		{HF: "transformer.token_embeddings", GGUF: "token_embd"},
		{HF: "transformer.norm", GGUF: "output_norm"},
		{HF: "transformer.layers.{bid}.attn_norm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "transformer.layers.{bid}.attn.qkv_proj", GGUF: "blk.{bid}.attn_qkv"},
		{HF: "transformer.layers.{bid}.attn.q_norm", GGUF: "blk.{bid}.attn_q_norm"},
		{HF: "transformer.layers.{bid}.attn.k_norm", GGUF: "blk.{bid}.attn_k_norm"},
		{HF: "transformer.layers.{bid}.attn.out_proj", GGUF: "blk.{bid}.attn_output"},
		{HF: "transformer.layers.{bid}.ffn_norm", GGUF: "blk.{bid}.ffn_norm"},
		{HF: "transformer.layers.{bid}.ffn.proj_1", Split: []table.Part{
			{GGUF: "blk.{bid}.ffn_gate", Transform: openELMPart("gate-rows", true)},
			{GGUF: "blk.{bid}.ffn_up", Transform: openELMPart("up-rows", false)},
		}},
		{HF: "transformer.layers.{bid}.ffn.proj_2", GGUF: "blk.{bid}.ffn_down"},
	},
	Graph: parts.Decoder(graph.RMS, parts.GQA(parts.QKNorm, parts.NeoX), parts.SwiGLU),
}

// openELMWidths returns the FFN widths: multiplier * hidden size, rounded to a multiple of a divisor, at most a tenth
// down.
func openELMWidths(c *config.View) ([]int64, error) {
	multipliers, _, err := c.Floats("ffn_multipliers")
	if err != nil {
		return nil, err
	}
	divisor, err := c.Require("ffn_dim_divisor")
	if err != nil {
		return nil, err
	}
	width, err := c.Require("model_dim")
	if err == nil && (divisor <= 0 || divisor > 1<<20) {
		err = fault.Errorf(fault.Broken, "%s: key \"ffn_dim_divisor\": want a positive number, found %d",
			config.ConfigFile, divisor)
	}
	if err != nil {
		return nil, err
	}
	list := make([]int64, len(multipliers))
	for i, m := range multipliers {
		v := m * float64(width)
		n, err := config.Truncate(v + float64(divisor)/2)
		if err != nil {
			return nil, err
		}
		list[i] = max(divisor, n/divisor*divisor)
		if float64(list[i]) < 0.9*v {
			list[i] += divisor
		}
	}
	return list, nil
}

func openELMPart(name string, gate bool) *table.Transform {
	return &table.Transform{Name: name, Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		widths, err := openELMWidths(l.View)
		if err != nil {
			return nil, err
		}
		ne := s.NE()
		if l.Bid >= int64(len(widths)) || len(ne) != 2 || ne[1] != 2*widths[l.Bid] {
			return nil, fault.Errorf(fault.Broken,
				"dimensions %s, want two parts of the width that ffn_multipliers give", gguf.Shape(ne))
		}
		if w := widths[l.Bid]; gate {
			return rows.Slice(s, 1, 0, w)
		}
		return rows.Slice(s, 1, widths[l.Bid], ne[1])
	}}
}
