// Package config is a model's configuration: config.json as the reference reads it, with the transformers library's
// defaults, and facts from other small files of the checkpoint.
//
//	config.json ── Parse ──► Config: immutable
//	side files ──► Facts             their content, read before any table is used
//	Config + Facts + Options ──► View: the input of tables; it records the keys that they read
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

// Config is a model's config.json as the reference reads it: with the defaults and the derived values that the
// transformers library adds for the model type, and with the rope settings gathered in one place. It is immutable.
type Config struct {
	// Raw is the file as it is; numbers are json.Number.
	Raw map[string]any
	// File is the file that Raw is from: ConfigFile or ParamsFile.
	File string
	// Class is the model's class, of "architectures"; "" in ParamsFile, which names none.
	Class string
	// Named is the file's class if ParseAs has overridden it.
	Named string

	modelType string // the known model_type whose rules hold, "" for none
	values    map[string]any
	rope      map[string]any
	text      map[string]any    // of an encoder: the root with the language model's configuration laid over
	parts     map[string]string // of an encoder: names of the rows of modelTypes, by the prefix of a part's keys
	defaulted map[string]bool   // keys filled in with a default
	used      map[string]bool   // keys that derived values were made from
	decision  *Decision         // nil except for decision models
	families  *Families
}

// KnownType returns the model_type whose rules hold, "" for none.
func (c *Config) KnownType() string { return c.modelType }

// ConfigFile is the name of the file that LoadConfig reads.
const ConfigFile = "config.json"

// Files are the files of a checkpoint directory, by names as in package fs. The
// error about a missing file is fs.ErrNotExist.
type Files interface {
	ReadFile(name string) ([]byte, error)
}

// ReadConfig reads a configuration file. A missing file is an error of kind fault.Broken, an unreadable one is not.
func ReadConfig(files Files, name string) ([]byte, error) {
	data, err := files.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && !fault.Has(err) {
		err = fault.Errorf(fault.Broken, "%w", err) // the error has the name
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

// decodeFloats replaces {"__float__": "Infinity"} and the like, as the transformers library saves infinities and NaN,
// by numbers.
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

// Parse reads the bytes of config.json, by the rules of f.
func Parse(data []byte, f *Families) (*Config, error) { return ParseAs("", data, f) }

// ParseAs is Parse with a class that overrides the file's; "" for the file's own.
func ParseAs(class string, data []byte, f *Families) (*Config, error) {
	c, raw, err := parse(class, data, f, (*Config).findClass)
	if err != nil {
		return nil, err
	}
	if err := c.mergeTextConfig(raw); err != nil {
		return nil, err
	}
	if err := c.mergeDraftLayer(); err != nil {
		return nil, err
	}
	return c, c.gatherRope()
}

// mergeDraftLayer merges the configuration of the layer into the root, for draft models of the speculators library.
func (c *Config) mergeDraftLayer() error {
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

// parse reads the file and determines class and model type; raw reports whether the class is read without defaults.
func parse(class string, data []byte, f *Families, find func(*Config) (string, error)) (c *Config, raw bool,
	err error) {
	c = &Config{File: ConfigFile, used: map[string]bool{}, defaulted: map[string]bool{}, families: f}
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
			excerpt(c.Raw["architectures"]))
	}
	if c.Class != named {
		c.Named = named
	}
	c.values = maps.Clone(c.Raw)
	raw = f.ofClass(c.Class).Raw
	c.modelType, _ = c.Raw["model_type"].(string)
	if raw || modelTypes()[c.modelType] == nil {
		c.modelType = ""
	}
	return c, raw, nil
}

// use returns the first of keys that the configuration has and its value, and
// counts all of them as used.
func (c *Config) use(keys ...string) (key string, v any) {
	return Object{c.values, "", c.used, c.File}.lookup(keys...)
}

// mergeTextConfig fills in the defaults of the model type and lays the configuration of
// the language model over the root.
func (c *Config) mergeTextConfig(raw bool) error {
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
	if text == nil && c.families.ofType(c.modelType).Flat && !raw {
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
			m.completeText(c, values, "")
			if err := t.complete(c, values, ""); err != nil {
				return err
			}
		}
	}
	maps.Copy(c.values, values)
	return nil
}
