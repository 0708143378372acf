package arch

import (
	"slices"

	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(gpt2, ruGPT3XL, starcoder, codeshell)

// gpt2 has position embeddings and layers whose weights are stored transposed.
// Sources: gpt2.py of the reference's converter; unlike it, the table leaves out
// the buffers of the causal mask that older checkpoints hold.
var gpt2 = &table.Arch{
	Name:      "gpt2",
	Classes:   []string{"GPT2LMHeadModel"},
	Body:      table.Body{Classes: []string{"GPT2Model"}},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata: []table.Row{
		parts.BlockCountRow,
		parts.UintRow("context_length", "n_ctx", "n_positions"),
		parts.UintRow("embedding_length", "n_embd"),
		{Key: "feed_forward_length", Derive: parts.InnerOr4("n_embd")},
		parts.UintRow(table.KeyHeadCount, "n_head"),
		parts.FloatRow("attention.layer_norm_epsilon", "layer_norm_epsilon"),
		parts.FileTypeRow,
	},
	Unused: []string{"n_positions", "reorder_and_upcast_attn"},
	Expect: []table.Expect{
		parts.Expect("activation_function", parts.GELU...),
		parts.Expect("scale_attn_weights", "true"),
		parts.Expect("scale_attn_by_inverse_layer_idx", "false"),
		parts.Expect("add_cross_attention", "false"),
	},
	Rename: []table.Rename{{Prefix: "transformer.", With: ""}},
	Tensors: []table.TensorRow{
		{HF: "wte", GGUF: "token_embd"},
		{HF: "wpe", GGUF: "position_embd"},
		{HF: "ln_f", GGUF: "output_norm", Bias: table.NeedBias},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "h.{bid}.ln_1", GGUF: "blk.{bid}.attn_norm", Bias: table.NeedBias},
		{HF: "h.{bid}.attn.c_attn", GGUF: "blk.{bid}.attn_qkv", Transform: parts.Transpose, Bias: table.NeedBias},
		{HF: "h.{bid}.attn.c_proj", GGUF: "blk.{bid}.attn_output", Transform: parts.Transpose, Bias: table.NeedBias},
		{HF: "h.{bid}.ln_2", GGUF: "blk.{bid}.ffn_norm", Bias: table.NeedBias},
		{HF: "h.{bid}.mlp.c_fc", GGUF: "blk.{bid}.ffn_up", Transform: parts.Transpose, Bias: table.NeedBias},
		{HF: "h.{bid}.mlp.c_proj", GGUF: "blk.{bid}.ffn_down", Transform: parts.Transpose, Bias: table.NeedBias},
		// the mask and the number that is used for minus infinity in it
		{HF: "h.{bid}.attn.bias"},
		{HF: "h.{bid}.attn.masked_bias"},
	},
	Graph: gpt2Graph,
}

// ruGPT3XL is GPT-2 with separate Q, K and V and weights that are not transposed. Source: RuGPT3XLModel of the
// reference.
var ruGPT3XL = &table.Arch{
	Name:      "gpt2",
	Classes:   []string{"RuGPT3XLForCausalLM"},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata:  parts.CommonRows,
	Expect: []table.Expect{
		parts.Expect("activation_function", parts.GELU...), parts.Expect("hidden_act", parts.GELU...),
		parts.DefaultRopeType, parts.UnitRopeFactor,
	},
	Tensors: []table.TensorRow{
		{HF: "model.embed_tokens", GGUF: "token_embd"},
		{HF: "model.embed_positions", GGUF: "position_embd"},
		{HF: "model.norm", GGUF: "output_norm", Bias: table.NeedBias},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm", Bias: table.NeedBias},
		{HF: "model.layers.{bid}.self_attn.{part}_proj", GGUF: "blk.{bid}.attn_qkv", Parts: []string{"q", "k", "v"},
			Bias: table.NeedBias},
		{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output", Bias: table.NeedBias},
		{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.ffn_norm", Bias: table.NeedBias},
		{HF: "model.layers.{bid}.mlp.up_proj", GGUF: "blk.{bid}.ffn_up", Bias: table.NeedBias},
		{HF: "model.layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down", Bias: table.NeedBias},
	},
	Graph: gpt2Graph,
}

// starcoder is GPT-2 with one KV head (MQA). Source: starcoder.py of the reference.
var starcoder = &table.Arch{
	Name:      "starcoder",
	Classes:   []string{"GPTBigCodeForCausalLM"},
	Body:      table.Body{Classes: []string{"GPTBigCodeModel"}, Prefix: "transformer."},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(starcoderSizes, []table.Row{
		{Key: table.KeyHeadCountKV, Const: gguf.Uint32(1)},
		parts.FloatRow("attention.layer_norm_epsilon", "layer_norm_epsilon"),
		parts.FileTypeRow,
	}),
	Unused: []string{"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "inference_runner",
		"max_batch_size", "max_sequence_length", "pad_key_length",
		"pre_allocate_kv_cache", "validate_runner_input", "n_ctx"},
	Expect: []table.Expect{
		parts.Expect("activation_function", parts.GELU...),
		parts.Expect("multi_query", "true"),
		parts.Expect("scale_attn_weights", "true"),
		parts.Expect("add_cross_attention", "false"),
	},
	Tensors: slices.Concat(gpt2Tensors(nil), []table.TensorRow{{HF: "transformer.wpe", GGUF: "position_embd"}}),
	Graph:   gpt2Graph,
}

// starcoderSizes are the sizes of starcoder and codeshell.
var starcoderSizes = []table.Row{
	parts.UintRow("context_length", "n_positions"),
	parts.UintRow("embedding_length", "n_embd"),
	{Key: "feed_forward_length", Derive: parts.InnerOr4("n_embd")},
	parts.BlockCountRow,
	parts.UintRow(table.KeyHeadCount, "n_head"),
}

// codeshell is GPT-2 with RoPE and GQA. Source: codeshell.py of the reference.
var codeshell = &table.Arch{
	Name:      "codeshell",
	Classes:   []string{"CodeShellForCausalLM"},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(starcoderSizes, []table.Row{
		parts.UintRow(table.KeyHeadCountKV, "num_query_groups"),
		parts.FloatRow("attention.layer_norm_epsilon", "layer_norm_epsilon"),
		parts.FileTypeRow,
		{Key: "rope.freq_base", Const: gguf.Float32(10000)},
		{Key: "rope.scaling.type", Const: gguf.String("linear")},
		{Key: "rope.scaling.factor", Const: gguf.Float32(1)},
	}),
	Unused: []string{"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "group_query_attention", "n_ctx"},
	Expect: []table.Expect{
		parts.Expect("activation_function", parts.GELU...),
		parts.Expect("position_embedding_type", "rope"),
		parts.Expect("scale_attn_weights", "true"),
		parts.DefaultRopeType, parts.UnitRopeFactor,
		parts.Expect("rope_theta", "10000"),
		parts.Expect("add_cross_attention", "false"),
	},
	Tensors: gpt2Tensors(nil),
	Graph:   parts.Decoder(graph.LayerNorm, parts.GQA(parts.NeoX), parts.GELUMLP),
}

// gpt2Graph has learned positions.
var gpt2Graph = &graph.Model{
	Norm: graph.LayerNorm, Embed: graph.Embedding{Positions: graph.Yes},
	Layer: parts.PreNorm(graph.Attention{}, parts.GELUMLP), Final: parts.OutputNorm, Head: graph.LM{},
}

// gpt2Tensors returns rows for the names of GPT-2, all with biases, none transposed; qkv are the rows of the joined Q,
// K and V.
func gpt2Tensors(qkv *table.Transform) []table.TensorRow {
	return []table.TensorRow{
		{HF: "transformer.wte", GGUF: "token_embd"},
		{HF: "transformer.ln_f", GGUF: "output_norm", Bias: table.NeedBias},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "transformer.h.{bid}.ln_1", GGUF: "blk.{bid}.attn_norm", Bias: table.NeedBias},
		{HF: "transformer.h.{bid}.attn.c_attn", GGUF: "blk.{bid}.attn_qkv", Transform: qkv, Bias: table.NeedBias},
		{HF: "transformer.h.{bid}.attn.c_proj", GGUF: "blk.{bid}.attn_output", Bias: table.NeedBias},
		{HF: "transformer.h.{bid}.ln_2", GGUF: "blk.{bid}.ffn_norm", Bias: table.NeedBias},
		{HF: "transformer.h.{bid}.mlp.c_fc", GGUF: "blk.{bid}.ffn_up", Bias: table.NeedBias},
		{HF: "transformer.h.{bid}.mlp.c_proj", GGUF: "blk.{bid}.ffn_down", Bias: table.NeedBias},
	}
}
