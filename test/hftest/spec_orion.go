package hftest

func init() {
	add(Spec{
		Name:      "orion",
		Tokenizer: "spm-nojson",
		Config: `{"architectures": ["OrionForCausalLM"], "attention_bias": false,
			"auto_map": {"AutoConfig": "configuration_orion.OrionConfig"}, "bos_token_id": 1, "eos_token_id": 2,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"max_position_embeddings": 4096, "max_sequence_length": 4096, "model_type": "orion",
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 4, "pad_token_id": 0,
			"pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.34.0",
			"use_cache": true, "vocab_size": 1008}`,
		Tensors: llamaHead + llamaAttention + llamaMLP + `
			model.norm.bias                                          | hidden_size
			model.layers.{bid}.{input,post_attention}_layernorm.bias | hidden_size
			`,
		Variants: []Variant{
			{Name: "long", Seed: 3, DType: "F16", Out: "bf16",
				Set: `{"max_sequence_length": null, "max_position_embeddings": 320000, "num_key_value_heads": 2}`},
		},
	})
	add(Spec{
		Name:      "xverse",
		Tokenizer: "spm",
		Config: `{"architectures": ["XverseForCausalLM"],
			"auto_map": {"AutoConfig": "configuration_xverse.XverseConfig"}, "bos_token_id": 1, "eos_token_id": 2,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"max_position_embeddings": 8192, "max_tokenizer_truncation": 6144, "model_type": "xverse",
			"num_attention_heads": 4, "num_hidden_layers": 2, "pad_token_id": 0, "rms_norm_eps": 1e-06,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.28.1",
			"use_cache": true, "vocab_size": 1000, "num_key_value_heads": 4}`,
		Tensors: llamaHead + llamaAttention + llamaMLP,
		Variants: []Variant{
			{Name: "eleven-layers", Seed: 3, DType: "F16", Out: "auto", Set: `{"num_hidden_layers": 11}`},
		},
	})
	add(Spec{
		Name:        "plamo",
		Tokenizer:   "spm-nojson",
		NoReference: "the reference supports only the sizes of the published model",
		Config: `{"architectures": ["PlamoForCausalLM"], "auto_map": {"AutoConfig": "modeling_plamo.PlamoConfig"},
			"bos_token_id": 1, "eos_token_id": 2, "hidden_size": 160, "intermediate_size": 96,
			"max_position_embeddings": 4096, "model_type": "plamo", "n_shared_head": 2, "num_attention_heads": 10,
			"num_hidden_layers": 2, "num_key_value_heads": 10, "pad_token_id": 3, "rms_norm_eps": 1e-06,
			"tokenizer_class": "PlamoTokenizer", "torch_dtype": "float32", "transformers_version": "4.32.1",
			"use_cache": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			hd  = hidden_size / num_attention_heads
			lm_head.weight                                          | vocab_size, hidden_size
			model.embed_tokens.weight                               | vocab_size, hidden_size
			model.norm.weight                                       | hidden_size
			model.layers.layers.{bid}.norm.weight                   | hidden_size
			model.layers.layers.{bid}.self_attn.{q,o}_proj.weight   | hidden_size, hidden_size
			model.layers.layers.{bid}.self_attn.{k,v}_proj.weight   | 5*hd, hidden_size
			model.layers.layers.{bid}.mlp.{gate,up}_proj.weight     | intermediate_size, hidden_size
			model.layers.layers.{bid}.mlp.down_proj.weight          | hidden_size, intermediate_size
			model.layers.layers.{bid}.self_attn.rotary_emb.inv_freq | hd/2 | as F32
			`,
	})
}
