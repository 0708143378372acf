package arch

import (
	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(bloom)

// bloom is BLOOM, with ALiBi in place of position embeddings. Source: bloom.py of the reference.
var bloom = &table.Arch{
	Name:      "bloom",
	Classes:   []string{"BloomForCausalLM", "BloomModel"},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata: []table.Row{
		parts.UintRow("context_length", "seq_length", "hidden_size", "n_embed"),
		parts.UintRow("embedding_length", "hidden_size", "n_embed"),
		{Key: "feed_forward_length", Derive: func(c *config.View) (gguf.Value, bool, error) {
			if c.Has("hidden_size") {
				return parts.Times(4, "hidden_size")(c)
			}
			return parts.Times(4, "n_embed")(c)
		}},
		parts.BlockCountRow,
		parts.UintRow(table.KeyHeadCount, parts.BloomHeads...),
		parts.UintRow(table.KeyHeadCountKV, parts.BloomHeads...),
		parts.FloatRow("attention.layer_norm_epsilon", "layer_norm_epsilon"),
		parts.FileTypeRow,
	},
	Unused: []string{"attention_softmax_in_fp32", "bias_dropout_fusion", "masked_softmax_fusion", "offset_alibi",
		"skip_bias_add", "skip_bias_add_qkv", "slow_but_exact", "n_inner"},
	Expect: []table.Expect{
		parts.Expect("apply_residual_connection_post_layernorm", "false"),
	},
	Rename: []table.Rename{{Prefix: "transformer.", With: ""}},
	Tensors: []table.TensorRow{
		{HF: "word_embeddings", GGUF: "token_embd"},
		{HF: "word_embeddings_layernorm", GGUF: "token_embd_norm", Bias: table.NeedBias},
		{HF: "ln_f", GGUF: "output_norm", Bias: table.NeedBias},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "h.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm", Bias: table.NeedBias},
		{HF: "h.{bid}.self_attention.query_key_value", GGUF: "blk.{bid}.attn_qkv", Transform: parts.SplitHeads,
			Bias: table.NeedBias},
		{HF: "h.{bid}.self_attention.dense", GGUF: "blk.{bid}.attn_output", Bias: table.NeedBias},
		{HF: "h.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.ffn_norm", Bias: table.NeedBias},
		{HF: "h.{bid}.mlp.dense_h_to_4h", GGUF: "blk.{bid}.ffn_up", Bias: table.NeedBias},
		{HF: "h.{bid}.mlp.dense_4h_to_h", GGUF: "blk.{bid}.ffn_down", Bias: table.NeedBias},
	},
	Graph: &graph.Model{
		Norm: graph.LayerNorm, Embed: graph.Embedding{Norm: parts.EmbeddingNorm},
		Layer: parts.PreNorm(graph.Attention{Scores: parts.ALiBi}, parts.GELUMLP),
		Final: parts.OutputNorm, Head: graph.LM{},
	},
}
