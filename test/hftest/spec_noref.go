package hftest

func init() {
	add(Spec{
		Name:        "baichuan",
		Tokenizer:   "spm-nojson",
		NoReference: "the reference recurses without end",
		Config: `{"architectures": ["BaichuanForCausalLM"],
			"auto_map": {"AutoConfig": "configuration_baichuan.BaichuanConfig"}, "bos_token_id": 1, "eos_token_id": 2,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"max_position_embeddings": 4096, "model_max_length": 4096, "model_type": "baichuan",
			"num_attention_heads": 4, "num_hidden_layers": 2, "pad_token_id": 0, "rms_norm_eps": 1e-06,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.29.2",
			"use_cache": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			model.embed_tokens.weight                                  | vocab_size, hidden_size
			model.layers.{bid}.self_attn.W_pack.weight                 | 3*hidden_size, hidden_size
			model.layers.{bid}.self_attn.o_proj.weight                 | hidden_size, hidden_size
			model.layers.{bid}.self_attn.rotary_emb.inv_freq           | hidden_size/num_attention_heads/2 | as F32
			model.layers.{bid}.mlp.{gate,up}_proj.weight               | intermediate_size, hidden_size
			model.layers.{bid}.mlp.down_proj.weight                    | hidden_size, intermediate_size
			model.layers.{bid}.{input,post_attention}_layernorm.weight | hidden_size
			model.norm.weight                                          | hidden_size
			lm_head.weight                                             | vocab_size, hidden_size
			`,
	})
	add(Spec{
		Name:        "gptj",
		Tokenizer:   "bpe:gpt2",
		DType:       "F16",
		NoReference: "the reference has no such class",
		Config: `{"activation_function": "gelu_new", "architectures": ["GPTJForCausalLM"], "attn_pdrop": 0.0,
			"bos_token_id": $bos, "embd_pdrop": 0.0, "eos_token_id": $eos, "gradient_checkpointing": false,
			"initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gptj", "n_embd": 64, "n_head": 4,
			"n_inner": null, "n_layer": 2, "n_positions": 2048, "resid_pdrop": 0.0, "rotary": true, "rotary_dim": 8,
			"scale_attn_weights": true, "tie_word_embeddings": false, "torch_dtype": "float16",
			"transformers_version": "4.18.0.dev0", "use_cache": true, "vocab_size": 1024}`,
		Tensors: `
			bid = n_layer
			transformer.wte.weight                           | vocab_size, n_embd
			transformer.h.{bid}.ln_1.{weight,bias}           | n_embd
			transformer.h.{bid}.attn.{k,v,q,out}_proj.weight | n_embd, n_embd
			transformer.h.{bid}.attn.bias                    | 1, 1, 32, 32 | as U8 | if opt(old_buffers)
			transformer.h.{bid}.attn.masked_bias             |              | if opt(old_buffers)
			transformer.h.{bid}.mlp.fc_in.weight             | 4*n_embd, n_embd
			transformer.h.{bid}.mlp.fc_in.bias               | 4*n_embd
			transformer.h.{bid}.mlp.fc_out.weight            | n_embd, 4*n_embd
			transformer.h.{bid}.mlp.fc_out.bias              | n_embd
			transformer.ln_f.{weight,bias}                   | n_embd
			lm_head.weight                                   | vocab_size, n_embd
			lm_head.bias                                     | vocab_size
			`,
		Variants: []Variant{{Name: "old-buffers", Seed: 3, DType: "F32", Out: "bf16", Set: `{"old_buffers": true}`}},
	})
	add(Spec{
		Name:        "rwkv4",
		Tokenizer:   "bpe:neox",
		DType:       "F32",
		NoReference: "the reference has no such class",
		Config: `{"architectures": ["RwkvForCausalLM"], "attention_hidden_size": 64, "bos_token_id": 0,
			"context_length": 1024, "eos_token_id": 0, "hidden_size": 64, "intermediate_size": 96,
			"layer_norm_epsilon": 1e-05, "model_type": "rwkv", "num_hidden_layers": 2, "rescale_every": 6,
			"tie_word_embeddings": false, "torch_dtype": "float32", "transformers_version": "4.29.0.dev0",
			"use_cache": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			rwkv.embeddings.weight                                      | vocab_size, hidden_size
			rwkv.blocks.{bid}.pre_ln.{weight,bias}                      | hidden_size                      | if bid == 0
			rwkv.blocks.{bid}.ln{1,2}.{weight,bias}                     | hidden_size
			rwkv.blocks.{bid}.attention.time_{decay,first}              | attention_hidden_size
			rwkv.blocks.{bid}.attention.time_mix_{key,value,receptance} | 1, 1, hidden_size
			rwkv.blocks.{bid}.attention.{key,value,receptance}.weight   | attention_hidden_size, hidden_size
			rwkv.blocks.{bid}.attention.output.weight                   | hidden_size, attention_hidden_size
			rwkv.blocks.{bid}.feed_forward.time_mix_{key,receptance}    | 1, 1, hidden_size
			rwkv.blocks.{bid}.feed_forward.key.weight                   | intermediate_size, hidden_size
			rwkv.blocks.{bid}.feed_forward.receptance.weight            | hidden_size, hidden_size
			rwkv.blocks.{bid}.feed_forward.value.weight                 | hidden_size, intermediate_size
			rwkv.ln_out.{weight,bias}                                   | hidden_size
			head.weight                                                 | vocab_size, hidden_size
			`,
	})
	add(Spec{
		Name:        "whisper",
		Tokenizer:   "bpe:gpt2",
		DType:       "F32",
		NoReference: "the reference has no such class",
		Config: `{"activation_dropout": 0.0, "activation_function": "gelu",
			"architectures": ["WhisperForConditionalGeneration"], "attention_dropout": 0.0, "bos_token_id": $bos,
			"d_model": 64, "decoder_attention_heads": 4, "decoder_ffn_dim": 96, "decoder_layerdrop": 0.0,
			"decoder_layers": 2, "decoder_start_token_id": 2, "dropout": 0.0, "encoder_attention_heads": 4,
			"encoder_ffn_dim": 96, "encoder_layerdrop": 0.0, "encoder_layers": 2, "eos_token_id": $eos,
			"init_std": 0.02, "is_encoder_decoder": true, "max_source_positions": 150, "max_target_positions": 64,
			"model_type": "whisper", "num_hidden_layers": 2, "num_mel_bins": 80, "pad_token_id": $eos,
			"scale_embedding": false, "torch_dtype": "float32", "transformers_version": "4.27.0.dev0",
			"use_cache": true, "vocab_size": 1024}`,
		Tensors: `
			bid = encoder_layers
			did = decoder_layers
			model.encoder.conv1.weight                                               | d_model, num_mel_bins, 3
			model.encoder.conv2.weight                                               | d_model, d_model, 3
			model.encoder.conv{1,2}.bias                                             | d_model
			model.encoder.embed_positions.weight                                     | max_source_positions, d_model
			model.encoder.layers.{bid}.self_attn.{k,v,q,out}_proj.weight             | d_model, d_model
			model.encoder.layers.{bid}.self_attn.{v,q,out}_proj.bias                 | d_model
			model.encoder.layers.{bid}.{self_attn,final}_layer_norm.{weight,bias}    | d_model
			model.encoder.layers.{bid}.fc1.weight                                    | encoder_ffn_dim, d_model
			model.encoder.layers.{bid}.fc1.bias                                      | encoder_ffn_dim
			model.encoder.layers.{bid}.fc2.weight                                    | d_model, encoder_ffn_dim
			model.encoder.layers.{bid}.fc2.bias                                      | d_model
			model.decoder.embed_tokens.weight                                        | vocab_size, d_model
			model.decoder.embed_positions.weight                                     | max_target_positions, d_model
			model.decoder.layers.{did}.{self,encoder}_attn.{k,v,q,out}_proj.weight   | d_model, d_model
			model.decoder.layers.{did}.{self,encoder}_attn.{v,q,out}_proj.bias       | d_model
			model.decoder.layers.{did}.{self_attn,encoder_attn,final}_layer_norm.{weight,bias} | d_model
			model.decoder.layers.{did}.fc1.weight                                    | decoder_ffn_dim, d_model
			model.decoder.layers.{did}.fc1.bias                                      | decoder_ffn_dim
			model.decoder.layers.{did}.fc2.weight                                    | d_model, decoder_ffn_dim
			model.decoder.layers.{did}.fc2.bias                                      | d_model
			model.{encoder,decoder}.layer_norm.{weight,bias}                         | d_model
			`,
	})
}
