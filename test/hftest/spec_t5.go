package hftest

func init() {
	add(Spec{
		Name:      "t5",
		Tokenizer: "t5",
		DType:     "F32",
		Config: `{"architectures": ["T5ForConditionalGeneration"], "d_ff": 96, "d_kv": 16, "d_model": 64,
			"decoder_start_token_id": 0, "dropout_rate": 0.1, "eos_token_id": 1, "feed_forward_proj": "gated-gelu",
			"initializer_factor": 1.0, "is_encoder_decoder": true, "layer_norm_epsilon": 1e-06, "model_type": "t5",
			"n_positions": 512, "num_decoder_layers": 1, "num_heads": 4, "num_layers": 2, "output_past": true,
			"pad_token_id": 0, "relative_attention_max_distance": 128, "relative_attention_num_buckets": 32,
			"tie_word_embeddings": false, "torch_dtype": "float32", "transformers_version": "4.51.3", "use_cache": true,
			"vocab_size": 1024}`,
		Tensors: `
			bid = num_layers
			did = num_decoder_layers
			shared.weight                                                            | vocab_size, d_model
			encoder.block.{bid}.layer.0.SelfAttention.{q,k,v}.weight                 | num_heads*d_kv, d_model
			encoder.block.{bid}.layer.0.SelfAttention.o.weight                       | d_model, num_heads*d_kv
			decoder.block.{did}.layer.0.SelfAttention.o.weight                       | d_model, num_heads*d_kv
			encoder.block.{bid}.layer.0.SelfAttention.relative_attention_bias.weight | relative_attention_num_buckets, num_heads | if bid == 0
			decoder.block.{did}.layer.0.SelfAttention.relative_attention_bias.weight | relative_attention_num_buckets, num_heads | if did == 0
			encoder.block.{bid}.layer.{0,1}.layer_norm.weight                        | d_model
			encoder.block.{bid}.layer.1.DenseReluDense.wi_{0,1}.weight               | d_ff, d_model
			encoder.block.{bid}.layer.1.DenseReluDense.wo.weight                     | d_model, d_ff
			{encoder,decoder}.final_layer_norm.weight                                | d_model
			decoder.block.{did}.layer.0.SelfAttention.{q,k,v}.weight                 | num_heads*d_kv, d_model
			decoder.block.{did}.layer.{0,1,2}.layer_norm.weight                      | d_model
			decoder.block.{did}.layer.1.EncDecAttention.{q,k,v}.weight               | num_heads*d_kv, d_model
			decoder.block.{did}.layer.1.EncDecAttention.o.weight                     | d_model, num_heads*d_kv
			decoder.block.{did}.layer.2.DenseReluDense.wi_{0,1}.weight               | d_ff, d_model
			decoder.block.{did}.layer.2.DenseReluDense.wo.weight                     | d_model, d_ff
			`,
	})
}
