package arch

import (
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/tokenizer"
)

var _ = register(starcoder2)

// starcoder2 is StarCoder 2. Source: starcoder.py of the reference.
var starcoder2 = &table.Arch{
	Name:      "starcoder2",
	Classes:   []string{"Starcoder2ForCausalLM"},
	Body:      table.Body{Classes: []string{"Starcoder2Model"}, Prefix: "model."},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata:  parts.CommonRows,
	Unused: []string{"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "activation_function",
		"use_bias", "scale_attn_weights"},
	Expect: []table.Expect{
		parts.Expect("hidden_act", parts.GELU...),
		parts.Expect("mlp_type", "default"),
		parts.Expect("norm_type", "layer_norm"),
	},
	Tensors: []table.TensorRow{
		{HF: "model.embed_tokens", GGUF: "token_embd"},
		{HF: "model.norm", GGUF: "output_norm", Bias: table.NeedBias},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm", Bias: table.NeedBias},
		{HF: "model.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q", Bias: table.MayBias},
		{HF: "model.layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.attn_k", Bias: table.MayBias},
		{HF: "model.layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.attn_v", Bias: table.MayBias},
		{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output", Bias: table.MayBias},
		{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.ffn_norm", Bias: table.NeedBias},
		{HF: "model.layers.{bid}.mlp.c_fc", GGUF: "blk.{bid}.ffn_up", Bias: table.MayBias},
		{HF: "model.layers.{bid}.mlp.c_proj", GGUF: "blk.{bid}.ffn_down", Bias: table.MayBias},
	},
	Graph: parts.Decoder(graph.LayerNorm, parts.GQA(parts.NeoX), parts.GELUMLP),
}
