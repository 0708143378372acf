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

// NextN is what a file contains of a model and its MTP (NextN) layers, which a runtime uses for speculative decoding.
type NextN uint8

// The values of NextN. WithNextN is for all models that have such layers; the others
// are for architectures that know these layers by themselves.
const (
	WithNextN NextN = iota // they come after the model's layers
	NoNextN                // the file has the model alone
	OnlyNextN              // the file has them alone, with the model's embedding, norm and head
)

// String returns what the flags of commands call it.
func (n NextN) String() string { return [...]string{"with the model", "left out", "alone"}[n] }

// View returns a view of the configuration without facts, to which nothing was
// asked so far.
func (c *Config) View(opt Options) *View {
	return &View{Config: c, Object: Object{c.values, "", maps.Clone(c.used), c.File}, Options: opt}
}

// With returns the view with facts. Both record in the same place.
func (v *View) With(f Facts) *View {
	with := *v
	with.Facts = f
	return &with
}

// RawConfig returns the members of config.json itself, without defaults and
// without the configuration of a language model in it.
func (v *View) RawConfig() Object { return Object{v.Raw, "", v.read, v.Config.File} }

// Given returns the value of a key for checks of keys that must be absent or have one value: it counts as read only
// if the file has the key.
func (v *View) Given(key string) any { return v.GivenIn(v.Object, key) }

// GivenIn is Given for a key of a part of the configuration.
func (v *View) GivenIn(o Object, key string) any {
	value := o.values[key]
	if value != nil && !v.defaulted[o.prefix+key] {
		o.lookup(key)
	}
	return value
}

// Rope returns the rope settings: rope_parameters or rope_scaling of
// config.json with the settings that may be next to them. For a model that has
// some per kind of attention, it returns those of full attention.
func (v *View) Rope() Object {
	if _, ok := v.rope["full_attention"].(map[string]any); ok {
		return v.RopeRoot().Sub("full_attention")
	}
	return v.RopeRoot()
}

// RopeRoot returns the rope settings of all kinds of attention.
func (v *View) RopeRoot() Object { return Object{v.rope, "rope_scaling.", v.read, v.Config.File} }

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
// a default other than null, sorted. Counts of nothing (num_nextn_predict_layers 0) are
// what their absence says.
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
