package hftest

func init() {
	add(Spec{
		Name:      "rwkv6-finch",
		Tokenizer: "rwkv",
		Config: `{"architectures": ["Rwkv6ForCausalLM"], "attention_hidden_size": 96,
			"auto_map": {"AutoConfig": "configuration_rwkv6.Rwkv6Config"}, "bos_token_id": 0, "eos_token_id": 0,
			"head_size": 32, "head_size_divisor": 8, "hidden_size": 96, "intermediate_size": 352,
			"layer_norm_epsilon": 1e-05, "model_type": "rwkv6", "num_attention_heads": 3, "num_hidden_layers": 13,
			"rescale_every": 6, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.34.0", "use_cache": true, "vocab_size": 576}`,
		Tensors: `
			bid = num_hidden_layers
			rwkv.embeddings.weight                                                | vocab_size, hidden_size
			rwkv.blocks.0.pre_ln.{weight,bias}                                    | hidden_size
			rwkv.blocks.{bid}.ln{1,2}.{weight,bias}                               | hidden_size
			rwkv.blocks.{bid}.attention.time_maa_{x,w,k,v,r,g}                    | 1, 1, hidden_size
			rwkv.blocks.{bid}.attention.time_maa_w1                               | hidden_size, 5*32
			rwkv.blocks.{bid}.attention.time_maa_w2                               | 5, 32, hidden_size
			rwkv.blocks.{bid}.attention.time_decay                                | 1, 1, hidden_size | fill decay
			rwkv.blocks.{bid}.attention.time_decay_w1                             | hidden_size, 64
			rwkv.blocks.{bid}.attention.time_decay_w2                             | 64, hidden_size
			rwkv.blocks.{bid}.attention.time_faaaa                                | hidden_size/head_size, head_size
			rwkv.blocks.{bid}.attention.{receptance,key,value,output,gate}.weight | hidden_size, hidden_size
			rwkv.blocks.{bid}.attention.ln_x.{weight,bias}                        | hidden_size
			rwkv.blocks.{bid}.feed_forward.time_maa_{k,r}                         | 1, 1, hidden_size
			rwkv.blocks.{bid}.feed_forward.key.weight                             | intermediate_size, hidden_size
			rwkv.blocks.{bid}.feed_forward.receptance.weight                      | hidden_size, hidden_size
			rwkv.blocks.{bid}.feed_forward.value.weight                           | hidden_size, intermediate_size
			rwkv.ln_out.{weight,bias}                                             | hidden_size
			head.weight                                                           | vocab_size, hidden_size
			`,
		Variants: []Variant{
			{Name: "f16", Seed: 3, DType: "F16", Out: "f16", Set: `{"rescale_every": 1, "num_hidden_layers": 3}`},
			{Name: "no-rescale", Seed: 4, DType: "F16", Shards: 3, Out: "auto",
				Set: `{"rescale_every": 0, "num_hidden_layers": 2}`},
		},
	})
	add(Spec{
		Name:      "qrwkv6",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["RWKV6Qwen2ForCausalLM"], "attention_dropout": 0.0,
			"auto_map": {"AutoConfig": "configuration_rwkv6qwen2.RWKV6Qwen2Config"}, "bos_token_id": $pad,
			"eos_token_id": $eos, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "lora_rank_decay": 16, "lora_rank_tokenshift": 8, "max_position_embeddings": 32768,
			"max_window_layers": 2, "model_type": "rwkv6qwen2", "num_attention_heads": 4, "num_hidden_layers": 2,
			"num_key_value_heads": 2, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 1000000.0,
			"sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.46.0", "use_cache": true, "use_sliding_window": false, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			kv  = num_key_value_heads*hidden_size/num_attention_heads
			ts  = opt(lora_rank_tokenshift) || 32
			td  = opt(lora_rank_decay) || 64
			model.embed_tokens.weight                                      | vocab_size, hidden_size
			lm_head.weight                                                 | vocab_size, hidden_size
			model.norm.weight                                              | hidden_size
			model.layers.{bid}.{input,post_attention}_layernorm.weight     | hidden_size
			model.layers.{bid}.self_attn.time_maa_{x,w,k,v,r,g}            | 1, 1, hidden_size
			model.layers.{bid}.self_attn.time_maa_w1                       | hidden_size, 5*ts
			model.layers.{bid}.self_attn.time_maa_w2                       | 5, ts, hidden_size
			model.layers.{bid}.self_attn.time_decay                        | 1, 1, hidden_size | fill decay
			model.layers.{bid}.self_attn.time_decay_w1                     | hidden_size, td
			model.layers.{bid}.self_attn.time_decay_w2                     | td, hidden_size
			model.layers.{bid}.self_attn.{q,o}_proj.weight                 | hidden_size, hidden_size
			model.layers.{bid}.self_attn.gate.weight                       | hidden_size, hidden_size
			model.layers.{bid}.self_attn.{k,v}_proj.weight                 | kv, hidden_size
			model.layers.{bid}.self_attn.q_proj.bias                       | hidden_size
			model.layers.{bid}.self_attn.{k,v}_proj.bias                   | kv
			model.layers.{bid}.mlp.{gate,up}_proj.weight                   | intermediate_size, hidden_size
			model.layers.{bid}.mlp.down_proj.weight                        | hidden_size, intermediate_size
			`,
		Variants: []Variant{
			{Name: "default-ranks", Seed: 3, DType: "F16", Shards: 3, Out: "auto",
				Set: `{"lora_rank_decay": null, "lora_rank_tokenshift": null, "num_hidden_layers": 11}`},
		},
	})
	add(Spec{
		Name:      "rwkv7-goose",
		Tokenizer: "rwkv",
		Config: `{"a_low_rank_dim": null, "architectures": ["RWKV7ForCausalLM"], "attn": null, "attn_mode": "chunk",
			"bos_token_id": 0, "decay_low_rank_dim": null, "eos_token_id": 0, "fuse_cross_entropy": true,
			"fuse_norm": false, "gate_low_rank_dim": null, "head_dim": 32, "hidden_act": "sqrelu", "hidden_ratio": 4.0,
			"hidden_size": 96, "initializer_range": 0.006, "intermediate_size": null, "max_position_embeddings": 2048,
			"model_type": "rwkv7", "norm_bias": true, "norm_eps": 1e-05, "norm_first": true, "num_heads": 32,
			"num_hidden_layers": 11, "tie_word_embeddings": false, "torch_dtype": "float32",
			"transformers_version": "4.48.0", "use_cache": true, "v_low_rank_dim": null, "value_dim": [96, 96],
			"vocab_size": 576}`,
		Tensors: `
			bid = num_hidden_layers
			r   = 32
			f   = opt(fused)
			model.embeddings.weight                        | vocab_size, hidden_size
			model.layers.0.pre_norm.{weight,bias}          | hidden_size
			model.layers.{bid}.{attn,ffn}_norm.{weight,bias} | hidden_size
			model.layers.{bid}.attn.x_{r,w,k,v,a,g}        | 1, 1, hidden_size | if !f
			model.layers.{bid}.attn.x_x                    | 6, 1, 1, hidden_size | if f
			model.layers.{bid}.attn.k_{k,a}                | hidden_size
			model.layers.{bid}.attn.r_k                    | hidden_size/head_dim, head_dim
			model.layers.{bid}.attn.{r,k,v,o}_proj.weight  | hidden_size, hidden_size
			model.layers.{bid}.attn.{w,a,g}_lora.lora.0.weight  | r, hidden_size | if !f
			model.layers.{bid}.attn.{w,a,g}_lora.lora.2.weight  | hidden_size, r | if !f
			model.layers.{bid}.attn.{w,a}_lora.lora.2.bias | hidden_size     | if !f
			model.layers.{bid}.attn.v_lora.lora.0.weight   | r, hidden_size  | if !f
			model.layers.{bid}.attn.v_lora.lora.2.weight   | hidden_size, r  | if !f
			model.layers.{bid}.attn.v_lora.lora.2.bias     | hidden_size     | if !f
			model.layers.{bid}.attn.{w,a,v,g}1             | hidden_size, r  | if f
			model.layers.{bid}.attn.{w,a,v,g}2             | r, hidden_size  | if f
			model.layers.{bid}.attn.{w,a,v}0               | 1, 1, hidden_size | if f
			model.layers.{bid}.attn.g_norm.{weight,bias}   | hidden_size
			model.layers.{bid}.ffn.x_k                     | hidden_size
			model.layers.{bid}.ffn.key.weight              | 4*hidden_size, hidden_size
			model.layers.{bid}.ffn.value.weight            | hidden_size, 4*hidden_size
			model.norm.{weight,bias}                       | hidden_size
			lm_head.weight                                 | vocab_size, hidden_size
			`,
		Variants: []Variant{
			{Name: "fused", Seed: 3, DType: "F16", Shards: 2, Out: "bf16",
				Set: `{"fused": true, "num_hidden_layers": 2}`},
			// the published head size, the only one that the runtime's kernel supports
			{Name: "heads-of-64", Seed: 4, Out: "f32",
				Set: `{"head_dim": 64, "hidden_size": 128, "num_hidden_layers": 3, "value_dim": [128, 128, 128]}`},
		},
	})
	add(Spec{
		Name:      "rwkv7-blocks",
		Tokenizer: "rwkv",
		Config: `{"architectures": ["Rwkv7ForCausalLM"], "bos_token_id": 0, "eos_token_id": 0, "head_size": 32,
			"hidden_size": 64, "intermediate_size": 256, "layer_norm_epsilon": 1e-05, "lora_rank_decay": 8,
			"lora_rank_gate": 16, "lora_rank_iclr": 8, "lora_rank_value_residual_mix": 8, "model_type": "rwkv7",
			"num_hidden_layers": 2, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true,
			"vocab_size": 576}`,
		Tensors: `
			bid = num_hidden_layers
			r   = lora_rank_decay
			model.embeddings.weight                            | vocab_size, hidden_size
			model.blocks.0.pre_norm.{weight,bias}              | hidden_size
			model.blocks.{bid}.ln{1,2}.{weight,bias}           | hidden_size
			model.blocks.{bid}.attention.x_{r,w,k,v,a,g}       | 1, 1, hidden_size
			model.blocks.{bid}.attention.k_{k,a}               | 1, 1, hidden_size
			model.blocks.{bid}.attention.r_k                   | hidden_size/head_size, head_size
			model.blocks.{bid}.attention.{receptance,key,value,output}.weight | hidden_size, hidden_size
			model.blocks.{bid}.attention.{w,a}1                | hidden_size, r
			model.blocks.{bid}.attention.{w,a}2                | r, hidden_size
			model.blocks.{bid}.attention.v1                    | hidden_size, r    | if bid > 0
			model.blocks.{bid}.attention.v2                    | r, hidden_size    | if bid > 0
			model.blocks.{bid}.attention.g1                    | hidden_size, lora_rank_gate
			model.blocks.{bid}.attention.g2                    | lora_rank_gate, hidden_size
			model.blocks.{bid}.attention.{w,a}0                | 1, 1, hidden_size
			model.blocks.{bid}.attention.v0                    | 1, 1, hidden_size | if bid > 0
			model.blocks.{bid}.attention.ln_x.{weight,bias}    | hidden_size
			model.blocks.{bid}.feed_forward.x_k                | 1, 1, hidden_size
			model.blocks.{bid}.feed_forward.key.weight         | intermediate_size, hidden_size
			model.blocks.{bid}.feed_forward.value.weight       | hidden_size, intermediate_size
			model.ln_out.{weight,bias}                         | hidden_size
			head.weight                                        | vocab_size, hidden_size
			`,
		Variants: []Variant{
			{Name: "heads-of-64", Seed: 3, Out: "f32",
				Set: `{"head_size": 64, "hidden_size": 128, "intermediate_size": 512, "num_hidden_layers": 3}`},
		},
	})
	add(Spec{
		Name:      "arwkv7",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["RwkvHybridForCausalLM"], "attention_dropout": 0.0,
			"auto_map": {"AutoConfig": "configuration_rwkv_hybrid.RwkvHybridConfig"}, "bos_token_id": $pad,
			"eos_token_id": $eos, "head_size": 32, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "max_position_embeddings": 32768, "max_window_layers": 28,
			"model_type": "rwkv_hybrid", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
			"num_wkv_heads": 2, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000.0,
			"sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.48.0", "use_cache": true, "use_sliding_window": false, "vocab_size": 1024,
			"wkv_has_gate": false, "wkv_has_group_norm": false, "wkv_layers": "full", "wkv_use_vfirst": true,
			"wkv_version": 7}`,
		Tensors: `
			bid = num_hidden_layers
			g   = wkv_has_gate
			model.embed_tokens.weight                                      | vocab_size, hidden_size
			lm_head.weight                                                 | vocab_size, hidden_size
			model.norm.weight                                              | hidden_size
			model.layers.{bid}.{input,post_attention}_layernorm.weight     | hidden_size
			model.layers.{bid}.mlp.{gate,up}_proj.weight                   | intermediate_size, hidden_size
			model.layers.{bid}.mlp.down_proj.weight                        | hidden_size, intermediate_size
			model.layers.{bid}.self_attn.time_mixer.x_{r,w,k,v,a}          | 1, 1, hidden_size
			model.layers.{bid}.self_attn.time_mixer.x_g                    | 1, 1, hidden_size | if g
			model.layers.{bid}.self_attn.time_mixer.k_{k,a}                | 1, 1, hidden_size
			model.layers.{bid}.self_attn.time_mixer.r_k                    | hidden_size/head_size, head_size
			model.layers.{bid}.self_attn.time_mixer.{receptance,key,value,output}.weight | hidden_size, hidden_size
			model.layers.{bid}.self_attn.time_mixer.{w,a}1                 | hidden_size, 64
			model.layers.{bid}.self_attn.time_mixer.{w,a}2                 | 64, hidden_size
			model.layers.{bid}.self_attn.time_mixer.v1                     | hidden_size, 32 | if bid > 0
			model.layers.{bid}.self_attn.time_mixer.v2                     | 32, hidden_size | if bid > 0
			model.layers.{bid}.self_attn.time_mixer.g1                     | hidden_size, 128 | if g
			model.layers.{bid}.self_attn.time_mixer.g2                     | 128, hidden_size | if g
			model.layers.{bid}.self_attn.time_mixer.{w,a}0                 | 1, 1, hidden_size
			model.layers.{bid}.self_attn.time_mixer.v0                     | 1, 1, hidden_size | if bid > 0
			model.layers.{bid}.self_attn.time_mixer.ln_x.{weight,bias}     | hidden_size | if opt(wkv_has_group_norm)
			`,
		Variants: []Variant{
			{Name: "gate", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"wkv_has_gate": true, "wkv_has_group_norm": true, "num_hidden_layers": 11}`},
			{Name: "heads-of-64", Seed: 4, Out: "f32", Set: `{"head_size": 64, "hidden_size": 128}`},
			{Name: "gated-heads-of-64", Seed: 5, Out: "f32",
				Set: `{"head_size": 64, "hidden_size": 128, "wkv_has_gate": true, "wkv_has_group_norm": true}`},
		},
	})
}
