package config

import (
	"encoding/json"
	"maps"
	"strconv"

	"ggforge/fault"
)

// Rules are what a family's config.json means beyond its keys: what the transformers library does with some model
// types in addition to the defaults of defaults.json, and how some classes name themselves and their parts.
type Rules struct {
	// Types are the values of model_type that Rewrite, Derived, Rope and Flat are for.
	Types []string
	// Rewrite changes the values of the file before defaults are filled in; nil for none.
	Rewrite func(Values) error
	// Derived makes the values of absent or null keys that follow from other keys: those under "follow" in
	// defaults.json. It precedes the common rules.
	Derived DerivedKeys
	// Rope makes the rope settings of models that have some per kind of attention, or settings that the file lacks; nil
	// for none.
	Rope func(*RopeSettings) error
	// Flat: the language model's keys may be among the root's.
	Flat bool

	// Raw: config.json of the table's classes is read as it is, without the defaults and rules of its model_type.
	Raw bool
	// Outer are the classes of multimodal models that precede the class of their language model. Source:
	// get_model_architecture of the reference.
	Outer []string
	// Auto: config.json has the table's classes in auto_map only.
	Auto bool
	// Decision recognizes a decision model of the table's class by its files, Adapter an adapter that turns its base model
	// into one, whose ReadRevision and WithBase follow; nil results are for other models.
	Decision, Adapter func(Files) (*Decision, error)
	// Shapes makes the config.json of models that have none, from the shapes of tensors by their names in a file; ok is
	// false for tensors of other models, nil for none.
	Shapes func(file string, shapes map[string][]int64) (config []byte, ok bool, err error)
	// Text is the key of the language model's configuration; "" for any of the usual ones.
	Text string
}

// DerivedKeys make the values of keys from those of other keys.
type DerivedKeys map[string]func(Values) (any, error)

// Families finds the rules of families; nil for none.
type Families struct {
	Class func(class string) *Rules     // of the table of a class; nil for an unknown one
	Type  func(modelType string) *Rules // of a model type; nil for none
}

// noRules are the rules of unknown classes and of model types without rules.
var noRules Rules

func (f *Families) ofClass(class string) *Rules {
	if f == nil {
		return &noRules
	}
	if r := f.Class(class); r != nil {
		return r
	}
	return &noRules
}

func (f *Families) ofType(modelType string) *Rules {
	if f == nil {
		return &noRules
	}
	if r := f.Type(modelType); r != nil {
		return r
	}
	return &noRules
}

// derived are the common rules for absent or null keys whose values follow from other keys. A key of modelType.Follow
// without a rule stays absent.
var derived = DerivedKeys{
	"head_dim":            headDimOf,
	"num_key_value_heads": func(v Values) (any, error) { return v.Int("num_attention_heads") },
	"num_decoder_layers":  func(v Values) (any, error) { return v.Int("num_layers") },
}

// Values are the members of a configuration during completion.
type Values map[string]any

// Int returns an integer; without one it is an error.
func (v Values) Int(key string) (int64, error) { return v.Object().Require(key) }

// Object returns the values as an object that records nothing.
func (v Values) Object() Object { return Object{values: v} }

func headDimOf(v Values) (any, error) {
	hidden, err := v.Int("hidden_size")
	if err != nil {
		return nil, err
	}
	heads, err := v.Int("num_attention_heads")
	if err != nil {
		return nil, err
	}
	if heads <= 0 {
		return nil, WrongType("num_attention_heads", "a positive integer", heads)
	}
	return hidden / heads, nil
}

// LayerKinds returns the kinds of all layers as a value of layer_types.
func LayerKinds(v Values, of func(bid int64) string) (any, error) {
	n, err := v.Int("num_hidden_layers")
	if err == nil && (n < 0 || n > MaxBlocks) {
		err = fault.Errorf(fault.Broken, "%s: %d layers, want at most %d", ConfigFile, n, MaxBlocks)
	}
	if err != nil {
		return nil, err
	}
	list := make([]any, n)
	for i := range list {
		list[i] = of(int64(i))
	}
	return list, nil
}

// AllFull is a rule of layer_types: every layer has full attention.
func AllFull(v Values) (any, error) {
	return LayerKinds(v, func(int64) string { return "full_attention" })
}

// derive fills in the absent or null keys of Follow.
func (m *modelType) derive(r *Rules, v Values) error {
	for _, key := range m.Follow {
		rule := r.Derived[key]
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

// RopeSettings are the rope settings of a configuration, for Rules.Rope to change.
type RopeSettings struct {
	Members map[string]any
	config  *Config
}

// Use returns the first of keys that the configuration has and its value, and counts all of them as used.
func (s *RopeSettings) Use(keys ...string) (key string, v any) { return s.config.use(keys...) }

// Root returns the value of a key of the configuration, nil if it has none. It does not count as used.
func (s *RopeSettings) Root(key string) any { return s.config.values[key] }

// Kind returns a copy of the settings of a kind of attention, of rope_type default if there are none.
func (s *RopeSettings) Kind(name string) (map[string]any, error) {
	v := s.Members[name]
	m, ok := v.(map[string]any)
	if v != nil && !ok {
		return nil, WrongType("rope_parameters."+name, "an object", v)
	}
	if m = maps.Clone(m); m == nil {
		m = map[string]any{"rope_type": "default"}
	}
	return m, nil
}

// SetDefault sets an absent member of m, settings of a kind of attention; without v it does nothing.
func SetDefault(m map[string]any, key string, v any) {
	if _, ok := m[key]; !ok && v != nil {
		m[key] = v
	}
}

// SetLength sets the original context length in m where its rope type needs one.
func (s *RopeSettings) SetLength(m map[string]any) {
	if t, _ := m["rope_type"].(string); ropeTypesWithLength[t] {
		SetDefault(m, "original_max_position_embeddings", s.Root("max_position_embeddings"))
	}
}
