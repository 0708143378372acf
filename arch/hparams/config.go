// Package hparams is a model's configuration: config.json as the reference sees
// it, with what the transformers library fills in, and the facts that other small
// files of the checkpoint hold.
package hparams

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"ggforge/fault"
	"ggforge/internal/pyjson"
)

// View is a model's config.json as the reference sees it: with the defaults
// and the derived values that the transformers library adds for the model type,
// and with the rope settings gathered in one place.
type View struct {
	// Raw is config.json as it stands; numbers are json.Number.
	Raw map[string]any
	// Class is the model's class, of "architectures".
	Class string
	// Dense tells that the dense modules beside the checkpoint are taken along.
	Dense bool
	// Reference leaves out what the reference does not write.
	Reference bool

	files      Files    // of the checkpoint; nil when there is only a config.json
	names      []string // of the checkpoint's tensors, where they are known
	dir        string   // name of the directory, where it is known
	isReranker *bool    // see reranker; nil until it is asked for
	modelType  string   // the known model_type whose rules hold, "" for none
	values     map[string]any
	rope       map[string]any
	defaulted  map[string]bool // keys that the file lacks and that were filled in
	read       map[string]bool // keys that were asked for
}

// KnownType returns the model_type whose rules hold, "" for none.
func (c *View) KnownType() string { return c.modelType }

// TensorNames returns the names of the checkpoint's tensors.
func (c *View) TensorNames() []string { return c.names }

// ConfigFile is the name of the file that LoadConfig reads.
const ConfigFile = "config.json"

// Files are the files of a checkpoint directory, by names as in package fs. Of
// what is not there the error is fs.ErrNotExist.
type Files interface {
	ReadFile(name string) ([]byte, error)
}

// ReadConfig reads the file that a model is described in.
func ReadConfig(files Files, name string) ([]byte, error) {
	data, err := files.ReadFile(name)
	if err != nil && !fault.Has(err) {
		err = fault.Errorf(fault.Broken, "%s: %w", name, err)
	}
	return data, err
}

// parseRoot reads the JSON object in a file.
func parseRoot(name string, data []byte) (map[string]any, error) {
	v, err := pyjson.Parse(data)
	if err != nil {
		return nil, fault.Errorf(fault.Broken, "%s: %w", name, err)
	}
	root, ok := v.(*pyjson.Object)
	if !ok {
		return nil, fault.Errorf(fault.Broken, "%s: want a JSON object, found %s", name, pyjson.Describe(v))
	}
	return root.Map(), nil
}

// Parse reads the bytes of config.json. asItStands tells the classes whose
// configuration gets no defaults; nil for none.
func Parse(data []byte, asItStands func(class string) bool) (*View, error) {
	c := &View{read: map[string]bool{}}
	var err error
	if c.Raw, err = parseRoot(ConfigFile, data); err != nil {
		return nil, err
	}
	if err := c.findClass(); err != nil {
		return nil, err
	}
	c.values = maps.Clone(c.Raw)
	raw := asItStands != nil && asItStands(c.Class)
	c.modelType, _ = c.Raw["model_type"].(string)
	if raw || modelTypes[c.modelType] == nil {
		c.modelType = ""
	}
	if err := c.layOver(raw); err != nil {
		return nil, err
	}
	return c, c.gatherRope()
}

// SetNames tells the names of the checkpoint's tensors: not every config tells the
// number of layers.
func (c *View) SetNames(names []string) { c.names = names }

// SetDir tells the name of the checkpoint's directory: that is all that tells some
// kinds of models apart.
func (c *View) SetDir(name string) { c.dir = name }

// textConfigs are the names under which config.json holds the configuration of
// the language model of a larger one. A later one wins.
var textConfigs = []string{"text_config", "llm_config", "lm_config", "thinker_config", "language_config", "lfm"}

// textConfig returns the configuration of the language model, nil when there is
// no other than the whole.
func (c *View) textConfig() (map[string]any, error) {
	var text map[string]any
	for _, key := range textConfigs {
		v := c.Raw[key]
		if v == nil {
			continue
		}
		m, ok := v.(map[string]any)
		if key == "thinker_config" && ok {
			m, ok = m["text_config"].(map[string]any)
		}
		if !ok {
			return nil, WrongType(key, "an object", v)
		}
		c.read[key] = true
		text = m
	}
	return text, nil
}

// rootClasses are classes that keep their name although the language model in
// them has one too. Source: get_model_architecture of the reference.
var rootClasses = []string{"StepVLForConditionalGeneration", "Sarashina2VisionForCausalLM", "Exaone4_5_ForConditionalGeneration",
	"Step3p7ForConditionalGeneration", "KimiK3ForConditionalGeneration"}

// findClass sets the class of the model: that of its language model if it names
// one.
func (c *View) findClass() error {
	first := func(m map[string]any) (string, error) {
		list, _ := m["architectures"].([]any)
		if len(list) == 0 {
			return "", nil
		}
		s, ok := list[0].(string)
		if !ok {
			return "", WrongType("architectures", "strings", list[0])
		}
		return s, nil
	}
	text, err := c.textConfig()
	if err != nil {
		return err
	}
	if c.Class, err = first(c.Raw); err != nil {
		return err
	}
	if ssm, ok := c.Raw["ssm_cfg"].(map[string]any); ok && c.Class == "" {
		layer, _ := ssm["layer"].(string) // checkpoints of the mamba_ssm package
		c.Class = cmp.Or(layer, "Mamba") + "ForCausalLM"
	}
	if !slices.Contains(rootClasses, c.Class) {
		inner, err := first(text)
		if err != nil {
			return err
		}
		c.Class = cmp.Or(inner, c.Class)
	}
	if c.Class == "" {
		return fault.Errorf(fault.Broken, "%s: key \"architectures\": want a list with the model's class, found %v", ConfigFile, c.Raw["architectures"])
	}
	return nil
}

// flatTypes are the model types whose config.json may have the keys of the
// language model beside the others.
var flatTypes = set("qwen2_vl", "qwen2_5_vl")

// layOver fills in the defaults of the model type and lays the configuration of
// the language model over the root.
func (c *View) layOver(raw bool) error {
	m := modelTypes[c.modelType]
	if err := m.complete(c, c.values); err != nil {
		return err
	}
	text, err := c.textConfig()
	if err != nil {
		return err
	}
	inner := ""
	if m != nil {
		inner, _ = m.Defaults["text_config"].(string)
	}
	if text == nil && inner == "" {
		return nil
	}
	if text == nil && flatTypes[c.modelType] && !raw {
		c.modelType = inner
		return modelTypes[inner].complete(c, c.values)
	}
	values := maps.Clone(text)
	if values == nil {
		values = map[string]any{}
	}
	if m != nil && !raw {
		if s, ok := values["model_type"].(string); ok {
			inner = s
		}
		if t := modelTypes[inner]; t != nil {
			c.modelType = inner
			if err := t.complete(c, values); err != nil {
				return err
			}
		}
	}
	maps.Copy(c.values, values)
	return nil
}

// Lookup returns the first of keys that the config has and its value. A null is
// a value: the reference looks no further.
func (c *View) Lookup(keys ...string) (key string, v any) {
	for _, key := range keys {
		c.read[key] = true
		if v, ok := c.values[key]; ok {
			return key, v
		}
	}
	return "", nil
}

// Peek is lookup for one key that does not count as asked for; set reports
// whether the file has it.
func (c *View) Peek(key string) (v any, set bool) {
	v = c.values[key]
	return v, v != nil && !c.defaulted[key]
}

// Present reports whether a key is there, be it with null.
func (c *View) Present(key string) bool {
	_, ok := c.values[key]
	return ok
}

// Has reports whether one of keys has a value other than null.
func (c *View) Has(keys ...string) bool {
	_, v := c.Lookup(keys...)
	return v != nil
}

// Int returns the first of keys that is there as an integer. ok is false when
// none is, or when it is null.
func (c *View) Int(keys ...string) (n int64, ok bool, err error) {
	key, v := c.Lookup(keys...)
	return AsInt(key, v)
}

// Require is Int for keys of which one must be there.
func (c *View) Require(keys ...string) (int64, error) {
	n, ok, err := c.Int(keys...)
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: has none of the keys %q", ConfigFile, keys)
	}
	return n, err
}

// Float is Int for numbers.
func (c *View) Float(keys ...string) (f float64, ok bool, err error) {
	key, v := c.Lookup(keys...)
	return AsFloat(key, v)
}

// String is Int for strings.
func (c *View) String(keys ...string) (s string, ok bool, err error) {
	key, v := c.Lookup(keys...)
	return asString(key, v)
}

// Bool is Int for flags.
func (c *View) Bool(keys ...string) (b, ok bool, err error) {
	key, v := c.Lookup(keys...)
	return AsBool(key, v)
}

// Ints is Int for lists of integers.
func (c *View) Ints(key string) (list []int64, ok bool, err error) {
	_, v := c.Lookup(key)
	return AsList(key, v, AsInt)
}

// Floats is Int for lists of numbers.
func (c *View) Floats(key string) (list []float64, ok bool, err error) {
	_, v := c.Lookup(key)
	return AsList(key, v, AsFloat)
}

// Strings is Int for lists of strings.
func (c *View) Strings(key string) (list []string, ok bool, err error) {
	_, v := c.Lookup(key)
	return AsList(key, v, asString)
}

// Sub returns the members of the object under key, nil when there is none.
func (c *View) Sub(key string) map[string]any {
	_, v := c.Lookup(key)
	m, _ := v.(map[string]any)
	return m
}

// Defaulted lists the keys that were asked for, that the file lacks and that have
// a default other than null, sorted.
func (c *View) Defaulted() []string {
	var keys []string
	for key := range c.defaulted {
		if c.read[key] && c.values[key] != nil {
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
func (c *View) Unread() []string {
	var keys []string
	for key, v := range c.values {
		if c.read[key] || c.defaulted[key] || inertKeys[key] || IsNo(v) {
			continue
		}
		if m := modelTypes[c.modelType]; m != nil {
			if d, ok := m.Defaults[key]; ok && reflect.DeepEqual(d, v) {
				continue
			}
		}
		keys = append(keys, key)
	}
	keys = append(keys, c.RopeRoot().unread()...)
	slices.Sort(keys)
	return keys
}

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

// Rope returns the rope settings: rope_parameters or rope_scaling of
// config.json with the settings that may stand beside them. Of a model that has
// some per kind of attention they are those of full attention.
func (c *View) Rope() Rope {
	if _, ok := c.rope["full_attention"].(map[string]any); ok {
		return c.RopeRoot().Sub("full_attention")
	}
	return c.RopeRoot()
}

// RopeRoot returns the rope settings of all kinds of attention.
func (c *View) RopeRoot() Rope { return Rope{c.rope, "rope_scaling.", c.read} }

// Rope gives access to rope settings; its methods work like those of Config.
type Rope struct {
	values map[string]any
	prefix string // of the keys, in errors and among those that were asked for
	read   map[string]bool
}

// Sub returns the settings under key, those of a kind of attention.
func (r Rope) Sub(key string) Rope {
	m, _ := r.values[key].(map[string]any)
	return Rope{m, r.prefix + key + ".", r.read}
}

func (r Rope) lookup(keys ...string) (string, any) {
	for _, key := range keys {
		r.read[r.prefix+key] = true
		if v, ok := r.values[key]; ok {
			return r.prefix + key, v
		}
	}
	return "", nil
}

// Peek returns a setting, which does not count as asked for.
func (r Rope) Peek(key string) any { return r.values[key] }

// unread lists the settings that nothing asked for and that might mean something.
func (r Rope) unread() []string {
	var keys []string
	for key, v := range r.values {
		if _, ok := v.(map[string]any); ok {
			keys = append(keys, r.Sub(key).unread()...)
		} else if !r.read[r.prefix+key] && !IsNo(v) && !inertRope(key, v) {
			keys = append(keys, r.prefix+key)
		}
	}
	return keys
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
		f, ok, err := AsFloat(key, v)
		return err == nil && ok && f == 10000
	case "mscale", "mscale_all_dim", "partial_rotary_factor", "short_mscale", "long_mscale":
		f, ok, err := AsFloat(key, v)
		return err == nil && ok && f == 1
	}
	return false
}

func (r Rope) Int(keys ...string) (n int64, ok bool, err error) {
	key, v := r.lookup(keys...)
	return AsInt(key, v)
}

func (r Rope) Float(keys ...string) (f float64, ok bool, err error) {
	key, v := r.lookup(keys...)
	return AsFloat(key, v)
}

func (r Rope) String(keys ...string) (s string, ok bool, err error) {
	key, v := r.lookup(keys...)
	return asString(key, v)
}

func (r Rope) Bool(keys ...string) (b, ok bool, err error) {
	key, v := r.lookup(keys...)
	return AsBool(key, v)
}

func (r Rope) Floats(key string) (list []float64, ok bool, err error) {
	key, v := r.lookup(key)
	return AsList(key, v, AsFloat)
}

func (r Rope) Ints(key string) (list []int64, ok bool, err error) {
	key, v := r.lookup(key)
	return AsList(key, v, AsInt)
}

func WrongType(key, want string, found any) error {
	return fault.Errorf(fault.Broken, "%s: key %q: want %s, found %v", ConfigFile, key, want, found)
}

func AsInt(key string, v any) (int64, bool, error) {
	if v == nil {
		return 0, false, nil
	}
	num, ok := v.(json.Number)
	if !ok {
		return 0, false, WrongType(key, "an integer", v)
	}
	n, err := num.Int64()
	if err != nil {
		return 0, false, WrongType(key, "an integer", v)
	}
	return n, true, nil
}

func AsFloat(key string, v any) (float64, bool, error) {
	if v == nil {
		return 0, false, nil
	}
	num, ok := v.(json.Number)
	if !ok {
		return 0, false, WrongType(key, "a number", v)
	}
	f, err := num.Float64()
	if err != nil || math.IsNaN(f) {
		return 0, false, WrongType(key, "a number that float64 can hold", v)
	}
	return f, true, nil
}

func AsBool(key string, v any) (b, ok bool, err error) {
	if v == nil {
		return false, false, nil
	}
	if b, ok = v.(bool); !ok {
		return false, false, WrongType(key, "true or false", v)
	}
	return b, true, nil
}

func AsList[T any](key string, v any, as func(string, any) (T, bool, error)) ([]T, bool, error) {
	if v == nil {
		return nil, false, nil
	}
	values, ok := v.([]any)
	if !ok {
		return nil, false, WrongType(key, "a list", v)
	}
	var list []T
	for i, v := range values {
		t, ok, err := as(fmt.Sprintf("%s[%d]", key, i), v)
		if err == nil && !ok {
			err = WrongType(key, "a list without null", v)
		}
		if err != nil {
			return nil, false, err
		}
		list = append(list, t)
	}
	return list, true, nil
}

func asString(key string, v any) (string, bool, error) {
	if v == nil {
		return "", false, nil
	}
	s, ok := v.(string)
	if !ok {
		return "", false, WrongType(key, "a string", v)
	}
	return s, true, nil
}

// ropeTypesWithLength are the rope types for which transformers fills in the
// original context length.
var ropeTypesWithLength = map[string]bool{"llama3": true, "yarn": true, "longrope": true}

// gatherRope builds the rope settings. Transformers moves rope_theta and
// rope_scaling into rope_parameters, the reference mirrors the rest; without a
// known model type only the reference's part happens.
func (c *View) gatherRope() error {
	m := modelTypes[c.modelType]
	var defaults map[string]any
	if m != nil {
		defaults, _ = m.Defaults["rope_parameters"].(map[string]any)
	}
	known := defaults != nil
	// transformers prefers rope_scaling, the reference rope_parameters
	names := []string{"rope_parameters", "rope_scaling"}
	if known {
		names = []string{"rope_scaling", "rope_parameters"}
	}
	c.rope = map[string]any{}
	for _, name := range names {
		if c.defaulted[name] {
			continue
		}
		v, ok := c.values[name]
		if m, isMap := v.(map[string]any); isMap && (len(m) > 0 || !known) {
			c.rope = maps.Clone(m)
			break
		} else if v != nil && !isMap {
			return WrongType(name, "an object", v)
		}
		if ok && !known {
			break
		}
	}
	if len(c.rope) == 0 && known {
		// what a type has without any settings, but for what stands beside them
		c.rope = maps.Clone(defaults)
		delete(c.rope, "rope_theta")
		delete(c.rope, "partial_rotary_factor")
	}
	for _, name := range names {
		c.read[name] = !c.defaulted[name]
	}
	if m != nil && m.rope != nil {
		if err := m.rope(c); err != nil {
			return err
		}
	}
	if c.rope["full_attention"] != nil || c.rope["sliding_attention"] != nil {
		return nil
	}
	set := func(key string, v any) {
		if _, ok := c.rope[key]; !ok && v != nil {
			c.rope[key] = v
		}
	}
	if _, local := c.Lookup("local_rope_theta", "rope_local_theta", "rope_theta_local", "swa_rope_theta", "rope_local_base_freq"); local != nil {
		c.rope["sliding_attention"] = map[string]any{"rope_theta": local}
	}
	key, theta := c.Lookup("global_rope_theta", "rope_global_theta", "rope_theta_global", "rope_theta", "rotary_emb_base")
	if known && key == "" {
		theta = defaults["rope_theta"]
	}
	set("rope_theta", theta)
	set("rope_type", c.rope["type"])
	_, partial := c.Lookup("partial_rotary_factor", "rope_pct", "rope_percent")
	set("partial_rotary_factor", partial)
	if known {
		set("partial_rotary_factor", defaults["partial_rotary_factor"])
	}
	if s, _ := c.rope["rope_type"].(string); known && ropeTypesWithLength[s] {
		set("original_max_position_embeddings", c.values["max_position_embeddings"])
	}
	_, length := c.Lookup("original_max_position_embeddings")
	set("original_max_position_embeddings", length)
	return nil
}

// Value returns the value of a key, nil if it has none.
func (c *View) Value(key string) any {
	_, v := c.Lookup(key)
	return v
}

// Quantization returns the method by which the file says that the weights are
// quantized; ok is false when it does not. They may have been dequantized since.
func (c *View) Quantization() (method string, ok bool) {
	c.read["quantization_config"] = true
	q, ok := c.values["quantization_config"].(map[string]any)
	if !ok || len(q) == 0 {
		return "", false
	}
	if method, ok = q["quant_method"].(string); !ok {
		method = "an unnamed method"
	}
	return method, true
}

// ParamsFile is the configuration of a checkpoint in Mistral's own format.
const ParamsFile = "params.json"

// ParseParams reads the bytes of params.json.
func ParseParams(data []byte) (*View, error) {
	raw, err := parseRoot(ParamsFile, data)
	if err != nil {
		return nil, err
	}
	c := &View{Raw: raw, Class: ParamsFile, values: maps.Clone(raw), read: map[string]bool{}}
	return c, c.gatherRope()
}

// With sets the directory that files beside the configuration are read from.
func (c *View) With(files Files) *View {
	c.files = files
	return c
}

// Require returns a rope setting that must be there.
func (r Rope) Require(key string) (float64, error) {
	f, ok, err := r.Float(key)
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: has no rope setting %q", ConfigFile, key)
	}
	return f, err
}
