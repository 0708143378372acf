package arch

import (
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(qwen1)

// qwen1 is the first Qwen. Its intermediate_size counts gate and up projection together. Source: the Qwen class of the
// reference's converter, which writes the epsilon of the RMS norms under the key of layer norms, so that runtimes
// refuse its files.
var qwen1 = &table.Arch{
	Name:      "qwen",
	Classes:   []string{"QWenLMHeadModel"},
	Tokenizer: qwen1Tokens,
	Fused:     table.FusedQKV,
	Metadata: parts.Override(parts.CommonRows,
		table.Row{Key: "attention.layer_norm_rms_epsilon", Type: gguf.Float32Type, From: []string{"layer_norm_epsilon"},
			Required: true, Deviates: true},
	),
	Expect: []table.Expect{parts.Expect("rotary_pct", "1"), parts.Expect("no_bias", "true"),
		parts.Expect("scale_attn_weights", "true")},
	Unused: []string{"attn_dropout_prob", "emb_dropout_prob", "kv_channels", "onnx_safe", "seq_length", "bf16", "fp16",
		"fp32", "use_cache_kernel", "use_cache_quantization",
		"softmax_in_fp32"},
	Tensors: []table.TensorRow{
		{HF: "transformer.wte", GGUF: "token_embd"},
		{HF: "transformer.ln_f", GGUF: "output_norm"},
		{HF: "lm_head", GGUF: "output"},
		{HF: "transformer.h.{bid}.ln_1", GGUF: "blk.{bid}.attn_norm"},
		{HF: "transformer.h.{bid}.attn.c_attn", GGUF: "blk.{bid}.attn_qkv", Bias: table.NeedBias},
		{HF: "transformer.h.{bid}.attn.c_proj", GGUF: "blk.{bid}.attn_output"},
		{HF: "transformer.h.{bid}.ln_2", GGUF: "blk.{bid}.ffn_norm"},
		{HF: "transformer.h.{bid}.mlp.w1", GGUF: "blk.{bid}.ffn_up"},
		{HF: "transformer.h.{bid}.mlp.w2", GGUF: "blk.{bid}.ffn_gate"},
		{HF: "transformer.h.{bid}.mlp.c_proj", GGUF: "blk.{bid}.ffn_down"},
	},
	Graph: &graph.Model{
		Dims: graph.Dims{"n_ff": "@feed_forward_length / 2"},
		Norm: graph.RMS, Layer: parts.PreNorm(parts.GQA(parts.NeoX), parts.SwiGLU), Final: parts.OutputNorm,
		Head: graph.LM{}, Unread: []string{"attention.layer_norm_epsilon"},
	},
}

// qwen1Tokens: the special tokens begin with <|endoftext|>.
var qwen1Tokens = tokenizer.Tiktoken{File: "qwen.tiktoken", Words: parts.QwenWords, First: 151643,
	Special: []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}, Extra: 205, AllMerges: true, FirstIsEnd: true}
