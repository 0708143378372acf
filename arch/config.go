package arch

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"strconv"

	"ggforge/internal/fault"
	"ggforge/internal/pyjson"
)

// Config is a model's config.json as the reference sees it: with the defaults
// and the derived values that the transformers library adds for the model type,
// and with the rope settings gathered in one place.
type Config struct {
	// Raw is config.json as it stands; numbers are json.Number.
	Raw map[string]any
	// Classes are the entries of "architectures".
	Classes []string
	// Defaulted lists the keys that the file lacks and that were filled in.
	Defaulted []string

	values map[string]any
	rope   map[string]any
}

// ConfigFile is the name of the file that LoadConfig reads.
const ConfigFile = "config.json"

// maxJSON bounds the JSON files that are read whole; the largest real ones, of
// tokenizers, stay below 40 MB.
const maxJSON = 256 << 20

// LoadConfig reads config.json. A missing or broken file gives an error of kind
// fault.Broken.
func LoadConfig(fsys fs.FS) (*Config, error) {
	f, err := fsys.Open(ConfigFile)
	if err != nil {
		return nil, fault.Errorf(fault.Broken, "%s: %w", ConfigFile, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxJSON+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxJSON {
		return nil, fault.Errorf(fault.Broken, "%s: larger than %d bytes", ConfigFile, maxJSON)
	}
	return ParseConfig(data)
}

// ParseConfig is LoadConfig for the file's bytes.
func ParseConfig(data []byte) (*Config, error) {
	c := &Config{}
	v, err := pyjson.Parse(data)
	if err != nil {
		return nil, fault.Errorf(fault.Broken, "%s: %w", ConfigFile, err)
	}
	root, ok := v.(*pyjson.Object)
	if !ok {
		return nil, fault.Errorf(fault.Broken, "%s: want a JSON object, found %s", ConfigFile, pyjson.Describe(v))
	}
	c.Raw = root.Map()
	classes, _ := c.Raw["architectures"].([]any)
	for _, v := range classes {
		s, ok := v.(string)
		if !ok {
			return nil, fault.Errorf(fault.Broken, "%s: key \"architectures\": want strings, found %v", ConfigFile, v)
		}
		c.Classes = append(c.Classes, s)
	}
	if len(c.Classes) == 0 {
		return nil, fault.Errorf(fault.Broken, "%s: key \"architectures\": want a list with the model's class, found %v", ConfigFile, c.Raw["architectures"])
	}
	for _, key := range foreignKeys {
		if c.Raw[key] != nil {
			return nil, fault.Errorf(fault.Unsupported, "%s: key %q is not understood yet, and it changes the model", ConfigFile, key)
		}
	}
	c.values = maps.Clone(c.Raw)
	modelType, _ := c.Raw["model_type"].(string)
	if m, ok := modelTypes[modelType]; ok {
		if err := m.complete(c); err != nil {
			return nil, err
		}
	}
	return c, c.gatherRope()
}

// foreignKeys are keys that the reference gives a meaning for any class, and that
// no row here reads: models inside models, draft models, rope settings per kind of
// attention, gates of experts.
var foreignKeys = []string{
	"text_config", "llm_config", "lm_config", "language_config", "thinker_config", "lfm", "transformer_layer_config", "draft_vocab_size",
	"local_rope_theta", "rope_local_theta", "rope_theta_local", "swa_rope_theta", "rope_local_base_freq",
	"score_function", "scoring_func", "score_func", "moe_router_activation", "moe_router_activation_func", "expert_selection_fn", "router_score_func",
}

// lookup returns the first of keys that the config has and its value. A null is
// a value: the reference looks no further.
func (c *Config) lookup(keys ...string) (key string, v any) {
	for _, key := range keys {
		if v, ok := c.values[key]; ok {
			return key, v
		}
	}
	return "", nil
}

// Has reports whether one of keys has a value other than null.
func (c *Config) Has(keys ...string) bool {
	_, v := c.lookup(keys...)
	return v != nil
}

// Int returns the first of keys that is there as an integer. ok is false when
// none is, or when it is null.
func (c *Config) Int(keys ...string) (n int64, ok bool, err error) {
	key, v := c.lookup(keys...)
	return asInt(key, v)
}

// Require is Int for keys of which one must be there.
func (c *Config) Require(keys ...string) (int64, error) {
	n, ok, err := c.Int(keys...)
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: has none of the keys %q", ConfigFile, keys)
	}
	return n, err
}

// Float is Int for numbers.
func (c *Config) Float(keys ...string) (f float64, ok bool, err error) {
	key, v := c.lookup(keys...)
	return asFloat(key, v)
}

// String is Int for strings.
func (c *Config) String(keys ...string) (s string, ok bool, err error) {
	key, v := c.lookup(keys...)
	return asString(key, v)
}

// Rope returns the rope settings: rope_parameters or rope_scaling of
// config.json with the settings that may stand beside them.
func (c *Config) Rope() Rope { return Rope{c.rope} }

// Rope gives access to rope settings; its methods work like those of Config.
type Rope struct{ values map[string]any }

func (r Rope) lookup(keys ...string) (string, any) {
	for _, key := range keys {
		if v, ok := r.values[key]; ok {
			return "rope_scaling." + key, v
		}
	}
	return "", nil
}

func (r Rope) Int(keys ...string) (n int64, ok bool, err error) {
	key, v := r.lookup(keys...)
	return asInt(key, v)
}

func (r Rope) Float(keys ...string) (f float64, ok bool, err error) {
	key, v := r.lookup(keys...)
	return asFloat(key, v)
}

func (r Rope) String(keys ...string) (s string, ok bool, err error) {
	key, v := r.lookup(keys...)
	return asString(key, v)
}

func (r Rope) Bool(keys ...string) (b, ok bool, err error) {
	key, v := r.lookup(keys...)
	if v == nil {
		return false, false, nil
	}
	b, ok = v.(bool)
	if !ok {
		return false, false, wrongType(key, "true or false", v)
	}
	return b, true, nil
}

func wrongType(key, want string, found any) error {
	return fault.Errorf(fault.Broken, "%s: key %q: want %s, found %v", ConfigFile, key, want, found)
}

func asInt(key string, v any) (int64, bool, error) {
	if v == nil {
		return 0, false, nil
	}
	num, ok := v.(json.Number)
	if !ok {
		return 0, false, wrongType(key, "an integer", v)
	}
	n, err := num.Int64()
	if err != nil {
		return 0, false, wrongType(key, "an integer", v)
	}
	return n, true, nil
}

func asFloat(key string, v any) (float64, bool, error) {
	if v == nil {
		return 0, false, nil
	}
	num, ok := v.(json.Number)
	if !ok {
		return 0, false, wrongType(key, "a number", v)
	}
	f, err := num.Float64()
	if err != nil || math.IsNaN(f) {
		return 0, false, wrongType(key, "a number that float64 can hold", v)
	}
	return f, true, nil
}

func asString(key string, v any) (string, bool, error) {
	if v == nil {
		return "", false, nil
	}
	s, ok := v.(string)
	if !ok {
		return "", false, wrongType(key, "a string", v)
	}
	return s, true, nil
}

// modelType holds what the transformers library does to a config.json of one
// model_type before the reference sees it. Source: the configuration classes of
// transformers 5.12.
type modelType struct {
	defaults map[string]string // key → JSON text of the value it gets when absent
	derived  []derived         // in order, after the defaults
}

// derived is a value computed for a key that is absent or null.
type derived struct {
	key string
	of  func(*Config) (int64, error)
}

func headsOf(c *Config) (int64, error) { return c.Require("num_attention_heads") }

func headDimOf(c *Config) (int64, error) {
	hidden, err := c.Require("hidden_size")
	if err != nil {
		return 0, err
	}
	heads, err := headsOf(c)
	if err != nil {
		return 0, err
	}
	if heads <= 0 {
		return 0, wrongType("num_attention_heads", "a positive integer", heads)
	}
	return hidden / heads, nil
}

var llamaDerived = []derived{{"head_dim", headDimOf}, {"num_key_value_heads", headsOf}}

// modelTypes is the table of known model types.
var modelTypes = map[string]modelType{
	"llama": {
		defaults: map[string]string{
			"vocab_size": "32000", "hidden_size": "4096", "intermediate_size": "11008", "num_hidden_layers": "32",
			"num_attention_heads": "32", "max_position_embeddings": "2048", "rms_norm_eps": "1e-6", "hidden_act": `"silu"`,
		},
		derived: llamaDerived,
	},
	"mistral": {
		defaults: map[string]string{
			"vocab_size": "32000", "hidden_size": "4096", "intermediate_size": "14336", "num_hidden_layers": "32",
			"num_attention_heads": "32", "num_key_value_heads": "8", "max_position_embeddings": "131072",
			"rms_norm_eps": "1e-6", "hidden_act": `"silu"`,
		},
		derived: llamaDerived,
	},
}

// complete fills in what the file leaves out.
func (m modelType) complete(c *Config) error {
	for key, text := range m.defaults {
		if _, ok := c.values[key]; ok {
			continue
		}
		v, err := pyjson.Parse([]byte(text))
		if err != nil {
			panic(fmt.Sprintf("arch: default of %s: %v", key, err))
		}
		c.values[key] = v
		c.Defaulted = append(c.Defaulted, key)
	}
	for _, d := range m.derived {
		if c.values[d.key] != nil {
			continue
		}
		n, err := d.of(c)
		if err != nil {
			return err
		}
		c.values[d.key] = json.Number(strconv.FormatInt(n, 10))
	}
	return nil
}

// ropeTypesWithLength are the rope types for which transformers fills in the
// original context length.
var ropeTypesWithLength = map[string]bool{"llama3": true, "yarn": true, "longrope": true}

// defaultTheta is transformers' base of the rope frequencies.
const defaultTheta = json.Number("10000.0")

// gatherRope builds the rope settings. Transformers moves rope_theta and
// rope_scaling into rope_parameters, the reference mirrors the rest; without a
// known model type only the reference's part happens.
func (c *Config) gatherRope() error {
	_, known := modelTypes[fmt.Sprint(c.Raw["model_type"])]
	// transformers prefers rope_scaling, the reference rope_parameters
	names := []string{"rope_parameters", "rope_scaling"}
	if known {
		names = []string{"rope_scaling", "rope_parameters"}
	}
	c.rope = map[string]any{}
	for _, name := range names {
		v, ok := c.values[name]
		if m, isMap := v.(map[string]any); isMap && (len(m) > 0 || !known) {
			c.rope = maps.Clone(m)
			break
		} else if v != nil && !isMap {
			return wrongType(name, "an object", v)
		}
		if ok && !known {
			break
		}
	}
	set := func(key string, v any) {
		if _, ok := c.rope[key]; !ok && v != nil {
			c.rope[key] = v
		}
	}
	key, theta := c.lookup("global_rope_theta", "rope_global_theta", "rope_theta_global", "rope_theta", "rotary_emb_base")
	if known && key == "" {
		theta = defaultTheta
	}
	set("rope_theta", theta)
	set("rope_type", c.rope["type"])
	set("partial_rotary_factor", c.values["partial_rotary_factor"])
	if s, _ := c.rope["rope_type"].(string); known && ropeTypesWithLength[s] {
		set("original_max_position_embeddings", c.values["max_position_embeddings"])
	}
	set("original_max_position_embeddings", c.values["original_max_position_embeddings"])
	return nil
}

// Value returns the value of a key, nil if it has none.
func (c *Config) Value(key string) any { return c.values[key] }

// Quantization returns the method by which the checkpoint's weights are
// quantized; ok is false when they are not.
func (c *Config) Quantization() (method string, ok bool) {
	q, ok := c.values["quantization_config"].(map[string]any)
	if !ok || len(q) == 0 {
		return "", false
	}
	if method, ok = q["quant_method"].(string); !ok {
		method = "an unnamed method"
	}
	return method, true
}
