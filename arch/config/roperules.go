package config

import (
	"encoding/json"
	"maps"
)

// apertusRope fills in the rope settings of the published model, rope_theta included.
func apertusRope(c *Config) error {
	if len(c.rope) == 0 {
		c.rope = map[string]any{"rope_type": "llama3", "rope_theta": json.Number("12000000"),
			"factor":                           json.Number("8"),
			"original_max_position_embeddings": json.Number("8192"), "low_freq_factor": json.Number("1"),
			"high_freq_factor": json.Number("4")}
	}
	return nil
}

// mistral4Rope fills in the rope settings of the published model.
func mistral4Rope(c *Config) error {
	if len(c.rope) == 0 {
		c.rope = map[string]any{"rope_type": "yarn", "rope_theta": json.Number("10000"), "factor": json.Number("128"),
			"original_max_position_embeddings": json.Number("8192"),
			"beta_fast":                        json.Number("32"), "beta_slow": json.Number("1"),
			"mscale_all_dim": json.Number("1"),
			"mscale":         json.Number("1"), "llama_4_scaling_beta": json.Number("0.1")}
	}
	return nil
}

// mistral4HeadDim returns the size of an uncompressed head.
func mistral4HeadDim(v values) (any, error) {
	nope, err := v.int("qk_nope_head_dim")
	if err != nil {
		return nil, err
	}
	rope, err := v.int("qk_rope_head_dim")
	return nope + rope, err
}

// modernBertRope makes the rope settings of both kinds of attention, from
// rope_parameters or from the keys that older configs have.
func modernBertRope(c *Config) error {
	set := func(kind, key, fallback string) error {
		m, ok := c.rope[kind].(map[string]any)
		if c.rope[kind] != nil && !ok {
			return WrongType("rope_parameters."+kind, "an object", c.rope[kind])
		}
		m = maps.Clone(m)
		if m == nil {
			m = map[string]any{"rope_type": "default"}
		}
		if _, v := c.use(key); v != nil && m["rope_theta"] == nil {
			m["rope_theta"] = v
		}
		if m["rope_theta"] == nil {
			m["rope_theta"] = json.Number(fallback)
		}
		c.rope[kind] = m
		return nil
	}
	c.rope = maps.Clone(c.rope)
	if c.rope == nil {
		c.rope = map[string]any{}
	}
	if err := set("full_attention", "global_rope_theta", "160000"); err != nil {
		return err
	}
	return set("sliding_attention", "local_rope_theta", "10000")
}

// gemma3Rope makes the rope settings of both kinds of attention. Keys from before transformers 5 are for full
// attention, except rope_local_base_freq.
func gemma3Rope(c *Config) error {
	kind := func(name string) (map[string]any, error) {
		v := c.rope[name]
		m, ok := v.(map[string]any)
		if v != nil && !ok {
			return nil, WrongType("rope_parameters."+name, "an object", v)
		}
		if m = maps.Clone(m); m == nil {
			m = map[string]any{"rope_type": "default"}
		}
		return m, nil
	}
	scaling, _ := c.values["rope_scaling"].(map[string]any)
	if scaling != nil {
		c.rope, _ = c.values["rope_parameters"].(map[string]any)
	}
	full, err := kind("full_attention")
	if err != nil {
		return err
	}
	sliding, err := kind("sliding_attention")
	if err != nil {
		return err
	}
	maps.Copy(full, scaling)
	for _, s := range []struct {
		of    map[string]any
		key   string
		theta any
	}{{full, "rope_theta", json.Number("1000000")}, {sliding, "rope_local_base_freq", json.Number("10000")}} {
		_, v := c.use(s.key)
		if v == nil {
			v = s.theta
		}
		setDefault(s.of, "rope_theta", v)
		setDefault(s.of, "rope_type", s.of["type"])
		if t, _ := s.of["rope_type"].(string); ropeTypesWithLength[t] {
			setDefault(s.of, "original_max_position_embeddings", c.values["max_position_embeddings"])
		}
	}
	c.rope = map[string]any{"full_attention": full, "sliding_attention": sliding}
	return nil
}

// setDefault sets an absent member.
func setDefault(m map[string]any, key string, v any) {
	if _, ok := m[key]; !ok && v != nil {
		m[key] = v
	}
}

// mellumRope fills in the rope settings of the published model.
func mellumRope(c *Config) error {
	if c.values["rope_parameters"] == nil || c.defaulted["rope_parameters"] {
		c.rope = map[string]any{
			"full_attention":    map[string]any{"rope_type": "default", "rope_theta": json.Number("500000")},
			"sliding_attention": map[string]any{"rope_type": "default", "rope_theta": json.Number("10000")},
		}
	}
	return nil
}

// lagunaRope fills in the default rope settings of the transformers library.
func lagunaRope(c *Config) error {
	if c.values["rope_parameters"] == nil || c.defaulted["rope_parameters"] {
		c.rope = map[string]any{
			"full_attention": map[string]any{"rope_type": "default", "rope_theta": json.Number("500000"),
				"partial_rotary_factor": json.Number("0.5")},
			"sliding_attention": map[string]any{"rope_type": "default", "rope_theta": json.Number("10000"),
				"partial_rotary_factor": json.Number("1")},
		}
	}
	return nil
}

// phi3Rope follows the configuration class of Phi-3: older names of the type become longrope, and the original context
// length of the root overrides the one in the settings.
func phi3Rope(c *Config) error {
	s, ok := c.rope["rope_type"].(string)
	if !ok {
		s, _ = c.rope["type"].(string)
	}
	const length = "original_max_position_embeddings"
	switch s {
	case "yarn", "longrope":
		_, c.rope[length] = c.use(length)
	case "su":
		if c.rope[length] == nil {
			_, c.rope[length] = c.use(length)
		}
	default:
		return nil
	}
	c.rope["rope_type"] = "longrope"
	return nil
}
