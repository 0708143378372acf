package hftest

import "strings"

// qwen35Text are the keys of Qwen 3.5's text_config, as published except for sizes; classes add their own.
const qwen35Text = `"attention_bias": false, "attention_dropout": 0.0, "attn_output_gate": true, "dtype": "bfloat16", "eos_token_id": 1000,
	"full_attention_interval": 4, "head_dim": 64, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
	"layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention", "linear_attention"], "linear_conv_kernel_dim": 4,
	"linear_key_head_dim": 32, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_value_head_dim": 32, "max_position_embeddings": 262144,
	"mamba_ssm_dtype": "float32", "mlp_only_layers": [], "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": false, "num_attention_heads": 4,
	"num_hidden_layers": 5, "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "use_cache": true, "vocab_size": 1024,
	"rope_parameters": {"mrope_interleaved": true, "mrope_section": [3, 3, 2], "rope_type": "default", "rope_theta": 10000000, "partial_rotary_factor": 0.25}`

const qwen35Experts = `, "moe_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2, "output_router_logits": false, "router_aux_loss_coef": 0.001,
	"shared_expert_intermediate_size": 64`

// qwen35Root is the rest of a config.json with a vision encoder.
const qwen35Root = `"tie_word_embeddings": false, "transformers_version": "4.57.0.dev0", "image_token_id": 1010, "video_token_id": 1011,
	"vision_start_token_id": 1008, "vision_end_token_id": 1009, "vision_config": {"deepstack_visual_indexes": [], "depth": 2, "hidden_act": "gelu_pytorch_tanh",
	"hidden_size": 32, "in_channels": 3, "initializer_range": 0.02, "intermediate_size": 64, "num_heads": 2, "num_position_embeddings": 16,
	"out_hidden_size": 64, "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2, "model_type": "VISION"}`

// qwen35Tensors returns the tensors of Qwen 3.5; model is the prefix of their names.
func qwen35Tensors(model string, experts bool) string {
	mlp := `
		LAYER.mlp.{gate,up}_proj.weight                       | intermediate_size, hidden_size
		LAYER.mlp.down_proj.weight                            | hidden_size, intermediate_size
	`
	if experts {
		mlp = `
		LAYER.mlp.gate.weight                                 | num_experts, hidden_size
		LAYER.mlp.shared_expert_gate.weight                   | 1, hidden_size
		LAYER.mlp.shared_expert.{gate,up}_proj.weight         | shared_expert_intermediate_size, hidden_size
		LAYER.mlp.shared_expert.down_proj.weight              | hidden_size, shared_expert_intermediate_size
		LAYER.mlp.experts.gate_up_proj                        | num_experts, 2*moe_intermediate_size, hidden_size | if !opt(separate)
		LAYER.mlp.experts.down_proj                           | num_experts, hidden_size, moe_intermediate_size   | if !opt(separate)
		LAYER.mlp.experts.{xid}.{gate,up}_proj.weight         | moe_intermediate_size, hidden_size                | if opt(separate)
		LAYER.mlp.experts.{xid}.down_proj.weight              | hidden_size, moe_intermediate_size                | if opt(separate)
		`
	}
	layer := func(name, linear string) string {
		return strings.NewReplacer("LAYER", name, "LINEAR", linear).Replace(`
		LAYER.{input,post_attention}_layernorm.weight         | hidden_size
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
		` + mlp)
	}
	text := `
		bid = num_hidden_layers
		xid = opt(num_experts)
		kd  = linear_num_key_heads*linear_key_head_dim
		vd  = linear_num_value_heads*linear_value_head_dim
		MODELembed_tokens.weight                              | vocab_size, hidden_size
		MODELnorm.weight                                      | hidden_size
		` + layer("MODELlayers.{bid}", "(bid+1)%4 != 0")
	text = strings.ReplaceAll(text, "MODEL", model)
	if model == "" {
		return text
	}
	return text + `
		lm_head.weight                                        | vocab_size, hidden_size       | if !opt(tie_word_embeddings)
		mtp.fc.weight                                         | hidden_size, 2*hidden_size    | if opt(mtp_num_hidden_layers)
		mtp.{norm,pre_fc_norm_embedding,pre_fc_norm_hidden}.weight | hidden_size              | if opt(mtp_num_hidden_layers)
		` + where("opt(mtp_num_hidden_layers)", layer("mtp.layers.0", "false"))
}

// where returns rows of a table under one more condition.
func where(cond, rows string) string {
	var b strings.Builder
	for line := range strings.Lines(rows) {
		if line = strings.TrimRight(line, "\t\n "); line != "" {
			b.WriteString(line + " | if " + cond + "\n")
		}
	}
	return b.String()
}

func init() {
	vision := `
		model.visual.patch_embed.proj.weight                  | 32, 3, 2, 4, 4
		model.visual.merger.norm.{weight,bias}                | 32
		`
	class := func(name, typ string) string {
		return `"architectures": ["` + name + `"], "model_type": "` + typ + `", `
	}
	add(Spec{
		Name:      "qwen3_5",
		Tokenizer: "bpe:qwen2",
		Config: `{` + class("Qwen3_5ForConditionalGeneration", "qwen3_5") + strings.Replace(qwen35Root, "VISION",
			"qwen3_5", 1) +
			`, "text_config": {` + qwen35Text + `, "intermediate_size": 96, "model_type": "qwen3_5_text"}}`,
		Tensors: qwen35Tensors("model.language_model.", false) + vision,
		Variants: []Variant{
			{Name: "tied", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"tie_word_embeddings": true, "text_config": {"tie_word_embeddings": true,
					"linear_num_value_heads": 6}}`},
			{Name: "draft", Seed: 4, Out: "bf16", Flags: []string{"--mtp"}},
			{Name: "without", Seed: 5, Shards: 2, Out: "f32", Flags: []string{"--no-nextn"},
				Set: `{"text_config": {"linear_num_value_heads": 2}}`},
			{Name: "few-keys", Seed: 6, Out: "q8_0",
				Set: `{"text_config": {"rope_parameters": null, "full_attention_interval": null, "layer_types": null}}`},
		},
	})
	add(Spec{
		Name:      "qwen3_5-text",
		Tokenizer: "bpe:qwen2",
		Config: `{` + class("Qwen3_5ForCausalLM", "qwen3_5_text") + qwen35Text +
			`, "intermediate_size": 96, "tie_word_embeddings": true, "transformers_version": "5.2.0"}`,
		Tensors: qwen35Tensors("model.", false),
	})
	add(Spec{
		Name:      "qwen3_5-embedding",
		Tokenizer: "bpe:qwen2",
		Config: `{` + class("Qwen3_5TextModel", "qwen3_5_text") + qwen35Text +
			`, "intermediate_size": 96, "tie_word_embeddings": true, "transformers_version": "5.2.0"}`,
		Tensors: qwen35Tensors("", false),
		Files: map[string]string{
			"modules.json": `[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}, {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]`,
			"1_Pooling/config.json": `{"word_embedding_dimension": 64, "pooling_mode_cls_token": false,
				"pooling_mode_mean_tokens": false, "pooling_mode_lasttoken": true}`,
		},
	})
	add(Spec{
		Name:      "qwen3_5_moe",
		Tokenizer: "bpe:qwen2",
		Config: `{` + class("Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe") + strings.Replace(qwen35Root, "VISION",
			"qwen3_5_moe", 1) +
			`, "text_config": {` + qwen35Text + qwen35Experts + `, "model_type": "qwen3_5_moe_text"}}`,
		Tensors: qwen35Tensors("model.language_model.", true) + vision,
		Variants: []Variant{
			{Name: "separate", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"text_config": {"separate": true, "num_experts": 11, "linear_num_value_heads": 8}}`},
			{Name: "draft", Seed: 4, Out: "bf16", Flags: []string{"--mtp"}},
			{Name: "without", Seed: 5, Shards: 2, Out: "f32", Flags: []string{"--no-nextn"}},
		},
	})
	add(Spec{
		Name:      "qwen3_5_moe-text",
		Tokenizer: "bpe:qwen2",
		Config: `{` + class("Qwen3_5MoeForCausalLM", "qwen3_5_moe_text") + qwen35Text + qwen35Experts +
			`, "tie_word_embeddings": false, "transformers_version": "5.2.0"}`,
		Tensors: qwen35Tensors("model.", true),
	})
	minicpm := func(class, typ, settings string) string {
		return `{"architectures": ["` + class + `"], "model_type": "` + typ + `", "downsample_mode": "16x", "drop_vision_last_layer": false, "image_size": 448,
			"insert_layer_id": 0, "merge_kernel_size": [2, 2], "merger_times": 1, "patch_size": 14, "tie_word_embeddings": false, "image_token_id": 1010,
			"video_token_id": 1011, "transformers_version": "5.7.0", "vision_config": {"hidden_size": 32, "image_size": 980, "intermediate_size": 64,
			"model_type": "minicpmv4_6_vision", "num_attention_heads": 2, "num_hidden_layers": 2, "patch_size": 14}, "text_config": {` + settings + `}}`
	}
	merger := `
		model.merger.mlp.0.linear_1.weight                    | 32, 32
		model.vision_tower.encoder.layers.0.layer_norm1.weight | 32
		`
	without := Variant{Name: "without", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Flags: []string{"--no-mtp"}}
	add(Spec{
		Name:      "minicpmv4_6",
		Tokenizer: "bpe:qwen2",
		Config: minicpm("MiniCPMV4_6ForConditionalGeneration", "minicpmv4_6",
			qwen35Text+`, "intermediate_size": 96, "model_type": "qwen3_5_text"`),
		Tensors:  qwen35Tensors("model.language_model.", false) + merger,
		Variants: []Variant{without},
	})
	add(Spec{
		Name:      "minicpmv4_7",
		Tokenizer: "bpe:qwen2",
		Config: minicpm("MiniCPMV4_7ForConditionalGeneration", "minicpmv4_7",
			qwen35Text+`, "intermediate_size": 96, "model_type": "qwen3_5_text"`),
		Tensors:  qwen35Tensors("model.language_model.", false) + merger,
		Variants: []Variant{without},
	})
	add(Spec{
		Name:      "minicpmv4_7-moe",
		Tokenizer: "bpe:qwen2",
		Config: minicpm("MiniCPMV4_7ForConditionalGeneration", "minicpmv4_7",
			qwen35Text+qwen35Experts+`, "model_type": "qwen3_5_moe_text"`),
		Tensors:  qwen35Tensors("model.language_model.", true) + merger,
		Variants: []Variant{without},
	})
}
