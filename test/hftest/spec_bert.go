package hftest

func init() {
	add(Spec{
		Name:      "bert",
		Tokenizer: "bert",
		DType:     "F32",
		Config: `{"architectures": ["BertModel"], "attention_probs_dropout_prob": 0.1, "classifier_dropout": null,
			"hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "layer_norm_eps": 1e-12, "max_position_embeddings": 64, "model_type": "bert",
			"num_attention_heads": 4, "num_hidden_layers": 2, "pad_token_id": 0, "position_embedding_type": "absolute",
			"torch_dtype": "float32", "transformers_version": "4.51.3", "type_vocab_size": 2, "use_cache": true,
			"vocab_size": 1000}`,
		Tensors: `
			bid = num_hidden_layers
			embeddings.word_embeddings.weight                           | vocab_size, hidden_size
			embeddings.position_embeddings.weight                       | max_position_embeddings, hidden_size
			embeddings.token_type_embeddings.weight                     | type_vocab_size, hidden_size
			embeddings.LayerNorm.weight                                 | hidden_size
			embeddings.LayerNorm.bias                                   | hidden_size
			encoder.layer.{bid}.attention.self.{query,key,value}.weight | hidden_size, hidden_size
			encoder.layer.{bid}.attention.self.{query,key,value}.bias   | hidden_size
			encoder.layer.{bid}.attention.output.dense.weight           | hidden_size, hidden_size
			encoder.layer.{bid}.attention.output.{dense,LayerNorm}.bias | hidden_size
			encoder.layer.{bid}.attention.output.LayerNorm.weight       | hidden_size
			encoder.layer.{bid}.intermediate.dense.weight               | intermediate_size, hidden_size
			encoder.layer.{bid}.intermediate.dense.bias                 | intermediate_size
			encoder.layer.{bid}.output.dense.weight                     | hidden_size, intermediate_size
			encoder.layer.{bid}.output.{dense,LayerNorm}.bias           | hidden_size
			encoder.layer.{bid}.output.LayerNorm.weight                 | hidden_size
			pooler.dense.weight                                         | hidden_size, hidden_size
			pooler.dense.bias                                           | hidden_size
			`,
	})
	add(Spec{
		Name:      "roberta",
		Tokenizer: "roberta",
		DType:     "F32",
		Config: `{"architectures": ["RobertaModel"], "attention_probs_dropout_prob": 0.1, "bos_token_id": 0,
			"eos_token_id": 2, "gradient_checkpointing": false, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
			"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "layer_norm_eps": 1e-05,
			"max_position_embeddings": 66, "model_type": "roberta", "num_attention_heads": 4, "num_hidden_layers": 2,
			"pad_token_id": 1, "position_embedding_type": "absolute", "torch_dtype": "float32",
			"transformers_version": "4.51.3", "type_vocab_size": 1, "use_cache": true, "vocab_size": 1005}`,
		Tensors: `
			bid = num_hidden_layers
			embeddings.word_embeddings.weight                           | vocab_size, hidden_size
			embeddings.token_type_embeddings.weight                     | type_vocab_size, hidden_size
			embeddings.LayerNorm.weight                                 | hidden_size
			embeddings.LayerNorm.bias                                   | hidden_size
			embeddings.position_embeddings.weight                       | max_position_embeddings, hidden_size
			encoder.layer.{bid}.attention.self.{query,key,value}.weight | hidden_size, hidden_size
			encoder.layer.{bid}.attention.self.{query,key,value}.bias   | hidden_size
			encoder.layer.{bid}.attention.output.dense.weight           | hidden_size, hidden_size
			encoder.layer.{bid}.attention.output.{dense,LayerNorm}.bias | hidden_size
			encoder.layer.{bid}.attention.output.LayerNorm.weight       | hidden_size
			encoder.layer.{bid}.intermediate.dense.weight               | intermediate_size, hidden_size
			encoder.layer.{bid}.intermediate.dense.bias                 | intermediate_size
			encoder.layer.{bid}.output.dense.weight                     | hidden_size, intermediate_size
			encoder.layer.{bid}.output.{dense,LayerNorm}.bias           | hidden_size
			encoder.layer.{bid}.output.LayerNorm.weight                 | hidden_size
			pooler.dense.weight                                         | hidden_size, hidden_size
			pooler.dense.bias                                           | hidden_size
			`,
	})
	add(Spec{
		Name:      "xlm-roberta",
		Tokenizer: "xlmr",
		DType:     "F32",
		Config: `{"architectures": ["XLMRobertaModel"], "attention_probs_dropout_prob": 0.1, "bos_token_id": 0,
			"eos_token_id": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "layer_norm_eps": 1e-05, "max_position_embeddings": 66,
			"model_type": "xlm-roberta", "num_attention_heads": 4, "num_hidden_layers": 2, "output_past": true,
			"pad_token_id": 1, "position_embedding_type": "absolute", "torch_dtype": "float32",
			"transformers_version": "4.51.3", "type_vocab_size": 1, "use_cache": true, "vocab_size": 1002}`,
		Tensors: `
			bid = num_hidden_layers
			embeddings.word_embeddings.weight                           | vocab_size, hidden_size
			embeddings.token_type_embeddings.weight                     | type_vocab_size, hidden_size
			embeddings.LayerNorm.weight                                 | hidden_size
			embeddings.LayerNorm.bias                                   | hidden_size
			embeddings.position_embeddings.weight                       | max_position_embeddings, hidden_size
			encoder.layer.{bid}.attention.self.{query,key,value}.weight | hidden_size, hidden_size
			encoder.layer.{bid}.attention.self.{query,key,value}.bias   | hidden_size
			encoder.layer.{bid}.attention.output.dense.weight           | hidden_size, hidden_size
			encoder.layer.{bid}.attention.output.{dense,LayerNorm}.bias | hidden_size
			encoder.layer.{bid}.attention.output.LayerNorm.weight       | hidden_size
			encoder.layer.{bid}.intermediate.dense.weight               | intermediate_size, hidden_size
			encoder.layer.{bid}.intermediate.dense.bias                 | intermediate_size
			encoder.layer.{bid}.output.dense.weight                     | hidden_size, intermediate_size
			encoder.layer.{bid}.output.{dense,LayerNorm}.bias           | hidden_size
			encoder.layer.{bid}.output.LayerNorm.weight                 | hidden_size
			pooler.dense.weight                                         | hidden_size, hidden_size
			pooler.dense.bias                                           | hidden_size
			`,
	})
	add(Spec{
		Name:      "nomic-bert",
		Tokenizer: "bert",
		DType:     "F32",
		RawConfig: true,
		Config: `{"activation_function": "swiglu", "architectures": ["NomicBertModel"], "attn_pdrop": 0.0,
			"auto_map": {"AutoConfig": "nomic-ai/nomic-bert-2048--configuration_hf_nomic_bert.NomicBertConfig"},
			"causal": false, "dense_seq_output": true, "embd_pdrop": 0.0, "fused_bias_fc": true,
			"fused_dropout_add_ln": true, "initializer_range": 0.02, "layer_norm_epsilon": 1e-12,
			"max_trained_positions": 2048, "mlp_fc1_bias": false, "mlp_fc2_bias": false, "model_type": "nomic_bert",
			"n_embd": 64, "n_head": 4, "n_inner": 160, "n_layer": 2, "n_positions": 8192, "pad_vocab_size_multiple": 64,
			"parallel_block": false, "parallel_block_tied_norm": false, "prenorm": false, "qkv_proj_bias": false,
			"resid_pdrop": 0.0, "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": false,
			"rotary_emb_scale_base": null, "rotary_scaling_factor": null, "torch_dtype": "float32",
			"transformers_version": "4.51.3", "type_vocab_size": 2, "use_cache": true, "use_flash_attn": true,
			"use_rms_norm": false, "use_xentropy": true, "vocab_size": 1024}`,
		Tensors: `
			bid = n_layer
			embeddings.word_embeddings.weight         | vocab_size, n_embd
			embeddings.token_type_embeddings.weight   | type_vocab_size, n_embd
			emb_ln.weight                             | n_embd
			emb_ln.bias                               | n_embd
			encoder.layers.{bid}.attn.Wqkv.weight     | 3*n_embd, n_embd
			encoder.layers.{bid}.attn.out_proj.weight | n_embd, n_embd
			encoder.layers.{bid}.mlp.fc1{1,2}.weight  | n_inner, n_embd
			encoder.layers.{bid}.mlp.fc2.weight       | n_embd, n_inner
			encoder.layers.{bid}.norm{1,2}.weight     | n_embd
			encoder.layers.{bid}.norm{1,2}.bias       | n_embd
			`,
	})
}
