package arch

import (
	"slices"

	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(gptOSS)

// gptOSS is OpenAI's gpt-oss. Its experts are stored in MXFP4 and stay MXFP4 in every output type; they come before all
// other tensors. Source: the class of the reference's converter.
var gptOSS = &table.Arch{
	Name:      "gpt-oss",
	Shapes:    shape.WholeHeadRotates,
	Classes:   []string{"GptOssForCausalLM"},
	Body:      table.Body{Classes: []string{"GptOssModel"}, Prefix: "model."},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.UintRow("attention.sliding_window", "sliding_window"),
		parts.UintRow("expert_feed_forward_length", "intermediate_size"),
	}),
	Unused: []string{"experts_per_token", "initial_context_length", "layer_types"},
	Expect: []table.Expect{parts.SiLU, parts.Expect("swiglu_limit", "7")},
	Tensors: slices.Concat(parts.EmbedRows, parts.AttentionRows(table.NeedBias, table.NeedBias), []table.TensorRow{
		{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.post_attention_norm"},
		{HF: "model.layers.{bid}.self_attn.sinks", Exact: true, GGUF: "blk.{bid}.attn_sinks.weight"},
		{HF: "model.layers.{bid}.mlp.router", GGUF: "blk.{bid}.ffn_gate_inp", Bias: table.NeedBias},
		{HF: "model.layers.{bid}.mlp.experts.down_proj_blocks", Exact: true, Kind: table.First{},
			GGUF: "blk.{bid}.ffn_down_exps.weight"},
		{HF: "model.layers.{bid}.mlp.experts.gate_up_proj_blocks", Exact: true, Kind: table.First{},
			Split: []table.Part{
				{GGUF: "blk.{bid}.ffn_gate_exps.weight", Transform: everySecond(0)},
				{GGUF: "blk.{bid}.ffn_up_exps.weight", Transform: everySecond(1)},
			}},
		// weights that are not in MXFP4: [experts, width, hidden] and [experts, hidden, 2*width]
		{HF: "model.layers.{bid}.mlp.experts.down_proj", Exact: true, Optional: true, PerSource: parts.TransposeLast,
			GGUF: "blk.{bid}.ffn_down_exps.weight"},
		{HF: "model.layers.{bid}.mlp.experts.gate_up_proj", Exact: true, Optional: true, PerSource: parts.TransposeLast,
			Split: []table.Part{
				{GGUF: "blk.{bid}.ffn_gate_exps.weight", Transform: everySecond(0)},
				{GGUF: "blk.{bid}.ffn_up_exps.weight", Transform: everySecond(1)},
			}},
		{HF: "model.layers.{bid}.mlp.experts.down_proj_bias", Exact: true, GGUF: "blk.{bid}.ffn_down_exps.bias"},
		{HF: "model.layers.{bid}.mlp.experts.gate_up_proj_bias", Exact: true, Split: []table.Part{
			{GGUF: "blk.{bid}.ffn_gate_exps.bias", Transform: everySecondColumn(0)},
			{GGUF: "blk.{bid}.ffn_up_exps.bias", Transform: everySecondColumn(1)},
		}},
	}),
	Graph: &graph.Model{
		Reads: []string{"attention.sliding_window!"},
		Norm:  graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: parts.PreNormAs("post_attention_norm", parts.LocalGlobal(graph.Sliding{N: 2},
			graph.Attention{Steps: []graph.HeadStep{parts.LocalNeoX}, Scores: []graph.ScoreStep{graph.Sinks{}},
				Window: parts.Window},
			graph.Attention{Steps: []graph.HeadStep{parts.NeoX}, Scores: []graph.ScoreStep{graph.Sinks{}}},
		), graph.MoE{Router: graph.Router{Score: graph.SoftmaxOfChosen},
			Experts: graph.FFN{Act: graph.SwiGLUOAI{Alpha: 1.702, Limit: 7}}}),
		Unread: []string{"rope.scaling.yarn_truncate"},
	},
}

// everySecond returns the transform that takes the even (0) or the odd (1) rows of each matrix of a stack, in which
// gate and up rows alternate.
func everySecond(odd int64) *table.Transform {
	return &table.Transform{Name: "every-second-row", Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
		ne := slices.Clone(s.NE())
		if len(ne) < 2 || ne[1]%2 != 0 {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want an even number of rows", gguf.Shape(ne))
		}
		ne[1] /= 2
		return rows.Gather(s, ne, func(i int64) int64 { return 2*i + odd })
	}}
}

// everySecondColumn is everySecond for the columns of biases, [experts, 2*width].
func everySecondColumn(odd int64) *table.Transform {
	return &table.Transform{Name: "every-second-column",
		Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
			ne := slices.Clone(s.NE())
			if ne[0]%2 != 0 {
				return nil, fault.Errorf(fault.Broken, "dimensions %s, want rows of an even length", gguf.Shape(ne))
			}
			pairs, err := rows.Reshape(s, []int64{2, gguf.Rows(ne) * ne[0] / 2})
			if err != nil {
				return nil, err
			}
			if pairs, err = rows.Slice(pairs, 0, odd, odd+1); err != nil {
				return nil, err
			}
			ne[0] /= 2
			return rows.Reshape(pairs, ne)
		}}
}
