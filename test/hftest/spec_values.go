package hftest

func init() {
	add(Spec{
		Name:      "apertus",
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["ApertusForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": $bos, "eos_token_id": $eos, "hidden_act": "xielu", "hidden_dropout": 0.0, "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 65536, "mlp_bias": false,
			"model_type": "apertus", "num_attention_heads": 4, "num_hidden_layers": 11, "num_key_value_heads": 2,
			"pad_token_id": $eos, "post_norm": false, "qk_norm": true, "rms_norm_eps": 1e-05,
			"rope_scaling": {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
			"original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 12000000,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.56.0",
			"use_cache": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			hd  = hidden_size / num_attention_heads
			lm_head.weight                                                | vocab_size, hidden_size
			model.embed_tokens.weight                                     | vocab_size, hidden_size
			model.norm.weight                                             | hidden_size
			model.layers.{bid}.{attention,feedforward}_layernorm.weight   | hidden_size
			model.layers.{bid}.self_attn.{q,o}_proj.weight                | hidden_size, hidden_size
			model.layers.{bid}.self_attn.{k,v}_proj.weight                | num_key_value_heads*hd, hidden_size
			model.layers.{bid}.self_attn.{q,k}_norm.weight                | hd
			model.layers.{bid}.mlp.up_proj.weight                         | intermediate_size, hidden_size
			model.layers.{bid}.mlp.down_proj.weight                       | hidden_size, intermediate_size
			model.layers.{bid}.mlp.act_fn.alpha_{n,p}                     | 1
			model.layers.{bid}.mlp.act_fn.{beta,eps}                      |
			`,
		Variants: []Variant{
			{Name: "lacking", Seed: 3, DType: "F16", Out: "bf16",
				Set: `{"rope_scaling": null, "rope_theta": null, "num_hidden_layers": 2}`},
		},
	})
	jais := Spec{
		Name:      "jais",
		Tokenizer: "bpe:gpt2",
		DType:     "F32",
		Config: `{"activation_function": "swiglu", "architectures": ["JAISLMHeadModel"], "attn_pdrop": 0.0,
			"auto_map": {"AutoConfig": "configuration_jais.JAISConfig"}, "bos_token_id": $bos, "embd_pdrop": 0.0,
			"embeddings_scale": 14.6, "eos_token_id": $eos, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
			"model_type": "jais", "n_embd": 96, "n_head": 6, "n_inner": 160, "n_layer": 2, "n_positions": 2048,
			"pad_token_id": $eos, "position_embedding_type": "alibi", "reorder_and_upcast_attn": false,
			"resid_pdrop": 0.0, "scale_attn_by_inverse_layer_idx": false, "scale_attn_weights": true,
			"scale_qk_dot_by_d": true, "torch_dtype": "float32", "transformers_version": "4.30.0", "use_cache": true,
			"vocab_size": 1001, "width_scale": 0.11100000000000002}`,
		Tensors: `
			bid = n_layer
			transformer.wte.weight                                 | vocab_size, n_embd
			lm_head.weight                                         | vocab_size, n_embd
			transformer.ln_f.{weight,bias}                         | n_embd
			transformer.h.{bid}.ln_{1,2}.{weight,bias}             | n_embd
			transformer.h.{bid}.attn.c_attn.weight                 | n_embd, 3*n_embd
			transformer.h.{bid}.attn.c_attn.bias                   | 3*n_embd
			transformer.h.{bid}.attn.c_proj.weight                 | n_embd, n_embd
			transformer.h.{bid}.attn.c_proj.bias                   | n_embd
			transformer.h.{bid}.mlp.c_fc{,2}.weight                | n_embd, n_inner
			transformer.h.{bid}.mlp.c_fc{,2}.bias                  | n_inner
			transformer.h.{bid}.mlp.c_proj.weight                  | n_inner, n_embd
			transformer.h.{bid}.mlp.c_proj.bias                    | n_embd
			`,
		Variants: []Variant{
			{Name: "mup", Seed: 3, DType: "F16", Out: "bf16", Set: `{"embeddings_scale": null, "width_scale": null,
				"mup_embeddings_scale": 9.1705785388303, "mup_output_alpha": 1.09518349815769, "mup_width_scale": 0.125,
				"n_head": 8}`},
		},
	}
	add(jais)
	jais.Name, jais.NoReference = "jais-slopes",
		"the reference reads the ALiBi slopes before their data is loaded, unless it is run with --no-lazy"
	jais.Tensors += `
		transformer.relative_pe.slopes                         | n_head | fill slope
	`
	add(jais)
	add(Spec{
		Name:      "dbrx",
		Tokenizer: "bpe:gpt2",
		Config: `{"architectures": ["DbrxForCausalLM"], "attn_config": {"clip_qkv": 8, "kv_n_heads": 2,
			"model_type": "", "rope_theta": 500000}, "auto_map": {"AutoConfig": "configuration_dbrx.DbrxConfig"},
			"d_model": 64, "emb_pdrop": 0.0, "ffn_config": {"ffn_hidden_size": 96, "model_type": "",
			"moe_jitter_eps": 0.01, "moe_loss_weight": 0.05, "moe_num_experts": 4, "moe_top_k": 2},
			"initializer_range": 0.02, "max_seq_len": 32768, "model_type": "dbrx", "n_heads": 4, "n_layers": 2,
			"output_router_logits": false, "resid_pdrop": 0.0, "router_aux_loss_coef": 0.05,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.38.2",
			"use_cache": true, "vocab_size": 1001}`,
		Tensors: `
			bid = n_layers
			hd  = d_model / n_heads
			lm_head.weight                                                | vocab_size, d_model
			transformer.wte.weight                                        | vocab_size, d_model
			transformer.norm_f.weight                                     | d_model
			transformer.blocks.{bid}.norm_attn_norm.norm_{1,2}.weight     | d_model
			transformer.blocks.{bid}.norm_attn_norm.attn.Wqkv.weight      | d_model+2*attn_config.kv_n_heads*hd, d_model
			transformer.blocks.{bid}.norm_attn_norm.attn.out_proj.weight  | d_model, d_model
			transformer.blocks.{bid}.ffn.router.layer.weight              | ffn_config.moe_num_experts, d_model
			transformer.blocks.{bid}.ffn.experts.mlp.{w1,w2,v1}           | ffn_config.moe_num_experts*ffn_config.ffn_hidden_size, d_model
			`,
	})
}
