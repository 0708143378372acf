package hftest

func init() {
	add(Spec{
		Name:      "gpt2",
		Tokenizer: "bpe:gpt2",
		DType:     "F32",
		Config: `{"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
			"bos_token_id": 1000, "embd_pdrop": 0.1, "eos_token_id": 1000, "initializer_range": 0.02,
			"layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 64, "n_embd": 64, "n_head": 4, "n_layer": 2,
			"n_positions": 64, "resid_pdrop": 0.1, "summary_activation": null, "summary_first_dropout": 0.1,
			"summary_proj_to_labels": true, "summary_type": "cls_index", "summary_use_proj": true,
			"torch_dtype": "float32", "transformers_version": "4.51.3", "vocab_size": 1001}`,
		Tensors: `
			bid = n_layer
			wte.weight                     | vocab_size, n_embd
			wpe.weight                     | n_positions, n_embd
			h.{bid}.ln_{1,2}.weight        | n_embd
			h.{bid}.ln_{1,2}.bias          | n_embd
			h.{bid}.attn.c_attn.weight     | n_embd, 3*n_embd
			h.{bid}.attn.c_attn.bias       | 3*n_embd
			h.{bid}.attn.c_proj.weight     | n_embd, n_embd
			h.{bid}.{attn,mlp}.c_proj.bias | n_embd
			h.{bid}.mlp.c_fc.weight        | n_embd, 4*n_embd
			h.{bid}.mlp.c_fc.bias          | 4*n_embd
			h.{bid}.mlp.c_proj.weight      | 4*n_embd, n_embd
			ln_f.weight                    | n_embd
			ln_f.bias                      | n_embd
			`,
	})
	add(Spec{
		Name:      "gpt_neox",
		Tokenizer: "bpe:neox",
		DType:     "F16",
		RawConfig: true,
		Config: `{"architectures": ["GPTNeoXForCausalLM"], "bos_token_id": 1000, "eos_token_id": 1000,
			"hidden_act": "gelu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"layer_norm_eps": 1e-05, "max_position_embeddings": 2048, "model_type": "gpt_neox",
			"num_attention_heads": 4, "num_hidden_layers": 2, "rotary_emb_base": 10000, "rotary_pct": 0.25,
			"tie_word_embeddings": false, "torch_dtype": "float16", "transformers_version": "4.51.3", "use_cache": true,
			"use_parallel_residual": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			gpt_neox.embed_in.weight                                      | vocab_size, hidden_size
			gpt_neox.layers.{bid}.{input,post_attention}_layernorm.weight | hidden_size
			gpt_neox.layers.{bid}.{input,post_attention}_layernorm.bias   | hidden_size
			gpt_neox.layers.{bid}.attention.query_key_value.weight        | 3*hidden_size, hidden_size
			gpt_neox.layers.{bid}.attention.query_key_value.bias          | 3*hidden_size
			gpt_neox.layers.{bid}.attention.dense.weight                  | hidden_size, hidden_size
			gpt_neox.layers.{bid}.attention.dense.bias                    | hidden_size
			gpt_neox.layers.{bid}.mlp.dense_h_to_4h.weight                | intermediate_size, hidden_size
			gpt_neox.layers.{bid}.mlp.dense_h_to_4h.bias                  | intermediate_size
			gpt_neox.layers.{bid}.mlp.dense_4h_to_h.weight                | hidden_size, intermediate_size
			gpt_neox.layers.{bid}.mlp.dense_4h_to_h.bias                  | hidden_size
			gpt_neox.final_layer_norm.weight                              | hidden_size
			gpt_neox.final_layer_norm.bias                                | hidden_size
			embed_out.weight                                              | vocab_size, hidden_size
			gpt_neox.layers.{bid}.attention.bias                          | 1, 1, 64, 64                   | as U8
			gpt_neox.layers.{bid}.attention.masked_bias                   |
			gpt_neox.layers.{bid}.attention.rotary_emb.inv_freq | floor(rotary_pct*hidden_size/num_attention_heads)/2 | as F32
			`,
	})
	add(Spec{
		Name:      "gpt_oss",
		Tokenizer: "bpe:gpt-4o",
		Config: `{"architectures": ["GptOssForCausalLM"], "attention_bias": true, "attention_dropout": 0.0,
			"bos_token_id": 1000, "eos_token_id": 1002, "experts_per_token": 2, "head_dim": 32, "hidden_act": "silu",
			"hidden_size": 64, "initial_context_length": 4096, "initializer_range": 0.02, "intermediate_size": 96,
			"layer_types": ["sliding_attention", "full_attention"], "max_position_embeddings": 131072,
			"model_type": "gpt_oss", "num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 2,
			"num_key_value_heads": 2, "num_local_experts": 4, "output_router_logits": false, "pad_token_id": 1001,
			"quantization_config": {"modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router",
			"model.embed_tokens", "lm_head"], "quant_method": "mxfp4"}, "rms_norm_eps": 1e-05,
			"rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0,
			"original_max_position_embeddings": 4096, "rope_type": "yarn", "truncate": false}, "rope_theta": 150000,
			"router_aux_loss_coef": 0.9, "sliding_window": 128, "swiglu_limit": 7.0, "tie_word_embeddings": false,
			"torch_dtype": "bfloat16", "transformers_version": "4.51.3", "use_cache": true, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + `
			model.layers.{bid}.self_attn.sinks                 | num_attention_heads
			model.layers.{bid}.mlp.router.weight               | num_local_experts, hidden_size
			model.layers.{bid}.mlp.router.bias                 | num_local_experts
			model.layers.{bid}.mlp.experts.gate_up_proj_blocks | num_local_experts, 2*intermediate_size, hidden_size/32, 16 | as U8 | if !opt(unpacked)
			model.layers.{bid}.mlp.experts.gate_up_proj_scales | num_local_experts, 2*intermediate_size, hidden_size/32     | as U8 | if !opt(unpacked) | fill scales
			model.layers.{bid}.mlp.experts.gate_up_proj_bias   | num_local_experts, 2*intermediate_size
			model.layers.{bid}.mlp.experts.down_proj_blocks    | num_local_experts, hidden_size, intermediate_size/32, 16   | as U8 | if !opt(unpacked)
			model.layers.{bid}.mlp.experts.down_proj_scales    | num_local_experts, hidden_size, intermediate_size/32       | as U8 | if !opt(unpacked) | fill scales
			model.layers.{bid}.mlp.experts.gate_up_proj        | num_local_experts, hidden_size, 2*intermediate_size | if opt(unpacked)
			model.layers.{bid}.mlp.experts.down_proj           | num_local_experts, intermediate_size, hidden_size   | if opt(unpacked)
			model.layers.{bid}.mlp.experts.down_proj_bias      | num_local_experts, hidden_size
			`,
		Variants: []Variant{
			{Name: "f32", Seed: 3, Out: "f32", Set: `{"num_local_experts": 11}`},
			{Name: "unpacked", Seed: 4, Shards: 2, Out: "auto", Set: `{"unpacked": true, "quantization_config": null}`},
		},
	})
	add(Spec{
		Name:      "starcoder",
		Tokenizer: "bpe:starcoder",
		DType:     "F16",
		Config: `{"activation_function": "gelu", "architectures": ["GPTBigCodeForCausalLM"],
			"attention_softmax_in_fp32": true, "attn_pdrop": 0.1, "bos_token_id": 0, "eos_token_id": 0,
			"layer_norm_epsilon": 1e-05, "model_type": "gpt_bigcode", "multi_query": true, "n_embd": 64, "n_head": 4,
			"n_inner": 256, "n_layer": 2, "n_positions": 64, "scale_attention_softmax_in_fp32": true,
			"torch_dtype": "float16", "transformers_version": "4.51.3", "vocab_size": 1024}`,
		Tensors: `
			bid = n_layer
			hd  = n_embd / n_head
			transformer.wte.weight                     | vocab_size, n_embd
			transformer.wpe.weight                     | n_positions, n_embd
			transformer.h.{bid}.ln_{1,2}.weight        | n_embd
			transformer.h.{bid}.ln_{1,2}.bias          | n_embd
			transformer.h.{bid}.attn.c_attn.weight     | n_embd+2*hd, n_embd
			transformer.h.{bid}.attn.c_attn.bias       | n_embd+2*hd
			transformer.h.{bid}.attn.c_proj.weight     | n_embd, n_embd
			transformer.h.{bid}.{attn,mlp}.c_proj.bias | n_embd
			transformer.h.{bid}.mlp.c_fc.weight        | n_inner, n_embd
			transformer.h.{bid}.mlp.c_fc.bias          | n_inner
			transformer.h.{bid}.mlp.c_proj.weight      | n_embd, n_inner
			transformer.ln_f.weight                    | n_embd
			transformer.ln_f.bias                      | n_embd
			`,
	})
	add(Spec{
		Name:      "starcoder2",
		Tokenizer: "bpe:starcoder",
		Config: `{"activation_function": "gelu", "architectures": ["Starcoder2ForCausalLM"], "attention_dropout": 0.1,
			"attention_softmax_in_fp32": true, "bos_token_id": 0, "embedding_dropout": 0.1, "eos_token_id": 0,
			"hidden_act": "gelu_pytorch_tanh", "hidden_size": 64, "initializer_range": 0.018042,
			"intermediate_size": 96, "layer_norm_epsilon": 1e-05, "max_position_embeddings": 16384,
			"mlp_type": "default", "model_type": "starcoder2", "norm_epsilon": 1e-05, "norm_type": "layer_norm",
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "residual_dropout": 0.1,
			"rope_theta": 999999.4420358813, "sliding_window": 4096, "torch_dtype": "bfloat16",
			"transformers_version": "4.51.3", "use_bias": true, "use_cache": true, "vocab_size": 1024}`,
		Tensors: llamaAttention + `
			model.layers.{bid}.self_attn.{q,o}_proj.bias             | hidden_size
			model.layers.{bid}.self_attn.{k,v}_proj.bias             | num_key_value_heads*hd
			model.layers.{bid}.mlp.c_fc.weight                       | intermediate_size, hidden_size
			model.layers.{bid}.mlp.c_fc.bias                         | intermediate_size
			model.layers.{bid}.mlp.c_proj.weight                     | hidden_size, intermediate_size
			model.layers.{bid}.mlp.c_proj.bias                       | hidden_size
			model.layers.{bid}.{input,post_attention}_layernorm.bias | hidden_size
			model.norm.bias                                          | hidden_size
			`,
	})
	add(Spec{
		Name:      "bloom",
		Tokenizer: "bpe:bloom",
		DType:     "F16",
		Config: `{"apply_residual_connection_post_layernorm": false, "architectures": ["BloomForCausalLM"],
			"attention_dropout": 0.0, "bos_token_id": 1001, "eos_token_id": 1002, "hidden_dropout": 0.0,
			"hidden_size": 64, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "masked_softmax_fusion": true,
			"model_type": "bloom", "n_head": 4, "n_inner": null, "n_layer": 2, "offset_alibi": 100,
			"pad_token_id": 1003, "pretraining_tp": 1, "seq_length": 2048, "skip_bias_add": true,
			"torch_dtype": "float16", "transformers_version": "4.51.3", "unk_token_id": 1000, "use_cache": true,
			"vocab_size": 1024}`,
		Tensors: `
			bid = n_layer
			transformer.word_embeddings.weight                          | vocab_size, hidden_size
			transformer.{word_embeddings_layernorm,ln_f}.weight         | hidden_size
			transformer.{word_embeddings_layernorm,ln_f}.bias           | hidden_size
			transformer.h.{bid}.{input,post_attention}_layernorm.weight | hidden_size
			transformer.h.{bid}.{input,post_attention}_layernorm.bias   | hidden_size
			transformer.h.{bid}.self_attention.query_key_value.weight   | 3*hidden_size, hidden_size
			transformer.h.{bid}.self_attention.query_key_value.bias     | 3*hidden_size
			transformer.h.{bid}.self_attention.dense.weight             | hidden_size, hidden_size
			transformer.h.{bid}.self_attention.dense.bias               | hidden_size
			transformer.h.{bid}.mlp.dense_h_to_4h.weight                | 4*hidden_size, hidden_size
			transformer.h.{bid}.mlp.dense_h_to_4h.bias                  | 4*hidden_size
			transformer.h.{bid}.mlp.dense_4h_to_h.weight                | hidden_size, 4*hidden_size
			transformer.h.{bid}.mlp.dense_4h_to_h.bias                  | hidden_size
			`,
	})
	add(Spec{
		Name:      "falcon",
		Tokenizer: "bpe:falcon",
		RawConfig: true,
		Config: `{"alibi": false, "apply_residual_connection_post_layernorm": false,
			"architectures": ["FalconForCausalLM"], "attention_dropout": 0.0, "bias": false, "bos_token_id": 1002,
			"eos_token_id": 1002, "hidden_dropout": 0.0, "hidden_size": 64, "initializer_range": 0.02,
			"layer_norm_epsilon": 1e-05, "model_type": "falcon", "multi_query": true, "new_decoder_architecture": false,
			"num_attention_heads": 4, "num_hidden_layers": 2, "parallel_attn": true, "torch_dtype": "bfloat16",
			"transformers_version": "4.51.3", "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			hd  = hidden_size / num_attention_heads
			transformer.word_embeddings.weight                        | vocab_size, hidden_size
			transformer.h.{bid}.self_attention.query_key_value.weight | hidden_size+2*hd, hidden_size
			transformer.h.{bid}.self_attention.dense.weight           | hidden_size, hidden_size
			transformer.h.{bid}.mlp.dense_h_to_4h.weight              | 4*hidden_size, hidden_size
			transformer.h.{bid}.mlp.dense_4h_to_h.weight              | hidden_size, 4*hidden_size
			transformer.h.{bid}.input_layernorm.weight                | hidden_size
			transformer.h.{bid}.input_layernorm.bias                  | hidden_size
			transformer.ln_f.weight                                   | hidden_size
			transformer.ln_f.bias                                     | hidden_size
			`,
	})
	add(Spec{
		Name:      "falcon-40b",
		Tokenizer: "bpe:falcon",
		Config: `{"alibi": false, "apply_residual_connection_post_layernorm": false,
			"architectures": ["FalconForCausalLM"], "attention_dropout": 0.0, "bias": false, "bos_token_id": 1002,
			"eos_token_id": 1002, "hidden_dropout": 0.0, "hidden_size": 64, "initializer_range": 0.02,
			"layer_norm_epsilon": 1e-05, "model_type": "falcon", "multi_query": true, "new_decoder_architecture": true,
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_kv_heads": 2, "parallel_attn": true,
			"torch_dtype": "bfloat16", "transformers_version": "4.51.3", "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			hd  = hidden_size / num_attention_heads
			transformer.word_embeddings.weight                        | vocab_size, hidden_size
			transformer.h.{bid}.self_attention.query_key_value.weight | (num_attention_heads+2*num_kv_heads)*hd, hidden_size
			transformer.h.{bid}.self_attention.dense.weight           | hidden_size, hidden_size
			transformer.h.{bid}.mlp.dense_h_to_4h.weight              | 4*hidden_size, hidden_size
			transformer.h.{bid}.mlp.dense_4h_to_h.weight              | hidden_size, 4*hidden_size
			transformer.h.{bid}.ln_{attn,mlp}.weight                  | hidden_size
			transformer.h.{bid}.ln_{attn,mlp}.bias                    | hidden_size
			transformer.ln_f.weight                                   | hidden_size
			transformer.ln_f.bias                                     | hidden_size
			`,
	})
	add(Spec{
		Name:      "mpt",
		Tokenizer: "bpe:neox",
		Config: `{"architectures": ["MPTForCausalLM"], "attn_config": {"alibi": true, "alibi_bias_max": 8,
			"attn_impl": "torch", "attn_pdrop": 0, "attn_type": "multihead_attention", "attn_uses_sequence_id": false,
			"clip_qkv": null, "prefix_lm": false, "qk_ln": false, "softmax_scale": null}, "d_model": 64, "emb_pdrop": 0,
			"embedding_fraction": 1.0, "expansion_ratio": 4, "init_device": "cpu", "learned_pos_emb": true,
			"logit_scale": null, "max_seq_len": 2048, "model_type": "mpt", "n_heads": 4, "n_layers": 2, "no_bias": true,
			"norm_type": "low_precision_layernorm", "resid_pdrop": 0, "torch_dtype": "bfloat16",
			"transformers_version": "4.51.3", "use_cache": false, "verbose": 0, "vocab_size": 1024}`,
		Tensors: `
			bid = n_layers
			transformer.wte.weight                        | vocab_size, d_model
			transformer.blocks.{bid}.norm_{1,2}.weight    | d_model
			transformer.blocks.{bid}.attn.Wqkv.weight     | 3*d_model, d_model
			transformer.blocks.{bid}.attn.out_proj.weight | d_model, d_model
			transformer.blocks.{bid}.ffn.up_proj.weight   | 4*d_model, d_model
			transformer.blocks.{bid}.ffn.down_proj.weight | d_model, 4*d_model
			transformer.norm_f.weight                     | d_model
			`,
	})
}
