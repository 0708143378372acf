// Package config is a model's configuration: config.json as the reference sees
// it, with what the transformers library fills in, and the facts that other small
// files of the checkpoint hold.
//
//	config.json ── Parse ──► Config: a value, written to by nobody
//	side files ──► Facts             what they say, gathered before any table is asked
//	Config + Facts + Options ──► View: what tables may ask; it records what they asked
package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/internal/text/pyjson"
)

// Config is a model's config.json as the reference sees it: with the defaults
// and the derived values that the transformers library adds for the model type,
// and with the rope settings gathered in one place. Nobody writes to it.
type Config struct {
	// Raw is the file as it is; numbers are json.Number.
	Raw map[string]any
	// File is the file that Raw is from: ConfigFile or ParamsFile.
	File string
	// Class is the model's class, of "architectures"; "" in ParamsFile, which names none.
	Class string
	// Named is the class that the file names when Class is another one, see ParseAs.
	Named string

	modelType string // the known model_type whose rules hold, "" for none
	values    map[string]any
	rope      map[string]any
	text      map[string]any    // of an encoder: the root with the language model's configuration laid over
	parts     map[string]string // of an encoder: names of the rows of modelTypes, by the prefix of a part's keys
	defaulted map[string]bool   // keys that the file lacks and that were filled in
	used      map[string]bool   // keys that the rest was made of
	decision  *Decision         // nil for models that do not decide between options
}

// KnownType returns the model_type whose rules hold, "" for none.
func (c *Config) KnownType() string { return c.modelType }

// ConfigFile is the name of the file that LoadConfig reads.
const ConfigFile = "config.json"

// Files are the files of a checkpoint directory, by names as in package fs. The
// error about one that is not there is fs.ErrNotExist.
type Files interface {
	ReadFile(name string) ([]byte, error)
}

// ReadConfig reads the file that a model is described in: a model without it is
// broken, one whose file cannot be read is not.
func ReadConfig(files Files, name string) ([]byte, error) {
	data, err := files.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && !fault.Has(err) {
		err = fault.Errorf(fault.Broken, "%w", err) // which has the name
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
	return decodeFloats(root.Map()).(map[string]any), nil
}

// decodeFloats returns a value in which the numbers that JSON has no spelling for
// are numbers. The transformers library saves infinity as {"__float__": "Infinity"}.
func decodeFloats(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if s, ok := v["__float__"].(string); ok && len(v) == 1 &&
			slices.Contains([]string{"Infinity", "-Infinity", "NaN"}, s) {
			return json.Number(s)
		}
		for key := range v {
			v[key] = decodeFloats(v[key])
		}
	case []any:
		for i := range v {
			v[i] = decodeFloats(v[i])
		}
	}
	return v
}

// Parse reads the bytes of config.json. rawConfig reports the classes whose
// configuration gets no defaults; nil for none.
func Parse(data []byte, rawConfig func(class string) bool) (*Config, error) {
	return ParseAs("", data, rawConfig)
}

// ParseAs is Parse for a model that is taken as one of that class, whatever the
// file says; "" for the class that the file names.
func ParseAs(class string, data []byte, rawConfig func(class string) bool) (*Config, error) {
	c, raw, err := parse(class, data, rawConfig, (*Config).findClass)
	if err != nil {
		return nil, err
	}
	if err := c.layOver(raw); err != nil {
		return nil, err
	}
	if err := c.layOverDraft(); err != nil {
		return nil, err
	}
	return c, c.gatherRope()
}

// layOverDraft lays the configuration of the only layer over that of a draft made by
// the speculators library.
func (c *Config) layOverDraft() error {
	const key = "transformer_layer_config"
	v := c.Raw[key]
	if v == nil || !strings.HasSuffix(c.Class, "Speculator") {
		return nil
	}
	layer, ok := v.(map[string]any)
	if !ok {
		return WrongType(key, "an object", v)
	}
	c.used[key] = true
	c.values = maps.Clone(c.values)
	maps.Copy(c.values, layer)
	return nil
}

// parse reads the file and decides the class and the model type; raw reports that the
// class wants the file without defaults.
func parse(class string, data []byte, rawConfig func(class string) bool, find func(*Config) (string, error)) (c *Config,
	raw bool, err error) {
	c = &Config{File: ConfigFile, used: map[string]bool{}, defaulted: map[string]bool{}}
	if c.Raw, err = parseRoot(ConfigFile, data); err != nil {
		return nil, false, err
	}
	named, err := find(c)
	if err != nil {
		return nil, false, err
	}
	if c.Class = cmp.Or(class, named); c.Class == "" {
		return nil, false, fault.Errorf(fault.Broken,
			"%s: key \"architectures\": want a list with the model's class, found %s", ConfigFile,
			shown(c.Raw["architectures"]))
	}
	if c.Class != named {
		c.Named = named
	}
	c.values = maps.Clone(c.Raw)
	raw = rawConfig != nil && rawConfig(c.Class)
	c.modelType, _ = c.Raw["model_type"].(string)
	if raw || modelTypes()[c.modelType] == nil {
		c.modelType = ""
	}
	return c, raw, nil
}

// ParamsFile is the configuration of a checkpoint in Mistral's own format.
const ParamsFile = "params.json"

// ParseParams reads the bytes of params.json.
func ParseParams(data []byte) (*Config, error) {
	raw, err := parseRoot(ParamsFile, data)
	if err != nil {
		return nil, err
	}
	c := &Config{Raw: raw, File: ParamsFile, values: maps.Clone(raw), used: map[string]bool{}}
	if err := c.gatherExperts(); err != nil {
		return nil, err
	}
	return c, c.gatherRope()
}

// paramsExperts are the keys of the object "moe" of params.json, and those of config.json
// that mean the same. "" is for what training alone looks at.
var paramsExperts = map[string]string{"route_every_n": "moe_layer_freq",
	"first_k_dense_replace": "first_k_dense_replace", "num_experts_per_tok": "num_experts_per_tok",
	"num_experts": "n_routed_experts", "expert_hidden_dim": "moe_intermediate_size",
	"routed_scale": "routed_scaling_factor", "num_shared_experts": "n_shared_experts",
	"num_expert_groups": "n_group", "num_expert_groups_per_tok": "topk_group", "expert_parallel": "",
	"expert_model_parallel": ""}

// gatherExperts puts what params.json says of experts where models of Hugging Face have it.
// Source: the reference's MistralMoeModel.
func (c *Config) gatherExperts() error {
	if IsNo(c.Raw["moe"]) {
		return nil
	}
	moe, ok := c.Raw["moe"].(map[string]any)
	if !ok {
		return WrongType("moe", "an object", c.Raw["moe"])
	}
	for _, key := range slices.Sorted(maps.Keys(moe)) {
		to, known := paramsExperts[key]
		if !known {
			return fault.Errorf(fault.Unsupported, "%s: key %q: what it means is not known", ParamsFile, "moe."+key)
		}
		if to != "" {
			c.values[to] = moe[key]
		}
	}
	c.values["norm_topk_prob"], c.values["scoring_func"] = true, "softmax"
	if _, ok := c.values["max_position_embeddings"]; !ok {
		c.values["max_position_embeddings"] = json.Number("128000")
	}
	return nil
}

// use returns the first of keys that the configuration has and its value, and
// counts all of them as used.
func (c *Config) use(keys ...string) (key string, v any) {
	return Object{c.values, "", c.used, c.File}.lookup(keys...)
}

// textConfigs are the names under which config.json holds the configuration of
// the language model of a larger one. A later one wins.
var textConfigs = []string{"text_config", "llm_config", "lm_config", "thinker_config", "language_config", "lfm"}

// textConfig returns the configuration of the language model, nil when there is
// no other than the whole.
func (c *Config) textConfig() (map[string]any, error) { return c.textConfigOf(c.Raw) }

// textConfigOf is textConfig in a configuration that may have been completed.
func (c *Config) textConfigOf(root map[string]any) (map[string]any, error) {
	var text map[string]any
	names := textConfigs
	if c.Class == Qwen3TTS {
		names = []string{"talker_config"}
	}
	for _, key := range names {
		v := root[key]
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
		c.used[key] = true
		text = m
	}
	return text, nil
}

// rootClasses are classes that keep their name although the language model in
// them has one too. Source: get_model_architecture of the reference.
var rootClasses = []string{"StepVLForConditionalGeneration", "Sarashina2VisionForCausalLM",
	"Exaone4_5_ForConditionalGeneration",
	"Step3p7ForConditionalGeneration", "KimiK3ForConditionalGeneration"}

// D1 is the class of models whose config.json names it only as the code to load.
const D1 = "D1Model"

// findClass returns the class that the file names: that of its language model if
// that has one, "" for none.
func (c *Config) findClass() (class string, err error) {
	text, err := c.textConfig()
	if err != nil {
		return "", err
	}
	if class, err = firstClass(c.Raw); err != nil {
		return "", err
	}
	if ssm, ok := c.Raw["ssm_cfg"].(map[string]any); ok && class == "" {
		layer, _ := ssm["layer"].(string) // checkpoints of the mamba_ssm package
		class = cmp.Or(layer, "Mamba") + "ForCausalLM"
	}
	if slices.Contains(rootClasses, class) {
		return class, nil
	}
	inner, err := firstClass(text)
	if auto, ok := c.Raw["auto_map"].(map[string]any); ok && text != nil {
		if model, _ := auto["AutoModel"].(string); strings.HasSuffix(model, "."+D1) {
			return D1, err
		}
	}
	return cmp.Or(inner, class), err
}

// Qwen3TTS is the class of models whose language model speaks. Variants that speak have one
// that does not, and the one that does is left out.
const Qwen3TTS = "Qwen3TTSForConditionalGeneration"

// firstClass returns the first of the classes that a configuration names, "" for none.
func firstClass(m map[string]any) (string, error) {
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

// flatTypes are the model types whose config.json may have the keys of the
// language model among the others.
var flatTypes = set("qwen2_vl", "qwen2_5_vl", "paddleocr_vl")

// layOver fills in the defaults of the model type and lays the configuration of
// the language model over the root.
func (c *Config) layOver(raw bool) error {
	m := modelTypes()[c.modelType]
	if err := m.complete(c, c.values, ""); err != nil {
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
		return modelTypes()[inner].complete(c, c.values, "")
	}
	values := maps.Clone(text)
	if values == nil {
		values = map[string]any{}
	}
	if m != nil && !raw {
		if s, ok := values["model_type"].(string); ok {
			inner = s
		}
		if t := modelTypes()[inner]; t != nil {
			c.modelType = inner
			if err := t.complete(c, values, ""); err != nil {
				return err
			}
		}
	}
	maps.Copy(c.values, values)
	return nil
}
