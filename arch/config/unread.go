package config

import (
	"reflect"
	"slices"
)

// Unread lists the unread keys of the config that might affect the results, sorted. It leaves out keys without effect
// on the arithmetic, keys whose value means off (see IsNo), synonyms of keys that were read, and keys with the default
// value of their model type.
func (v *View) Unread() []string {
	var keys []string
	for key, value := range v.Object.values {
		if v.read[key] || v.defaulted[key] || inertKeys[key] || windowKeys[key] || IsNo(value) || v.isSynonym(key) ||
			key == "layer_types" && onlyWindows(value) {
			continue
		}
		if m := modelTypes()[v.modelType]; m != nil {
			if d, ok := m.Defaults[key]; ok && reflect.DeepEqual(d, value) {
				continue
			}
		}
		keys = append(keys, key)
	}
	keys = append(keys, v.RopeRoot().unread()...)
	slices.Sort(keys)
	return keys
}

// UnreadOf is Unread for the keys of a sub-config.
func (v *View) UnreadOf(o Object) []string {
	var keys []string
	defaults := map[string]any{}
	if t := modelTypes()[v.parts[o.prefix]]; t != nil {
		defaults = t.Defaults
	}
	for key, value := range o.values {
		name := o.prefix + key
		if o.read[name] || v.defaulted[name] || inertKeys[key] || IsNo(value) {
			continue
		}
		if d, ok := defaults[key]; ok && reflect.DeepEqual(d, value) {
			continue
		}
		if o.file != "" && o.file != v.Config.File {
			name = InFile(o.file, name)[0]
		}
		keys = append(keys, name)
	}
	slices.Sort(keys)
	return keys
}

// InFile returns the keys with the file's name before each, as UnreadOf lists keys of files other than config.json.
func InFile(file string, keys ...string) []string {
	list := make([]string, len(keys))
	for i, key := range keys {
		list[i] = file + ": " + key
	}
	return list
}

// unread lists the unread members of o that might affect the results, in no order.
func (o Object) unread() []string {
	var keys []string
	for key, v := range o.values {
		if m, ok := v.(map[string]any); ok {
			keys = append(keys, Object{m, o.prefix + key + ".", o.read, o.file}.unread()...)
		} else if !o.read[o.prefix+key] && !IsNo(v) && !inertRope(key, v) {
			keys = append(keys, o.prefix+key)
		}
	}
	return keys
}

// synonyms are groups of keys with the same meaning in different model families.
var synonyms = [][]string{
	{"num_hidden_layers", "n_layer", "n_layers", "num_layers"},
	{"hidden_size", "n_embd", "n_embed", "d_model", "dim", "model_dim"},
	{"intermediate_size", "n_inner", "d_ff", "ffn_dim", "ffn_hidden_size", "feed_forward_size"},
	{"num_attention_heads", "n_head", "n_heads", "num_heads"},
	{"num_key_value_heads", "n_kv_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num"},
	{"head_dim", "kv_channels", "d_kv", "attention_head_dim", "hidden_size_per_head"},
	{"max_position_embeddings", "n_positions", "n_ctx", "ctx_len", "context_length", "max_sequence_length",
		"max_seq_len", "max_seq_length", "seq_length", "seq_len", "model_max_length"},
	{"layer_norm_epsilon", "layer_norm_eps", "layernorm_epsilon", "norm_eps", "norm_epsilon", "rms_norm_eps"},
	{"hidden_act", "hidden_activation", "activation_function", "act_fn", "activation"},
	{"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"},
	{"num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k"},
	{"vocab_size", "padded_vocab_size"},
	{"rope_theta", "rotary_emb_base"},
}

// isSynonym reports whether a synonym of the key was read and has the same value.
func (v *View) isSynonym(key string) bool {
	for _, names := range synonyms {
		if !slices.Contains(names, key) {
			continue
		}
		for _, other := range names {
			if other != key && v.read[other] && reflect.DeepEqual(v.Object.values[other], v.Object.values[key]) {
				return true
			}
		}
	}
	return false
}

// IsNo reports whether a value means absent or off.
func IsNo(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// inertKeys have no effect on the results of inference beyond facts that follow from the tensors.
var inertKeys = set(
	// names, versions and tools
	"_name_or_path", "name_or_path", "_commit_hash", "_from_model_config", "_num_labels", "num_labels",
	"_attn_implementation_autoset",
	"_attn_implementation", "attn_implementation", "architectures", "auto_map", "custom_pipelines", "finetuning_task",
	"internal_version", "model_type",
	"model_name", "model_version", "name", "license", "language", "tags", "tokenizer_class", "task_specific_params",
	"transformers_version",
	"transformers.js_config", "unsloth_fixed", "unsloth_version", "unsloth_tuned", "use_flash_attn",
	"use_flash_attention", "_flash_attn_2_enabled",
	"torch_dtype", "dtype", "init_device", "torchscript", "pruned_heads", "use_bfloat16", "tf_legacy_loss",
	"problem_type", "id2label", "label2id",
	// tokens
	"bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id", "cls_token_id", "mask_token_id", "sep_token_id",
	"decoder_start_token_id",
	"forced_bos_token_id", "forced_eos_token_id", "bad_words_ids", "begin_suppress_tokens",
	// text generation
	"do_sample", "early_stopping", "num_beams", "num_beam_groups", "num_return_sequences", "diversity_penalty",
	"temperature", "top_k", "top_p",
	"typical_p", "repetition_penalty", "length_penalty", "min_length", "max_length", "no_repeat_ngram_size",
	"encoder_no_repeat_ngram_size",
	"exponential_decay_length_penalty", "remove_invalid_values", "output_scores", "return_dict_in_generate",
	"prefix", "use_cache",
	// training
	"attention_dropout", "attn_dropout", "attn_pdrop", "classifier_dropout", "dropout", "dropout_rate", "embd_pdrop",
	"emb_pdrop", "embedding_dropout",
	"gradient_checkpointing", "hidden_dropout", "hidden_dropout_prob", "initializer_factor", "initializer_range",
	"resid_pdrop", "residual_dropout",
	"router_aux_loss_coef", "router_jitter_noise", "aux_loss_alpha", "seq_aux", "mlp_dropout",
	"attention_probs_dropout_prob", "z_loss_coefficient",
	"ffn_dropout", "activation_dropout", "embedding_initializer_range",
	// facts that follow from the tensors, other sub-configs, and the format of outputs
	"is_encoder_decoder", "keys_to_ignore_at_inference", "output_attentions", "output_hidden_states",
	"output_router_logits", "pretraining_tp",
	"return_dict", "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
	"summary_activation", "tie_word_embeddings",
	"use_return_dict", "vision_config", "audio_config", "attention_bias", "mlp_bias", "qkv_bias", "prediction_heads",
	"add_cross_attention",
	"chunk_size_feed_forward", "cross_attention_hidden_size", "tie_encoder_decoder",
)

func set(keys ...string) map[string]bool {
	m := map[string]bool{}
	for _, key := range keys {
		m[key] = true
	}
	return m
}

// inertRope reports whether a rope setting has no effect by itself: the type under its old name, the original context
// length, and default values.
func inertRope(key string, v any) bool {
	switch key {
	case "type", "original_max_position_embeddings":
		return true
	case "rope_type":
		return v == "default"
	case "rope_theta":
		f, ok, err := asFloat(key, v)
		return err == nil && ok && f == 10000
	case "mscale", "mscale_all_dim", "partial_rotary_factor", "short_mscale", "long_mscale":
		f, ok, err := asFloat(key, v)
		return err == nil && ok && f == 1
	}
	return false
}
