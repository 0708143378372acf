package hftest

import "strings"

func init() {
	const text = `"attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 1000, "eos_token_id": 1000, "dtype": "bfloat16", "full_attention_interval": 4,
		"hc_count": 4, "hc_lowrank": 32, "head_dim": 64, "heads_per_ngram": 1, "hidden_act": "silu", "hidden_size": 64, "indexer_budget": 64, "indexer_compress_ratio": 4,
		"indexer_head_dim": 32, "indexer_kv_heads": 1, "indexer_n_heads": 2, "initializer_range": 0.02,
		"layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention", "linear_attention"], "linear_conv_kernel_dim": 4,
		"linear_key_head_dim": 32, "linear_num_key_heads": 2, "linear_num_value_heads": 6, "linear_value_head_dim": 32, "make_ngram_vocab_size_divisible_by": 8,
		"mamba_ssm_dtype": "float32", "max_position_embeddings": 262144, "moe_intermediate_size": 32, "mtp": {"hybrid": true, "layer_types": ["full_attention"],
		"mtp_use_hidden_state_from_layer": null, "num_hidden_layers": 1, "rope_theta": 10000000}, "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": false,
		"ngram_size": 3, "ngram_vocab_size_base": 16, "num_attention_heads": 4, "num_experts": 4, "num_experts_per_tok": 2, "num_hidden_layers": 5, "num_key_value_heads": 2,
		"output_gate_type": "sigmoid", "output_router_logits": false, "pad_token_id": null, "partial_rotary_factor": 0.25, "ple_conv_kernel_size": 4, "ple_embed_dim": 64,
		"ple_layer_ids": [2], "rms_norm_eps": 1e-06, "rope_parameters": {"mrope_interleaved": true, "mrope_section": [3, 3, 2], "partial_rotary_factor": 0.25,
		"rope_theta": 10000000, "rope_type": "default"}, "router_aux_loss_coef": 0.001, "shared_expert_intermediate_size": 32, "split_ngram_parts": 4,
		"tie_word_embeddings": false, "use_cache": true, "vocab_size": 1024, "model_type": "qwen4_exp_text"`
	hyper := func(name string) string {
		return strings.ReplaceAll(`
		NAME.hc_norm.weight                  | hc_count*hidden_size
		NAME.input_mix_weight_down.weight    | hc_lowrank, hc_count*hidden_size
		NAME.input_mix_weight_up.weight      | hc_count*hidden_size, hc_lowrank
		`, "NAME", name)
	}
	layer := func(name, linear string) string {
		return strings.NewReplacer("LAYER", name, "LINEAR", linear).Replace(hyper(name+".{attn,mlp}_hyper_connection") + `
		LAYER.{attn,mlp}_hyper_connection.block_inject_weight.weight | hc_count, hc_count*hidden_size
		LAYER.linear_attn.A_log                               | linear_num_value_heads         | if LINEAR | as F32 | fill log
		LAYER.linear_attn.dt_bias                             | linear_num_value_heads         | if LINEAR
		LAYER.linear_attn.conv1d.weight                       | 2*kd+vd, 1, linear_conv_kernel_dim | if LINEAR
		LAYER.linear_attn.in_proj_qkv.weight                  | 2*kd+vd, hidden_size           | if LINEAR
		LAYER.linear_attn.in_proj_z.weight                    | vd, hidden_size                | if LINEAR
		LAYER.linear_attn.in_proj_{a,b}.weight                | linear_num_value_heads, hidden_size | if LINEAR
		LAYER.linear_attn.norm.weight                         | linear_value_head_dim          | if LINEAR | as F32
		LAYER.linear_attn.out_proj.weight                     | hidden_size, vd                | if LINEAR
		LAYER.self_attn.q_proj.weight                         | 2*num_attention_heads*head_dim, hidden_size | if !(LINEAR)
		LAYER.self_attn.{k,v}_proj.weight                     | num_key_value_heads*head_dim, hidden_size   | if !(LINEAR)
		LAYER.self_attn.o_proj.weight                         | hidden_size, num_attention_heads*head_dim   | if !(LINEAR)
		LAYER.self_attn.{q,k}_norm.weight                     | head_dim                                    | if !(LINEAR)
		LAYER.self_attn.indexer.index_qk_proj.weight          | (indexer_n_heads+1)*indexer_head_dim, hidden_size | if !(LINEAR)
		LAYER.self_attn.indexer.{q,k}_layernorm.weight        | indexer_head_dim                            | if !(LINEAR)
		LAYER.mlp.gate.weight                                 | num_experts, hidden_size
		LAYER.mlp.shared_expert_gate.weight                   | 1, hidden_size
		LAYER.mlp.shared_expert.{gate,up}_proj.weight         | shared_expert_intermediate_size, hidden_size
		LAYER.mlp.shared_expert.down_proj.weight              | hidden_size, shared_expert_intermediate_size
		LAYER.mlp.experts.gate_up_proj                        | num_experts, 2*moe_intermediate_size, hidden_size | if !opt(separate)
		LAYER.mlp.experts.down_proj                           | num_experts, hidden_size, moe_intermediate_size   | if !opt(separate)
		LAYER.mlp.experts.{xid}.{gate,up}_proj.weight         | moe_intermediate_size, hidden_size                | if opt(separate)
		LAYER.mlp.experts.{xid}.down_proj.weight              | hidden_size, moe_intermediate_size                | if opt(separate)
		`)
	}
	tensors := func(model string) string {
		return strings.ReplaceAll(`
		bid = num_hidden_layers
		xid = num_experts
		part = split_ngram_parts
		kd  = linear_num_key_heads*linear_key_head_dim
		vd  = linear_num_value_heads*linear_value_head_dim
		MODELembed_tokens.weight                              | vocab_size, hidden_size
		lm_head.weight                                        | vocab_size, hidden_size       | if !opt(tie_word_embeddings)
		`+hyper("MODELhyper_connection_mixer")+layer("MODELlayers.{bid}", "(bid+1)%4 != 0")+where("!opt(plain)", `
		MODELlayers.1.ple.conv1d.weight                       | hc_count*hidden_size, 1, ple_conv_kernel_size
		MODELlayers.1.ple.key_proj.weight                     | hc_count*hidden_size, ple_embed_dim
		MODELlayers.1.ple.value_proj.weight                   | hidden_size, ple_embed_dim
		MODELlayers.1.ple.norm_{query,key,conv}.weight        | hc_count*hidden_size
		MODELlayers.1.ple.ple_embedding.layer_multipliers     | 3 | as I64 | fill list 24000000000091 17592186044423 3
		MODELlayers.1.ple.ple_embedding.ngram_heads_offsets   | 2 | as I64 | fill list 0 47
		MODELlayers.1.ple.ple_embedding.ngram_heads_vocab_sizes | 2 | as I64 | fill list 47 43
		MODELlayers.1.ple.ple_embedding.ngram_embedding.shard_{part}.weight | 24, ple_embed_dim/2
		`)+where("opt(mtp_num_hidden_layers)", hyper("mtp.hyper_connection_mixer")+layer("mtp.layers.0", "false")+`
		mtp.fc_{embedding,hidden}.weight                      | hidden_size, hidden_size
		mtp.pre_fc_norm_embedding.weight                      | hidden_size
		mtp.pre_fc_norm_hidden.weight                         | hc_count*hidden_size
		`), "MODEL", model)
	}
	add(Spec{
		Name:      "qwen4_exp",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen4ExpForConditionalGeneration"], "model_type": "qwen4_exp", ` +
			strings.Replace(qwen35Root, "VISION", "qwen4_exp", 1) +
			`, "text_config": {` + text + `}}`,
		Tensors: tensors("model.language_model.") + `
			model.visual.patch_embed.proj.weight                  | 32, 3, 2, 4, 4
			`,
		Variants: []Variant{
			{Name: "separate", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"text_config": {"separate": true, "num_experts": 11, "split_ngram_parts": 11,
					"eos_token_id": [1000, 1001]}}`},
			{Name: "draft", Seed: 4, Out: "bf16", Flags: []string{"--mtp"}},
			{Name: "without", Seed: 5, Shards: 2, Out: "f32", Flags: []string{"--no-nextn"}},
			{Name: "no-ngrams", Seed: 6, Set: `{"text_config": {"plain": true, "ple_layer_ids": []}}`},
		},
	})
	add(Spec{
		Name:      "qwen4_exp-text",
		Tokenizer: "bpe:qwen2",
		Config:    `{"architectures": ["Qwen4ExpForCausalLM"], ` + text + `, "transformers_version": "5.9.0"}`,
		Tensors:   tensors("model."),
	})
}
