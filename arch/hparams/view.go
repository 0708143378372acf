package hparams

import (
	"maps"
	"reflect"
	"slices"
)

// View is what the tables of package arch may ask about a model: its config.json,
// the facts of other files, and what the user asked for. It records which keys
// were asked for; what it shows never changes.
//
// A View is for one goroutine at a time.
type View struct {
	*Config
	Object  // config.json as the reference sees it
	Facts   Facts
	Options Options
}

// Options are what the user asked for. The zero value is what the reference does.
type Options struct {
	// Dense takes the dense modules along, see Facts.Dense.
	Dense bool
	// Reference leaves out what the reference does not write.
	Reference bool
}

// View returns a view of the configuration without facts, to which nothing was
// asked so far.
func (c *Config) View(opt Options) *View {
	return &View{Config: c, Object: Object{c.values, "", maps.Clone(c.used)}, Options: opt}
}

// With returns the view with facts. Both record in the same place.
func (v *View) With(f Facts) *View {
	with := *v
	with.Facts = f
	return &with
}

// AsItStands returns the members of config.json itself, without defaults and
// without the configuration of a language model in it.
func (v *View) AsItStands() Object { return Object{v.Raw, "", v.read} }

// Given returns the value of a key for a question about keys that the file must
// not have, or that must have one value: it counts as asked for only if the file
// has the key.
func (v *View) Given(key string) any {
	value := v.Object.values[key]
	if value != nil && !v.defaulted[key] {
		v.lookup(key)
	}
	return value
}

// Rope returns the rope settings: rope_parameters or rope_scaling of
// config.json with the settings that may be next to them. Of a model that has
// some per kind of attention they are those of full attention.
func (v *View) Rope() Object {
	if _, ok := v.rope["full_attention"].(map[string]any); ok {
		return v.RopeRoot().Sub("full_attention")
	}
	return v.RopeRoot()
}

// RopeRoot returns the rope settings of all kinds of attention.
func (v *View) RopeRoot() Object { return Object{v.rope, "rope_scaling.", v.read} }

// Quantization returns the method by which the file says that the weights are
// quantized; ok is false when it does not. They may have been dequantized since.
func (v *View) Quantization() (method string, ok bool) {
	q, ok := v.Value("quantization_config").(map[string]any)
	if !ok || len(q) == 0 {
		return "", false
	}
	if method, ok = q["quant_method"].(string); !ok {
		method = "an unnamed method"
	}
	return method, true
}

// Defaulted lists the keys that were asked for, that the file lacks and that have
// a default other than null, sorted.
func (v *View) Defaulted() []string {
	var keys []string
	for key := range v.defaulted {
		if v.read[key] && v.Object.values[key] != nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Unread lists the keys of the file that nothing asked for and that might mean
// something, sorted: those that are known to say nothing about the arithmetic,
// those whose value says no, and those that have the default of their model type
// are not among them.
func (v *View) Unread() []string {
	var keys []string
	for key, value := range v.Object.values {
		if v.read[key] || v.defaulted[key] || inertKeys[key] || IsNo(value) {
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

// IsNo reports whether a value says that something is absent or off.
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

// inertKeys say nothing about the arithmetic of inference that the tensors do not
// say: they name the model, its files and tokens, announce biases, or matter in
// training only.
var inertKeys = set("_name_or_path", "_attn_implementation_autoset", "_commit_hash", "architectures", "attention_dropout", "attn_dropout", "attn_pdrop", "auto_map", "bad_words_ids",
	"begin_suppress_tokens", "bos_token_id", "classifier_dropout", "cls_token_id", "custom_pipelines", "decoder_start_token_id", "dropout", "dropout_rate", "dtype", "embd_pdrop", "emb_pdrop", "embedding_dropout",
	"eos_token_id", "finetuning_task", "forced_bos_token_id", "forced_eos_token_id", "gradient_checkpointing", "hidden_dropout", "hidden_dropout_prob", "id2label", "initializer_factor",
	"initializer_range", "is_encoder_decoder", "keys_to_ignore_at_inference", "label2id", "mask_token_id", "model_type", "output_attentions", "output_hidden_states",
	"output_router_logits", "pad_token_id", "pretraining_tp", "problem_type", "resid_pdrop", "residual_dropout", "return_dict", "router_aux_loss_coef", "router_jitter_noise", "aux_loss_alpha", "seq_aux",
	"sep_token_id", "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj", "summary_activation", "task_specific_params", "tie_word_embeddings",
	"tokenizer_class", "torch_dtype", "transformers_version", "unk_token_id", "use_cache", "use_flash_attn", "use_return_dict", "vision_config", "audio_config", "mlp_dropout",
	"attention_probs_dropout_prob", "init_device", "attention_bias", "mlp_bias", "qkv_bias", "unsloth_fixed", "unsloth_version", "z_loss_coefficient", "ffn_dropout", "activation_dropout", "prediction_heads", "embedding_initializer_range")

func set(keys ...string) map[string]bool {
	m := map[string]bool{}
	for _, key := range keys {
		m[key] = true
	}
	return m
}

// inertRope reports whether a rope setting changes nothing by itself: the type
// under its old name, the length that scaling begins at, and what all loaders take
// where a file says nothing.
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
