package hftest

import "strings"

// Decision models made from Qwen 3.5.
func init() {
	const vision = `
		model.visual.patch_embed.proj.weight                  | 32, 3, 2, 4, 4
		model.visual.merger.norm.{weight,bias}                | 32
		`
	// qwen35 returns a config.json. It declares one MTP layer; the tables below have its tensors only with with_mtp.
	qwen35 := func(class, more string) string {
		return `{"architectures": ["` + class + `"], "model_type": "qwen3_5", ` + strings.Replace(qwen35Root, "VISION",
			"qwen3_5", 1) +
			`, "text_config": {` + qwen35Text + `, "intermediate_size": 96, "model_type": "qwen3_5_text"}` + more + `}`
	}
	text := strings.ReplaceAll(qwen35Tensors("model.language_model.", false), "opt(mtp_num_hidden_layers)",
		"opt(with_mtp)")
	add(Spec{
		Name:      "openjev",
		Tokenizer: "bpe:qwen2",
		Config:    qwen35("Qwen3_5ForConditionalGeneration", ""),
		Tensors:   text + vision,
		Files:     map[string]string{"helper/shim.py": "READOUT_T = 0.85\n"},
		Variants: []Variant{
			{Name: "tied", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"tie_word_embeddings": true, "text_config": {"tie_word_embeddings": true,
					"linear_num_value_heads": 6}}`},
			{Name: "with-mtp", Seed: 4, Out: "bf16", Set: `{"with_mtp": true}`},
			{Name: "without", Seed: 5, Out: "f32", Flags: []string{"--no-nextn"},
				Set: `{"text_config": {"mtp_num_hidden_layers": 0}}`},
		},
	})
	plain := strings.ReplaceAll(qwen35Tensors("language_model.", false), "opt(mtp_num_hidden_layers)", "opt(with_mtp)")
	plain = strings.ReplaceAll(plain, "!opt(tie_word_embeddings)", "opt(with_head)") + strings.ReplaceAll(vision,
		"model.visual", "visual")
	const codes = `"base_model": "Qwen/Qwen3.5-2B", "codes": ["A", "B", "C", "D", "E", "F"], "max_length": 8192, "pooling": "last", "readout_dtype": "bfloat16",
		"token_ids": [32, 33, 1007, 31, 0, 1023], `
	readout := map[string]string{"readout.safetensors": "weight | 6, hidden_size"}
	more := []Variant{
		{Name: "tied", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
			Set: `{"tie_word_embeddings": true, "text_config": {"tie_word_embeddings": true,
				"linear_num_value_heads": 6}}`},
		{Name: "with-mtp", Seed: 4, Out: "bf16", Set: `{"with_mtp": true}`},
		{Name: "plain-auto", Seed: 5, DType: "F32", Out: "auto"},
	}
	add(Spec{
		Name:       "pplx_decider",
		Tokenizer:  "bpe:qwen2",
		Config:     qwen35("Qwen3_5Model", ""),
		Tensors:    plain,
		ExtraFiles: readout,
		Files: map[string]string{"decision_config.json": `{` + codes +
			`"attention_mode": "causal", "revision": "main", "temperature": 1.25}`},
		Variants: more,
	})
	add(Spec{
		Name:       "vllm_d3",
		Tokenizer:  "bpe:qwen2",
		Config:     qwen35("Qwen3_5Model", ""),
		Tensors:    plain,
		ExtraFiles: map[string]string{"readout.safetensors": "weight | 6, hidden_size | as BF16"},
		Files: map[string]string{"decision_config.json": `{` + codes + `"attention_mode": "noncausal_full_attention", "format_id": "d3-code-readout-v1", "format_version": 1,
			"prompt": "d3", "temperature": 0.8}`},
		Variants: more,
	})
	// Clef: a head of 2 routing layers and 1 decoder layer, of width 32
	attention := func(name string) string {
		return strings.ReplaceAll(`
			ATT.in_proj_weight           | 96, 32
			ATT.in_proj_bias             | 96
			ATT.out_proj.weight          | 32, 32
			ATT.out_proj.bias            | 32
			`, "ATT", name)
	}
	jointHead := `
			hidden_norm.{weight,bias}    | hidden_size
			{memory,question,option_question,global,option_context,option_lexical}_projection.weight | 32, hidden_size
			type_embedding.weight        | 3, 32
			{option_summary_norm,field_norm,option_norm}.{weight,bias} | 32
			residual_scorer.0.weight     | 32, 128
			residual_scorer.0.bias       | 32
			residual_scorer.3.weight     | 1, 32
			residual_scorer.3.bias       | 1
			{prior_logit_scale,residual_gate} |  | fill list 0.75
			joint_logit_scale            |  | fill list 7
			evidence_layers.{0,1}.{query_norm,memory_norm,feedforward_norm}.{weight,bias} | 32
			evidence_layers.{0,1}.feedforward.0.weight | 48, 32
			evidence_layers.{0,1}.feedforward.0.bias   | 48
			evidence_layers.{0,1}.feedforward.3.weight | 32, 48
			evidence_layers.{0,1}.feedforward.3.bias   | 32
			layers.0.norm{1,2,3}.{weight,bias} | 32
			layers.0.linear1.weight      | 48, 32
			layers.0.linear1.bias        | 48
			layers.0.linear2.weight      | 32, 48
			layers.0.linear2.bias        | 32
			` + attention("evidence_layers.{0,1}.attention") + attention("layers.0.self_attn") + attention("layers.0.multihead_attn")
	add(Spec{
		Name:       "clef",
		Tokenizer:  "bpe:qwen2",
		Config:     qwen35("Qwen3_5ForConditionalGeneration", ""),
		Tensors:    text + vision,
		ExtraFiles: map[string]string{"joint_head.safetensors": jointHead},
		Files: map[string]string{"joint_head_config.json": `{"hidden_size": 64, "width": 32, "routing_layers": 2,
			"layers": 1, "heads": 2, "feedforward": 48}`},
		Variants: []Variant{
			{Name: "shards", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"text_config": {"linear_num_value_heads": 6}}`},
			{Name: "with-mtp", Seed: 4, Out: "bf16", Set: `{"with_mtp": true}`},
		},
	})
	add(Spec{
		Name:      "vllm_decision2",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen3Model"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": 1000, "dtype": "bfloat16", "eos_token_id": 1002, "head_dim": 32, "hidden_act": "silu",
			"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "layer_types": ["full_attention",
			"full_attention"], "max_position_embeddings": 40960, "max_window_layers": 2, "model_type": "qwen3",
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-06,
			"rope_scaling": null, "rope_theta": 1000000.0, "sliding_window": null, "tie_word_embeddings": true,
			"transformers_version": "4.57.1", "use_cache": true, "use_sliding_window": false, "vocab_size": 1024}`,
		Folders: map[string]string{"config.json": "backbone", "model*.safetensors*": "backbone"},
		Files: map[string]string{
			"./config.json": `{"decision_format": "vllm-sr-decision", "format_version": 2,
				"model_name": "Decision-2.0-Kai-0.6B", "runtime_family": "decision2-native",
				"model_config": "decision_config.json", "backbone": {"config": "backbone/config.json",
				"weights": ["backbone/model.safetensors"]}}`,
			"decision_config.json": `{"architecture": "qwen3-text-endpoints-global-query-shared-bilinear-mlp",
				"base_model": "Qwen/Qwen3-0.6B", "head_dim": 32, "head_variant": "shared", "max_options": 255,
				"prompt_version": "decision2-segmented-options-global-query-v1"}`,
			"score_bias.json": `{"format": "dev2-score-bias/1", "offsets": {"3": [0.125, 0, -0.25], "2": [0.5, -0.5],
				"5": [1, 2, 3, 4, 5.5]}}`,
		},
		Tensors: bare(llamaHead + llamaAttention + llamaMLP + `
			model.layers.{bid}.self_attn.{q,k}_norm.weight | head_dim
			`),
		ExtraFiles: map[string]string{"decision_head.safetensors": `
			{candidate_norm,query_norm}.{weight,bias}     | hidden_size | as F32
			{key,query,candidate_mlp,query_mlp}.weight    | 32, hidden_size | as F32
			candidate_mlp.bias                            | 32 | as F32
			scalar.weight                                 | 1, 32 | as F32
			`},
		Variants: []Variant{
			{Name: "shards", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"num_hidden_layers": 11, "layer_types": null}`},
			{Name: "bf16", Seed: 4, Out: "bf16"},
		},
	})
	// adapters and their base
	base := &Spec{
		Name:      "0123456789abcdef0123456789abcdef01234567",
		Tokenizer: "bpe:qwen2",
		Config:    qwen35("Qwen3_5ForConditionalGeneration", ""),
		Tensors:   text + vision,
	}
	pair := func(module, out, in string) string {
		return `
			base_model.model.model.layers.` + module + `.lora_A.weight | 4, ` + in + ` | as F32 | fill grid
			base_model.model.model.layers.` + module + `.lora_B.weight | ` + out + `, 4 | as F32 | fill grid
			`
	}
	pairs := `
			vd  = linear_num_value_heads*linear_value_head_dim
			kd  = linear_num_key_heads*linear_key_head_dim
			` + pair("{0,1,2,3,4}.mlp.up_proj", "intermediate_size", "hidden_size") + pair("3.self_attn.q_proj", "2*num_attention_heads*head_dim", "hidden_size") +
		pair("0.linear_attn.in_proj_qkv", "2*kd+vd", "hidden_size") + pair("1.linear_attn.out_proj",
		"hidden_size", "vd")
	const adapter = `{"alpha_pattern": {}, "base_model_name_or_path": "` + BaseID + `", "bias": "none", "fan_in_fan_out": false, "inference_mode": true, "lora_alpha": 8, "lora_bias": false,
		"lora_dropout": 0.05, "modules_to_save": null, "peft_type": "LORA", "r": 4, "rank_pattern": {}, "task_type": "CAUSAL_LM", "use_dora": false, "use_rslora": false`
	adapters := []Variant{
		{Name: "shards", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
			Set: `{"text_config": {"linear_num_value_heads": 6}}`},
		{Name: "with-mtp", Seed: 4, Out: "bf16", Set: `{"with_mtp": true}`},
		{Name: "f32", Seed: 5, Out: "f32"},
	}
	add(Spec{
		Name:       "lev",
		Tokenizer:  base.Tokenizer,
		Base:       base,
		Config:     base.Config,
		ExtraFiles: map[string]string{"adapter_model.safetensors": pairs},
		Files: map[string]string{"adapter_config.json": adapter + `}`,
			"lev_release.json": `{"name": "lev", "base_model": "acme/base"}`,
			"calibration.json": `{"temperatures": {"choice:A": 1.25, "choice:B": 9, "choice:A:small": 1.5,
				"score:A:3-5": 0.75, "noul:A": 2}}`},
		Variants: adapters,
	})
	add(Spec{
		Name:       "nimble",
		Tokenizer:  base.Tokenizer,
		Base:       base,
		Config:     base.Config,
		ExtraFiles: map[string]string{"adapter_model.safetensors": pairs},
		Files: map[string]string{"adapter_config.json": adapter + `, "revision": null}`,
			"schema_config.json": `{"task": "schema_candidate_classification_v2", "max_length": 8192, "model": "acme/base", "revision": "` + base.Name + `"}`},
		Variants: adapters,
	})
	add(Spec{
		Name:      "kev",
		Tokenizer: base.Tokenizer,
		Base:      base,
		Config:    base.Config,
		ExtraFiles: map[string]string{"adapter_model.safetensors": pairs, "head.pt": `
			head/{q,k}.weight | 24, hidden_size | as F32
			head/{q,k}.bias   | 24 | as F32
			`},
		Pickled: `{"base": "acme/base", "base_revision": "` + base.Name + `", "lora": 4, "head_dim": 24, "option_isolation": false, "special_embeddings": false, "weights_dtype": "fp32",
			"temperature": 1.375, "holdout": ["banking77"], "args": {"base": "acme/base", "lr": 0.0002, "epochs": 1, "init_from": null}, "suite_sha256": "00"}`,
		Files: map[string]string{"adapter_config.json": adapter + `}`,
			"training_config.json": `{"args": {"base": "acme/base", "head_dim": 24, "lora": 4}, "base": "acme/base", "base_revision": "` + base.Name + `"}`},
		Variants: adapters,
	})
}
