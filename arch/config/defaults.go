package config

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"ggforge/internal/text/pyjson"
)

// modelType has the changes of the transformers library to a config.json of one model_type.
type modelType struct {
	// Defaults are the values of keys that the file lacks; a "text_config" among
	// them is the model_type of the language model in it. "rope_parameters" are
	// laid under the rope settings, see gatherRope.
	Defaults map[string]any
	// Alias maps other names of keys to keys: the value moves to the key, even if that exists too.
	Alias map[string]string
	// Follow lists the keys whose default is derived from other keys, see derived.
	Follow []string
	// Parts are the sub-configs except the language model's, by key: the name of their row in modelTypes, "TYPE/KEY" if
	// their own model_type is irrelevant. Only encoders' sub-configs are completed.
	Parts map[string]string
	// Text are defaults of the language model's keys; they precede the Defaults of its own type.
	Text map[string]any

	rewrite func(values) error // changes the file's values, nil for none

	rope func(*Config) error // makes the rope settings of models with several kinds
}

// defaultsJSON has the defaults of transformers 5.12.1 by model_type, measured by test/interop/defaults.py. Step
// "defaults" of make golden writes it anew for the types that it has; DEFAULTS="TYPE ..." adds types.
//
//go:embed defaults.json
var defaultsJSON []byte

// modelTypes is the table of known model types.
var modelTypes = sync.OnceValue(loadModelTypes)

func loadModelTypes() map[string]*modelType {
	v, err := pyjson.Parse(defaultsJSON)
	if err != nil {
		panic(fmt.Sprintf("arch: defaults.json: %v", err))
	}
	types := map[string]*modelType{}
	for name, v := range v.(*pyjson.Object).Map() {
		m := v.(map[string]any)
		t := &modelType{Defaults: m["defaults"].(map[string]any), rope: ropeRules[name], rewrite: rewriteRules[name]}
		for _, key := range m["follow"].([]any) {
			t.Follow = append(t.Follow, key.(string))
		}
		t.Text, _ = m["text"].(map[string]any)
		parts, _ := m["parts"].(map[string]any)
		for key, of := range parts {
			if t.Parts == nil {
				t.Parts = map[string]string{}
			}
			t.Parts[key] = of.(string)
		}
		alias, _ := m["alias"].(map[string]any)
		for other, key := range alias {
			if t.Alias == nil {
				t.Alias = map[string]string{}
			}
			t.Alias[other] = key.(string)
		}
		types[name] = t
	}
	return types
}

// ropeRules make the rope settings of model types that have some per kind of
// attention, by model_type.
var ropeRules = map[string]func(*Config) error{
	"apertus":      apertusRope,
	"gemma3_text":  gemma3Rope,
	"gemma3n_text": gemma3Rope,
	"laguna":       lagunaRope,
	"mellum":       mellumRope,
	"mistral4":     mistral4Rope,
	"phi3":         phi3Rope,
	"modernbert":   modernBertRope,
}

// rewriteRules change the values of the file before defaults are filled in, by model_type.
var rewriteRules = map[string]func(values) error{
	"nemotron_h": nemotronHFirst,
}

// derived are the rules for absent or null keys whose values follow from other keys: by key, or by model_type and key
// for a special rule. A key of Follow without a rule stays absent.
var derived = map[string]func(values) (any, error){
	"head_dim":                                 headDimOf,
	"deepseek_v2.head_dim":                     func(v values) (any, error) { return v.int("qk_rope_head_dim") },
	"deepseek_v3.head_dim":                     func(v values) (any, error) { return v.int("qk_rope_head_dim") },
	"deepseek_v32.head_dim":                    func(v values) (any, error) { return v.int("qk_rope_head_dim") },
	"glm_moe_dsa.head_dim":                     func(v values) (any, error) { return v.int("qk_rope_head_dim") },
	"mistral4.head_dim":                        mistral4HeadDim,
	"youtu.head_dim":                           func(v values) (any, error) { return v.int("qk_rope_head_dim") },
	"glm_moe_dsa.indexer_types":                glmIndexerTypes,
	"num_key_value_heads":                      func(v values) (any, error) { return v.int("num_attention_heads") },
	"exaone4.layer_types":                      exaone4LayerTypes,
	"lfm2.layer_types":                         lfm2LayerTypes,
	"num_decoder_layers":                       func(v values) (any, error) { return v.int("num_layers") },
	"mellum.layer_types":                       allFull,
	"laguna.layer_types":                       allFull,
	"laguna.mlp_layer_types":                   lagunaMLPTypes,
	"gemma3n_text.layer_types":                 gemma3nLayerTypes,
	"gemma3n_text.intermediate_size":           func(values) (any, error) { return int64(16384), nil },
	"gemma3n_text.activation_sparsity_pattern": gemma3nSparsity,
	"exaone_moe.layer_types":                   exaone4LayerTypes,
	"cohere2_moe.layer_types":                  cohere2LayerTypes,
	"cohere2_moe.mlp_layer_types":              cohere2MLPTypes,
	"gemma4_text.layer_types":                  gemma4LayerTypes,
	"gemma4_unified_text.layer_types":          gemma4LayerTypes,
}

// values are the members of a configuration during completion.
type values map[string]any

func (v values) int(key string) (int64, error) {
	return Object{values: v}.Require(key)
}

func headDimOf(v values) (any, error) {
	hidden, err := v.int("hidden_size")
	if err != nil {
		return nil, err
	}
	heads, err := v.int("num_attention_heads")
	if err != nil {
		return nil, err
	}
	if heads <= 0 {
		return nil, WrongType("num_attention_heads", "a positive integer", heads)
	}
	return hidden / heads, nil
}

// completeText fills in the values of Text that v, the language model's configuration, lacks.
func (m *modelType) completeText(c *Config, v values, prefix string) {
	for key, value := range m.Text {
		if _, ok := v[key]; !ok {
			v[key] = value
			c.defaulted[prefix+key] = true
		}
	}
}

// complete fills in the defaults of v: the root, the language model's configuration, or another part, with prefix
// before its keys.
func (m *modelType) complete(c *Config, v values, prefix string) error {
	if m == nil {
		return nil
	}
	for _, other := range slices.Sorted(maps.Keys(m.Alias)) {
		if value := v[other]; value != nil {
			v[m.Alias[other]] = value
		}
		delete(v, other)
	}
	if m.rewrite != nil {
		if err := m.rewrite(v); err != nil {
			return err
		}
	}
	for key, value := range m.Defaults {
		if _, ok := v[key]; ok || key == "text_config" {
			continue
		}
		v[key] = value
		c.defaulted[prefix+key] = true
	}
	name, _ := v["model_type"].(string)
	for _, key := range m.Follow {
		rule := derived[name+"."+key]
		if rule == nil {
			rule = derived[key]
		}
		if v[key] != nil || rule == nil {
			continue
		}
		value, err := rule(v)
		if err != nil {
			return err
		}
		if n, ok := value.(int64); ok {
			value = json.Number(strconv.FormatInt(n, 10))
		}
		v[key] = value
	}
	return nil
}
