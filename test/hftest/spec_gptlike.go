package hftest

func init() {
	add(Spec{
		Name:      "gpt2-large",
		Tokenizer: "bpe:gpt2",
		DType:     "F32",
		Config: `{"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
			"bos_token_id": $bos, "embd_pdrop": 0.1, "eos_token_id": $eos, "initializer_range": 0.02,
			"layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 64, "n_head": 4, "n_layer": 2,
			"n_positions": 1024, "resid_pdrop": 0.1, "summary_activation": null, "summary_first_dropout": 0.1,
			"summary_proj_to_labels": true, "summary_type": "cls_index", "summary_use_proj": true,
			"task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}, "vocab_size": $vocab}`,
		Tensors: `
			bid = n_layer
			p = opt(prefix)
			h.{bid}.ln_{1,2}.{weight,bias}       | n_embd                | if !p
			h.{bid}.attn.c_attn.weight           | n_embd, 3*n_embd      | if !p
			h.{bid}.attn.c_attn.bias             | 3*n_embd              | if !p
			h.{bid}.attn.c_proj.weight           | n_embd, n_embd        | if !p
			h.{bid}.{attn,mlp}.c_proj.bias       | n_embd                | if !p
			h.{bid}.mlp.c_fc.weight              | n_embd, 4*n_embd      | if !p
			h.{bid}.mlp.c_fc.bias                | 4*n_embd              | if !p
			h.{bid}.mlp.c_proj.weight            | 4*n_embd, n_embd      | if !p
			ln_f.{weight,bias}                   | n_embd                | if !p
			wte.weight                           | vocab_size, n_embd    | if !p
			wpe.weight                           | n_positions, n_embd   | if !p
			transformer.h.{bid}.ln_{1,2}.{weight,bias}   | n_embd                | if p
			transformer.h.{bid}.attn.c_attn.weight       | n_embd, 3*n_embd      | if p
			transformer.h.{bid}.attn.c_attn.bias         | 3*n_embd              | if p
			transformer.h.{bid}.attn.c_proj.weight       | n_embd, n_embd        | if p
			transformer.h.{bid}.{attn,mlp}.c_proj.bias   | n_embd                | if p
			transformer.h.{bid}.mlp.c_fc.weight          | n_embd, 4*n_embd      | if p
			transformer.h.{bid}.mlp.c_fc.bias            | 4*n_embd              | if p
			transformer.h.{bid}.mlp.c_proj.weight        | 4*n_embd, n_embd      | if p
			transformer.ln_f.{weight,bias}               | n_embd                | if p
			transformer.wte.weight                       | vocab_size, n_embd    | if p
			transformer.wpe.weight                       | n_positions, n_embd   | if p
			lm_head.weight                               | vocab_size, n_embd    | if opt(head)
			`,
		Variants: []Variant{
			{Name: "head", Seed: 3, DType: "BF16", Out: "auto",
				Set: `{"prefix": true, "head": true, "n_ctx": 256, "n_positions": 256, "n_layer": 11}`},
			{Name: "f16", Seed: 4, DType: "F16", Out: "q8_0", Set: `{"prefix": true, "n_embd": 96}`},
			{Name: "other-names", Seed: 5, Out: "bf16",
				Set: `{"n_embd": 64, "hidden_size": 64, "n_layer": 2, "num_hidden_layers": 2,
					"layer_norm_epsilon": null}`},
		},
	})
	add(Spec{
		Name:      "rugpt3xl",
		Tokenizer: "bpe:gpt2",
		Config: `{"architectures": ["RuGPT3XLForCausalLM"], "activation_function": "gelu_new", "attention_dropout": 0.1,
			"bos_token_id": $bos, "eos_token_id": $eos, "embedding_dropout": 0.1, "hidden_dropout": 0.1,
			"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 256, "layer_norm_eps": 1e-05,
			"max_position_embeddings": 2048, "model_type": "rugpt3xl", "num_attention_heads": 4, "num_hidden_layers": 2,
			"tie_word_embeddings": true, "torch_dtype": "float16", "use_cache": true, "vocab_size": $vocab}`,
		Tensors: `
			bid = num_hidden_layers
			model.embed_tokens.weight                                        | vocab_size, hidden_size
			model.embed_positions.weight                                     | max_position_embeddings, hidden_size
			model.norm.{weight,bias}                                         | hidden_size
			lm_head.weight                                                   | vocab_size, hidden_size | if !opt(tie_word_embeddings)
			model.layers.{bid}.{input,post_attention}_layernorm.{weight,bias}  | hidden_size
			model.layers.{bid}.self_attn.{q,k,v,o}_proj.weight               | hidden_size, hidden_size
			model.layers.{bid}.self_attn.{q,k,v,o}_proj.bias                 | hidden_size
			model.layers.{bid}.mlp.up_proj.weight                            | intermediate_size, hidden_size
			model.layers.{bid}.mlp.up_proj.bias                              | intermediate_size
			model.layers.{bid}.mlp.down_proj.weight                          | hidden_size, intermediate_size
			model.layers.{bid}.mlp.down_proj.bias                            | hidden_size
			`,
		Variants: []Variant{
			{Name: "untied", Seed: 3, DType: "F16", Shards: 4, Out: "bf16",
				Set: `{"tie_word_embeddings": false, "num_hidden_layers": 11}`},
		},
	})
	add(Spec{
		Name:      "gpt_bigcode",
		Tokenizer: "bpe:starcoder",
		Config: `{"activation_function": "gelu", "architectures": ["GPTBigCodeForCausalLM"],
			"attention_softmax_in_fp32": true, "attn_pdrop": 0.1, "bos_token_id": 0, "embd_pdrop": 0.1,
			"eos_token_id": 0, "inference_runner": 0, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
			"max_batch_size": null, "max_sequence_length": null, "model_type": "gpt_bigcode", "multi_query": true,
			"n_embd": 64, "n_head": 4, "n_inner": 256, "n_layer": 2, "n_positions": 512, "pad_key_length": true,
			"pre_allocate_kv_cache": false, "resid_pdrop": 0.1, "scale_attention_softmax_in_fp32": true,
			"scale_attn_weights": true, "summary_activation": null, "summary_first_dropout": 0.1,
			"summary_proj_to_labels": true, "summary_type": "cls_index", "summary_use_proj": true,
			"torch_dtype": "float32", "transformers_version": "4.28.1", "use_cache": true,
			"validate_runner_input": true, "vocab_size": $vocab}`,
		Tensors: gptBlocks + `
			transformer.wpe.weight                       | n_positions, n_embd
			transformer.h.{bid}.attn.c_attn.weight       | n_embd + 2*n_embd/n_head, n_embd
			transformer.h.{bid}.attn.c_attn.bias         | n_embd + 2*n_embd/n_head
			`,
		Variants: []Variant{
			{Name: "head", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"head": true, "n_inner": null, "n_layer": 11}`},
		},
	})
	add(Spec{
		Name:      "codeshell",
		Tokenizer: "bpe:starcoder",
		Config: `{"activation_function": "gelu_pytorch_tanh", "architectures": ["CodeShellForCausalLM"],
			"attention_softmax_in_fp32": true, "attn_pdrop": 0.1,
			"auto_map": {"AutoConfig": "configuration_codeshell.CodeShellConfig",
			"AutoModelForCausalLM": "modeling_codeshell.CodeShellForCausalLM"}, "bos_token_id": $bos, "embd_pdrop": 0.1,
			"eos_token_id": $eos, "group_query_attention": true, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
			"model_type": "codeshell", "n_embd": 64, "n_head": 4, "n_inner": 256, "n_layer": 2, "n_positions": 8192,
			"num_query_groups": 2, "position_embedding_type": "rope", "resid_pdrop": 0.1, "rope_scaling": null,
			"scale_attention_softmax_in_fp32": true, "scale_attn_weights": true, "summary_activation": null,
			"summary_first_dropout": 0.1, "summary_proj_to_labels": true, "summary_type": "cls_index",
			"summary_use_proj": true, "torch_dtype": "bfloat16", "transformers_version": "4.33.1", "use_cache": true,
			"vocab_size": $vocab}`,
		Tensors: gptBlocks + `
			lm_head.weight                               | vocab_size, n_embd
			transformer.h.{bid}.attn.c_attn.weight       | n_embd + 2*num_query_groups*n_embd/n_head, n_embd
			transformer.h.{bid}.attn.c_attn.bias         | n_embd + 2*num_query_groups*n_embd/n_head
			transformer.h.{bid}.attn.rotary_emb.inv_freq | n_embd/n_head/2 | as F32
			`,
		Variants: []Variant{
			{Name: "eleven-layers", Seed: 3, Shards: 2, Out: "auto", Set: `{"n_layer": 11, "num_query_groups": 1}`},
		},
	})
	add(Spec{
		Name:      "refact",
		Tokenizer: "bpe:refact",
		Config: `{"architectures": ["GPTRefactForCausalLM"], "attention_bias_in_fp32": true,
			"attention_softmax_in_fp32": true, "attn_pdrop": 0.1,
			"auto_map": {"AutoConfig": "configuration_gpt_refact.GPTRefactConfig",
			"AutoModelForCausalLM": "modeling_gpt_refact.GPTRefactForCausalLM"}, "do_sample": true, "embd_pdrop": 0.1,
			"eos_token_id": 0, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt_refact",
			"multi_query": true, "n_embd": 96, "n_head": 3, "n_inner": null, "n_layer": 2, "n_positions": 4096,
			"resid_pdrop": 0.1, "scale_attention_softmax_in_fp32": true, "scale_attn_weights": true,
			"torch_dtype": "bfloat16", "transformers_version": "4.31.0", "use_cache": true, "vocab_size": 1024}`,
		Tensors: `
			bid = n_layer
			transformer.wte.weight                       | vocab_size, n_embd
			transformer.ln_f.weight                      | n_embd
			lm_head.weight                               | vocab_size, n_embd
			transformer.h.{bid}.ln_{1,2}.weight          | n_embd
			transformer.h.{bid}.attn.q.weight            | n_embd, n_embd
			transformer.h.{bid}.attn.kv.weight           | 2*n_embd/n_head, n_embd
			transformer.h.{bid}.attn.c_proj.weight       | n_embd, n_embd
			transformer.h.{bid}.mlp.gate_up_proj.weight  | 2*256*floor((floor(8*n_embd/3)+255)/256), n_embd
			transformer.h.{bid}.mlp.c_proj.weight        | n_embd, 256*floor((floor(8*n_embd/3)+255)/256)
			`,
		Variants: []Variant{
			{Name: "eleven-layers", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"n_layer": 11, "n_embd": 160, "n_head": 5}`},
		},
	})
	add(Spec{
		Name:      "starcoder2-3b",
		Tokenizer: "bpe:starcoder",
		Config: `{"activation_function": "gelu", "architectures": ["Starcoder2ForCausalLM"], "attention_dropout": 0.1,
			"attention_softmax_in_fp32": true, "bos_token_id": 0, "embedding_dropout": 0.1, "eos_token_id": 0,
			"hidden_act": "gelu_pytorch_tanh", "hidden_size": 64, "initializer_range": 0.018042,
			"intermediate_size": 256, "layer_norm_epsilon": 1e-05, "max_position_embeddings": 16384,
			"mlp_type": "default", "model_type": "starcoder2", "norm_epsilon": 1e-05, "norm_type": "layer_norm",
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "residual_dropout": 0.1,
			"rope_theta": 999999.4420358813, "scale_attention_softmax_in_fp32": true, "scale_attn_weights": true,
			"sliding_window": 4096, "torch_dtype": "bfloat16", "transformers_version": "4.37.0.dev0", "use_bias": true,
			"use_cache": true, "vocab_size": $vocab}`,
		Tensors: `
			bid = num_hidden_layers
			hd = hidden_size / num_attention_heads
			kv = num_key_value_heads * hd
			model.embed_tokens.weight                             | vocab_size, hidden_size
			lm_head.weight                                        | vocab_size, hidden_size | if opt(untied)
			model.norm.{weight,bias}                              | hidden_size
			model.layers.{bid}.{input,post_attention}_layernorm.{weight,bias} | hidden_size
			model.layers.{bid}.self_attn.{q,o}_proj.weight        | hidden_size, hidden_size
			model.layers.{bid}.self_attn.{q,o}_proj.bias          | hidden_size | if use_bias
			model.layers.{bid}.self_attn.{k,v}_proj.weight        | kv, hidden_size
			model.layers.{bid}.self_attn.{k,v}_proj.bias          | kv | if use_bias
			model.layers.{bid}.mlp.c_fc.weight                    | intermediate_size, hidden_size
			model.layers.{bid}.mlp.c_fc.bias                      | intermediate_size | if use_bias
			model.layers.{bid}.mlp.c_proj.weight                  | hidden_size, intermediate_size
			model.layers.{bid}.mlp.c_proj.bias                    | hidden_size | if use_bias
			`,
		Variants: []Variant{
			{Name: "no-bias", Seed: 3, DType: "F16", Out: "bf16",
				Set: `{"use_bias": false, "untied": true, "num_key_value_heads": 1, "rope_scaling": {"type": "linear",
					"factor": 4.0}}`},
			{Name: "defaults", Seed: 4, Out: "auto",
				Set: `{"norm_epsilon": null, "layer_norm_epsilon": null, "rope_theta": null,
					"max_position_embeddings": null}`},
		},
	})
	add(Spec{
		Name:      "bloom-560m",
		Tokenizer: "bpe:bloom",
		DType:     "F16",
		Config: `{"apply_residual_connection_post_layernorm": false, "attention_dropout": 0.0,
			"architectures": ["BloomForCausalLM"], "attention_softmax_in_fp32": true, "bias_dropout_fusion": true,
			"bos_token_id": $bos, "eos_token_id": $eos, "pad_token_id": $pad, "hidden_dropout": 0.0,
			"initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "masked_softmax_fusion": true,
			"model_type": "bloom", "n_embed": 64, "n_inner": null, "n_layer": 2, "num_attention_heads": 4,
			"offset_alibi": 100, "pretraining_tp": 1, "skip_bias_add": true, "skip_bias_add_qkv": false,
			"slow_but_exact": false, "transformers_version": "4.20.0", "unk_token_id": $unk, "use_cache": true,
			"vocab_size": 1024}`,
		Tensors: `
			bid = n_layer
			h = opt(n_embed) || hidden_size
			word_embeddings.weight                                   | vocab_size, h | if !opt(prefix)
			word_embeddings_layernorm.{weight,bias}                  | h             | if !opt(prefix)
			ln_f.{weight,bias}                                       | h             | if !opt(prefix)
			h.{bid}.{input,post_attention}_layernorm.{weight,bias}   | h             | if !opt(prefix)
			h.{bid}.self_attention.query_key_value.weight            | 3*h, h        | if !opt(prefix)
			h.{bid}.self_attention.query_key_value.bias              | 3*h           | if !opt(prefix)
			h.{bid}.self_attention.dense.weight                      | h, h          | if !opt(prefix)
			h.{bid}.self_attention.dense.bias                        | h             | if !opt(prefix)
			h.{bid}.mlp.dense_h_to_4h.weight                         | 4*h, h        | if !opt(prefix)
			h.{bid}.mlp.dense_h_to_4h.bias                           | 4*h           | if !opt(prefix)
			h.{bid}.mlp.dense_4h_to_h.weight                         | h, 4*h        | if !opt(prefix)
			h.{bid}.mlp.dense_4h_to_h.bias                           | h             | if !opt(prefix)
			lm_head.weight                                                       | vocab_size, h | if opt(prefix)
			transformer.word_embeddings.weight                                   | vocab_size, h | if opt(prefix)
			transformer.word_embeddings_layernorm.{weight,bias}                  | h             | if opt(prefix)
			transformer.ln_f.{weight,bias}                                       | h             | if opt(prefix)
			transformer.h.{bid}.{input,post_attention}_layernorm.{weight,bias}   | h             | if opt(prefix)
			transformer.h.{bid}.self_attention.query_key_value.weight            | 3*h, h        | if opt(prefix)
			transformer.h.{bid}.self_attention.query_key_value.bias              | 3*h           | if opt(prefix)
			transformer.h.{bid}.self_attention.dense.weight                      | h, h          | if opt(prefix)
			transformer.h.{bid}.self_attention.dense.bias                        | h             | if opt(prefix)
			transformer.h.{bid}.mlp.dense_h_to_4h.weight                         | 4*h, h        | if opt(prefix)
			transformer.h.{bid}.mlp.dense_h_to_4h.bias                           | 4*h           | if opt(prefix)
			transformer.h.{bid}.mlp.dense_4h_to_h.weight                         | h, 4*h        | if opt(prefix)
			transformer.h.{bid}.mlp.dense_4h_to_h.bias                           | h             | if opt(prefix)
			`,
		Variants: []Variant{
			{Name: "prefix", Seed: 3, DType: "BF16", Out: "auto",
				Set: `{"prefix": true, "n_embed": null, "hidden_size": 96, "seq_length": 2048, "n_head": 3,
					"num_attention_heads": null, "n_layer": 11}`},
		},
	})
	add(Spec{
		Name:      "pythia",
		Tokenizer: "bpe:neox",
		DType:     "F16",
		RawConfig: true,
		Config: `{"architectures": ["GPTNeoXForCausalLM"], "bos_token_id": $bos, "eos_token_id": $eos,
			"hidden_act": "gelu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 256,
			"layer_norm_eps": 1e-05, "max_position_embeddings": 2048, "model_type": "gpt_neox",
			"num_attention_heads": 4, "num_hidden_layers": 2, "rotary_emb_base": 10000, "rotary_pct": 0.25,
			"tie_word_embeddings": false, "torch_dtype": "float16", "transformers_version": "4.24.0", "use_cache": true,
			"use_parallel_residual": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			gpt_neox.embed_in.weight                                           | vocab_size, hidden_size
			embed_out.weight                                                   | vocab_size, hidden_size
			gpt_neox.final_layer_norm.{weight,bias}                            | hidden_size
			gpt_neox.layers.{bid}.{input,post_attention}_layernorm.{weight,bias} | hidden_size
			gpt_neox.layers.{bid}.attention.query_key_value.weight             | 3*hidden_size, hidden_size
			gpt_neox.layers.{bid}.attention.query_key_value.bias               | 3*hidden_size
			gpt_neox.layers.{bid}.attention.dense.weight                       | hidden_size, hidden_size
			gpt_neox.layers.{bid}.attention.dense.bias                         | hidden_size
			gpt_neox.layers.{bid}.attention.bias                               | 1, 1, 64, 64 | as F32
			gpt_neox.layers.{bid}.attention.masked_bias                        | | as F32
			gpt_neox.layers.{bid}.attention.rotary_emb.inv_freq                | 2 | as F32
			gpt_neox.layers.{bid}.mlp.dense_h_to_4h.weight                     | intermediate_size, hidden_size
			gpt_neox.layers.{bid}.mlp.dense_h_to_4h.bias                       | intermediate_size
			gpt_neox.layers.{bid}.mlp.dense_4h_to_h.weight                     | hidden_size, intermediate_size
			gpt_neox.layers.{bid}.mlp.dense_4h_to_h.bias                       | hidden_size
			`,
		Variants: []Variant{
			{Name: "serial", Seed: 3, DType: "BF16", Shards: 2, Out: "auto",
				Set: `{"use_parallel_residual": false, "rotary_pct": 0.3, "num_attention_heads": 2,
					"num_hidden_layers": 11}`},
			{Name: "default-residual", Seed: 4, DType: "F32", Out: "f32",
				Set: `{"use_parallel_residual": null, "rotary_pct": 1.0}`},
		},
	})
	add(Spec{
		Name:      "falcon-7b",
		Tokenizer: "bpe:falcon",
		RawConfig: true,
		Config: `{"alibi": false, "apply_residual_connection_post_layernorm": false,
			"architectures": ["FalconForCausalLM"], "attention_dropout": 0.0, "bias": false,
			"auto_map": {"AutoConfig": "configuration_falcon.FalconConfig"}, "bos_token_id": $eos, "eos_token_id": $eos,
			"hidden_dropout": 0.0, "hidden_size": 64, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
			"model_type": "falcon", "multi_query": true, "new_decoder_architecture": false, "num_attention_heads": 4,
			"num_hidden_layers": 2, "parallel_attn": true, "torch_dtype": "bfloat16", "transformers_version": "4.27.4",
			"use_cache": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			hd  = hidden_size / num_attention_heads
			kv  = opt(num_kv_heads) || 1
			two = opt(new_decoder_architecture) && opt(num_ln_in_parallel_attn) != 1
			transformer.word_embeddings.weight                            | vocab_size, hidden_size
			lm_head.weight                                                | vocab_size, hidden_size | if opt(untied)
			transformer.ln_f.{weight,bias}                                | hidden_size
			transformer.h.{bid}.input_layernorm.{weight,bias}             | hidden_size | if !two
			transformer.h.{bid}.ln_{attn,mlp}.{weight,bias}               | hidden_size | if two
			transformer.h.{bid}.self_attention.query_key_value.weight     | hidden_size + 2*kv*hd, hidden_size
			transformer.h.{bid}.self_attention.dense.weight               | hidden_size, hidden_size
			transformer.h.{bid}.mlp.dense_h_to_4h.weight                  | 4*hidden_size, hidden_size
			transformer.h.{bid}.mlp.dense_4h_to_h.weight                  | hidden_size, 4*hidden_size
			`,
		Variants: []Variant{
			{Name: "40b", Seed: 3, Shards: 3, Out: "auto",
				Set: `{"new_decoder_architecture": true, "hidden_size": 128, "num_attention_heads": 8,
					"num_kv_heads": 2, "num_hidden_layers": 11, "untied": true}`},
			{Name: "11b", Seed: 4, DType: "F16", Out: "q8_0",
				Set: `{"new_decoder_architecture": true, "num_ln_in_parallel_attn": 1, "num_kv_heads": 2,
					"rope_theta": 10000.0, "activation": "gelu"}`},
		},
	})
	add(Spec{
		Name:      "falcon-rw",
		Tokenizer: "bpe:falcon",
		Config: `{"alibi": false, "apply_residual_connection_post_layernorm": false, "architectures": ["RWForCausalLM"],
			"attention_dropout": 0.0, "bias": false, "bos_token_id": $eos, "eos_token_id": $eos, "hidden_dropout": 0.0,
			"hidden_size": 64, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "RefinedWeb",
			"n_head": 4, "n_head_kv": 2, "n_layer": 2, "parallel_attn": true, "torch_dtype": "bfloat16",
			"transformers_version": "4.27.4", "use_cache": true, "vocab_size": 1024}`,
		Tensors: `
			bid = n_layer
			hd  = hidden_size / n_head
			transformer.word_embeddings.weight                            | vocab_size, hidden_size
			lm_head.weight                                                | vocab_size, hidden_size
			transformer.ln_f.{weight,bias}                                | hidden_size
			transformer.h.{bid}.ln_{attn,mlp}.{weight,bias}               | hidden_size
			transformer.h.{bid}.self_attention.query_key_value.weight     | hidden_size + 2*n_head_kv*hd, hidden_size
			transformer.h.{bid}.self_attention.dense.weight               | hidden_size, hidden_size
			transformer.h.{bid}.mlp.dense_h_to_4h.weight                  | 4*hidden_size, hidden_size
			transformer.h.{bid}.mlp.dense_4h_to_h.weight                  | hidden_size, 4*hidden_size
			`,
	})
	add(Spec{
		Name:      "mpt-7b",
		Tokenizer: "bpe:neox",
		Config: `{"architectures": ["MPTForCausalLM"], "attn_config": {"alibi": true, "alibi_bias_max": 8,
			"attn_impl": "torch", "attn_pdrop": 0, "attn_type": "multihead_attention", "attn_uses_sequence_id": false,
			"clip_qkv": null, "prefix_lm": false, "qk_ln": false, "softmax_scale": null},
			"auto_map": {"AutoConfig": "configuration_mpt.MPTConfig"}, "d_model": 64, "emb_pdrop": 0,
			"embedding_fraction": 1.0, "expansion_ratio": 4, "init_config": {"emb_init_std": null,
			"name": "kaiming_normal_", "verbose": 0}, "init_device": "cpu", "learned_pos_emb": true,
			"logit_scale": null, "max_seq_len": 2048, "model_type": "mpt", "n_heads": 4, "n_layers": 2, "no_bias": true,
			"norm_type": "low_precision_layernorm", "resid_pdrop": 0, "tokenizer_name": "EleutherAI/gpt-neox-20b",
			"torch_dtype": "bfloat16", "transformers_version": "4.28.1", "use_cache": false, "verbose": 0,
			"vocab_size": 1024}`,
		Tensors: `
			bid = n_layers
			kv = opt(attn_config.kv_n_heads) || n_heads
			hd = d_model / n_heads
			transformer.wte.weight                              | vocab_size, d_model
			transformer.wpe.weight                              | max_seq_len, d_model | if !attn_config.alibi
			lm_head.weight                                      | vocab_size, d_model | if opt(untied)
			transformer.norm_f.weight                           | d_model
			transformer.norm_f.bias                             | d_model | if !no_bias
			transformer.blocks.{bid}.norm_{1,2}.weight          | d_model
			transformer.blocks.{bid}.norm_{1,2}.bias            | d_model | if !no_bias
			transformer.blocks.{bid}.attn.Wqkv.weight           | d_model + 2*kv*hd, d_model
			transformer.blocks.{bid}.attn.Wqkv.bias             | d_model + 2*kv*hd | if !no_bias
			transformer.blocks.{bid}.attn.q_ln.weight           | d_model | if attn_config.qk_ln
			transformer.blocks.{bid}.attn.k_ln.weight           | kv*hd | if attn_config.qk_ln
			transformer.blocks.{bid}.attn.out_proj.weight       | d_model, d_model
			transformer.blocks.{bid}.attn.out_proj.bias         | d_model | if !no_bias
			transformer.blocks.{bid}.ffn.up_proj.weight         | 4*d_model, d_model
			transformer.blocks.{bid}.ffn.up_proj.bias           | 4*d_model | if !no_bias
			transformer.blocks.{bid}.ffn.down_proj.weight       | d_model, 4*d_model
			transformer.blocks.{bid}.ffn.down_proj.bias         | d_model | if !no_bias
			`,
		Variants: []Variant{
			{Name: "positions", Seed: 3, DType: "F16", Shards: 2, Out: "q8_0",
				Set: `{"attn_config": {"alibi": false, "clip_qkv": 6.0, "qk_ln": true}, "no_bias": false,
					"n_layers": 11, "max_seq_len": 128}`},
			{Name: "defaults", Seed: 4, Out: "auto",
				Set: `{"attn_config": {"alibi_bias_max": null, "clip_qkv": null, "kv_n_heads": 2}, "untied": true}`},
		},
	})
}

// gptBlocks is GPT-2 with weights that are not transposed, without the projection of queries, keys and values.
const gptBlocks = `
	bid = n_layer
	ff = opt(n_inner) || 4*n_embd
	transformer.wte.weight                       | vocab_size, n_embd
	lm_head.weight                               | vocab_size, n_embd | if opt(head)
	transformer.ln_f.{weight,bias}               | n_embd
	transformer.h.{bid}.ln_{1,2}.{weight,bias}   | n_embd
	transformer.h.{bid}.attn.c_proj.weight       | n_embd, n_embd
	transformer.h.{bid}.attn.c_proj.bias         | n_embd
	transformer.h.{bid}.mlp.c_fc.weight          | ff, n_embd
	transformer.h.{bid}.mlp.c_fc.bias            | ff
	transformer.h.{bid}.mlp.c_proj.weight        | n_embd, ff
	transformer.h.{bid}.mlp.c_proj.bias          | n_embd
`
