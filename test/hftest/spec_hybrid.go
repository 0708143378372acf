package hftest

func init() {
	add(Spec{
		Name:      "falcon-mamba",
		Tokenizer: "bpe:falcon",
		Config: `{"architectures": ["FalconMambaForCausalLM"], "bos_token_id": 0, "conv_kernel": 4, "eos_token_id": 11,
			"expand": 16, "hidden_act": "silu", "hidden_size": 96, "initializer_range": 0.1, "intermediate_size": 192,
			"layer_norm_epsilon": 1e-05, "mixer_rms_eps": 1e-06, "model_type": "falcon_mamba", "num_hidden_layers": 11,
			"pad_token_id": 0, "rescale_prenorm_residual": false, "residual_in_fp32": true, "state_size": 8,
			"tie_word_embeddings": false, "time_step_floor": 0.0001, "time_step_init_scheme": "random",
			"time_step_max": 0.1, "time_step_min": 0.001, "time_step_rank": 6, "time_step_scale": 1.0,
			"torch_dtype": "bfloat16", "transformers_version": "4.43.0.dev0", "use_bias": false, "use_cache": true,
			"use_conv_bias": true, "vocab_size": 1020}`,
		Tensors: `
			bid = num_hidden_layers
			vocab = 8*floor((vocab_size+7)/8)
			backbone.embeddings.weight                        | vocab, hidden_size
			lm_head.weight                                    | vocab, hidden_size
			backbone.norm_f.weight                            | hidden_size
			backbone.layers.{bid}.norm.weight                 | hidden_size
			backbone.layers.{bid}.mixer.A_log                 | intermediate_size, state_size | fill log
			backbone.layers.{bid}.mixer.D                     | intermediate_size | fill norm
			backbone.layers.{bid}.mixer.conv1d.weight         | intermediate_size, 1, conv_kernel
			backbone.layers.{bid}.mixer.{conv1d,dt_proj}.bias | intermediate_size
			backbone.layers.{bid}.mixer.in_proj.weight        | 2*intermediate_size, hidden_size
			backbone.layers.{bid}.mixer.x_proj.weight         | time_step_rank+2*state_size, intermediate_size
			backbone.layers.{bid}.mixer.dt_proj.weight        | intermediate_size, time_step_rank
			backbone.layers.{bid}.mixer.out_proj.weight       | hidden_size, intermediate_size
			`,
		Variants: []Variant{
			{Name: "f16", Seed: 3, DType: "F16", Shards: 2, Out: "f32", Set: `{"num_hidden_layers": 2}`},
		},
	})
	add(Spec{
		Name:      "mamba-ssm",
		Tokenizer: "bpe:neox",
		DType:     "F32",
		Config: `{"d_model": 64, "fused_add_norm": true, "n_layer": 2, "pad_vocab_size_multiple": 8,
			"residual_in_fp32": true, "rms_norm": true, "ssm_cfg": {}, "vocab_size": 1021,
			"architectures": ["MambaLMHeadModel"]}`,
		Tensors: `
			bid = n_layer
			backbone.embedding.weight                         | 1024, d_model
			lm_head.weight                                    | 1024, d_model
			backbone.norm_f.weight                            | d_model
			backbone.layers.{bid}.norm.weight                 | d_model
			backbone.layers.{bid}.mixer.A_log                 | 2*d_model, 16 | fill log
			backbone.layers.{bid}.mixer.D                     | 2*d_model | fill norm
			backbone.layers.{bid}.mixer.conv1d.weight         | 2*d_model, 1, 4
			backbone.layers.{bid}.mixer.{conv1d,dt_proj}.bias | 2*d_model
			backbone.layers.{bid}.mixer.in_proj.weight        | 4*d_model, d_model
			backbone.layers.{bid}.mixer.x_proj.weight         | 4+2*16, 2*d_model
			backbone.layers.{bid}.mixer.dt_proj.weight        | 2*d_model, 4
			backbone.layers.{bid}.mixer.out_proj.weight       | d_model, 2*d_model
			`,
	})
	add(Spec{
		Name:      "mamba-codestral",
		Tokenizer: "spm",
		Config: `{"architectures": ["Mamba2ForCausalLM"], "bos_token_id": 1, "chunk_size": 256, "conv_kernel": 4,
			"eos_token_id": 2, "expand": 2, "head_dim": 16, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.1, "layer_norm_epsilon": 1e-05, "model_type": "mamba2", "n_groups": 4,
			"norm_before_gate": true, "num_heads": 8, "num_hidden_layers": 2, "pad_token_id": 0,
			"rescale_prenorm_residual": false, "residual_in_fp32": true, "rms_norm": true, "state_size": 16,
			"tie_word_embeddings": false, "time_step_floor": 0.0001, "time_step_init_scheme": "random",
			"time_step_max": 0.1, "time_step_min": 0.001, "time_step_rank": 256, "time_step_scale": 1.0,
			"torch_dtype": "bfloat16", "transformers_version": "4.43.0.dev0", "use_bias": false, "use_cache": true,
			"use_conv_bias": true, "vocab_size": 1008}`,
		Tensors: `
			bid = num_hidden_layers
			d   = 2*hidden_size
			gs  = n_groups*state_size
			model.backbone.embeddings.weight                  | vocab_size, hidden_size
			model.lm_head.weight                              | vocab_size, hidden_size
			model.backbone.norm_f.weight                      | hidden_size
			model.backbone.layers.{bid}.norm.weight           | hidden_size
			model.backbone.layers.{bid}.mixer.dt_bias         | num_heads
			model.backbone.layers.{bid}.mixer.A_log           | num_heads | fill log
			model.backbone.layers.{bid}.mixer.D               | num_heads | fill norm
			model.backbone.layers.{bid}.mixer.conv1d.weight   | d+2*gs, 1, conv_kernel
			model.backbone.layers.{bid}.mixer.conv1d.bias     | d+2*gs
			model.backbone.layers.{bid}.mixer.in_proj.weight  | 2*d+2*gs+num_heads, hidden_size
			model.backbone.layers.{bid}.mixer.norm.weight     | d
			model.backbone.layers.{bid}.mixer.out_proj.weight | hidden_size, d
			`,
		Variants: []Variant{
			{Name: "f16", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"num_hidden_layers": 11, "n_groups": 1}`},
		},
	})
	add(Spec{
		Name:      "jamba",
		Tokenizer: "spm",
		Config: `{"architectures": ["JambaForCausalLM"], "attention_dropout": 0.0, "attn_layer_offset": 1,
			"attn_layer_period": 3, "bos_token_id": 1, "calc_logits_for_entire_prompt": false, "eos_token_id": 2,
			"expert_layer_offset": 1, "expert_layer_period": 2, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "mamba_conv_bias": true, "mamba_d_conv": 4,
			"mamba_d_state": 16, "mamba_dt_rank": 8, "mamba_expand": 2, "mamba_inner_layernorms": true,
			"mamba_proj_bias": false, "max_position_embeddings": 262144, "model_type": "jamba",
			"num_attention_heads": 4, "num_experts": 4, "num_experts_per_tok": 2, "num_hidden_layers": 4,
			"num_key_value_heads": 2, "num_logits_to_keep": 1, "output_router_logits": false, "pad_token_id": 0,
			"rms_norm_eps": 1e-06, "router_aux_loss_coef": 0.001, "sliding_window": null, "tie_word_embeddings": false,
			"torch_dtype": "bfloat16", "transformers_version": "4.40.0.dev0", "use_cache": true,
			"use_mamba_kernels": true, "vocab_size": 1000}`,
		Tensors: `
			bid = num_hidden_layers
			xid = num_experts
			d   = mamba_expand*hidden_size
			kv  = num_key_value_heads*hidden_size/num_attention_heads
			moe = num_experts > 1
			model.embed_tokens.weight                                    | vocab_size, hidden_size
			lm_head.weight                                               | vocab_size, hidden_size | if !opt(tie_word_embeddings)
			model.final_layernorm.weight                                 | hidden_size
			model.layers.{bid}.{input,pre_ff}_layernorm.weight           | hidden_size
			model.layers.{bid}.self_attn.{q,o}_proj.weight               | hidden_size, hidden_size | if bid % attn_layer_period == attn_layer_offset
			model.layers.{bid}.self_attn.{k,v}_proj.weight               | kv, hidden_size          | if bid % attn_layer_period == attn_layer_offset
			model.layers.{bid}.mamba.in_proj.weight                      | 2*d, hidden_size         | if bid % attn_layer_period != attn_layer_offset
			model.layers.{bid}.mamba.conv1d.weight                       | d, 1, mamba_d_conv       | if bid % attn_layer_period != attn_layer_offset
			model.layers.{bid}.mamba.{conv1d,dt_proj}.bias               | d                        | if bid % attn_layer_period != attn_layer_offset
			model.layers.{bid}.mamba.x_proj.weight                       | mamba_dt_rank+2*mamba_d_state, d | if bid % attn_layer_period != attn_layer_offset
			model.layers.{bid}.mamba.dt_proj.weight                      | d, mamba_dt_rank         | if bid % attn_layer_period != attn_layer_offset
			model.layers.{bid}.mamba.A_log                               | d, mamba_d_state         | if bid % attn_layer_period != attn_layer_offset | fill log
			model.layers.{bid}.mamba.D                                   | d                        | if bid % attn_layer_period != attn_layer_offset | fill norm
			model.layers.{bid}.mamba.dt_layernorm.weight                 | mamba_dt_rank            | if bid % attn_layer_period != attn_layer_offset
			model.layers.{bid}.mamba.{b,c}_layernorm.weight              | mamba_d_state            | if bid % attn_layer_period != attn_layer_offset
			model.layers.{bid}.mamba.out_proj.weight                     | hidden_size, d           | if bid % attn_layer_period != attn_layer_offset
			model.layers.{bid}.feed_forward.{gate,up}_proj.weight        | intermediate_size, hidden_size | if !moe || bid % expert_layer_period != expert_layer_offset
			model.layers.{bid}.feed_forward.down_proj.weight             | hidden_size, intermediate_size | if !moe || bid % expert_layer_period != expert_layer_offset
			model.layers.{bid}.feed_forward.router.weight                | num_experts, hidden_size       | if moe && bid % expert_layer_period == expert_layer_offset
			model.layers.{bid}.feed_forward.experts.{xid}.{gate,up}_proj.weight | intermediate_size, hidden_size | if moe && bid % expert_layer_period == expert_layer_offset
			model.layers.{bid}.feed_forward.experts.{xid}.down_proj.weight      | hidden_size, intermediate_size | if moe && bid % expert_layer_period == expert_layer_offset
			`,
		Variants: []Variant{
			{Name: "eleven-experts", Seed: 3, DType: "F16", Shards: 3, Out: "auto",
				Set: `{"num_experts": 11, "num_hidden_layers": 11, "tie_word_embeddings": true, "hidden_size": 32,
					"mamba_dt_rank": 2}`},
			{Name: "auto-rank", Seed: 4, DType: "F32", Out: "f32", Set: `{"mamba_dt_rank": 4, "rms_norm_eps": null}`},
			{Name: "one-expert", Seed: 5, Shards: 2, Out: "auto", Set: `{"num_experts": 1, "num_experts_per_tok": 1}`},
		},
	})
	add(Spec{
		Name:      "falcon-h1",
		Tokenizer: "bpe:falcon",
		Config: `{"architectures": ["FalconH1ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"attention_in_multiplier": 1.0, "attention_out_multiplier": 0.9375, "attn_layer_indices": null,
			"bos_token_id": 1, "embedding_multiplier": 5.656854249492381, "eos_token_id": 11, "head_dim": 16,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"key_multiplier": 0.39062499999999994, "lm_head_multiplier": 0.0390625, "mamba_chunk_size": 256,
			"mamba_conv_bias": true, "mamba_d_conv": 4, "mamba_d_head": 16, "mamba_d_ssm": 96, "mamba_d_state": 32,
			"mamba_expand": 2, "mamba_n_groups": 1, "mamba_n_heads": 6, "mamba_norm_before_gate": false,
			"mamba_proj_bias": false, "mamba_rms_norm": false, "mamba_use_mlp": true, "max_position_embeddings": 16384,
			"mlp_bias": false, "mlp_expansion_factor": 8, "mlp_multipliers": [0.8838834764831844, 0.5859375],
			"model_type": "falcon_h1", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
			"num_logits_to_keep": 1, "pad_token_id": 0, "projectors_bias": false, "rms_norm_eps": 1e-05,
			"rope_scaling": null, "rope_theta": 100000000000.0, "ssm_in_multiplier": 1.25,
			"ssm_multipliers": [0.3535533905932738, 0.25, 0.3535533905932738, 0.5, 0.3535533905932738],
			"ssm_out_multiplier": 0.23570226039551587, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.52.0.dev0", "use_cache": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			gs  = mamba_n_groups*mamba_d_state
			model.embed_tokens.weight                               | vocab_size, hidden_size
			lm_head.weight                                          | vocab_size, hidden_size | if !tie_word_embeddings
			model.final_layernorm.weight                            | hidden_size
			model.layers.{bid}.{input,pre_ff}_layernorm.weight      | hidden_size
			model.layers.{bid}.self_attn.q_proj.weight              | num_attention_heads*head_dim, hidden_size
			model.layers.{bid}.self_attn.{k,v}_proj.weight          | num_key_value_heads*head_dim, hidden_size
			model.layers.{bid}.self_attn.o_proj.weight              | hidden_size, num_attention_heads*head_dim
			model.layers.{bid}.mamba.dt_bias                        | mamba_n_heads
			model.layers.{bid}.mamba.A_log                          | mamba_n_heads | fill log
			model.layers.{bid}.mamba.D                              | mamba_n_heads | fill norm
			model.layers.{bid}.mamba.conv1d.weight                  | mamba_d_ssm+2*gs, 1, mamba_d_conv
			model.layers.{bid}.mamba.conv1d.bias                    | mamba_d_ssm+2*gs
			model.layers.{bid}.mamba.in_proj.weight                 | 2*mamba_d_ssm+2*gs+mamba_n_heads, hidden_size
			model.layers.{bid}.mamba.norm.weight                    | mamba_d_ssm | if mamba_rms_norm
			model.layers.{bid}.mamba.out_proj.weight                | hidden_size, mamba_d_ssm
			model.layers.{bid}.feed_forward.{gate,up}_proj.weight   | intermediate_size, hidden_size
			model.layers.{bid}.feed_forward.down_proj.weight        | hidden_size, intermediate_size
			`,
		Variants: []Variant{
			{Name: "groups", Seed: 3, DType: "F16", Shards: 2, Out: "bf16",
				Set: `{"mamba_n_groups": 2, "mamba_rms_norm": true, "tie_word_embeddings": true,
					"num_hidden_layers": 11}`},
			{Name: "whole", Seed: 4, DType: "F16", Out: "f16",
				Set: `{"mlp_multipliers": [1.0, 0.3333333], "ssm_multipliers": [1.0, 1.0, 1.0, 1.0, 1.5]}`},
		},
	})
}
