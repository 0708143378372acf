package arch

import (
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

// bloom has ALiBi instead of positions. Source: bloom.py of the reference.
var bloom = &Arch{
	Name:      "bloom",
	Classes:   []string{"BloomForCausalLM", "BloomModel"},
	Tokenizer: tokenizer.ClassGPT2,
	Metadata: []Row{
		{Key: "context_length", Type: gguf.Uint32Type, From: []string{"seq_length", "hidden_size", "n_embed"}, Required: true},
		{Key: "embedding_length", Type: gguf.Uint32Type, From: []string{"hidden_size", "n_embed"}, Required: true},
		{Key: "feed_forward_length", Derive: func(c *Config) (gguf.Value, bool, error) {
			if c.Has("hidden_size") {
				return times(4, "hidden_size")(c)
			}
			return times(4, "n_embed")(c)
		}},
		{Key: keyBlockCount, Type: gguf.Uint32Type, From: blockCountKeys, Required: true},
		{Key: keyHeadCount, Type: gguf.Uint32Type, From: bloomHeads, Required: true},
		{Key: keyHeadCountKV, Type: gguf.Uint32Type, From: bloomHeads, Required: true},
		{Key: "attention.layer_norm_epsilon", Type: gguf.Float32Type, From: []string{"layer_norm_epsilon"}, Required: true},
		{Key: gguf.KeyFileType},
	},
	Unused: []string{"attention_softmax_in_fp32", "bias_dropout_fusion", "masked_softmax_fusion", "offset_alibi", "skip_bias_add", "skip_bias_add_qkv", "slow_but_exact", "n_inner"},
	Expect: []Expect{
		{"apply_residual_connection_post_layernorm", no},
	},
	Rename: []Rename{{Prefix: "transformer.", With: ""}},
	Tensors: []TensorRow{
		{HF: "word_embeddings", GGUF: "token_embd"},
		{HF: "word_embeddings_layernorm", GGUF: "token_embd_norm", Bias: NeedBias},
		{HF: "ln_f", GGUF: "output_norm", Bias: NeedBias},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "h.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm", Bias: NeedBias},
		{HF: "h.{bid}.self_attention.query_key_value", GGUF: "blk.{bid}.attn_qkv", Transform: splitHeads, Bias: NeedBias},
		{HF: "h.{bid}.self_attention.dense", GGUF: "blk.{bid}.attn_output", Bias: NeedBias},
		{HF: "h.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.ffn_norm", Bias: NeedBias},
		{HF: "h.{bid}.mlp.dense_h_to_4h", GGUF: "blk.{bid}.ffn_up", Bias: NeedBias},
		{HF: "h.{bid}.mlp.dense_4h_to_h", GGUF: "blk.{bid}.ffn_down", Bias: NeedBias},
	},
}

var bloomHeads = []string{"n_head", "num_attention_heads"}

// splitHeads turns rows of query, key and value head by head into all queries,
// all keys, all values.
var splitHeads = groupedQKV("split-heads", func(l Layer) (groups, perGroup int64, err error) {
	heads, err := l.Require(bloomHeads...)
	return heads, 1, err
})

// groupedQKV returns the transform of a joined projection that lies in groups,
// each of perGroup query heads, a key head and a value head, into all queries,
// all keys, all values. A bias is split like a row.
func groupedQKV(name string, count func(Layer) (groups, perGroup int64, err error)) *Transform {
	return &Transform{Name: name, Forward: func(l Layer, s rows.Source) (rows.Source, error) {
		groups, perGroup, err := count(l)
		if err != nil {
			return nil, err
		}
		return rows.UngroupQKV(s, groups, perGroup)
	}}
}
