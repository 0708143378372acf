package hftest

import "strings"

// Embedding models, saved without the head of the language model.

func init() {
	add(Spec{
		Name:      "qwen2-embed",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen2Model"], "attention_dropout": 0.0, "bos_token_id": $pad, "eos_token_id": $pad,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"max_position_embeddings": 32768, "max_window_layers": 2, "model_type": "qwen2", "num_attention_heads": 4,
			"num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
			"sliding_window": 32768, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.41.2", "use_cache": true, "use_sliding_window": false, "vocab_size": $vocab}`,
		Files: map[string]string{
			"modules.json": `[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
				{"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]`,
			"1_Pooling/config.json": `{"word_embedding_dimension": 64, "pooling_mode_cls_token": false,
				"pooling_mode_mean_tokens": false, "pooling_mode_lasttoken": true}`,
		},
		Tensors: bare(llamaAttention+llamaMLP) + `
			layers.{bid}.self_attn.q_proj.bias      | num_attention_heads*hd
			layers.{bid}.self_attn.{k,v}_proj.bias  | num_key_value_heads*hd
			`,
	})
	add(Spec{
		Name:      "qwen3-embed",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": $pad, "eos_token_id": $pad, "head_dim": 32, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 32768,
			"max_window_layers": 2, "model_type": "qwen3", "num_attention_heads": 4, "num_hidden_layers": 2,
			"num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000,
			"sliding_window": null, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
			"transformers_version": "4.51.3", "use_cache": true, "use_sliding_window": false, "vocab_size": $vocab}`,
		Files: map[string]string{
			"modules.json": `[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
				{"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
				{"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]`,
			"1_Pooling/config.json": `{"word_embedding_dimension": 64, "pooling_mode_cls_token": false,
				"pooling_mode_mean_tokens": false, "pooling_mode_max_tokens": false,
				"pooling_mode_mean_sqrt_len_tokens": false, "pooling_mode_weightedmean_tokens": false,
				"pooling_mode_lasttoken": true, "include_prompt": true}`,
		},
		Tensors: bare(llamaAttention + llamaMLP + qkNorm),
	})
	add(Spec{
		Name:      "embeddinggemma",
		NoLoad:    "an assertion of the runtime fails",
		Tokenizer: "gemma",
		Config: `{"_sliding_window_pattern": 6, "architectures": ["Gemma3TextModel"], "attention_bias": false,
			"attention_dropout": 0.0, "attn_logit_softcapping": null, "bos_token_id": $bos, "dtype": "float32",
			"eos_token_id": $eos, "final_logit_softcapping": null, "head_dim": 32,
			"hidden_activation": "gelu_pytorch_tanh", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "layer_types": ["sliding_attention", "full_attention"],
			"max_position_embeddings": 2048, "model_type": "gemma3_text", "num_attention_heads": 2,
			"num_hidden_layers": 2, "num_key_value_heads": 1, "pad_token_id": $pad, "query_pre_attn_scalar": 32,
			"rms_norm_eps": 1e-06, "rope_local_base_freq": 10000.0, "rope_scaling": null, "rope_theta": 1000000.0,
			"sliding_window": 512, "transformers_version": "4.57.0.dev0", "use_bidirectional_attention": true,
			"use_cache": true, "vocab_size": $vocab}`,
		DType: "F32",
		Files: map[string]string{
			"modules.json": `[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
				{"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
				{"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"}]`,
			"1_Pooling/config.json": `{"word_embedding_dimension": 64, "pooling_mode_cls_token": false,
				"pooling_mode_mean_tokens": true, "include_prompt": true}`,
		},
		Tensors: bare(llamaAttention + llamaMLP + qkNorm + gemmaNorms),
		Variants: []Variant{{Name: "seven-layers", Seed: 3, Out: "auto", Set: `{"num_hidden_layers": 7,
			"sliding_window": 64, "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention",
			"sliding_attention", "sliding_attention", "full_attention", "sliding_attention"]}`}},
	})
	add(Spec{
		Name:        "qwen3-reranker",
		Tokenizer:   "bpe:qwen2",
		AddedTokens: []string{"yes"},
		Config: `{"architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": $pad, "eos_token_id": $eos, "head_dim": 32, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 40960,
			"max_window_layers": 2, "model_type": "qwen3", "num_attention_heads": 4, "num_hidden_layers": 2,
			"num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000,
			"sliding_window": null, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
			"transformers_version": "4.51.3", "use_cache": true, "use_sliding_window": false, "vocab_size": $vocab}`,
		Tensors: llamaHead + llamaAttention + llamaMLP + qkNorm,
		Variants: []Variant{{Name: "untied", Seed: 3, DType: "F16", Out: "auto",
			Set: `{"tie_word_embeddings": false}`}},
	})
}

// bare returns a table without lm_head and without the prefix "model." of names.
func bare(table string) string {
	var lines []string
	for line := range strings.Lines(table) {
		if !strings.Contains(line, "lm_head") {
			lines = append(lines, strings.Replace(line, "model.", "", 1))
		}
	}
	return strings.Join(lines, "")
}

// qkNorm are the norms of queries and keys, one weight per dimension of a head.
const qkNorm = `
	model.layers.{bid}.self_attn.{q,k}_norm.weight  | hd
`

const gemmaNorms = `
	model.layers.{bid}.{pre,post}_feedforward_layernorm.weight | hidden_size
`

// prefixed returns a table with a prefix before every name.
func prefixed(prefix, table string) string {
	var lines []string
	for line := range strings.Lines(table) {
		if strings.Contains(line, " | ") {
			line = prefix + strings.TrimLeft(line, "\t ")
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}
