package config

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"sync"

	"ggforge/internal/text/pyjson"
)

// modelType has the changes of the transformers library to a config.json of one model_type.
type modelType struct {
	Name string
	// Defaults are the values of keys that the file lacks; a "text_config" among
	// them is the model_type of the language model in it. "rope_parameters" are
	// laid under the rope settings, see gatherRope.
	Defaults map[string]any
	// Alias maps other names of keys to keys: the value moves to the key, even if that exists too.
	Alias map[string]string
	// Follow lists the keys whose default is derived from other keys, see Rules.Derived.
	Follow []string
	// Parts are the sub-configs except the language model's, by key: the name of their row in modelTypes, "TYPE/KEY" if
	// their own model_type is irrelevant. Only encoders' sub-configs are completed.
	Parts map[string]string
	// Text are defaults of the language model's keys; they precede the Defaults of its own type.
	Text map[string]any
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
		t := &modelType{Name: name, Defaults: m["defaults"].(map[string]any)}
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

// completeText fills in the values of Text that v, the language model's configuration, lacks.
func (m *modelType) completeText(c *Config, v Values, prefix string) {
	for key, value := range m.Text {
		if _, ok := v[key]; !ok {
			v[key] = value
			c.defaulted[prefix+key] = true
		}
	}
}

// complete fills in the defaults of v: the root, the language model's configuration, or another part, with prefix
// before its keys.
func (m *modelType) complete(c *Config, v Values, prefix string) error {
	if m == nil {
		return nil
	}
	for _, other := range slices.Sorted(maps.Keys(m.Alias)) {
		if value := v[other]; value != nil {
			v[m.Alias[other]] = value
		}
		delete(v, other)
	}
	rules := c.families.ofType(m.Name)
	if rules.Rewrite != nil {
		if err := rules.Rewrite(v); err != nil {
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
	return m.derive(rules, v)
}
