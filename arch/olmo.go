package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(olmo, olmo2, olmoe)

// olmo is AI2's first OLMo, whose norms have no weights. Source: the OLMo classes
// of the reference's converter.
var olmo = &table.Arch{
	Name:      "olmo",
	Classes:   []string{"OlmoForCausalLM", "OLMoForCausalLM"},
	Body:      table.Body{Classes: []string{"OlmoModel"}, Prefix: "model."},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		{Key: "attention.layer_norm_epsilon", Const: gguf.Float32(1e-5)},
		parts.Optional(parts.FloatRow("attention.clamp_kqv", "clip_qkv")),
	}),
	Expect: []table.Expect{parts.SiLU},
	Tensors: slices.Concat([]table.TensorRow{
		{HF: "model.embed_tokens", GGUF: "token_embd"},
		{HF: "lm_head", GGUF: "output", Optional: true},
	}, parts.TransformBySuffix(parts.TransformBySuffix(parts.AttentionRows(table.NoBias, table.NoBias), ".q_proj",
		parts.PermuteQ),
		".k_proj", parts.PermuteK), parts.MLPRows),
	Graph: &graph.Model{
		Norm: graph.LayerNorm, Final: []graph.Step{graph.Normalize{Norm: graph.Bare}}, Head: graph.LM{},
		Layer: []graph.Step{
			graph.Residual{Pre: graph.Bare, Part: parts.GQA(parts.KeyClamp, parts.Interleaved)},
			graph.Residual{Pre: graph.Bare, Part: parts.SwiGLU},
		},
	},
}

// olmo2 is OLMo 2 and 3, with norms after attention and FFN.
var olmo2 = &table.Arch{
	Name:      "olmo2",
	Classes:   []string{"Olmo2ForCausalLM", "Olmo3ForCausalLM"},
	Body:      table.Body{Classes: []string{"Olmo2Model", "Olmo3Model"}, Prefix: "model."},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.Optional(parts.UintRow("attention.sliding_window", "sliding_window")),
		{Key: "attention.sliding_window_pattern", Derive: olmo3Pattern},
	}),
	Expect: []table.Expect{parts.SiLU},
	Tensors: slices.Concat(parts.EmbedRows, parts.AttentionRows(table.NoBias, table.NoBias), parts.QKNormRows,
		parts.MLPRows, []table.TensorRow{
			{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.post_attention_norm"},
			{HF: "model.layers.{bid}.post_feedforward_layernorm", GGUF: "blk.{bid}.post_ffw_norm"},
		}),
	Graph: &graph.Model{
		Norm: graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: parts.OutputNormOnly(parts.LocalGlobal(graph.Sliding{N: 4},
			graph.Attention{Steps: []graph.HeadStep{parts.QKNorm, parts.UnscaledLocalNeoX}, Window: parts.Window},
			parts.GQA(parts.QKNorm, parts.NeoX),
		), parts.SwiGLU),
	},
}

// olmo3Pattern writes which layers have a sliding window: from layer_types, else all layers except every fourth. OLMo 2
// has no window.
func olmo3Pattern(c *config.View) (v gguf.Value, ok bool, err error) {
	if !c.Has("sliding_window") {
		return v, false, nil
	}
	sliding, ok, err := parts.LayersOf(c, parts.Sliding)
	if err != nil || ok {
		return gguf.Bools(sliding), len(sliding) > 0, err
	}
	n, err := c.BoundedBlockCount(1)
	for i := int64(0); err == nil && i < n; i++ {
		sliding = append(sliding, (i+1)%4 != 0)
	}
	return gguf.Bools(sliding), err == nil, err
}

// olmoe is OLMo with experts.
var olmoe = &table.Arch{
	Name:      "olmoe",
	Classes:   []string{"OlmoeForCausalLM"},
	Body:      table.Body{Classes: []string{"OlmoeModel"}, Prefix: "model."},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.CommonRows,
		[]table.Row{{Key: "attention.layer_norm_rms_epsilon", Const: gguf.Float32(1e-5)}}),
	Expect: []table.Expect{parts.SiLU, parts.Expect("norm_topk_prob", "false"), parts.Expect("clip_qkv")},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.NoBias, table.NoBias),
		parts.QKNormRows, parts.ExpertRows),
	Graph: parts.Decoder(graph.RMS, parts.GQA(parts.QKNorm, parts.NeoX), parts.Experts(parts.Router, graph.NoShared)),
}
