package hftest

func init() {
	add(Spec{
		Name:      "mamba",
		Tokenizer: "bpe:neox",
		DType:     "F32",
		Config: `{"architectures": ["MambaForCausalLM"], "bos_token_id": 0, "conv_kernel": 4, "d_inner": 128,
			"d_model": 64, "eos_token_id": 0, "expand": 2, "fused_add_norm": true, "hidden_act": "silu",
			"hidden_size": 64, "initializer_range": 0.1, "intermediate_size": 128, "layer_norm_epsilon": 1e-05,
			"model_type": "mamba", "n_layer": 2, "num_hidden_layers": 2, "pad_token_id": 0,
			"rescale_prenorm_residual": false, "residual_in_fp32": true, "rms_norm": true, "ssm_cfg": {},
			"state_size": 16, "time_step_init_scheme": "random", "time_step_max": 0.1, "time_step_min": 0.001,
			"time_step_rank": 4, "time_step_scale": 1.0, "torch_dtype": "float32", "transformers_version": "4.51.3",
			"use_bias": false, "use_cache": true, "use_conv_bias": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			backbone.embeddings.weight                        | vocab_size, hidden_size
			backbone.layers.{bid}.norm.weight                 | hidden_size
			backbone.layers.{bid}.mixer.A_log                 | intermediate_size, state_size                  | fill log
			backbone.layers.{bid}.mixer.D                     | intermediate_size                              | fill norm
			backbone.layers.{bid}.mixer.conv1d.weight         | intermediate_size, 1, conv_kernel
			backbone.layers.{bid}.mixer.{conv1d,dt_proj}.bias | intermediate_size
			backbone.layers.{bid}.mixer.in_proj.weight        | 2*intermediate_size, hidden_size
			backbone.layers.{bid}.mixer.x_proj.weight         | time_step_rank+2*state_size, intermediate_size
			backbone.layers.{bid}.mixer.dt_proj.weight        | intermediate_size, time_step_rank
			backbone.layers.{bid}.mixer.out_proj.weight       | hidden_size, intermediate_size
			backbone.norm_f.weight                            | hidden_size
			`,
	})
	add(Spec{
		Name:      "mamba2",
		Tokenizer: "bpe:neox",
		Config: `{"architectures": ["Mamba2ForCausalLM"], "bos_token_id": 0, "chunk_size": 256, "conv_kernel": 4,
			"eos_token_id": 0, "expand": 2, "head_dim": 32, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.1, "layer_norm_epsilon": 1e-05, "model_type": "mamba2", "n_groups": 1,
			"norm_before_gate": true, "num_heads": 4, "num_hidden_layers": 2, "pad_token_id": 0,
			"rescale_prenorm_residual": false, "residual_in_fp32": true, "rms_norm": true, "state_size": 32,
			"tie_word_embeddings": false, "time_step_max": 0.1, "time_step_min": 0.001, "time_step_rank": 16,
			"torch_dtype": "bfloat16", "transformers_version": "4.51.3", "use_bias": false, "use_cache": true,
			"use_conv_bias": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			backbone.embeddings.weight                  | vocab_size, hidden_size
			backbone.layers.{bid}.norm.weight           | hidden_size
			backbone.layers.{bid}.mixer.dt_bias         | num_heads
			backbone.layers.{bid}.mixer.A_log           | num_heads                                                         | fill log
			backbone.layers.{bid}.mixer.D               | num_heads                                                         | fill norm
			backbone.layers.{bid}.mixer.conv1d.weight   | num_heads*head_dim+2*n_groups*state_size, 1, conv_kernel
			backbone.layers.{bid}.mixer.conv1d.bias     | num_heads*head_dim+2*n_groups*state_size
			backbone.layers.{bid}.mixer.in_proj.weight  | 2*num_heads*head_dim+2*n_groups*state_size+num_heads, hidden_size
			backbone.layers.{bid}.mixer.norm.weight     | num_heads*head_dim
			backbone.layers.{bid}.mixer.out_proj.weight | hidden_size, num_heads*head_dim
			backbone.norm_f.weight                      | hidden_size
			lm_head.weight                              | vocab_size, hidden_size                                           | if !opt(tie_word_embeddings)
			`,
	})
	add(Spec{
		Name:      "rwkv6",
		Tokenizer: "rwkv",
		Config: `{"architectures": ["Rwkv6ForCausalLM"], "attention_hidden_size": 64,
			"auto_map": {"AutoConfig": "configuration_rwkv6.Rwkv6Config"}, "bos_token_id": 0, "eos_token_id": 0,
			"head_size": 64, "head_size_divisor": 8, "hidden_size": 64, "intermediate_size": null,
			"layer_norm_epsilon": 1e-05, "model_type": "rwkv6", "num_attention_heads": 1, "num_hidden_layers": 3,
			"rescale_every": 2, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.51.3", "use_cache": true, "vocab_size": 576}`,
		Tensors: `
			bid = num_hidden_layers
			rwkv.embeddings.weight                                                | vocab_size, hidden_size
			rwkv.blocks.{bid}.pre_ln.weight                                       | hidden_size                               | if bid == 0
			rwkv.blocks.{bid}.pre_ln.bias                                         | hidden_size                               | if bid == 0
			rwkv.blocks.{bid}.ln{1,2}.weight                                      | hidden_size
			rwkv.blocks.{bid}.ln{1,2}.bias                                        | hidden_size
			rwkv.blocks.{bid}.attention.time_maa_{x,w,k,v,r,g}                    | 1, 1, hidden_size
			rwkv.blocks.{bid}.attention.time_maa_w1                               | hidden_size, 5*32
			rwkv.blocks.{bid}.attention.time_maa_w2                               | 5, 32, hidden_size
			rwkv.blocks.{bid}.attention.time_decay                                | 1, 1, hidden_size                         | fill decay
			rwkv.blocks.{bid}.attention.time_decay_w1                             | hidden_size, 64
			rwkv.blocks.{bid}.attention.time_decay_w2                             | 64, hidden_size
			rwkv.blocks.{bid}.attention.time_faaaa                                | hidden_size/head_size, head_size
			rwkv.blocks.{bid}.attention.{receptance,key,value,output,gate}.weight | hidden_size, hidden_size
			rwkv.blocks.{bid}.attention.ln_x.weight                               | hidden_size
			rwkv.blocks.{bid}.attention.ln_x.bias                                 | hidden_size
			rwkv.blocks.{bid}.feed_forward.time_maa_{k,r}                         | 1, 1, hidden_size
			rwkv.blocks.{bid}.feed_forward.key.weight                             | floor(hidden_size*3.5/32)*32, hidden_size
			rwkv.blocks.{bid}.feed_forward.receptance.weight                      | hidden_size, hidden_size
			rwkv.blocks.{bid}.feed_forward.value.weight                           | hidden_size, floor(hidden_size*3.5/32)*32
			rwkv.ln_out.weight                                                    | hidden_size
			rwkv.ln_out.bias                                                      | hidden_size
			head.weight                                                           | vocab_size, hidden_size
			`,
	})
	add(Spec{
		Name:      "rwkv7",
		Tokenizer: "rwkv",
		Config: `{"a_low_rank_dim": 8, "architectures": ["RWKV7ForCausalLM"], "attn": null, "attn_mode": "chunk",
			"bos_token_id": 0, "decay_low_rank_dim": 8, "eos_token_id": 0, "fuse_norm": true, "gate_low_rank_dim": 16,
			"head_dim": 32, "hidden_act": "sqrelu", "hidden_ratio": 4.0, "hidden_size": 64, "intermediate_size": 256,
			"max_position_embeddings": 2048, "model_type": "rwkv7", "norm_bias": true, "norm_eps": 1e-05,
			"norm_first": true, "num_heads": 1, "num_hidden_layers": 2, "tie_word_embeddings": false,
			"torch_dtype": "bfloat16", "transformers_version": "4.51.3", "use_cache": true, "v_low_rank_dim": 8,
			"vocab_size": 576}`,
		Tensors: `
			bid = num_hidden_layers
			model.embeddings.weight                        | vocab_size, hidden_size
			model.layers.{bid}.pre_norm.weight             | hidden_size                     | if bid == 0
			model.layers.{bid}.pre_norm.bias               | hidden_size                     | if bid == 0
			model.layers.{bid}.{attn,ffn}_norm.weight      | hidden_size
			model.layers.{bid}.{attn,ffn}_norm.bias        | hidden_size
			model.layers.{bid}.attn.x_{r,w,k,v,a,g}        | 1, 1, hidden_size
			model.layers.{bid}.attn.k_{k,a}                | hidden_size
			model.layers.{bid}.attn.r_k                    | hidden_size/head_dim, head_dim
			model.layers.{bid}.attn.{r,k,v,o}_proj.weight  | hidden_size, hidden_size
			model.layers.{bid}.attn.w_lora.lora.0.weight   | decay_low_rank_dim, hidden_size
			model.layers.{bid}.attn.w_lora.lora.2.weight   | hidden_size, decay_low_rank_dim
			model.layers.{bid}.attn.{w,a}_lora.lora.2.bias | hidden_size
			model.layers.{bid}.attn.a_lora.lora.0.weight   | a_low_rank_dim, hidden_size
			model.layers.{bid}.attn.a_lora.lora.2.weight   | hidden_size, a_low_rank_dim
			model.layers.{bid}.attn.g_lora.lora.0.weight   | gate_low_rank_dim, hidden_size
			model.layers.{bid}.attn.g_lora.lora.2.weight   | hidden_size, gate_low_rank_dim
			model.layers.{bid}.attn.g_norm.weight          | hidden_size
			model.layers.{bid}.attn.g_norm.bias            | hidden_size
			model.layers.{bid}.ffn.x_k                     | hidden_size
			model.layers.{bid}.ffn.key.weight              | intermediate_size, hidden_size
			model.layers.{bid}.ffn.value.weight            | hidden_size, intermediate_size
			model.layers.{bid}.attn.v_lora.lora.0.weight   | v_low_rank_dim, hidden_size     | if bid > 0
			model.layers.{bid}.attn.v_lora.lora.2.weight   | hidden_size, v_low_rank_dim     | if bid > 0
			model.layers.{bid}.attn.v_lora.lora.2.bias     | hidden_size                     | if bid > 0
			model.norm.weight                              | hidden_size
			model.norm.bias                                | hidden_size
			lm_head.weight                                 | vocab_size, hidden_size         | if !opt(tie_word_embeddings)
			`,
	})
	add(Spec{
		Name:      "lfm2",
		Tokenizer: "bpe:lfm2",
		Config: `{"architectures": ["Lfm2ForCausalLM"], "block_auto_adjust_ff_dim": true, "block_dim": 64,
			"block_ff_dim": 96, "block_ffn_dim_multiplier": 1.0, "block_mlp_init_scale": 1.0, "block_multiple_of": 32,
			"block_norm_eps": 1e-05, "block_out_init_scale": 1.0, "block_use_swiglu": true,
			"block_use_xavier_init": true, "bos_token_id": 1001, "conv_L_cache": 3, "conv_bias": false, "conv_dim": 64,
			"conv_dim_out": 64, "eos_token_id": 1004, "hidden_size": 64, "initializer_range": 0.02,
			"layer_types": ["conv", "conv", "full_attention"], "max_position_embeddings": 128000, "model_type": "lfm2",
			"norm_eps": 1e-05, "num_attention_heads": 4, "num_heads": 4, "num_hidden_layers": 3,
			"num_key_value_heads": 2, "pad_token_id": 1000, "rope_theta": 1000000.0, "torch_dtype": "bfloat16",
			"transformers_version": "4.51.3", "use_cache": true, "use_pos_enc": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			ff  = floor((2*block_ff_dim/3+block_multiple_of-1)/block_multiple_of)*block_multiple_of
			hd  = hidden_size / num_attention_heads
			model.embed_tokens.weight                           | vocab_size, hidden_size
			model.layers.{bid}.conv.conv.weight                 | hidden_size, 1, conv_L_cache        | if layer_types[bid] == "conv"
			model.layers.{bid}.conv.in_proj.weight              | 3*hidden_size, hidden_size          | if layer_types[bid] == "conv"
			model.layers.{bid}.conv.out_proj.weight             | hidden_size, hidden_size            | if layer_types[bid] == "conv"
			model.layers.{bid}.feed_forward.w{1,3}.weight       | ff, hidden_size
			model.layers.{bid}.feed_forward.w2.weight           | hidden_size, ff
			model.layers.{bid}.{operator,ffn}_norm.weight       | hidden_size
			model.layers.{bid}.self_attn.{q,out}_proj.weight    | hidden_size, hidden_size            | if layer_types[bid] == "full_attention"
			model.layers.{bid}.self_attn.{k,v}_proj.weight      | num_key_value_heads*hd, hidden_size | if layer_types[bid] == "full_attention"
			model.layers.{bid}.self_attn.{q,k}_layernorm.weight | hd                                  | if layer_types[bid] == "full_attention"
			model.embedding_norm.weight                         | hidden_size
			`,
	})
}
