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

var _ = register(llama4)

// llama4 is the language model of Llama 4. Its heads already have the runtime's order of rows; the experts of a layer
// are two tensors. Source: the Llama4 class of the reference's converter.
var llama4 = &table.Arch{
	Name:      "llama4",
	Classes:   []string{"Llama4ForConditionalGeneration", "Llama4ForCausalLM"},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.Override(parts.LlamaRows,
		parts.UintRow("feed_forward_length", "intermediate_size_mlp"),
	), []table.Row{
		parts.UintRow("interleave_moe_layer_step", "interleave_moe_layer_step"),
		parts.UintRow("expert_feed_forward_length", "intermediate_size"),
		{Key: "attention.sliding_window", Derive: func(c *config.View) (gguf.Value, bool, error) {
			all, err := llama4FullAttention(c)
			return gguf.Uint32(0), all, err // 0: no layer has a chunked window
		}},
	}),
	// the runtime derives these from the size of the model
	Unused: []string{"attn_temperature_tuning", "use_qk_norm", "for_llm_compressor", "moe_layers",
		"no_rope_layer_interval", "no_rope_layers",
		"boi_token_index", "eoi_token_index", "image_token_index"},
	Expect: []table.Expect{parts.SiLU, parts.Expect("attn_scale", "0.1"), parts.Expect("floor_scale", "8192"),
		parts.Expect("attention_chunk_size", "8192")},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.NoBias, table.NoBias),
		parts.Only(parts.Not(llama4Experts), []table.TensorRow{
			{HF: "model.layers.{bid}.feed_forward.gate_proj", GGUF: "blk.{bid}.ffn_gate"},
			{HF: "model.layers.{bid}.feed_forward.up_proj", GGUF: "blk.{bid}.ffn_up"},
			{HF: "model.layers.{bid}.feed_forward.down_proj", GGUF: "blk.{bid}.ffn_down"},
		}),
		parts.Only(llama4Experts, []table.TensorRow{
			{HF: "model.layers.{bid}.feed_forward.router", GGUF: "blk.{bid}.ffn_gate_inp"},
			{HF: "model.layers.{bid}.feed_forward.shared_expert.gate_proj", GGUF: "blk.{bid}.ffn_gate_shexp"},
			{HF: "model.layers.{bid}.feed_forward.shared_expert.up_proj", GGUF: "blk.{bid}.ffn_up_shexp"},
			{HF: "model.layers.{bid}.feed_forward.shared_expert.down_proj", GGUF: "blk.{bid}.ffn_down_shexp"},
			// shapes [experts, hidden, 2*width], gate first, and [experts, width, hidden]
			{HF: "model.layers.{bid}.feed_forward.experts.gate_up_proj", Exact: true, PerSource: parts.TransposeLast,
				Split: parts.GateUp},
			{HF: "model.layers.{bid}.feed_forward.experts.down_proj", Exact: true, PerSource: parts.TransposeLast,
				GGUF: "blk.{bid}.ffn_down_exps.weight"},
		})),
	Extra: parts.Llama3Extra,
	Graph: &graph.Model{
		// files have no window, or 0 for no chunked windows; the runtime has the length
		Dims: graph.Dims{"n_swa": "if((@attention.sliding_window or 1) != 0, 8192, 0)", "n_ff_shexp": "n_ff_exp"},
		Norm: graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: parts.PreNorm(parts.LocalGlobal(graph.Sliding{N: 4},
			graph.Attention{Steps: llama4Steps(parts.LocalInterleaved),
				Window: graph.Window{Tokens: "n_swa", Shape: graph.ChunkedWindow}},
			graph.Attention{Steps: llama4Steps(parts.Interleaved)},
		), parts.Sparse(graph.MoE{Router: graph.Router{Score: graph.Sigmoid}, Experts: parts.SwiGLU,
			Shared: graph.HasShared, With: []graph.MoEOption{graph.WeighInputs{}}}, parts.SwiGLU)),
	},
}

// llama4Steps are the steps of attention. In models with windows every fourth layer has no RoPE (NoPE), but attention
// temperature; the others have QK-norm without weights after RoPE, except in the model of 128 experts.
func llama4Steps(rope graph.RoPE) []graph.HeadStep {
	const noPE = graph.Where("n_swa != 0 and i mod 4 = 3")
	return []graph.HeadStep{
		graph.On{In: graph.Not{Layers: noPE}, Steps: []graph.HeadStep{rope,
			graph.On{In: graph.Where("n_expert != 128"), Steps: []graph.HeadStep{graph.UnitNorm{}}}}},
		graph.On{In: noPE, Steps: []graph.HeadStep{
			graph.Temperature{Scale: "f32(0.1)", Times: "f32(f32(f32(pos) + 1) / 8192)"}}},
	}
}

// llama4Experts is the condition of MoE layers, one of a period.
func llama4Experts(l table.Layer) (bool, error) {
	step, err := l.Require("interleave_moe_layer_step")
	if err == nil && step < 1 {
		err = config.WrongType("interleave_moe_layer_step", "a positive integer", step)
	}
	return err == nil && (l.Bid+1)%step == 0, err
}

// llama4FullAttention reports whether every layer attends to the whole context, as layers without RoPE do. Source of
// the defaults: the config class of the transformers library.
func llama4FullAttention(c *config.View) (bool, error) {
	if types, ok, err := c.Strings("layer_types"); err != nil || ok {
		return err == nil && !slices.ContainsFunc(types, func(s string) bool { return s != "full_attention" }), err
	}
	if rope, _, err := c.Ints("no_rope_layers"); err != nil || len(rope) > 0 {
		return err == nil && !slices.ContainsFunc(rope, func(n int64) bool { return n != 0 }), err
	}
	if c.KnownType() == "" {
		return false, nil // no defaults
	}
	interval, _, err := c.Int("no_rope_layer_interval")
	return err == nil && interval == 1, err
}
