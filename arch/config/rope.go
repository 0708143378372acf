package config

import "maps"

// ropeTypesWithLength are the rope types for which transformers fills in the
// original context length.
var ropeTypesWithLength = map[string]bool{"llama3": true, "yarn": true, "longrope": true}

// gatherRope builds the rope settings. Transformers moves rope_theta and rope_scaling into rope_parameters, the
// reference copies other keys there; without a known model type, only the reference's step is done.
func (c *Config) gatherRope() error {
	m := modelTypes()[c.modelType]
	var defaults map[string]any
	if m != nil {
		defaults, _ = m.Defaults["rope_parameters"].(map[string]any)
	}
	known := defaults != nil
	// transformers prefers rope_scaling, the reference rope_parameters
	names := []string{"rope_parameters", "rope_scaling"}
	if known {
		names = []string{"rope_scaling", "rope_parameters"}
	}
	c.rope = map[string]any{}
	for _, name := range names {
		if c.defaulted[name] {
			continue
		}
		v, ok := c.values[name]
		if m, isMap := v.(map[string]any); isMap && (len(m) > 0 || !known) {
			c.rope = maps.Clone(m)
			break
		} else if v != nil && !isMap {
			return WrongType(name, "an object", v)
		}
		if ok && !known {
			break
		}
	}
	if len(c.rope) == 0 && known {
		// the defaults of a type without rope settings, and the rope keys of the root
		c.rope = maps.Clone(defaults)
		delete(c.rope, "rope_theta")
		delete(c.rope, "partial_rotary_factor")
	}
	for _, name := range names {
		c.used[name] = !c.defaulted[name]
	}
	settings := RopeSettings{c.rope, c}
	if rope := c.families.ofType(c.modelType).Rope; m != nil && rope != nil {
		if err := rope(&settings); err != nil {
			return err
		}
		c.rope = settings.Members
	}
	if c.rope["full_attention"] != nil || c.rope["sliding_attention"] != nil {
		return nil
	}
	set := func(key string, v any) { SetDefault(c.rope, key, v) }
	if _, local := c.use("local_rope_theta", "rope_local_theta", "rope_theta_local", "swa_rope_theta",
		"rope_local_base_freq"); local != nil {
		c.rope["sliding_attention"] = map[string]any{"rope_theta": local}
	}
	key, theta := c.use("global_rope_theta", "rope_global_theta", "rope_theta_global", "rope_theta", "rotary_emb_base")
	if known && key == "" {
		theta = defaults["rope_theta"]
	}
	set("rope_theta", theta)
	set("rope_type", c.rope["type"])
	if _, ok := c.rope["partial_rotary_factor"]; !ok || !c.defaulted["partial_rotary_factor"] {
		_, partial := c.use("partial_rotary_factor", "rope_pct", "rope_percent")
		set("partial_rotary_factor", partial)
	}
	if known {
		set("partial_rotary_factor", defaults["partial_rotary_factor"])
	}
	if known {
		settings.SetLength(c.rope)
	}
	_, length := c.use("original_max_position_embeddings")
	set("original_max_position_embeddings", length)
	return nil
}
