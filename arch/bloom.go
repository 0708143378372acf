package arch

import (
	"ggforge/arch/hparams"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

// bloom has ALiBi instead of positions. Source: bloom.py of the reference.
var bloom = &table.Arch{
	Name:      "bloom",
	Classes:   []string{"BloomForCausalLM", "BloomModel"},
	Tokenizer: tokenizer.ClassGPT2,
	Fused:     table.FusedQKV,
	Metadata: []table.Row{
		{Key: "context_length", Type: gguf.Uint32Type, From: []string{"seq_length", "hidden_size", "n_embed"}, Required: true},
		{Key: "embedding_length", Type: gguf.Uint32Type, From: []string{"hidden_size", "n_embed"}, Required: true},
		{Key: "feed_forward_length", Derive: func(c *hparams.View) (gguf.Value, bool, error) {
			if c.Has("hidden_size") {
				return parts.Times(4, "hidden_size")(c)
			}
			return parts.Times(4, "n_embed")(c)
		}},
		{Key: table.KeyBlockCount, Type: gguf.Uint32Type, From: hparams.BlockCountKeys, Required: true},
		{Key: table.KeyHeadCount, Type: gguf.Uint32Type, From: parts.BloomHeads, Required: true},
		{Key: table.KeyHeadCountKV, Type: gguf.Uint32Type, From: parts.BloomHeads, Required: true},
		{Key: "attention.layer_norm_epsilon", Type: gguf.Float32Type, From: []string{"layer_norm_epsilon"}, Required: true},
		{Key: gguf.KeyFileType},
	},
	Unused: []string{"attention_softmax_in_fp32", "bias_dropout_fusion", "masked_softmax_fusion", "offset_alibi", "skip_bias_add", "skip_bias_add_qkv", "slow_but_exact", "n_inner"},
	Expect: []table.Expect{
		{Key: "apply_residual_connection_post_layernorm", Values: parts.False},
	},
	Rename: []table.Rename{{Prefix: "transformer.", With: ""}},
	Tensors: []table.TensorRow{
		{HF: "word_embeddings", GGUF: "token_embd"},
		{HF: "word_embeddings_layernorm", GGUF: "token_embd_norm", Bias: table.NeedBias},
		{HF: "ln_f", GGUF: "output_norm", Bias: table.NeedBias},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "h.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm", Bias: table.NeedBias},
		{HF: "h.{bid}.self_attention.query_key_value", GGUF: "blk.{bid}.attn_qkv", Transform: parts.SplitHeads, Bias: table.NeedBias},
		{HF: "h.{bid}.self_attention.dense", GGUF: "blk.{bid}.attn_output", Bias: table.NeedBias},
		{HF: "h.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.ffn_norm", Bias: table.NeedBias},
		{HF: "h.{bid}.mlp.dense_h_to_4h", GGUF: "blk.{bid}.ffn_up", Bias: table.NeedBias},
		{HF: "h.{bid}.mlp.dense_4h_to_h", GGUF: "blk.{bid}.ffn_down", Bias: table.NeedBias},
	},
}
