package hftest

import "strings"

func init() {
	add(Spec{
		Name:      "seed_oss",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["SeedOssForCausalLM"], "attention_bias": true, "attention_dropout": 0.1,
			"attention_out_bias": false, "bos_token_id": $pad, "eos_token_id": $eos, "head_dim": 16,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"max_position_embeddings": 524288, "mlp_bias": false, "model_type": "seed_oss", "num_attention_heads": 4,
			"num_hidden_layers": 2, "num_key_value_heads": 2, "pad_token_id": $pad, "residual_dropout": 0.1,
			"rms_norm_eps": 1e-06, "rope_scaling": {"rope_type": "default"}, "rope_theta": 10000000.0,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.55.0",
			"use_cache": true, "vocab_size": 1024}`,
		Tensors: llamaHead + strings.Replace(llamaAttention,
			"o_proj.bias                | hidden_size            | if opt(attention_bias)",
			"o_proj.bias                | hidden_size            | if opt(attention_out_bias)", 1) + llamaMLP,
	})
	add(Spec{
		Name:      "jais2",
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["Jais2ForCausalLM"], "attention_bias": true, "attention_dropout": 0.0,
			"bos_token_id": $bos, "eos_token_id": $eos, "head_dim": 16, "hidden_act": "relu2", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "layer_norm_eps": 1e-05,
			"max_position_embeddings": 8192, "mlp_bias": true, "model_type": "jais2", "num_attention_heads": 4,
			"num_hidden_layers": 2, "num_key_value_heads": 2, "rope_scaling": null, "rope_theta": 500000,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + `
			model.norm.bias                                          | hidden_size
			model.layers.{bid}.{input,post_attention}_layernorm.bias | hidden_size
			model.layers.{bid}.mlp.up_proj.weight                    | intermediate_size, hidden_size
			model.layers.{bid}.mlp.up_proj.bias                      | intermediate_size
			model.layers.{bid}.mlp.down_proj.weight                  | hidden_size, intermediate_size
			model.layers.{bid}.mlp.down_proj.bias                    | hidden_size
			`,
	})
	add(Spec{
		Name:      "maincoder",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["MaincoderForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": $pad, "eos_token_id": $eos, "head_dim": 16, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 2048,
			"model_type": "maincoder", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
			"rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 1000000.0, "tie_word_embeddings": true,
			"torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + llamaMLP + headNorms,
	})
	add(Spec{
		Name:      "pangu",
		Tokenizer: "spm-nojson",
		Config: `{"architectures": ["PanguEmbeddedForCausalLM"],
			"auto_map": {"AutoConfig": "configuration_openpangu_dense.PanguEmbeddedConfig"}, "bias": true,
			"attention_bias": true, "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"max_position_embeddings": 32768, "model_type": "PanguEmbedded", "num_attention_heads": 4,
			"num_hidden_layers": 2, "num_key_value_heads": 2, "pad_token_id": 0, "rms_norm_eps": 1e-05,
			"rope_theta": 16000000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.53.2", "use_cache": true, "vocab_size": $vocab}`,
		Tensors: llamaHead + llamaAttention + llamaMLP,
		Variants: []Variant{
			{Name: "head-dim", Seed: 3, DType: "F16", Out: "bf16",
				Set: `{"head_dim": 32, "attention_bias": false, "tie_word_embeddings": true}`},
		},
	})
	add(Spec{
		Name:      "plm",
		NoLoad:    "an assertion of the runtime fails with sizes as small as these",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["PLMForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"auto_map": {"AutoConfig": "configuration_plm.PLMConfig"}, "bos_token_id": $pad, "eos_token_id": $eos,
			"hidden_act": "relu2", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"kv_lora_rank": 32, "max_position_embeddings": 4096, "max_window_layers": 28, "model_type": "plm",
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 4, "q_lora_rank": null,
			"qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "rms_norm_eps": 1e-06, "rope_scaling": null,
			"rope_theta": 100000.0, "sliding_window": null, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
			"transformers_version": "4.46.3", "use_cache": true, "use_sliding_window": false, "v_head_dim": 16,
			"vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			model.embed_tokens.weight                                  | vocab_size, hidden_size
			model.norm.weight                                          | hidden_size
			model.layers.{bid}.{input,post_attention}_layernorm.weight | hidden_size
			model.layers.{bid}.self_attn.q_proj.weight                 | num_attention_heads*(qk_nope_head_dim+qk_rope_head_dim), hidden_size
			model.layers.{bid}.self_attn.kv_a_proj_with_mqa.weight     | kv_lora_rank+qk_rope_head_dim, hidden_size
			model.layers.{bid}.self_attn.kv_a_layernorm.weight         | kv_lora_rank
			model.layers.{bid}.self_attn.kv_b_proj.weight              | num_attention_heads*(qk_nope_head_dim+v_head_dim), kv_lora_rank
			model.layers.{bid}.self_attn.o_proj.weight                 | hidden_size, num_attention_heads*v_head_dim
			model.layers.{bid}.mlp.up_proj.weight                      | intermediate_size, hidden_size
			model.layers.{bid}.mlp.down_proj.weight                    | hidden_size, intermediate_size
			`,
	})
	add(Spec{
		Name:      "mellum",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["MellumForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": $pad, "eos_token_id": $eos, "head_dim": 16, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "layer_types": ["sliding_attention",
			"sliding_attention", "full_attention"], "max_position_embeddings": 131072, "model_type": "mellum",
			"moe_intermediate_size": 32, "norm_topk_prob": true, "num_attention_heads": 4, "num_experts": 11,
			"num_experts_per_tok": 2, "num_hidden_layers": 3, "num_key_value_heads": 2, "output_router_logits": false,
			"rms_norm_eps": 1e-06, "rope_parameters": {"full_attention": {"rope_type": "yarn", "rope_theta": 500000.0,
			"factor": 16.0, "original_max_position_embeddings": 8192}, "sliding_attention": {"rope_type": "default",
			"rope_theta": 10000.0}}, "router_aux_loss_coef": 0.001, "sliding_window": 1024,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true, "use_sliding_window": true,
			"vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + headNorms + splitExperts,
		Variants: []Variant{
			{Name: "whole-window", Seed: 3, DType: "F16", Out: "bf16",
				Set: `{"use_sliding_window": false, "rope_parameters": null, "rope_theta": 20000.0}`},
		},
	})
	add(Spec{
		Name:      "minimax_m2",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["MiniMaxM2ForCausalLM"], "attn_type_list": [1, 1],
			"auto_map": {"AutoConfig": "configuration_minimax_m2.MiniMaxM2Config"}, "bos_token_id": $pad,
			"eos_token_id": $eos, "head_dim": 16, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 32, "layernorm_full_attention_beta": 1.0, "layernorm_linear_attention_beta": 1.0,
			"layernorm_mlp_beta": 1.0, "max_position_embeddings": 196608, "mlp_intermediate_size": 96,
			"model_type": "minimax_m2", "mtp_transformer_layers": 1, "num_attention_heads": 8, "num_experts_per_tok": 2,
			"num_hidden_layers": 2, "num_key_value_heads": 2, "num_local_experts": 11, "num_mtp_modules": 3,
			"output_router_logits": false, "qk_norm_type": "per_layer", "rms_norm_eps": 1e-06, "rope_theta": 5000000,
			"rotary_dim": 8, "router_aux_loss_coef": 0.001, "router_jitter_noise": 0.0, "scoring_func": "sigmoid",
			"shared_intermediate_size": 0, "shared_moe_mode": "sigmoid", "sliding_window": null,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.46.1",
			"use_cache": true, "use_mtp": true, "use_qk_norm": true, "use_routing_bias": true, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + `
			xid = num_local_experts
			model.layers.{bid}.self_attn.q_norm.weight                       | num_attention_heads*hd
			model.layers.{bid}.self_attn.k_norm.weight                       | num_key_value_heads*hd
			model.layers.{bid}.block_sparse_moe.gate.weight                  | num_local_experts, hidden_size
			model.layers.{bid}.block_sparse_moe.e_score_correction_bias      | num_local_experts
			model.layers.{bid}.block_sparse_moe.experts.{xid}.w{1,3}.weight  | intermediate_size, hidden_size
			model.layers.{bid}.block_sparse_moe.experts.{xid}.w2.weight      | hidden_size, intermediate_size
			`,
	})
	add(Spec{
		Name:      "grovemoe",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["GroveMoeForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"auto_map": {"AutoConfig": "configuration_grove_moe.GroveMoeConfig"}, "bos_token_id": $pad,
			"decoder_sparse_step": 1, "eos_token_id": $eos, "head_dim": 32, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 40960,
			"max_window_layers": 48, "mlp_only_layers": [], "model_type": "grove_moe", "moe_intermediate_size": 32,
			"norm_topk_prob": true, "num_attention_heads": 2, "num_experts": 12, "num_experts_per_tok": 4,
			"num_hidden_layers": 2, "num_key_value_heads": 1, "output_router_logits": false, "rms_norm_eps": 1e-06,
			"rope_scaling": null, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001, "sliding_window": null,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.3",
			"use_cache": true, "use_sliding_window": false, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + headNorms + splitExperts + `
			cid = num_experts/2
			model.layers.{bid}.mlp.expert_bias                                   | num_experts
			model.layers.{bid}.mlp.chunk_experts.{cid}.{gate,up}_proj.weight     | 32, hidden_size
			model.layers.{bid}.mlp.chunk_experts.{cid}.down_proj.weight          | hidden_size, 32
			`,
	})
	add(Spec{
		Name:      "smallthinker",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["SmallThinkerForCausalLM"],
			"auto_map": {"AutoConfig": "configuration_smallthinker.SmallThinkerConfig"}, "bos_token_id": $pad,
			"eos_token_id": $eos, "head_dim": 16, "hidden_size": 64, "initializer_range": 0.02,
			"max_position_embeddings": 32768, "model_name": "smallthinker_4b_instruct", "model_type": "smallthinker",
			"moe_enable_early_router": true, "moe_enable_secondary_experts": false, "moe_ffn_hidden_size": 32,
			"moe_layer_layout": [1, 1], "moe_num_active_primary_experts": 2, "moe_num_primary_experts": 11,
			"moe_primary_router_apply_softmax": false, "norm_topk_prob": true, "num_attention_heads": 4,
			"num_hidden_layers": 2, "num_key_value_heads": 2, "pad_token_id": null, "rms_norm_eps": 1e-06,
			"rope_layout": [1, 1], "rope_scaling": null, "rope_theta": 1500000.0, "sliding_window_layout": [0, 0],
			"sliding_window_size": 4096, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
			"transformers_version": "4.51.3", "use_cache": true, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + `
			xid = moe_num_primary_experts
			model.layers.{bid}.block_sparse_moe.primary_router.weight             | moe_num_primary_experts, hidden_size
			model.layers.{bid}.block_sparse_moe.experts.{xid}.{gate,up}.weight    | moe_ffn_hidden_size, hidden_size
			model.layers.{bid}.block_sparse_moe.experts.{xid}.down.weight         | hidden_size, moe_ffn_hidden_size
			`,
		Variants: []Variant{
			{Name: "windows", Seed: 3, DType: "F16", Out: "bf16",
				Set: `{"sliding_window_layout": [0, 1], "moe_primary_router_apply_softmax": true,
					"tie_word_embeddings": false}`},
		},
	})
	add(Spec{
		Name:      "bailing_moe",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["BailingMoeForCausalLM"], "attention_dropout": 0.0,
			"auto_map": {"AutoConfig": "configuration_bailing_moe.BailingMoeConfig"}, "bos_token_id": $pad,
			"embedding_dropout": 0.0, "eos_token_id": $pad, "first_k_dense_replace": 0, "head_dim": 16,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.006, "intermediate_size": 96,
			"max_position_embeddings": 16384, "max_window_layers": 28, "model_type": "bailing_moe",
			"moe_intermediate_size": 32, "norm_head": false, "norm_softmax": false, "norm_topk_prob": true,
			"num_attention_heads": 4, "num_experts": 11, "num_experts_per_tok": 2, "num_hidden_layers": 2,
			"num_key_value_heads": 2, "num_shared_experts": 2, "output_dropout": 0.0, "output_router_logits": false,
			"pad_token_id": $pad, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 600000,
			"sliding_window": 4096, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.36.0", "use_bias": false, "use_cache": true, "use_qkv_bias": false,
			"use_sliding_window": false, "vocab_size": 1024}`,
		Tensors: llamaHead + bailingAttention + splitExperts + `
			model.layers.{bid}.mlp.shared_experts.{gate,up}_proj.weight | moe_intermediate_size*num_shared_experts, hidden_size
			model.layers.{bid}.mlp.shared_experts.down_proj.weight      | hidden_size, moe_intermediate_size*num_shared_experts
			`,
		Variants: []Variant{
			{Name: "norm-head", Seed: 3, Out: "f32", Set: `{"norm_head": true}`},
			{Name: "norm-head-f16", Seed: 4, DType: "F16", Out: "f16",
				Set: `{"norm_head": true, "num_shared_experts": 1}`},
		},
	})
	add(Spec{
		Name:      "bailing_moe_v2",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["BailingMoeV2ForCausalLM"], "attention_dropout": 0.0,
			"auto_map": {"AutoConfig": "configuration_bailing_moe_v2.BailingMoeV2Config"}, "embedding_dropout": 0.0,
			"eos_token_id": $pad, "first_k_dense_replace": 1, "head_dim": 16, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 32768,
			"max_window_layers": 20, "model_type": "bailing_moe", "moe_intermediate_size": 32,
			"moe_router_enable_expert_bias": true, "moe_shared_expert_intermediate_size": 32, "n_group": 2,
			"norm_topk_prob": true, "num_attention_heads": 4, "num_experts": 12, "num_experts_per_tok": 2,
			"num_hidden_layers": 3, "num_key_value_heads": 2, "num_nextn_predict_layers": 0, "num_shared_experts": 1,
			"output_dropout": 0.0, "output_router_logits": false, "pad_token_id": $pad, "partial_rotary_factor": 0.5,
			"rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 600000, "rotary_dim": 8,
			"routed_scaling_factor": 2.5, "router_dtype": "fp32", "score_function": "sigmoid",
			"tie_word_embeddings": false, "topk_group": 1, "torch_dtype": "bfloat16", "transformers_version": "4.52.3",
			"use_bias": false, "use_cache": true, "use_qk_norm": true, "use_qkv_bias": false, "use_rmsnorm": true,
			"vocab_size": 1024}`,
		Tensors: bailingV2,
		Variants: []Variant{
			{Name: "mtp", Seed: 3, DType: "F16", Out: "bf16",
				Set: `{"num_nextn_predict_layers": 1, "moe_shared_expert_intermediate_size": null}`},
		},
	})
	add(Spec{
		Name:      "sarvam_moe",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["SarvamMoEForCausalLM"], "attention_dropout": 0.0,
			"auto_map": {"AutoConfig": "configuration_sarvam_moe.SarvamMoEConfig"}, "embedding_dropout": 0.0,
			"eos_token_id": $pad, "first_k_dense_replace": 1, "head_dim": 16, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.006, "intermediate_size": 96, "max_position_embeddings": 131072,
			"max_window_layers": 19, "model_type": "sarvam_moe", "moe_intermediate_size": 32,
			"moe_router_enable_expert_bias": true, "moe_shared_expert_intermediate_size": 32, "n_group": 1,
			"norm_topk_prob": true, "num_attention_heads": 4, "num_experts": 48, "num_experts_per_tok": 6,
			"num_hidden_layers": 3, "num_key_value_heads": 2, "num_shared_experts": 1, "output_dropout": 0.0,
			"output_router_logits": false, "pad_token_id": $pad, "rms_norm_eps": 1e-06, "rope_scaling": null,
			"rope_theta": 8000000, "routed_scaling_factor": 2.5, "router_dtype": "fp32", "score_function": "sigmoid",
			"tie_word_embeddings": false, "topk_group": 1, "torch_dtype": "bfloat16", "transformers_version": "4.55.0",
			"use_bias": false, "use_cache": true, "use_qk_norm": true, "use_qkv_bias": false, "use_rmsnorm": true,
			"vocab_size": 1024, "num_nextn_predict_layers": 0}`,
		Tensors: strings.Replace(bailingV2, "| as F32 ", "", 1),
		Variants: []Variant{
			{Name: "module", Seed: 3, DType: "F16", Out: "auto",
				Set: `{"architectures": ["modeling_sarvam_moe.SarvamMoEForCausalLM"], "num_experts": 5,
					"num_experts_per_tok": 2}`},
			{Name: "f32", Seed: 4, DType: "F32", Out: "f32", Set: `{"num_experts": 129}`},
		},
	})
	add(Spec{
		Name:      "openelm",
		Tokenizer: "spm-nojson",
		Config: `{"activation_fn_name": "swish", "architectures": ["OpenELMForCausalLM"],
			"auto_map": {"AutoConfig": "configuration_openelm.OpenELMConfig"}, "bos_token_id": 1, "eos_token_id": 2,
			"ffn_dim_divisor": 32, "ffn_multipliers": [0.5, 1.1, 2.63], "ffn_with_glu": true, "head_dim": 32,
			"initializer_range": 0.02, "max_context_length": 2048, "model_dim": 64, "model_type": "openelm",
			"normalization_layer_name": "rms_norm", "normalize_qk_projections": true, "num_gqa_groups": 4,
			"num_kv_heads": [1, 2, 2], "num_query_heads": [4, 4, 8], "num_transformer_layers": 3,
			"qkv_multipliers": [0.5, 1.0], "rope_freq_constant": 10000, "rope_max_length": 4096,
			"share_input_output_layers": true, "torch_dtype": "bfloat16", "transformers_version": "4.39.3",
			"use_cache": true, "vocab_size": 1000}`,
		Tensors: `
			bid = num_transformer_layers
			ff0 = 32
			ff1 = 64
			ff2 = 160
			transformer.token_embeddings.weight                 | vocab_size, model_dim
			transformer.norm.weight                             | model_dim
			transformer.layers.{bid}.{attn,ffn}_norm.weight     | model_dim
			transformer.layers.{bid}.attn.qkv_proj.weight       | (num_query_heads[bid]+2*num_kv_heads[bid])*head_dim, model_dim
			transformer.layers.{bid}.attn.{q,k}_norm.weight     | head_dim
			transformer.layers.{bid}.attn.out_proj.weight       | model_dim, num_query_heads[bid]*head_dim
			transformer.layers.{bid}.ffn.proj_1.weight          | 2*ff0, model_dim | if bid == 0
			transformer.layers.{bid}.ffn.proj_2.weight          | model_dim, ff0   | if bid == 0
			transformer.layers.1.ffn.proj_1.weight              | 2*ff1, model_dim
			transformer.layers.1.ffn.proj_2.weight              | model_dim, ff1
			transformer.layers.2.ffn.proj_1.weight              | 2*ff2, model_dim
			transformer.layers.2.ffn.proj_2.weight              | model_dim, ff2
			`,
	})
	add(Spec{
		Name:      "deci-7b",
		Tokenizer: "spm",
		Config: `{"architectures": ["DeciLMForCausalLM"], "attention_bias": false,
			"auto_map": {"AutoConfig": "configuration_decilm.DeciLMConfig"}, "bos_token_id": 1, "eos_token_id": 2,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"max_position_embeddings": 8192, "model_type": "deci", "num_attention_heads": 4, "num_hidden_layers": 3,
			"num_key_value_heads": 4, "num_key_value_heads_per_layer": [4, 2, 1], "pretraining_tp": 1,
			"rms_norm_eps": 1e-05, "rope_scaling": {"factor": 2.0, "type": "linear"}, "rope_theta": 10000,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.36.0",
			"use_cache": true, "vocab_size": $vocab}`,
		Tensors: strings.Replace(llamaHead+llamaAttention+llamaMLP,
			"{k,v}_proj.weight          | num_key_value_heads*hd",
			"{k,v}_proj.weight          | num_key_value_heads_per_layer[bid]*hd", 1),
	})
	add(Spec{
		Name:      "deci-nemotron",
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["DeciLMForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"auto_map": {"AutoConfig": "configuration_decilm.DeciLMConfig"},
			"block_configs": [ {"attention": {"n_heads_in_group": 2, "no_op": false, "replace_with_linear": false},
			"ffn": {"ffn_mult": 2.625, "no_op": false, "replace_with_linear": false}},
			{"attention": {"n_heads_in_group": null, "no_op": false, "replace_with_linear": true},
			"ffn": {"ffn_mult": 1.3125, "no_op": false, "replace_with_linear": false}},
			{"attention": {"n_heads_in_group": null, "no_op": true, "replace_with_linear": false},
			"ffn": {"ffn_mult": 1.3125, "no_op": false, "replace_with_linear": false}},
			{"attention": {"n_heads_in_group": 4, "no_op": false, "replace_with_linear": false},
			"ffn": {"ffn_mult": 5.25, "no_op": false, "replace_with_linear": false}}], "bos_token_id": $bos,
			"eos_token_id": $eos, "hidden_act": "silu", "hidden_size": 32, "initializer_range": 0.02,
			"intermediate_size": null, "max_position_embeddings": 131072, "mlp_bias": false,
			"model_type": "nemotron-nas", "num_attention_heads": 4, "num_hidden_layers": 4, "num_key_value_heads": null,
			"pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 500000.0,
			"tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.44.2", "use_cache": true,
			"vocab_size": 128256}`,
		Tensors: `
			bid = num_hidden_layers
			model.embed_tokens.weight                              | vocab_size, hidden_size
			model.norm.weight                                      | hidden_size
			model.layers.{bid}.input_layernorm.weight              | hidden_size                    | if bid != 2
			model.layers.{bid}.post_attention_layernorm.weight     | hidden_size
			model.layers.{bid}.self_attn.{q,o}_proj.weight         | hidden_size, hidden_size       | if bid == 0 || bid == 3
			model.layers.0.self_attn.{k,v}_proj.weight             | 16, hidden_size
			model.layers.3.self_attn.{k,v}_proj.weight             | 8, hidden_size
			model.layers.1.self_attn.linear_attn.weight            | hidden_size, hidden_size
			model.layers.{bid}.mlp.{gate,up}_proj.weight           | 256, hidden_size
			model.layers.{bid}.mlp.down_proj.weight                | hidden_size, 256
			`,
	})
}

// headNorms are norms of queries and keys that go with llamaAttention.
const headNorms = `
	model.layers.{bid}.self_attn.{q,k}_norm.weight                    | hd
`

// splitExperts are MoE layers with separate tensors for each expert.
const splitExperts = `
	xid = num_experts
	model.layers.{bid}.mlp.gate.weight                                | num_experts, hidden_size
	model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight        | moe_intermediate_size, hidden_size
	model.layers.{bid}.mlp.experts.{xid}.down_proj.weight             | hidden_size, moe_intermediate_size
`

const bailingAttention = `
	bid = num_hidden_layers
	hd  = head_dim
	model.word_embeddings.weight                                      | vocab_size, hidden_size
	model.norm.weight                                                 | hidden_size
	model.layers.{bid}.{input,post_attention}_layernorm.weight        | hidden_size
	model.layers.{bid}.attention.query_key_value.weight               | (num_attention_heads+2*num_key_value_heads)*hd, hidden_size
	model.layers.{bid}.attention.dense.weight                         | hidden_size, num_attention_heads*hd
`

// bailingV2 are the tensors of Ling 2 and of models like it.
var bailingV2 = llamaHead + strings.Replace(bailingAttention, "bid = num_hidden_layers", "bid = num_hidden_layers + num_nextn_predict_layers", 1) + `
			xid = num_experts
			model.layers.{bid}.attention.{query,key}_layernorm.weight     | hd
			model.layers.{bid}.mlp.{gate,up}_proj.weight                  | intermediate_size, hidden_size     | if bid < first_k_dense_replace
			model.layers.{bid}.mlp.down_proj.weight                       | hidden_size, intermediate_size     | if bid < first_k_dense_replace
			model.layers.{bid}.mlp.gate.weight                            | num_experts, hidden_size           | if bid >= first_k_dense_replace
			model.layers.{bid}.mlp.gate.expert_bias                       | num_experts | as F32               | if bid >= first_k_dense_replace
			model.layers.{bid}.mlp.shared_experts.{gate,up}_proj.weight   | moe_intermediate_size, hidden_size | if bid >= first_k_dense_replace
			model.layers.{bid}.mlp.shared_experts.down_proj.weight        | hidden_size, moe_intermediate_size | if bid >= first_k_dense_replace
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight    | moe_intermediate_size, hidden_size | if bid >= first_k_dense_replace
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight         | hidden_size, moe_intermediate_size | if bid >= first_k_dense_replace
			model.layers.{bid}.eh_proj.weight                             | hidden_size, 2*hidden_size         | if bid >= num_hidden_layers
			model.layers.{bid}.{enorm,hnorm,final_layernorm}.weight       | hidden_size                        | if bid >= num_hidden_layers
			`
