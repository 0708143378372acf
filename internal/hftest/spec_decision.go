package hftest

import "strings"

// Models that decide between options, made of Qwen 3.5.
func init() {
	const vision = `
		model.visual.patch_embed.proj.weight                  | 32, 3, 2, 4, 4
		model.visual.merger.norm.{weight,bias}                | 32
		`
	// qwen35 is a config.json; its model has no layers that predict further tokens,
	// whatever their number is.
	qwen35 := func(class, more string) string {
		return `{"architectures": ["` + class + `"], "model_type": "qwen3_5", ` + strings.Replace(qwen35Root, "VISION", "qwen3_5", 1) +
			`, "text_config": {` + qwen35Text + `, "intermediate_size": 96, "model_type": "qwen3_5_text"}` + more + `}`
	}
	text := strings.ReplaceAll(qwen35Tensors("model.language_model.", false), "opt(mtp_num_hidden_layers)", "opt(with_mtp)")
	add(Spec{
		Name:      "openjev",
		Tokenizer: "bpe:qwen2",
		Config:    qwen35("Qwen3_5ForConditionalGeneration", ""),
		Tensors:   text + vision,
		Files:     map[string]string{"helper/shim.py": "READOUT_T = 0.85\n"},
		Variants: []Variant{
			{Name: "tied", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"tie_word_embeddings": true, "text_config": {"tie_word_embeddings": true, "linear_num_value_heads": 6}}`},
			{Name: "with-mtp", Seed: 4, Out: "bf16", Set: `{"with_mtp": true}`},
			{Name: "without", Seed: 5, Out: "f32", Flags: []string{"--no-nextn"}, Set: `{"text_config": {"mtp_num_hidden_layers": 0}}`},
		},
	})
	bare := strings.ReplaceAll(qwen35Tensors("language_model.", false), "opt(mtp_num_hidden_layers)", "opt(with_mtp)")
	bare = strings.ReplaceAll(bare, "!opt(tie_word_embeddings)", "opt(with_head)") + strings.ReplaceAll(vision, "model.visual", "visual")
	const codes = `"base_model": "Qwen/Qwen3.5-2B", "codes": ["A", "B", "C", "D", "E", "F"], "max_length": 8192, "pooling": "last", "readout_dtype": "bfloat16",
		"token_ids": [32, 33, 1007, 31, 0, 1023], `
	readout := map[string]string{"readout.safetensors": "weight | 6, hidden_size"}
	more := []Variant{
		{Name: "tied", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"tie_word_embeddings": true, "text_config": {"tie_word_embeddings": true, "linear_num_value_heads": 6}}`},
		{Name: "with-mtp", Seed: 4, Out: "bf16", Set: `{"with_mtp": true}`},
		{Name: "plain-auto", Seed: 5, DType: "F32", Out: "auto"},
	}
	add(Spec{
		Name:      "pplx_decider",
		Tokenizer: "bpe:qwen2",
		Config:    qwen35("Qwen3_5Model", ""),
		Tensors:   bare,
		Beside:    readout,
		Files:     map[string]string{"decision_config.json": `{` + codes + `"attention_mode": "causal", "revision": "main", "temperature": 1.25}`},
		Variants:  more,
	})
	add(Spec{
		Name:      "vllm_d3",
		Tokenizer: "bpe:qwen2",
		Config:    qwen35("Qwen3_5Model", ""),
		Tensors:   bare,
		Beside:    map[string]string{"readout.safetensors": "weight | 6, hidden_size | as BF16"},
		Files: map[string]string{"decision_config.json": `{` + codes + `"attention_mode": "noncausal_full_attention", "format_id": "d3-code-readout-v1", "format_version": 1,
			"prompt": "d3", "temperature": 0.8}`},
		Variants: more,
	})
}
