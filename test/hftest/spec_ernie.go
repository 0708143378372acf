package hftest

func init() {
	// early checkpoints: other prefixes, fused matrices
	add(Spec{
		Name:      "ernie4_5-joined",
		Tokenizer: "spm",
		Config: `{"architectures": ["Ernie4_5_ForCausalLM"], "attention_probs_dropout_prob": 0.0, "bos_token_id": 1,
			"compression_ratio": 1.0, "eos_token_id": 2, "freq_allocation": 20, "fuse_attn_qkv": true, "head_dim": 32,
			"hidden_act": "silu", "hidden_size": 64, "intermediate_size": 96, "max_position_embeddings": 131072,
			"max_sequence_length": 131072, "model_type": "ernie4_5", "num_attention_heads": 4, "num_hidden_layers": 2,
			"num_key_value_heads": 2, "pad_token_id": 0, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
			"tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_bias": false, "use_cache": false,
			"vocab_size": 1024, "weight_share_add_bias": true}`,
		Tensors: `
			bid = num_hidden_layers
			ernie.embed_tokens.weight                                  | vocab_size, hidden_size
			ernie.norm.weight                                          | hidden_size
			ernie.layers.{bid}.{input,post_attention}_layernorm.weight | hidden_size
			ernie.layers.{bid}.self_attn.qkv_proj.weight               | (num_attention_heads+2*num_key_value_heads)*head_dim, hidden_size
			ernie.layers.{bid}.self_attn.o_proj.weight                 | hidden_size, num_attention_heads*head_dim
			ernie.layers.{bid}.mlp.up_gate_proj.weight                 | 2*intermediate_size, hidden_size
			ernie.layers.{bid}.mlp.down_proj.weight                    | hidden_size, intermediate_size
			`,
		Variants: []Variant{
			{Name: "no-head-dim", Seed: 3, DType: "F16", Out: "bf16", Set: `{"head_dim": 16, "rms_norm_eps": null}`},
		},
	})
}
