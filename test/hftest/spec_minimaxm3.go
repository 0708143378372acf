package hftest

func init() {
	add(Spec{
		Name:      "minimax_m3",
		Tokenizer: "bpe:gpt-4o",
		Pre:       "minimax-m2",
		RawConfig: true,
		Config: `{"architectures": ["MiniMaxM3SparseForConditionalGeneration"],
			"auto_map": {"AutoConfig": "configuration_minimax_m3_vl.MiniMaxM3VLConfig"}, "dtype": "bfloat16",
			"image_seq_length": 576, "image_token_index": 5,
			"img_token_compression_config": {"image_token_compression_method": "patch_merge", "spatial_merge_size": 2,
			"temporal_patch_size": 2}, "model_type": "minimax_m3_vl", "num_reward_heads": 0,
			"projector_hidden_size": 64, "text_config": {"architectures": ["MiniMaxM3SparseForCausalLM"],
			"attention_dropout": 0.0, "attention_output_gate": false, "bos_token_id": $bos,
			"dense_intermediate_size": 96, "eos_token_id": $eos, "head_dim": 32, "hidden_act": "swigluoai",
			"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 32, "max_position_embeddings": 1048576,
			"model_type": "minimax_m3", "moe_layer_freq": [0, 1, 1], "n_shared_experts": 1, "num_attention_heads": 4,
			"num_experts_per_tok": 2, "num_hidden_layers": 3, "num_key_value_heads": 4, "num_local_experts": 4,
			"num_mtp_modules": 7, "num_nextn_predict_layers": 1, "partial_rotary_factor": 0.5,
			"qk_norm_type": "per_head", "rms_norm_eps": 1e-06, "rope_theta": 5000000, "rotary_dim": 16,
			"routed_scaling_factor": 2.0, "scoring_func": "sigmoid", "shared_intermediate_size": 32,
			"sparse_attention_config": {"sparse_attention_freq": [0, 1, 1], "sparse_block_size": 128,
			"sparse_disable_index_value": [0, 1, 1], "sparse_index_dim": 32, "sparse_init_block": 0,
			"sparse_local_block": 1, "sparse_num_index_heads": 4, "sparse_score_type": "max", "sparse_topk_blocks": 16,
			"use_sparse_attention": true}, "swiglu_alpha": 1.702, "swiglu_beta": 1.0, "swiglu_limit": 7.0,
			"tie_word_embeddings": false, "use_cache": true, "use_gemma_norm": true, "use_qk_norm": true,
			"use_routing_bias": true, "vocab_size": $vocab}, "tie_word_embeddings": false,
			"transformers_version": "4.52.4", "video_token_index": 6, "vision_config": {"hidden_size": 32,
			"model_type": "clip_vision_model"}}`,
		Tensors: `
			bid = num_hidden_layers
			xid = num_local_experts
			language_model.model.embed_tokens.weight                                  | vocab_size, hidden_size
			language_model.lm_head.weight                                             | vocab_size, hidden_size
			language_model.model.norm.weight                                          | hidden_size
			language_model.model.layers.{bid}.{input,post_attention}_layernorm.weight | hidden_size
			language_model.model.layers.{bid}.self_attn.q_proj.weight                 | num_attention_heads*head_dim, hidden_size
			language_model.model.layers.{bid}.self_attn.{k,v}_proj.weight             | num_key_value_heads*head_dim, hidden_size
			language_model.model.layers.{bid}.self_attn.o_proj.weight                 | hidden_size, num_attention_heads*head_dim
			language_model.model.layers.{bid}.self_attn.{q,k}_norm.weight             | head_dim
			language_model.model.layers.{bid}.mlp.{gate,up}_proj.weight               | dense_intermediate_size, hidden_size | if moe_layer_freq[bid] == 0
			language_model.model.layers.{bid}.mlp.down_proj.weight                    | hidden_size, dense_intermediate_size | if moe_layer_freq[bid] == 0
			language_model.model.layers.{bid}.self_attn.index_q_proj.weight           | sparse_attention_config.sparse_num_index_heads*sparse_attention_config.sparse_index_dim, hidden_size | if moe_layer_freq[bid] == 1
			language_model.model.layers.{bid}.self_attn.index_k_proj.weight           | sparse_attention_config.sparse_index_dim, hidden_size | if moe_layer_freq[bid] == 1
			language_model.model.layers.{bid}.self_attn.index_{q,k}_norm.weight       | sparse_attention_config.sparse_index_dim              | if moe_layer_freq[bid] == 1
			language_model.model.layers.{bid}.block_sparse_moe.gate.weight            | num_local_experts, hidden_size       | if moe_layer_freq[bid] == 1
			language_model.model.layers.{bid}.block_sparse_moe.e_score_correction_bias | num_local_experts                   | if moe_layer_freq[bid] == 1 | as F32
			language_model.model.layers.{bid}.block_sparse_moe.experts.{xid}.{w1,w3}.weight | intermediate_size, hidden_size | if moe_layer_freq[bid] == 1
			language_model.model.layers.{bid}.block_sparse_moe.experts.{xid}.w2.weight | hidden_size, intermediate_size      | if moe_layer_freq[bid] == 1
			language_model.model.layers.{bid}.block_sparse_moe.shared_experts.{gate,up}_proj.weight | n_shared_experts*shared_intermediate_size, hidden_size | if moe_layer_freq[bid] == 1
			language_model.model.layers.{bid}.block_sparse_moe.shared_experts.down_proj.weight | hidden_size, n_shared_experts*shared_intermediate_size | if moe_layer_freq[bid] == 1
			vision_tower.vision_model.embeddings.patch_embedding.weight               | 32, 48
			multi_modal_projector.linear_1.weight                                     | 64, 32
			patch_merge_mlp.linear_1.weight                                           | 64, 32
			`,
		Variants: []Variant{
			{Name: "eleven-experts", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"text_config": {"num_local_experts": 11,
				"n_shared_experts": 2, "moe_layer_freq": [0, 0, 1],
				"sparse_attention_config": {"sparse_attention_freq": [0, 0, 1], "sparse_disable_index_value": [0, 0,
				1]}}}`},
		},
	})
}
