package hftest

func init() {
	add(Spec{
		Name:      "dream",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["DreamModel"], "attention_dropout": 0.0,
			"auto_map": {"AutoConfig": "configuration_dream.DreamConfig"}, "bos_token_id": $pad, "eos_token_id": $pad,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"mask_token_id": 1002, "max_position_embeddings": 131072, "max_window_layers": 28, "model_type": "Dream",
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "pad_token_id": $pad,
			"rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000.0, "sliding_window": null,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.46.2",
			"use_cache": true, "use_sliding_window": false, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + llamaMLP + `
			model.layers.{bid}.self_attn.q_proj.bias      | num_attention_heads*hd
			model.layers.{bid}.self_attn.{k,v}_proj.bias  | num_key_value_heads*hd
			`,
	})
	add(Spec{
		Name:      "llada",
		Tokenizer: "bpe:llama3",
		Config: `{"activation_type": "silu", "alibi": false, "alibi_bias_max": 8.0, "architectures": ["LLaDAModelLM"],
			"attention_dropout": 0.0, "attention_layer_norm": false, "attention_layer_norm_with_affine": true,
			"auto_map": {"AutoConfig": "configuration_llada.LLaDAConfig"}, "bias_for_layer_norm": false,
			"block_group_size": 1, "block_type": "llama", "d_model": 64, "embedding_dropout": 0.0,
			"embedding_size": 1024, "eos_token_id": $eos, "flash_attention": false, "include_bias": false,
			"include_qkv_bias": false, "init_cutoff_factor": null, "init_device": "meta", "init_fn": "mitchell",
			"init_std": 0.02, "input_emb_norm": false, "layer_norm_type": "rms", "layer_norm_with_affine": true,
			"mask_token_id": 1002, "max_sequence_length": 4096, "mlp_hidden_size": 96, "mlp_ratio": 4,
			"model_type": "llada", "multi_query_attention": null, "n_heads": 4, "n_kv_heads": 2, "n_layers": 2,
			"pad_token_id": $eos, "precision": "amp_bf16", "residual_dropout": 0.0, "rms_norm_eps": 1e-05, "rope": true,
			"rope_full_precision": true, "rope_theta": 500000.0, "scale_logits": false,
			"transformers_version": "4.46.3", "use_cache": false, "vocab_size": 1024, "weight_tying": false}`,
		Tensors: `
			bid = n_layers
			hd  = d_model / n_heads
			model.transformer.wte.weight                             | vocab_size, d_model
			model.transformer.ff_out.weight                          | vocab_size, d_model
			model.transformer.ln_f.weight                            | d_model
			model.transformer.blocks.{bid}.{attn,ff}_norm.weight     | d_model
			model.transformer.blocks.{bid}.{q_proj,attn_out}.weight  | d_model, d_model
			model.transformer.blocks.{bid}.{k,v}_proj.weight         | n_kv_heads*hd, d_model
			model.transformer.blocks.{bid}.{ff,up}_proj.weight       | mlp_hidden_size, d_model
			model.transformer.blocks.{bid}.ff_out.weight             | d_model, mlp_hidden_size
			`,
	})
}
