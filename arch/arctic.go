package arch

import (
	"slices"

	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/tokenizer"
)

var _ = register(arctic)

// arctic is Snowflake's Arctic: each layer has a dense FFN as well as experts. Source: the Arctic class of the
// reference's converter.
var arctic = &table.Arch{
	Name:      "arctic",
	Classes:   []string{"ArcticForCausalLM"},
	Tokenizer: tokenizer.Arctic{},
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.UintRow("vocab_size", "vocab_size"),
		{Key: "rope.dimension_count", Derive: parts.HiddenPerHead},
	}),
	Expect: []table.Expect{parts.SiLU, parts.Expect("parallel_attn_mlp_res", "true"),
		parts.Expect("use_residual", "true"), parts.Expect("moe_layer_frequency", "1")},
	Unused: []string{"enable_expert_tensor_parallelism", "enc_index", "max_sequence_length", "moe_eval_capacity_factor",
		"moe_min_capacity", "moe_token_dropping",
		"moe_train_capacity_factor", "quantization"},
	Tensors: slices.Concat(parts.EmbedRows, parts.PermutedRows(table.NoBias), parts.MixtralExperts, []table.TensorRow{
		{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "model.layers.{bid}.residual_layernorm", GGUF: "blk.{bid}.ffn_norm"},
		{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.ffn_norm_exps"},
		{HF: "model.layers.{bid}.residual_mlp.w1", GGUF: "blk.{bid}.ffn_gate"},
		{HF: "model.layers.{bid}.residual_mlp.w2", GGUF: "blk.{bid}.ffn_down"},
		{HF: "model.layers.{bid}.residual_mlp.w3", GGUF: "blk.{bid}.ffn_up"},
	}),
	// the experts' width is feed_forward_length, the dense network's is that of the stream
	Graph: &graph.Model{
		Dims: graph.Dims{"n_ff_exp": "@feed_forward_length", "n_ff": "n_embd"},
		Norm: graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: append(parts.PreNorm(parts.GQA(parts.Interleaved), parts.SwiGLU), graph.FromInput{
			Residual: graph.Residual{Pre: graph.Norm{Name: "ffn_norm_exps"},
				Part: parts.Experts(parts.RouterTopK, graph.NoShared)}}),
	},
}
