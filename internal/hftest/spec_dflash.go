package hftest

// Drafts of blocks of tokens, for a Qwen 3 and for a Qwen 3.5, whose positions have
// sections.
func init() {
	config := `"attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 1000, "dtype": "bfloat16", "eos_token_id": 1002, "head_dim": 32, "hidden_act": "silu",
		"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "layer_types": ["full_attention", "full_attention"], "max_position_embeddings": 40960,
		"max_window_layers": 2, "model_type": "qwen3", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "num_target_layers": 5,
		"rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": false, "transformers_version": "4.57.1",
		"use_cache": true, "use_sliding_window": false, "vocab_size": 1024`
	tensors := `
		bid = num_hidden_layers
		fc.weight                                     | hidden_size, 3*hidden_size
		hidden_norm.weight                            | hidden_size
		norm.weight                                   | hidden_size
		layers.{bid}.{input,post_attention}_layernorm.weight | hidden_size
		layers.{bid}.self_attn.q_proj.weight          | num_attention_heads*head_dim, hidden_size
		layers.{bid}.self_attn.{k,v}_proj.weight      | num_key_value_heads*head_dim, hidden_size
		layers.{bid}.self_attn.o_proj.weight          | hidden_size, num_attention_heads*head_dim
		layers.{bid}.self_attn.{q,k}_norm.weight      | head_dim
		layers.{bid}.mlp.{gate,up}_proj.weight        | intermediate_size, hidden_size
		layers.{bid}.mlp.down_proj.weight             | hidden_size, intermediate_size
		`
	add(Spec{
		Name:      "dflash",
		Tokenizer: "bpe:qwen2",
		Target:    "qwen3",
		NoLoad:    draftAlone,
		Config: `{"architectures": ["DFlashDraftModel"], "auto_map": {"AutoModel": "dflash.DFlashDraftModel"}, "block_size": 16,
			"dflash_config": {"mask_token_id": 1003, "target_layer_ids": [0, 1, 3]}, ` + config + `}`,
		Tensors: tensors,
		Variants: []Variant{
			{Name: "window", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"block_size": null, "use_sliding_window": true, "sliding_window": 512,
				"layer_types": ["sliding_attention", "full_attention"], "dflash_config": {"causal": true, "final_logit_softcapping": 30.0, "output_multiplier": 0.5}}`},
		},
	})
	add(Spec{
		Name:      "dflash-sections",
		Tokenizer: "bpe:qwen2",
		Target:    "qwen3_5",
		NoLoad:    draftAlone,
		Config: `{"architectures": ["DFlashDraftModel"], "auto_map": {"AutoModel": "dflash.DFlashDraftModel"}, "block_size": 8,
			"dflash_config": {"mask_token_id": 1003, "target_layer_ids": [0, 1, 3]}, ` + config + `}`,
		Tensors: tensors,
	})
	add(Spec{
		Name:      "dspark",
		Tokenizer: "bpe:qwen2",
		Target:    "qwen3_5",
		NoLoad:    draftAlone,
		Config: `{"architectures": ["Qwen3DSparkModel"], "block_size": 8, "mask_token_id": 1003, "target_layer_ids": [0, 1, 3], "markov_head_type": "vanilla", "markov_rank": 32,
			` + config + `}`,
		Tensors: tensors + `
			embed_tokens.weight                       | vocab_size, hidden_size
			lm_head.weight                            | opt(draft_vocab_size) || vocab_size, hidden_size
			markov_head.markov_w1.weight              | vocab_size, markov_rank
			markov_head.markov_w2.weight              | opt(draft_vocab_size) || vocab_size, markov_rank
			confidence_head.proj.weight               | 1, hidden_size + markov_rank | if !opt(draft_vocab_size)
			confidence_head.proj.bias                 | 1                            | if !opt(draft_vocab_size)
			d2t                                       | draft_vocab_size | if opt(draft_vocab_size) | as I64 | fill count
			t2d                                       | vocab_size       | if opt(draft_vocab_size) | as BOOL | fill bytes
			`,
		Variants: []Variant{
			{Name: "few-tokens", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"draft_vocab_size": 512, "target_layer_ids": null, "aux_hidden_state_layer_ids": [1, 2, 4]}`},
		},
	})
}
