package config

import (
	"cmp"
	"slices"
	"strings"
)

// textConfigs are the keys of config.json for the language model of a multimodal model. A later one wins.
var textConfigs = []string{"text_config", "llm_config", "lm_config", "thinker_config", "language_config", "lfm"}

// textConfig returns the sub-config of the language model, nil if there is none.
func (c *Config) textConfig() (map[string]any, error) { return c.textConfigOf(c.Raw) }

// textConfigOf is textConfig for a configuration that may have been completed with defaults.
func (c *Config) textConfigOf(root map[string]any) (map[string]any, error) {
	var text map[string]any
	names := textConfigs
	if key := c.families.ofClass(c.Class).Text; key != "" {
		names = []string{key}
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
	if slices.Contains(c.families.ofClass(class).Outer, class) {
		return class, nil
	}
	inner, err := firstClass(text)
	if auto, ok := c.Raw["auto_map"].(map[string]any); ok && text != nil {
		model, _ := auto["AutoModel"].(string)
		if name := model[strings.LastIndexByte(model, '.')+1:]; c.families.ofClass(name).Auto {
			return name, err
		}
	}
	return cmp.Or(inner, class), err
}

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

// encoderClass returns the class that the file names for its encoder: the vision model's
// if that has one, "" for none. Source: get_model_architecture of the reference.
func (c *Config) encoderClass() (string, error) {
	class, err := firstClass(c.Raw)
	if err != nil {
		return "", err
	}
	vision, _ := c.Raw[visionConfig].(map[string]any)
	inner, err := firstClass(vision)
	if inner != "" {
		class = inner
	}
	return class, err
}
