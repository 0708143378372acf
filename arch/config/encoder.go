package config

import (
	"maps"
	"slices"
	"strings"
)

// Keys of the configurations of vision and audio encoders.
const (
	visionConfig = "vision_config"
	audioConfig  = "audio_config"
)

// ParseEncoder parses config.json for the vision or audio encoder of a model. The values are the file's root;
// sub-configs have the defaults of their own types. For class and f see ParseAs.
func ParseEncoder(class string, data []byte, f *Families) (*Config, error) {
	return parseEncoder(class, data, f, (*Config).encoderClass)
}

func parseEncoder(class string, data []byte, f *Families, find func(*Config) (string, error)) (*Config, error) {
	c, raw, err := parse(class, data, f, find)
	if err != nil {
		return nil, err
	}
	c.parts = map[string]string{}
	if !raw {
		m := modelTypes()[c.modelType]
		if err := m.complete(c, c.values, ""); err != nil {
			return nil, err
		}
		if err := c.completeParts(m, c.values, ""); err != nil {
			return nil, err
		}
	}
	text, err := c.textConfigOf(c.values)
	if err != nil {
		return nil, err
	}
	c.text = maps.Clone(c.values)
	maps.Copy(c.text, text)
	return c, nil
}

// completeParts fills the defaults of their own types into the sub-configs of v, given v's model type. prefix is the
// prefix of v's keys.
func (c *Config) completeParts(m *modelType, v map[string]any, prefix string) error {
	if m == nil {
		return nil
	}
	parts := maps.Clone(m.Parts)
	if inner, ok := m.Defaults["text_config"].(string); ok {
		if parts == nil {
			parts = map[string]string{}
		}
		parts["text_config"] = inner
	}
	for _, key := range slices.Sorted(maps.Keys(parts)) {
		part, ok := v[key].(map[string]any)
		switch _, none := m.Defaults[key]; {
		case v[key] != nil && !ok:
			return WrongType(prefix+key, "an object", v[key])
		case v[key] == nil && none && key != "text_config":
			continue // models of the type may lack the part
		}
		part = maps.Clone(part)
		if part == nil {
			part = map[string]any{}
		}
		row := parts[key]
		if s, ok := part["model_type"].(string); ok && !strings.Contains(row, "/") {
			row = s
		} else if !ok && part["model_type"] == nil {
			part["model_type"] = row
		}
		t := modelTypes()[row]
		if key == "text_config" && v[key] == nil && t != nil && c.families.ofType(c.modelType).Flat {
			// the language model's keys are among the others
			for name := range v {
				_, itsOwn := t.Defaults[name]
				if _, ours := m.Defaults[name]; (itsOwn || slices.Contains(t.Follow, name)) && !ours {
					part[name] = v[name]
					delete(v, name)
				}
			}
		}
		if key == "text_config" {
			m.completeText(c, part, prefix+key+".")
		}
		if err := t.complete(c, part, prefix+key+"."); err != nil {
			return err
		}
		c.parts[prefix+key+"."] = row
		if err := c.completeParts(t, part, prefix+key+"."); err != nil {
			return err
		}
		v[key] = part
	}
	return nil
}

// Thinker returns thinker_config in Omni models, the root in all others.
func (v *View) Thinker() Object {
	if o := v.Sub("thinker_config"); o.Members() != nil {
		return o
	}
	return v.Object
}

// Vision returns the configuration of the vision encoder.
func (v *View) Vision() Object {
	if v.Config.File == ParamsFile {
		return v.Sub("vision_encoder")
	}
	return v.Thinker().Sub(visionConfig)
}

// Audio returns the configuration of the audio encoder.
func (v *View) Audio() Object { return v.Thinker().Sub(audioConfig) }

// Text returns, for an encoder, the root with the language model's configuration merged into it.
func (v *View) Text() Object { return Object{v.text, "", nil, v.Config.File} }

// Processor returns the settings of preprocessor_config.json and processor_config.json, see ProcessorFiles.
func (v *View) Processor() Object { return v.Facts.Processor }

// Default returns the default that a key got, which may be one of a part:
// "vision_config.patch_size".
func (v *View) Default(key string) any {
	m := v.Object.values
	for {
		if value, ok := m[key]; ok {
			return value
		}
		part, rest, _ := strings.Cut(key, ".")
		inner, ok := m[part].(map[string]any)
		if !ok {
			return nil
		}
		m, key = inner, rest
	}
}
