package hftest

func init() {
	add(Spec{
		Name:      "qwen2",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": $pad, "eos_token_id": $eos, "hidden_act": "silu",
			"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 32768, "max_window_layers": 2, "model_type": "qwen2",
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.40.1", "use_cache": true, "use_sliding_window": false,
			"vocab_size": 1024}`,
		Files: map[string]string{"generation_config.json": `{"bos_token_id": 1000, "do_sample": true, "eos_token_id": [1002, 1000], "pad_token_id": 1000,
			"repetition_penalty": 1.05, "temperature": 0.7, "top_k": 20, "top_p": 0.8, "transformers_version": "4.37.0"}`},
		Tensors: llamaAttention + llamaMLP + `
			model.layers.{bid}.self_attn.q_proj.bias      | num_attention_heads*hd
			model.layers.{bid}.self_attn.{k,v}_proj.bias  | num_key_value_heads*hd
			`,
		Variants: []Variant{
			{Name: "tied", Seed: 3, DType: "F16", Out: "auto", Set: `{"tie_word_embeddings": true}`},
		},
	})
}
