package hftest

func init() {
	add(Spec{
		Name:      "t5-base",
		Tokenizer: "t5",
		DType:     "F32",
		Config: `{"architectures": ["T5WithLMHeadModel"], "d_ff": 96, "d_kv": 16, "d_model": 64,
			"decoder_start_token_id": 0, "dropout_rate": 0.1, "eos_token_id": 1, "initializer_factor": 1.0,
			"is_encoder_decoder": true, "layer_norm_epsilon": 1e-06, "model_type": "t5", "n_positions": 256,
			"num_heads": 4, "num_layers": 2, "output_past": true, "pad_token_id": 0,
			"relative_attention_num_buckets": 32, "task_specific_params": {"summarization": {"early_stopping": true}},
			"vocab_size": 1024}`,
		Tensors: t5Blocks + `
			shared.weight                                             | vocab_size, d_model
			encoder.block.{bid}.layer.1.DenseReluDense.wi.weight      | d_ff, d_model
			decoder.block.{did}.layer.2.DenseReluDense.wi.weight      | d_ff, d_model
			encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight   | relative_attention_num_buckets, num_heads
			decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight   | relative_attention_num_buckets, num_heads
			decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight | relative_attention_num_buckets, num_heads
			`,
		Variants: []Variant{
			{Name: "eleven-layers", Seed: 3, DType: "BF16", Shards: 3, Out: "auto",
				Set: `{"num_layers": 11, "num_decoder_layers": 3, "n_positions": null}`},
		},
	})
	add(Spec{
		Name:      "umt5",
		Tokenizer: "t5",
		Config: `{"architectures": ["UMT5ForConditionalGeneration"], "classifier_dropout": 0.0, "d_ff": 96, "d_kv": 32,
			"d_model": 64, "decoder_start_token_id": 0, "dense_act_fn": "gelu_new", "dropout_rate": 0.1,
			"eos_token_id": 1, "feed_forward_proj": "gated-gelu", "initializer_factor": 1.0, "is_encoder_decoder": true,
			"is_gated_act": true, "layer_norm_epsilon": 1e-06, "model_type": "umt5", "num_decoder_layers": 2,
			"num_heads": 3, "num_layers": 2, "output_past": true, "pad_token_id": 0,
			"relative_attention_max_distance": 128, "relative_attention_num_buckets": 32, "scalable_attention": true,
			"tie_word_embeddings": false, "tokenizer_class": "T5Tokenizer", "torch_dtype": "bfloat16",
			"transformers_version": "4.31.0.dev0", "use_cache": true, "vocab_size": 1024}`,
		Tensors: t5Blocks + t5Gate + `
			shared.weight                                             | vocab_size, d_model
			lm_head.weight                                            | vocab_size, d_model
			encoder.block.{bid}.layer.0.SelfAttention.relative_attention_bias.weight   | relative_attention_num_buckets, num_heads
			decoder.block.{did}.layer.0.SelfAttention.relative_attention_bias.weight   | relative_attention_num_buckets, num_heads
			`,
		Variants: []Variant{
			{Name: "no-head", Seed: 3, DType: "F16", Shards: 2, Out: "bf16",
				Set: `{"architectures": ["UMT5Model"], "num_heads": 2}`},
		},
	})
	add(Spec{
		Name:      "mt5",
		Tokenizer: "t5",
		DType:     "F32",
		Config: `{"architectures": ["MT5ForConditionalGeneration"], "d_ff": 96, "d_kv": 16, "d_model": 64,
			"decoder_start_token_id": 0, "dropout_rate": 0.1, "eos_token_id": 1, "feed_forward_proj": "gated-gelu",
			"initializer_factor": 1.0, "is_encoder_decoder": true, "layer_norm_epsilon": 1e-06, "model_type": "mt5",
			"num_decoder_layers": 2, "num_heads": 4, "num_layers": 2, "pad_token_id": 0,
			"relative_attention_num_buckets": 32, "tie_word_embeddings": false, "tokenizer_class": "T5Tokenizer",
			"vocab_size": 1024}`,
		Tensors: t5Blocks + t5Gate + `
			shared.weight                                             | vocab_size, d_model
			lm_head.weight                                            | vocab_size, d_model
			encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight   | relative_attention_num_buckets, num_heads
			decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight   | relative_attention_num_buckets, num_heads
			`,
	})
	add(Spec{
		Name:      "t5-encoder",
		Tokenizer: "t5",
		Config: `{"architectures": ["T5EncoderModel"], "d_ff": 96, "d_kv": 16, "d_model": 64,
			"decoder_start_token_id": 0, "dropout_rate": 0.1, "eos_token_id": 1, "feed_forward_proj": "gated-gelu",
			"initializer_factor": 1.0, "is_encoder_decoder": true, "layer_norm_epsilon": 1e-06, "model_type": "t5",
			"num_decoder_layers": 2, "num_heads": 4, "num_layers": 2, "output_past": true, "pad_token_id": 0,
			"relative_attention_max_distance": 128, "relative_attention_num_buckets": 32, "tie_word_embeddings": false,
			"torch_dtype": "bfloat16", "transformers_version": "4.40.0", "use_cache": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_layers
			inner = num_heads*d_kv
			shared.weight                                                 | vocab_size, d_model
			encoder.final_layer_norm.weight                               | d_model
			encoder.block.{bid}.layer.{0,1}.layer_norm.weight             | d_model
			encoder.block.{bid}.layer.0.SelfAttention.{q,k,v}.weight      | inner, d_model
			encoder.block.{bid}.layer.0.SelfAttention.o.weight            | d_model, inner
			encoder.block.{bid}.layer.1.DenseReluDense.wi_{0,1}.weight    | d_ff, d_model
			encoder.block.{bid}.layer.1.DenseReluDense.wo.weight          | d_model, d_ff
			encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight | relative_attention_num_buckets, num_heads
			`,
		Variants: []Variant{
			{Name: "eleven-layers", Seed: 3, DType: "F16", Shards: 3, Out: "auto", Set: `{"num_layers": 11}`},
		},
	})
}

// t5Blocks are the layers of T5 without the first matrices of their MLPs and the relative position biases.
const t5Blocks = `
	bid = num_layers
	did = opt(num_decoder_layers) || num_layers
	inner = num_heads*d_kv
	{encoder,decoder}.final_layer_norm.weight                  | d_model
	encoder.block.{bid}.layer.{0,1}.layer_norm.weight          | d_model
	decoder.block.{did}.layer.{0,1,2}.layer_norm.weight        | d_model
	encoder.block.{bid}.layer.0.SelfAttention.{q,k,v}.weight   | inner, d_model
	decoder.block.{did}.layer.0.SelfAttention.{q,k,v}.weight   | inner, d_model
	decoder.block.{did}.layer.1.EncDecAttention.{q,k,v}.weight | inner, d_model
	encoder.block.{bid}.layer.0.SelfAttention.o.weight         | d_model, inner
	decoder.block.{did}.layer.0.SelfAttention.o.weight         | d_model, inner
	decoder.block.{did}.layer.1.EncDecAttention.o.weight       | d_model, inner
	encoder.block.{bid}.layer.1.DenseReluDense.wo.weight       | d_model, d_ff
	decoder.block.{did}.layer.2.DenseReluDense.wo.weight       | d_model, d_ff
`

// t5Gate are the first matrices of gated MLPs.
const t5Gate = `
	encoder.block.{bid}.layer.1.DenseReluDense.wi_{0,1}.weight | d_ff, d_model
	decoder.block.{did}.layer.2.DenseReluDense.wi_{0,1}.weight | d_ff, d_model
`
