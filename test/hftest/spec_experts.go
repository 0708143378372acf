package hftest

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// Models with experts whose families have no file of their own.

func init() {
	add(Spec{
		Name:      "glm4_moe",
		Tokenizer: "bpe:glm4",
		Config: `{"architectures": ["Glm4MoeForCausalLM"], "attention_bias": true, "attention_dropout": 0.0,
			"eos_token_id": [1000, 1007, 1009], "first_k_dense_replace": 1, "head_dim": 32, "hidden_act": "silu",
			"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 131072,
			"model_type": "glm4_moe", "moe_intermediate_size": 32, "n_group": 1, "n_routed_experts": 4,
			"n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 4, "num_experts_per_tok": 2,
			"num_hidden_layers": 2, "num_key_value_heads": 2, "num_nextn_predict_layers": 1, "pad_token_id": $pad,
			"partial_rotary_factor": 0.5, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 1000000,
			"routed_scaling_factor": 1.0, "tie_word_embeddings": false, "topk_group": 1, "torch_dtype": "bfloat16",
			"transformers_version": "4.54.0", "use_cache": true, "use_qk_norm": false, "vocab_size": 1024}`,
		Tensors: llamaHead + `
			bid = num_hidden_layers + opt(num_nextn_predict_layers)
			xid = n_routed_experts
			model.embed_tokens.weight                                   | vocab_size, hidden_size
			model.norm.weight                                           | hidden_size
			model.layers.{bid}.{input,post_attention}_layernorm.weight  | hidden_size
			model.layers.{bid}.self_attn.q_proj.weight                  | num_attention_heads*head_dim, hidden_size
			model.layers.{bid}.self_attn.{k,v}_proj.weight              | num_key_value_heads*head_dim, hidden_size
			model.layers.{bid}.self_attn.q_proj.bias                    | num_attention_heads*head_dim | if opt(attention_bias)
			model.layers.{bid}.self_attn.{k,v}_proj.bias                | num_key_value_heads*head_dim | if opt(attention_bias)
			model.layers.{bid}.self_attn.o_proj.weight                  | hidden_size, num_attention_heads*head_dim
			model.layers.{bid}.self_attn.{q,k}_norm.weight              | head_dim                     | if opt(use_qk_norm)
			model.layers.{bid}.mlp.gate.e_score_correction_bias         | n_routed_experts             | if bid >= first_k_dense_replace | as F32
			model.layers.{bid}.eh_proj.weight                           | hidden_size, 2*hidden_size   | if bid >= num_hidden_layers
			model.layers.{bid}.{enorm,hnorm,shared_head.norm}.weight    | hidden_size                  | if bid >= num_hidden_layers
			model.layers.{bid}.{embed_tokens,shared_head.head}.weight   | vocab_size, hidden_size      | if bid >= num_hidden_layers && !opt(shared_nextn)
			` + deepseekExperts,
		Variants: []Variant{
			{Name: "norms", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"use_qk_norm": true, "attention_bias": false, "n_routed_experts": 11, "shared_nextn": true}`},
			{Name: "no-mtp", Seed: 4, Out: "bf16",
				Set: `{"num_nextn_predict_layers": null, "n_shared_experts": 2, "rope_theta": null,
					"partial_rotary_factor": null}`},
			{Name: "draft", Seed: 5, Out: "q8_0", Flags: []string{"--mtp"}},
			{Name: "without", Seed: 6, Shards: 2, Flags: []string{"--no-nextn"}},
		},
	})
	add(Spec{
		Name:      "granitemoeshared",
		Tokenizer: "bpe:refact",
		Config: `{"architectures": ["GraniteMoeSharedForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"attention_multiplier": 0.015625, "bos_token_id": 1000, "embedding_multiplier": 12.0, "eos_token_id": 1000,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 32,
			"logits_scaling": 8.0, "max_position_embeddings": 4096, "model_type": "granitemoeshared",
			"num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 2,
			"num_local_experts": 4, "output_router_logits": false, "pad_token_id": 1000, "residual_multiplier": 0.22,
			"rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0, "router_aux_loss_coef": 0.001,
			"shared_intermediate_size": 96, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
			"transformers_version": "4.51.3", "use_cache": true, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + `
			model.layers.{bid}.block_sparse_moe.input_linear.weight  | num_local_experts, 2*intermediate_size, hidden_size
			model.layers.{bid}.block_sparse_moe.output_linear.weight | num_local_experts, hidden_size, intermediate_size
			model.layers.{bid}.block_sparse_moe.router.layer.weight  | num_local_experts, hidden_size
			model.layers.{bid}.shared_mlp.input_linear.weight        | 2*shared_intermediate_size, hidden_size | if opt(shared_intermediate_size)
			model.layers.{bid}.shared_mlp.output_linear.weight       | hidden_size, shared_intermediate_size   | if opt(shared_intermediate_size)
			`,
		Variants: []Variant{{Name: "few-keys", Seed: 3, DType: "F16", Out: "auto",
			Set: `{"logits_scaling": null, "residual_multiplier": 0, "shared_intermediate_size": 0}`}},
	})
	add(Spec{
		Name:      "olmo3",
		Tokenizer: "bpe:olmo2",
		Config: `{"architectures": ["Olmo3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"eos_token_id": 1000, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention",
			"full_attention", "sliding_attention"], "max_position_embeddings": 65536, "model_type": "olmo3",
			"num_attention_heads": 4, "num_hidden_layers": 5, "num_key_value_heads": 4, "pad_token_id": 1001,
			"rms_norm_eps": 1e-06, "rope_scaling": {"attention_factor": 1.2079441541679836, "beta_fast": 32.0,
			"beta_slow": 1.0, "factor": 8.0, "original_max_position_embeddings": 8192, "rope_type": "yarn"},
			"rope_theta": 500000, "sliding_window": 4096, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.57.0", "use_cache": false, "vocab_size": 1024}`,
		Tensors: llamaHead + `
			bid = num_hidden_layers
			model.embed_tokens.weight                                            | vocab_size, hidden_size
			model.norm.weight                                                    | hidden_size
			model.layers.{bid}.{post_attention,post_feedforward}_layernorm.weight | hidden_size
			model.layers.{bid}.self_attn.{q,k,v,o}_proj.weight                   | hidden_size, hidden_size
			model.layers.{bid}.self_attn.{q,k}_norm.weight                       | hidden_size
			` + llamaMLP,
		Variants: []Variant{{Name: "few-keys", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
			Set: `{"layer_types": null, "sliding_window": null, "rope_scaling": null}`}},
	})
	add(Spec{
		Name:      "dots1",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Dots1ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": null, "eos_token_id": $eos, "first_k_dense_replace": 1, "hidden_act": "silu",
			"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 32768,
			"max_window_layers": 62, "model_type": "dots1", "moe_intermediate_size": 32, "moe_layer_freq": 1,
			"n_group": 1, "n_routed_experts": 4, "n_shared_experts": 2, "norm_topk_prob": true,
			"num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 4,
			"pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000000,
			"routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "sliding_window": null,
			"tie_word_embeddings": false, "topk_group": 1, "topk_method": "noaux_tc", "torch_dtype": "bfloat16",
			"transformers_version": "4.46.3", "use_cache": true, "use_sliding_window": false, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + qkNorm + deepseekExperts + `
			model.layers.{bid}.mlp.gate.e_score_correction_bias | n_routed_experts | if bid >= first_k_dense_replace | as F32
			`,
		Variants: []Variant{{Name: "eleven-experts", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
			Set: `{"n_routed_experts": 11, "norm_topk_prob": false}`}},
	})
	add(Spec{
		Name:      "ernie4_5_moe",
		Tokenizer: "spm",
		Config: `{"architectures": ["Ernie4_5_MoeForCausalLM"], "bos_token_id": $bos, "eos_token_id": $eos,
			"pad_token_id": 0, "hidden_act": "silu", "hidden_size": 64, "intermediate_size": 128,
			"max_position_embeddings": 131072, "model_type": "ernie4_5_moe", "num_attention_heads": 4,
			"num_key_value_heads": 2, "num_hidden_layers": 3, "rms_norm_eps": 1e-05, "use_cache": false,
			"vocab_size": $vocab, "rope_theta": 500000, "use_bias": false, "moe_num_experts": 4,
			"moe_num_shared_experts": 2, "moe_layer_start_index": 1, "moe_layer_end_index": 2,
			"moe_intermediate_size": 32, "moe_capacity": [64, 64, 64], "moe_k": 2, "moe_layer_interval": 1,
			"moe_use_aux_free": true, "num_nextn_predict_layers": 1, "tie_word_embeddings": true,
			"torch_dtype": "bfloat16", "transformers_version": "4.54.0"}`,
		Tensors: llamaHead + llamaAttention + `
			xid = moe_num_experts
			model.layers.{bid}.mlp.{gate,up}_proj.weight                | intermediate_size, hidden_size                            | if bid < moe_layer_start_index
			model.layers.{bid}.mlp.down_proj.weight                     | hidden_size, intermediate_size                            | if bid < moe_layer_start_index
			model.layers.{bid}.mlp.gate.weight                          | moe_num_experts, hidden_size                              | if bid >= moe_layer_start_index | as F32
			model.layers.{bid}.mlp.moe_statics.e_score_correction_bias  | 1, moe_num_experts                                        | if bid >= moe_layer_start_index | as F32
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight  | moe_intermediate_size, hidden_size                        | if bid >= moe_layer_start_index
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight       | hidden_size, moe_intermediate_size                        | if bid >= moe_layer_start_index
			model.layers.{bid}.mlp.shared_experts.{gate,up}_proj.weight | moe_num_shared_experts*moe_intermediate_size, hidden_size | if bid >= moe_layer_start_index && opt(moe_num_shared_experts)
			model.layers.{bid}.mlp.shared_experts.down_proj.weight      | hidden_size, moe_num_shared_experts*moe_intermediate_size | if bid >= moe_layer_start_index && opt(moe_num_shared_experts)
			model.mtp_block.0.input_layernorm.weight                    | hidden_size                                               | if opt(num_nextn_predict_layers)
			model.{mtp_emb_norm,mtp_hidden_norm}.0.weight               | hidden_size                                               | if opt(num_nextn_predict_layers)
			model.mtp_linear_proj.0.weight                              | hidden_size, 2*hidden_size                                | if opt(num_nextn_predict_layers)
			`,
		Variants: []Variant{{Name: "few-keys", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
			Set: `{"moe_num_experts": 11, "moe_num_shared_experts": 0, "moe_layer_end_index": null,
				"tie_word_embeddings": false, "rope_theta": null, "num_nextn_predict_layers": null}`}},
	})
	const hunyuanKeys = `"add_classification_head": false, "anyres_pooling_size": 2, "anyres_vit_max_image_size": null, "anyres_vit_two_views": false,
			"attention_bias": false, "attention_dropout": 0.1, "attention_head_dim": 16, "bos_token_id": 1, "cla_share_factor": 2, "class_num": 0, "dense_list": [64, 0],
			"eod_token_id": 3, "eos_token_id": 2, "group_limited_greedy": false, "hidden_act": "silu", "im_end_id": 6, "im_newline_id": 12, "im_start_id": 5,
			"image_token_id": 9, "initializer_range": 0.02, "mask_init_id": 13, "mlp_bias": false, "norm_type": "rms", "num_media_embeds": 257, "pad_id": -1, "pad_token_id": 0,
			"pool_type": "last", "position_embedding_xdrope": false, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sep_token_id": 4,
			"text_end_id": 8, "text_start_id": 7, "torch_dtype": "bfloat16", "transformers_version": "4.41.2", "use_cache": true, "use_cla": false,
			"use_mixed_mlp_moe": true, "use_mla": false, "use_qk_norm": true, "vocab_size": 512`
	add(Spec{
		Name:      "hunyuan_moe",
		Tokenizer: "none",
		Pre:       "hunyuan",
		Files:     map[string]string{"hy.tiktoken": tinyRanks(302)}, // 210 special tokens follow
		Config: `{"architectures": ["HunYuanMoEV1ForCausalLM"], "hidden_size": 256, "intermediate_size": 96, "max_position_embeddings": 32768, "model_type": "hunyuan_v1_moe",
			"moe_drop_tokens": false, "moe_intermediate_size": [96, 96], "moe_layer_num_skipped": 0, "moe_random_routing_dropped_token": false, "moe_topk": [2, 2],
			"num_attention_heads": 2, "num_experts": 4, "num_hidden_layers": 2, "num_key_value_heads": 1, "num_shared_expert": [1, 1],
			"rope_scaling": {"alpha": 1000.0, "factor": 1.0, "type": "dynamic"}, "tie_word_embeddings": true, ` + hunyuanKeys + `}`,
		NoReference: "the reference's tokenizer needs code of the checkpoint",
		Tensors: llamaHead + llamaAttention + `
			xid = num_experts
			lm_head.weight                                              | vocab_size, hidden_size | if opt(head_too)
			model.layers.{bid}.self_attn.{query,key}_layernorm.weight   | hd
			model.layers.{bid}.mlp.gate.wg.weight                       | num_experts, hidden_size | as F32
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight  | moe_intermediate_size[0], hidden_size
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight       | hidden_size, moe_intermediate_size[0]
			model.layers.{bid}.mlp.shared_mlp.{gate,up}_proj.weight     | num_shared_expert[0]*intermediate_size, hidden_size
			model.layers.{bid}.mlp.shared_mlp.down_proj.weight          | hidden_size, num_shared_expert[0]*intermediate_size
			`,
		Variants: []Variant{{Name: "tied", Seed: 3, Out: "bf16", Set: `{"head_too": true, "rope_scaling": null}`}},
	})
	add(Spec{
		Name:      "grok-1",
		Tokenizer: "spm",
		Config: `{"architectures": ["GrokForCausalLM"], "attn_output_multiplier": 0.08838834764831845,
			"bos_token_id": $bos, "embedding_multiplier_scale": 78.38367176906169, "eos_token_id": $eos,
			"hidden_act": "gelu", "hidden_size": 64, "intermediate_size": 96, "max_attn_value": 30.0,
			"max_position_embeddings": 8192, "model_type": "grok", "num_attention_heads": 4, "num_experts_per_tok": 2,
			"num_hidden_layers": 2, "num_key_value_heads": 2, "num_local_experts": 4,
			"output_multiplier_scale": 0.5773502691896257, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
			"torch_dtype": "bfloat16", "transformers_version": "4.38.1", "use_cache": true, "vocab_size": $vocab}`,
		Tensors: `
			bid = num_hidden_layers
			xid = num_local_experts
			hd  = hidden_size / num_attention_heads
			transformer.in_out_embed.weight                                               | vocab_size, hidden_size
			transformer.rms_norm.weight                                                   | hidden_size
			transformer.decoder_layer.{bid}.rms_norm{,_1,_2,_3}.weight                    | hidden_size
			transformer.decoder_layer.{bid}.router.weight                                 | num_local_experts, hidden_size
			transformer.decoder_layer.{bid}.moe.{xid}.{linear,linear_v}.weight            | intermediate_size, hidden_size
			transformer.decoder_layer.{bid}.moe.{xid}.linear_1.weight                     | hidden_size, intermediate_size
			transformer.decoder_layer.{bid}.multi_head_attention.{query,linear}.weight    | hidden_size, hidden_size
			transformer.decoder_layer.{bid}.multi_head_attention.{key,value}.weight       | num_key_value_heads*hd, hidden_size
			`,
	})
	add(Spec{
		Name:      "grok-2",
		NoLoad:    "the runtime requires n_head * head_dim = n_embd, as in the published model",
		Tokenizer: "spm",
		Config: `{"architectures": ["Grok1ForCausalLM"], "attn_factor": 1.0, "attn_logit_softcapping": 30.0,
			"attn_temperature_len": 1024, "beta_fast": 8, "beta_slow": 1,
			"embedding_multiplier_scale": 90.50966799187809, "extrapolation_factor": 1.0, "final_logit_softcapping": 50,
			"head_dim": 32, "hidden_act": "gelu", "hidden_size": 64, "intermediate_size": 96,
			"max_position_embeddings": 131072, "model_type": "git", "moe_intermediate_size": 64,
			"num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 2,
			"num_local_experts": 4, "original_max_position_embeddings": 8192, "output_multiplier_scale": 0.5,
			"residual_moe": true, "rms_norm_eps": 1e-05, "rope_theta": 208533496, "rope_type": "original",
			"router_logit_softcapping": 30.0, "scaling_factor": 16.0, "sliding_window_size": -1,
			"torch_dtype": "bfloat16", "vocab_size": $vocab}`,
		Tensors: llamaHead + `
			bid = num_hidden_layers
			xid = num_local_experts
			model.embed_tokens.weight                                                 | vocab_size, hidden_size
			model.norm.weight                                                         | hidden_size
			model.layers.{bid}.{pre,post}_{attn,moe}_norm.weight                      | hidden_size
			model.layers.{bid}.self_attn.q_proj.weight                                | num_attention_heads*head_dim, hidden_size
			model.layers.{bid}.self_attn.{k,v}_proj.weight                            | num_key_value_heads*head_dim, hidden_size
			model.layers.{bid}.self_attn.o_proj.weight                                | hidden_size, num_attention_heads*head_dim
			model.layers.{bid}.block_sparse_moe.gate.weight                           | num_local_experts, hidden_size
			model.layers.{bid}.block_sparse_moe.experts.{xid}.w{1,3}.weight           | moe_intermediate_size, hidden_size
			model.layers.{bid}.block_sparse_moe.experts.{xid}.w2.weight               | hidden_size, moe_intermediate_size
			` + llamaMLP,
	})
}

// tinyRanks returns a tiktoken file of n tokens: the bytes, then pairs of letters.
func tinyRanks(n int) string {
	var b strings.Builder
	for i := range n {
		token := []byte{byte(i)}
		if i >= 256 {
			token = []byte{'a' + byte(i-256)/8, 'a' + byte(i-256)%8}
		}
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString(token), i)
	}
	return b.String()
}
