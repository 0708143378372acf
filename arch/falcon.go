package arch

import (
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

// falcon is Falcon 7B, 40B and 11B. Source: falcon.py of the reference.
var falcon = &Arch{
	Name:      "falcon",
	Classes:   []string{"FalconForCausalLM", "RWForCausalLM"},
	Tokenizer: tokenizer.ClassGPT2,
	Metadata: []Row{
		{Key: "context_length", Const: gguf.Uint32(2048)},
		{Key: "tensor_data_layout", Const: gguf.String("jploski")},
		{Key: "embedding_length", Type: gguf.Uint32Type, From: []string{"hidden_size"}, Required: true},
		{Key: "feed_forward_length", Derive: times(4, "hidden_size")},
		{Key: keyBlockCount, Type: gguf.Uint32Type, From: blockCountKeys, Required: true},
		{Key: keyHeadCount, Type: gguf.Uint32Type, From: falconHeads, Required: true},
		{Key: keyHeadCountKV, Derive: func(c *Config) (gguf.Value, bool, error) {
			n, err := c.falconHeadsKV()
			return uint32Of(n, true, err)
		}},
		{Key: "attention.layer_norm_epsilon", Type: gguf.Float32Type, From: []string{"layer_norm_epsilon"}, Required: true},
		{Key: gguf.KeyFileType},
		{Key: "rope.freq_base", Deviates: true, Derive: otherFreqBase},
	},
	Unused: []string{"max_position_embeddings", "new_decoder_architecture", "multi_query", "num_ln_in_parallel_attn"},
	Expect: []Expect{
		{"activation", gelu},
		{"alibi", no},
		{"bias", no},
		{"parallel_attn", []string{"true"}},
		{"apply_residual_connection_post_layernorm", no},
		{"rope_scaling", nil},
	},
	Tensors: []TensorRow{
		{HF: "transformer.word_embeddings", GGUF: "token_embd"},
		{HF: "transformer.ln_f", GGUF: "output_norm", Bias: NeedBias},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "transformer.h.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm", Bias: NeedBias},
		{HF: "transformer.h.{bid}.ln_mlp", GGUF: "blk.{bid}.attn_norm", Bias: NeedBias, Optional: true},
		{HF: "transformer.h.{bid}.ln_attn", GGUF: "blk.{bid}.attn_norm_2", Bias: NeedBias, Optional: true},
		{HF: "transformer.h.{bid}.self_attention.query_key_value", GGUF: "blk.{bid}.attn_qkv", Transform: falconQKV},
		{HF: "transformer.h.{bid}.self_attention.dense", GGUF: "blk.{bid}.attn_output"},
		{HF: "transformer.h.{bid}.mlp.dense_h_to_4h", GGUF: "blk.{bid}.ffn_up"},
		{HF: "transformer.h.{bid}.mlp.dense_4h_to_h", GGUF: "blk.{bid}.ffn_down"},
	},
}

var falconHeads = []string{"num_attention_heads", "n_head"}

// falconHeadsKV returns the number of key heads, under its new and its old name:
// one without either. What the transformers library fills in, the number of query
// heads, does not fit the weights.
func (c *Config) falconHeadsKV() (int64, error) {
	for _, key := range []string{"num_kv_heads", "n_head_kv"} {
		if c.Raw[key] == nil {
			continue
		}
		if n, ok, err := c.Int(key); err != nil || ok {
			return n, err
		}
	}
	return 1, nil
}

// falconQKV turns groups of query heads with their key and value head into all
// queries, all keys, all values.
var falconQKV = &Transform{Name: "falcon-qkv", Forward: func(l Layer, s rows.Source) (rows.Source, error) {
	heads, err := l.Require(falconHeads...)
	if err != nil {
		return nil, err
	}
	groups, err := l.falconHeadsKV()
	if err != nil {
		return nil, err
	}
	if groups <= 0 || heads <= 0 || heads%groups != 0 {
		return nil, fault.Errorf(fault.Broken, "%s: %d heads for %d key heads, want a multiple", ConfigFile, heads, groups)
	}
	return rows.UngroupQKV(s, groups, heads/groups)
}}
