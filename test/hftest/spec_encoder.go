package hftest

func init() {
	pooling := func(mode string) map[string]string {
		return map[string]string{
			"modules.json": `[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
				{"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]`,
			"1_Pooling/config.json": `{"word_embedding_dimension": 64, ` + mode + `}`,
		}
	}
	add(Spec{
		Name:      "bert-reranker",
		Tokenizer: "bert",
		DType:     "F32",
		Files:     pooling(`"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false`),
		Config: `{"architectures": ["BertForSequenceClassification"], "attention_probs_dropout_prob": 0.1,
			"classifier_dropout": null, "gradient_checkpointing": false, "hidden_act": "gelu",
			"hidden_dropout_prob": 0.1, "hidden_size": 64, "id2label": {"0": "no", "1": "maybe", "2": "yes"},
			"initializer_range": 0.02, "intermediate_size": 96, "label2id": {"no": 0, "maybe": 1, "yes": 2},
			"layer_norm_eps": 1e-12, "max_position_embeddings": 64, "model_type": "bert", "num_attention_heads": 4,
			"num_hidden_layers": 2, "pad_token_id": 0, "position_embedding_type": "absolute", "type_vocab_size": 2,
			"use_cache": true, "vocab_size": 1000}`,
		Tensors: bertTable + `
			bert.pooler.dense.weight    | hidden_size, hidden_size
			bert.pooler.dense.bias      | hidden_size
			classifier.weight           | 3, hidden_size
			classifier.bias             | 3
			`,
	})
	add(Spec{
		Name:      "bert-mlm",
		Tokenizer: "bert",
		DType:     "F32",
		Files:     pooling(`"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true`),
		Config: `{"architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu",
			"hidden_dropout_prob": 0.1, "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"layer_norm_eps": 1e-12, "max_position_embeddings": 64, "model_type": "bert", "num_attention_heads": 4,
			"num_hidden_layers": 2, "pad_token_id": 0, "type_vocab_size": 2, "vocab_size": 1000}`,
		Tensors: bertTable + `
			bert.embeddings.position_ids                  | 1, max_position_embeddings | as I64 | fill count
			cls.predictions.bias                          | vocab_size
			cls.predictions.decoder.weight                | vocab_size, hidden_size
			cls.predictions.transform.dense.weight        | hidden_size, hidden_size
			cls.predictions.transform.dense.bias          | hidden_size
			cls.seq_relationship.weight                   | 2, hidden_size
			cls.seq_relationship.bias                     | 2
			`,
		Variants: []Variant{
			{Name: "old-names", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"old_norm": true, "num_hidden_layers": 11, "is_causal": false}`},
		},
	})
	add(Spec{
		Name:      "distilbert",
		Tokenizer: "bert",
		DType:     "F32",
		Config: `{"activation": "gelu", "architectures": ["DistilBertForSequenceClassification"],
			"attention_dropout": 0.1, "dim": 64, "dropout": 0.1, "finetuning_task": "sst-2", "hidden_dim": 96,
			"id2label": {"0": "NEGATIVE", "1": "POSITIVE"}, "initializer_range": 0.02, "label2id": {"NEGATIVE": 0,
			"POSITIVE": 1}, "max_position_embeddings": 64, "model_type": "distilbert", "n_heads": 4, "n_layers": 2,
			"output_past": true, "pad_token_id": 0, "qa_dropout": 0.1, "seq_classif_dropout": 0.2,
			"sinusoidal_pos_embds": false, "tie_weights_": true, "vocab_size": 1000}`,
		Tensors: `
			bid = n_layers
			distilbert.embeddings.word_embeddings.weight                         | vocab_size, dim
			distilbert.embeddings.position_embeddings.weight                     | max_position_embeddings, dim
			distilbert.embeddings.LayerNorm.{weight,bias}                        | dim
			distilbert.transformer.layer.{bid}.attention.{q,k,v,out}_lin.weight  | dim, dim
			distilbert.transformer.layer.{bid}.attention.{q,k,v,out}_lin.bias    | dim
			distilbert.transformer.layer.{bid}.{sa,output}_layer_norm.{weight,bias} | dim
			distilbert.transformer.layer.{bid}.ffn.lin1.weight                   | hidden_dim, dim
			distilbert.transformer.layer.{bid}.ffn.lin1.bias                     | hidden_dim
			distilbert.transformer.layer.{bid}.ffn.lin2.weight                   | dim, hidden_dim
			distilbert.transformer.layer.{bid}.ffn.lin2.bias                     | dim
			pre_classifier.weight                                                | dim, dim | if !opt(mlm)
			pre_classifier.bias                                                  | dim      | if !opt(mlm)
			classifier.weight                                                    | 2, dim   | if !opt(mlm)
			classifier.bias                                                      | 2        | if !opt(mlm)
			vocab_transform.weight                                               | dim, dim | if opt(mlm)
			vocab_transform.bias                                                 | dim      | if opt(mlm)
			vocab_layer_norm.{weight,bias}                                       | dim      | if opt(mlm)
			vocab_projector.bias                                                 | vocab_size | if opt(mlm)
			`,
		Variants: []Variant{
			{Name: "mlm", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"mlm": true, "architectures": ["DistilBertForMaskedLM"], "n_layers": 11, "id2label": null,
					"label2id": null}`},
		},
	})
	add(Spec{
		Name:      "roberta-classifier",
		Tokenizer: "roberta",
		DType:     "F32",
		Config: `{"architectures": ["RobertaForSequenceClassification"], "attention_probs_dropout_prob": 0.1,
			"bos_token_id": 0, "eos_token_id": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 64,
			"id2label": {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}, "initializer_range": 0.02,
			"intermediate_size": 96, "label2id": {"LABEL_0": 0, "LABEL_1": 1, "LABEL_2": 2}, "layer_norm_eps": 1e-05,
			"max_position_embeddings": 66, "model_type": "roberta", "num_attention_heads": 4, "num_hidden_layers": 2,
			"pad_token_id": 1, "type_vocab_size": 1, "vocab_size": 1005}`,
		Tensors: robertaTable + `
			classifier.dense.weight           | hidden_size, hidden_size
			classifier.dense.bias             | hidden_size
			classifier.out_proj.weight        | 3, hidden_size
			classifier.out_proj.bias          | 3
			`,
		Variants: []Variant{
			{Name: "default-padding", Seed: 3, Out: "auto", Set: `{"pad_token_id": null}`},
		},
	})
	add(Spec{
		Name:      "bge-reranker",
		Tokenizer: "xlmr",
		DType:     "F32",
		Config: `{"architectures": ["XLMRobertaForSequenceClassification"], "attention_probs_dropout_prob": 0.1,
			"bos_token_id": 0, "eos_token_id": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 64,
			"id2label": {"0": "LABEL_0"}, "initializer_range": 0.02, "intermediate_size": 96,
			"label2id": {"LABEL_0": 0}, "layer_norm_eps": 1e-05, "max_position_embeddings": 66,
			"model_type": "xlm-roberta", "num_attention_heads": 4, "num_hidden_layers": 2, "output_past": true,
			"pad_token_id": 1, "type_vocab_size": 1, "vocab_size": 1002}`,
		Tensors: robertaTable + `
			classifier.dense.weight           | hidden_size, hidden_size
			classifier.dense.bias             | hidden_size
			classifier.out_proj.weight        | 1, hidden_size
			classifier.out_proj.bias          | 1
			`,
		Variants: []Variant{
			{Name: "f16", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"num_hidden_layers": 11}`},
		},
	})
	add(Spec{
		Name:      "nomic-bert-moe",
		Tokenizer: "xlmr",
		DType:     "F32",
		RawConfig: true,
		Files:     map[string]string{"sentencepiece.bpe.model": ""},
		Config: `{"activation_function": "gelu", "add_pooling_layer": false, "architectures": ["NomicBertModel"],
			"attn_pdrop": 0.0,
			"auto_map": {"AutoConfig": "nomic-ai/nomic-bert-2048--configuration_hf_nomic_bert.NomicBertConfig"},
			"bos_token_id": 0, "causal": false, "dense_seq_output": true, "embd_pdrop": 0.1, "eos_token_id": 2,
			"expert_choice_router": false, "ffn_div": 1, "fused_bias_fc": true, "fused_dropout_add_ln": true,
			"initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "max_trained_positions": 2048, "mlp_fc1_bias": true,
			"mlp_fc2_bias": true, "model_type": "nomic_bert", "moe_every_n_layers": 2, "moe_impl": "megablocks",
			"moe_normalize_expert_weights": false, "moe_resid_pdrop": 0.0, "moe_top_k": 2, "n_embd": 64, "n_head": 4,
			"n_inner": 96, "n_layer": 4, "n_positions": 2048, "num_experts": 4, "num_shared_experts": 0,
			"pad_token_id": 1, "pad_vocab_size_multiple": 64, "parallel_block": false,
			"parallel_block_tied_norm": false, "prenorm": false, "qkv_proj_bias": true,
			"reorder_and_upcast_attn": false, "resid_pdrop": 0.0, "rotary_emb_base": 10000, "rotary_emb_fraction": 1.0,
			"rotary_emb_interleaved": false, "rotary_emb_scale_base": null, "rotary_scaling_factor": null,
			"router_aux_loss_coef": 0.1, "scale_attn_by_inverse_layer_idx": false, "scale_attn_weights": true,
			"type_vocab_size": 1, "use_cache": true, "use_flash_attn": true, "use_rms_norm": null, "use_xentropy": true,
			"vocab_size": 1002}`,
		Tensors: `
			bid = n_layer
			embeddings.word_embeddings.weight                     | vocab_size, n_embd
			embeddings.token_type_embeddings.weight               | type_vocab_size, n_embd
			emb_ln.{weight,bias}                                  | n_embd
			encoder.layers.{bid}.attn.Wqkv.weight                 | 3*n_embd, n_embd
			encoder.layers.{bid}.attn.Wqkv.bias                   | 3*n_embd
			encoder.layers.{bid}.attn.out_proj.weight             | n_embd, n_embd
			encoder.layers.{bid}.attn.out_proj.bias               | n_embd
			encoder.layers.{bid}.norm{1,2}.{weight,bias}          | n_embd
			encoder.layers.{bid}.mlp.fc1.weight                   | n_inner, n_embd | if bid % 2 == 0
			encoder.layers.{bid}.mlp.fc1.bias                     | n_inner         | if bid % 2 == 0
			encoder.layers.{bid}.mlp.fc2.weight                   | n_embd, n_inner | if bid % 2 == 0
			encoder.layers.{bid}.mlp.fc2.bias                     | n_embd          | if bid % 2 == 0
			encoder.layers.{bid}.mlp.router.layer.weight          | num_experts, n_embd         | if bid % 2 == 1
			encoder.layers.{bid}.mlp.experts.mlp.w{1,2}           | num_experts*n_inner, n_embd | if bid % 2 == 1
			encoder.layers.{bid}.mlp.experts.bias                 | n_embd                      | if bid % 2 == 1
			`,
	})
	add(Spec{
		Name:      "jina-bert-v2",
		Tokenizer: "bert",
		DType:     "F32",
		Config: `{"architectures": ["JinaBertForMaskedLM"], "attention_probs_dropout_prob": 0.0,
			"attn_implementation": "torch",
			"auto_map": {"AutoConfig": "jinaai/jina-bert-implementation--configuration_bert.JinaBertConfig"},
			"classifier_dropout": null, "emb_pooler": "mean", "feed_forward_type": "geglu",
			"gradient_checkpointing": false, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "layer_norm_eps": 1e-12,
			"max_position_embeddings": 8192, "model_max_length": 8192, "model_type": "bert", "num_attention_heads": 4,
			"num_hidden_layers": 2, "pad_token_id": 0, "position_embedding_type": "alibi", "torch_dtype": "float32",
			"transformers_version": "4.31.0", "type_vocab_size": 2, "use_cache": true, "vocab_size": 1000}`,
		Tensors: jinaTable + `
			bert.encoder.layer.{bid}.mlp.gated_layers.weight          | 2*intermediate_size, hidden_size
			bert.encoder.layer.{bid}.mlp.wo.weight                    | hidden_size, intermediate_size
			bert.encoder.layer.{bid}.mlp.wo.bias                      | hidden_size
			bert.encoder.layer.{bid}.mlp.layernorm.{weight,bias}      | hidden_size
			bert.pooler.dense.weight                                  | hidden_size, hidden_size
			bert.pooler.dense.bias                                    | hidden_size
			cls.predictions.bias                                      | vocab_size
			`,
		Variants: []Variant{
			{Name: "f16", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"num_hidden_layers": 11}`},
		},
	})
	add(Spec{
		Name:      "jina-bert-v2-code",
		Tokenizer: "bert",
		DType:     "F32",
		Config: `{"architectures": ["JinaBertModel"], "attention_probs_dropout_prob": 0.1, "attn_implementation": null,
			"classifier_dropout": null, "emb_pooler": "mean", "feed_forward_type": "geglu", "hidden_act": "gelu",
			"hidden_dropout_prob": 0.1, "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"layer_norm_eps": 1e-12, "max_position_embeddings": 8192, "model_type": "bert", "num_attention_heads": 4,
			"num_hidden_layers": 2, "pad_token_id": 0, "position_embedding_type": "alibi", "type_vocab_size": 2,
			"use_cache": true, "vocab_size": 1000}`,
		Tensors: jinaTable + `
			bert.encoder.layer.{bid}.attention.self.layer_norm_{q,k}.{weight,bias} | hidden_size
			bert.encoder.layer.{bid}.layer_norm_{1,2}.{weight,bias}                | hidden_size
			bert.encoder.layer.{bid}.mlp.up_gated_layer.weight                     | 2*intermediate_size, hidden_size
			bert.encoder.layer.{bid}.mlp.down_layer.weight                         | hidden_size, intermediate_size
			bert.encoder.layer.{bid}.mlp.down_layer.bias                           | hidden_size
			`,
	})
	add(Spec{
		Name:      "jina-bert-v3",
		Tokenizer: "xlmr",
		Config: `{"architectures": ["XLMRobertaModel"], "attention_probs_dropout_prob": 0.1,
			"auto_map": {"AutoConfig": "jinaai/xlm-roberta-flash-implementation--configuration_xlm_roberta.XLMRobertaFlashConfig"},
			"bos_token_id": 0, "classifier_dropout": null, "emb_pooler": null, "eos_token_id": 2, "hidden_act": "gelu",
			"hidden_dropout_prob": 0.1, "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"layer_norm_eps": 1e-05, "load_trained_adapters": true, "lora_adaptations": ["retrieval.query",
			"retrieval.passage", "separation"], "lora_alpha": 1, "lora_dropout_p": 0.0,
			"lora_main_params_trainable": false, "lora_rank": 4, "matryoshka_dimensions": [32, 64],
			"max_position_embeddings": 8194, "model_type": "xlm-roberta", "num_attention_heads": 4,
			"num_hidden_layers": 2, "output_past": true, "pad_token_id": 1, "position_embedding_type": "rotary",
			"rotary_emb_base": 20000.0, "torch_dtype": "bfloat16", "transformers_version": "4.30.2",
			"truncate_dim": null, "type_vocab_size": 1, "use_cache": true, "use_flash_attn": true, "vocab_size": 1002}`,
		Tensors: `
			bid = num_hidden_layers
			h   = hidden_size
			n   = len(lora_adaptations)
			r   = lora_rank
			roberta.embeddings.word_embeddings.parametrizations.weight.original        | vocab_size, h
			roberta.embeddings.word_embeddings.parametrizations.weight.0.lora_A        | n, r, vocab_size
			roberta.embeddings.word_embeddings.parametrizations.weight.0.lora_B        | n, h, r
			roberta.embeddings.token_type_embeddings.parametrizations.weight.original  | type_vocab_size, h
			roberta.embeddings.token_type_embeddings.parametrizations.weight.0.lora_A  | n, r, type_vocab_size
			roberta.embeddings.token_type_embeddings.parametrizations.weight.0.lora_B  | n, h, r
			roberta.emb_ln.{weight,bias}                                               | h
			roberta.encoder.layers.{bid}.mixer.Wqkv.parametrizations.weight.original   | 3*h, h
			roberta.encoder.layers.{bid}.mixer.Wqkv.parametrizations.weight.0.lora_A   | n, r, h
			roberta.encoder.layers.{bid}.mixer.Wqkv.parametrizations.weight.0.lora_B   | n, 3*h, r
			roberta.encoder.layers.{bid}.mixer.Wqkv.bias                               | 3*h
			roberta.encoder.layers.{bid}.mixer.out_proj.parametrizations.weight.original | h, h
			roberta.encoder.layers.{bid}.mixer.out_proj.parametrizations.weight.0.lora_{A,B} | n, r, h
			roberta.encoder.layers.{bid}.mixer.out_proj.bias                           | h
			roberta.encoder.layers.{bid}.mlp.fc1.parametrizations.weight.original      | intermediate_size, h
			roberta.encoder.layers.{bid}.mlp.fc1.parametrizations.weight.0.lora_A      | n, r, h
			roberta.encoder.layers.{bid}.mlp.fc1.parametrizations.weight.0.lora_B      | n, intermediate_size, r
			roberta.encoder.layers.{bid}.mlp.fc1.bias                                  | intermediate_size
			roberta.encoder.layers.{bid}.mlp.fc2.parametrizations.weight.original      | h, intermediate_size
			roberta.encoder.layers.{bid}.mlp.fc2.parametrizations.weight.0.lora_A      | n, r, intermediate_size
			roberta.encoder.layers.{bid}.mlp.fc2.parametrizations.weight.0.lora_B      | n, h, r
			roberta.encoder.layers.{bid}.mlp.fc2.bias                                  | h
			roberta.encoder.layers.{bid}.norm{1,2}.{weight,bias}                       | h
			roberta.pooler.dense.parametrizations.weight.original                      | h, h
			roberta.pooler.dense.parametrizations.weight.0.lora_{A,B}                  | n, r, h
			roberta.pooler.dense.bias                                                  | h
			`,
	})
	add(Spec{
		Name:      "modernbert",
		Tokenizer: "bpe:olmo2",
		DType:     "F32",
		Config: `{"architectures": ["ModernBertForMaskedLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": $bos, "classifier_activation": "gelu", "classifier_bias": false, "classifier_dropout": 0.0,
			"classifier_pooling": "mean", "cls_token_id": $bos, "decoder_bias": false,
			"deterministic_flash_attn": false, "embedding_dropout": 0.0, "eos_token_id": $eos,
			"global_attn_every_n_layers": 3, "global_rope_theta": 160000.0, "gradient_checkpointing": false,
			"hidden_activation": "gelu", "hidden_size": 64, "initializer_cutoff_factor": 2.0, "initializer_range": 0.02,
			"intermediate_size": 96, "layer_norm_eps": 1e-05, "local_attention": 128, "local_rope_theta": 10000.0,
			"max_position_embeddings": 8192, "mlp_bias": false, "mlp_dropout": 0.0, "model_type": "modernbert",
			"norm_bias": false, "norm_eps": 1e-05, "num_attention_heads": 4, "num_hidden_layers": 4,
			"pad_token_id": $pad, "position_embedding_type": "absolute", "reference_compile": null,
			"repad_logits_with_grad": false, "sep_token_id": $eos, "sparse_pred_ignore_index": -100,
			"sparse_prediction": false, "torch_dtype": "float32", "transformers_version": "4.47.0.dev0",
			"vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			model.embeddings.tok_embeddings.weight          | vocab_size, hidden_size
			model.embeddings.norm.weight                    | hidden_size
			model.final_norm.weight                         | hidden_size
			model.layers.{bid}.attn_norm.weight             | hidden_size | if bid > 0
			model.layers.{bid}.attn.Wqkv.weight             | 3*hidden_size, hidden_size
			model.layers.{bid}.attn.Wo.weight               | hidden_size, hidden_size
			model.layers.{bid}.mlp_norm.weight              | hidden_size
			model.layers.{bid}.mlp.Wi.weight                | 2*intermediate_size, hidden_size
			model.layers.{bid}.mlp.Wo.weight                | hidden_size, intermediate_size
			head.dense.weight                               | hidden_size, hidden_size
			head.norm.weight                                | hidden_size
			decoder.bias                                    | vocab_size | if opt(decoder_bias)
			classifier.weight                               | 3, hidden_size | if opt(id2label)
			classifier.bias                                 | 3              | if opt(id2label)
			`,
		Variants: []Variant{
			{Name: "classifier", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"architectures": ["ModernBertForSequenceClassification"],
				"num_hidden_layers": 11, "id2label": {"0": "a", "1": "b", "2": "c"}, "label2id": {"a": 0, "b": 1,
				"c": 2}, "classifier_pooling": "cls"}`},
			{Name: "new-style", Seed: 4, Out: "auto", Set: `{"architectures": ["ModernBertForMaskedLM"],
				"global_rope_theta": null, "local_rope_theta": null, "global_attn_every_n_layers": null,
				"classifier_pooling": null, "rope_parameters": {"full_attention": {"rope_theta": 80000.0,
				"rope_type": "default"}, "sliding_attention": {"rope_theta": 20000.0, "rope_type": "default"}}}`},
		},
	})
	add(Spec{
		Name:      "neobert",
		Tokenizer: "bert",
		DType:     "F32",
		Config: `{"architectures": ["NeoBERTLMHead"], "auto_map": {"AutoConfig": "model.NeoBERTConfig"},
			"classifier_init_range": 0.02, "decoder_init_range": 0.02, "dim_head": 16, "embedding_init_range": 0.02,
			"hidden_size": 64, "intermediate_size": 144, "kwargs": {"classifier_init_range": 0.02}, "max_length": 4096,
			"model_type": "neobert", "norm_eps": 1e-05, "num_attention_heads": 4, "num_hidden_layers": 2,
			"pad_token_id": 0, "torch_dtype": "float32", "transformers_version": "4.48.2", "vocab_size": 1000}`,
		Tensors: `
			bid = num_hidden_layers
			ff  = floor(2*intermediate_size/3)
			model.encoder.weight                                         | vocab_size, hidden_size
			model.layer_norm.weight                                      | hidden_size
			model.transformer_encoder.{bid}.{attention,ffn}_norm.weight  | hidden_size
			model.transformer_encoder.{bid}.qkv.weight                   | 3*hidden_size, hidden_size
			model.transformer_encoder.{bid}.wo.weight                    | hidden_size, hidden_size
			model.transformer_encoder.{bid}.ffn.w12.weight               | 2*ff, hidden_size
			model.transformer_encoder.{bid}.ffn.w3.weight                | hidden_size, ff
			decoder.weight                                               | vocab_size, hidden_size
			decoder.bias                                                 | vocab_size
			`,
		Variants: []Variant{
			{Name: "f16", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"num_hidden_layers": 11, "norm_eps": null}`},
		},
	})
	add(Spec{
		Name:      "eurobert",
		Tokenizer: "bpe:llama3",
		RawConfig: true,
		Files:     pooling(`"pooling_mode": "lasttoken"`),
		Config: `{"architectures": ["EuroBertModel"], "attention_bias": false, "attention_dropout": 0.0,
			"auto_map": {"AutoConfig": "configuration_eurobert.EuroBertConfig"}, "bos_token": "<|begin_of_text|>",
			"bos_token_id": $bos, "clf_pooling": "late", "eos_token": "<|end_of_text|>", "eos_token_id": $eos,
			"head_dim": 16, "hidden_act": "silu", "hidden_dropout": 0.0, "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "mask_token": "<|mask|>", "mask_token_id": 1002, "max_position_embeddings": 8192,
			"mlp_bias": false, "model_type": "eurobert", "num_attention_heads": 4, "num_hidden_layers": 2,
			"num_key_value_heads": 2, "pad_token": "<|end_of_text|>", "pad_token_id": $eos, "pretraining_tp": 1,
			"rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 250000, "tie_word_embeddings": false,
			"torch_dtype": "bfloat16", "transformers_version": "4.40.0.dev0", "use_cache": false, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			kv  = num_key_value_heads*head_dim
			model.embed_tokens.weight                                   | vocab_size, hidden_size
			model.norm.weight                                           | hidden_size
			model.layers.{bid}.{input,post_attention}_layernorm.weight  | hidden_size
			model.layers.{bid}.self_attn.{q,o}_proj.weight              | hidden_size, hidden_size
			model.layers.{bid}.self_attn.{k,v}_proj.weight              | kv, hidden_size
			model.layers.{bid}.mlp.{gate,up}_proj.weight                | intermediate_size, hidden_size
			model.layers.{bid}.mlp.down_proj.weight                     | hidden_size, intermediate_size
			`,
		Variants: []Variant{
			{Name: "f16", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"num_hidden_layers": 11, "num_key_value_heads": 4}`},
		},
	})
}

// bertTable has the tensors of BERT in a model with a head, where their names begin with "bert.".
const bertTable = `
	bid = num_hidden_layers
	old = opt(old_norm)
	bert.embeddings.word_embeddings.weight                           | vocab_size, hidden_size
	bert.embeddings.position_embeddings.weight                       | max_position_embeddings, hidden_size
	bert.embeddings.token_type_embeddings.weight                     | type_vocab_size, hidden_size
	bert.embeddings.LayerNorm.{weight,bias}                          | hidden_size | if !old
	bert.embeddings.LayerNorm.{gamma,beta}                           | hidden_size | if old
	bert.encoder.layer.{bid}.attention.self.{query,key,value}.weight | hidden_size, hidden_size
	bert.encoder.layer.{bid}.attention.self.{query,key,value}.bias   | hidden_size
	bert.encoder.layer.{bid}.attention.output.dense.weight           | hidden_size, hidden_size
	bert.encoder.layer.{bid}.attention.output.dense.bias             | hidden_size
	bert.encoder.layer.{bid}.{attention.output,output}.LayerNorm.{weight,bias}  | hidden_size | if !old
	bert.encoder.layer.{bid}.{attention.output,output}.LayerNorm.{gamma,beta}   | hidden_size | if old
	bert.encoder.layer.{bid}.intermediate.dense.weight               | intermediate_size, hidden_size
	bert.encoder.layer.{bid}.intermediate.dense.bias                 | intermediate_size
	bert.encoder.layer.{bid}.output.dense.weight                     | hidden_size, intermediate_size
	bert.encoder.layer.{bid}.output.dense.bias                       | hidden_size
`

// robertaTable is bertTable for RoBERTa.
const robertaTable = `
	bid = num_hidden_layers
	roberta.embeddings.word_embeddings.weight                           | vocab_size, hidden_size
	roberta.embeddings.position_embeddings.weight                       | max_position_embeddings, hidden_size
	roberta.embeddings.token_type_embeddings.weight                     | type_vocab_size, hidden_size
	roberta.embeddings.LayerNorm.{weight,bias}                          | hidden_size
	roberta.encoder.layer.{bid}.attention.self.{query,key,value}.weight | hidden_size, hidden_size
	roberta.encoder.layer.{bid}.attention.self.{query,key,value}.bias   | hidden_size
	roberta.encoder.layer.{bid}.attention.output.dense.weight           | hidden_size, hidden_size
	roberta.encoder.layer.{bid}.attention.output.dense.bias             | hidden_size
	roberta.encoder.layer.{bid}.{attention.output,output}.LayerNorm.{weight,bias} | hidden_size
	roberta.encoder.layer.{bid}.intermediate.dense.weight               | intermediate_size, hidden_size
	roberta.encoder.layer.{bid}.intermediate.dense.bias                 | intermediate_size
	roberta.encoder.layer.{bid}.output.dense.weight                     | hidden_size, intermediate_size
	roberta.encoder.layer.{bid}.output.dense.bias                       | hidden_size
`

// jinaTable has the tensors of Jina's BERT v2 without the MLPs.
const jinaTable = `
	bid = num_hidden_layers
	bert.embeddings.word_embeddings.weight                           | vocab_size, hidden_size
	bert.embeddings.token_type_embeddings.weight                     | type_vocab_size, hidden_size
	bert.embeddings.LayerNorm.{weight,bias}                          | hidden_size
	bert.encoder.layer.{bid}.attention.self.{query,key,value}.weight | hidden_size, hidden_size
	bert.encoder.layer.{bid}.attention.self.{query,key,value}.bias   | hidden_size
	bert.encoder.layer.{bid}.attention.output.dense.weight           | hidden_size, hidden_size
	bert.encoder.layer.{bid}.attention.output.dense.bias             | hidden_size
	bert.encoder.layer.{bid}.attention.output.LayerNorm.{weight,bias} | hidden_size
`
