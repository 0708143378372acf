package config

import (
	"maps"
	"slices"
	"strings"
)

// View is the input of the tables of package arch: config.json, the facts of other files, and the user's options. It
// records which keys were read; its values never change.
//
// A View is for one goroutine at a time.
type View struct {
	*Config
	Object  // config.json as the reference reads it
	Facts   Facts
	Options Options
}

// Options are the user's options. The zero value is the reference's behaviour.
type Options struct {
	// Dense includes the dense modules, see Facts.Dense.
	Dense bool
	// NextN is the choice for MTP layers.
	NextN NextN
	// Reference leaves out everything that the reference does not write.
	Reference bool
}

// NextN selects whether a file has the model, its MTP (NextN) layers for speculative decoding, or both.
type NextN uint8

// The values of NextN. NoNextN and OnlyNextN are for architectures whose runtime can load the two parts separately.
const (
	WithNextN NextN = iota // MTP layers follow the model's layers
	NoNextN                // only the model
	OnlyNextN              // only the MTP layers, with the model's embedding, norm and head
)

// String returns a description for messages.
func (n NextN) String() string { return [...]string{"with the model", "left out", "alone"}[n] }

// View returns a view of the configuration without facts. It starts with the keys that c has read.
func (c *Config) View(opt Options) *View {
	return &View{Config: c, Object: Object{c.values, "", maps.Clone(c.used), c.File}, Options: opt}
}

// With returns the view with facts. Both share the record of read keys.
func (v *View) With(f Facts) *View {
	with := *v
	with.Facts = f
	return &with
}

// RawConfig returns the members of config.json as they are in the file: no defaults, and text_config not merged.
func (v *View) RawConfig() Object { return Object{v.Raw, "", v.read, v.Config.File} }

// Given returns the value of a key for checks of keys that must be absent or have one value: it counts as read only
// if the file has the key.
func (v *View) Given(key string) any { return v.GivenIn(v.Object, key) }

// GivenIn is Given for a key of a sub-config.
func (v *View) GivenIn(o Object, key string) any {
	value := o.values[key]
	if value != nil && !v.defaulted[o.prefix+key] {
		o.lookup(key)
	}
	return value
}

// Rope returns the rope settings: rope_parameters or rope_scaling of config.json, merged with rope keys of its root.
// For a model with settings per attention type, it returns those of full_attention.
func (v *View) Rope() Object {
	if _, ok := v.rope["full_attention"].(map[string]any); ok {
		return v.RopeRoot().Sub("full_attention")
	}
	return v.RopeRoot()
}

// RopeRoot returns the rope settings of all attention types.
func (v *View) RopeRoot() Object { return Object{v.rope, "rope_scaling.", v.read, v.Config.File} }

// Quantization returns quant_method of quantization_config; ok is false without such a config. The weights may be
// stored dequantized nevertheless.
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

// Defaulted lists the keys that were read, that the file lacks and whose default is not null, sorted. Counts with
// default 0 (num_nextn_predict_layers) are left out.
func (v *View) Defaulted() []string {
	var keys []string
	for key := range v.defaulted {
		d := v.Default(key)
		if n, ok, _ := asInt(key, d); ok && n == 0 && strings.HasPrefix(key, "num_") {
			continue
		}
		if v.read[key] && d != nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
