package hftest

func init() {
	add(Spec{
		Name:      "lfm2_moe",
		Tokenizer: "bpe:lfm2",
		Config: `{"architectures": ["Lfm2MoeForCausalLM"], "bos_token_id": $bos, "conv_L_cache": 3, "conv_bias": false,
			"dtype": "bfloat16", "eos_token_id": $eos, "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "layer_types": ["conv", "conv", "full_attention", "conv"],
			"max_position_embeddings": 128000, "model_type": "lfm2_moe", "moe_intermediate_size": 32, "norm_eps": 1e-05,
			"norm_topk_prob": true, "num_attention_heads": 4, "num_dense_layers": 2, "num_experts": 11,
			"num_experts_per_tok": 4, "num_hidden_layers": 4, "num_key_value_heads": 2, "pad_token_id": $pad,
			"rope_theta": 1000000.0, "routed_scaling_factor": 1.0, "transformers_version": "4.56.0", "use_cache": true,
			"use_expert_bias": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			xid = num_experts
			hd  = hidden_size / num_attention_heads
			model.embed_tokens.weight                           | vocab_size, hidden_size
			model.embedding_norm.weight                         | hidden_size
			model.layers.{bid}.{operator,ffn}_norm.weight       | hidden_size
			model.layers.{bid}.conv.conv.weight                 | hidden_size, 1, conv_L_cache        | if layer_types[bid] == "conv"
			model.layers.{bid}.conv.in_proj.weight              | 3*hidden_size, hidden_size          | if layer_types[bid] == "conv"
			model.layers.{bid}.conv.out_proj.weight             | hidden_size, hidden_size            | if layer_types[bid] == "conv"
			model.layers.{bid}.self_attn.{q,out}_proj.weight    | hidden_size, hidden_size            | if layer_types[bid] == "full_attention"
			model.layers.{bid}.self_attn.{k,v}_proj.weight      | num_key_value_heads*hd, hidden_size | if layer_types[bid] == "full_attention"
			model.layers.{bid}.self_attn.{q,k}_layernorm.weight | hd                                  | if layer_types[bid] == "full_attention"
			model.layers.{bid}.feed_forward.w{1,3}.weight       | intermediate_size, hidden_size      | if bid < num_dense_layers
			model.layers.{bid}.feed_forward.w2.weight           | hidden_size, intermediate_size      | if bid < num_dense_layers
			model.layers.{bid}.feed_forward.gate.weight         | num_experts, hidden_size            | if bid >= num_dense_layers
			model.layers.{bid}.feed_forward.expert_bias         | num_experts | as F32                | if bid >= num_dense_layers && use_expert_bias
			model.layers.{bid}.feed_forward.experts.{xid}.w{1,3}.weight | moe_intermediate_size, hidden_size | if bid >= num_dense_layers
			model.layers.{bid}.feed_forward.experts.{xid}.w2.weight     | hidden_size, moe_intermediate_size | if bid >= num_dense_layers
			`,
		Variants: []Variant{
			{Name: "no-bias", Seed: 3, DType: "F16", Out: "bf16",
				Set: `{"use_expert_bias": false, "num_experts": 2, "num_experts_per_tok": 2}`},
		},
	})
}
