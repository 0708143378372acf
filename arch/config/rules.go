package config

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"ggforge/fault"
)

// apertusRope gives configs without rope settings those of the published model,
// rope_theta among them.
func apertusRope(c *Config) error {
	if len(c.rope) == 0 {
		c.rope = map[string]any{"rope_type": "llama3", "rope_theta": json.Number("12000000"),
			"factor":                           json.Number("8"),
			"original_max_position_embeddings": json.Number("8192"), "low_freq_factor": json.Number("1"),
			"high_freq_factor": json.Number("4")}
	}
	return nil
}

// mistral4Rope gives configs without rope settings those of the published model.
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

// mistral4HeadDim is the length of a head as it is unfolded.
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

// SlidingPattern reads the key sliding_window_pattern; of reports whether a layer
// sees a window only.
func (c Object) SlidingPattern() (of func(bid int64) bool, ok bool, err error) {
	const key = "sliding_window_pattern"
	switch v := c.Value(key).(type) {
	case nil:
		return nil, false, nil
	case string:
		if v == "" {
			return nil, false, nil
		}
		return func(bid int64) bool { return v[bid%int64(len(v))] == 'L' }, true, nil
	}
	n, err := c.Require(key)
	if err == nil && n <= 0 {
		err = fault.Errorf(fault.Broken, "%s: key %q: want a positive number, found %d", ConfigFile, key, n)
	}
	return func(bid int64) bool { return (bid+1)%n != 0 }, true, err
}

// exaone4LayerTypes is the default of layer_types.
func exaone4LayerTypes(v values) (any, error) {
	c := Object{values: v}
	of, ok, err := c.SlidingPattern()
	if err != nil {
		return nil, err
	}
	if !ok || !c.Has("sliding_window") {
		return nil, nil
	}
	return kinds(v, func(bid int64) string {
		if of(bid) {
			return "sliding_attention"
		}
		return "full_attention"
	})
}

// kinds returns the kinds of all layers as a value of a config.
func kinds(v values, of func(bid int64) string) (any, error) {
	n, err := v.int("num_hidden_layers")
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

// gemma3Rope makes the rope settings of both kinds of attention. The keys that
// configs had before transformers 5 speak of full attention, but for
// rope_local_base_freq.
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

// setDefault sets a member that is absent.
func setDefault(m map[string]any, key string, v any) {
	if _, ok := m[key]; !ok && v != nil {
		m[key] = v
	}
}

// lfm2LayerTypes is the default of layer_types: attention in the layers of
// full_attn_idxs, or in all.
func lfm2LayerTypes(v values) (any, error) {
	list, ok, err := Object{values: v}.Ints("full_attn_idxs")
	if err != nil {
		return nil, err
	}
	return kinds(v, func(bid int64) string {
		if !ok || slices.Contains(list, bid) {
			return "full_attention"
		}
		return "conv"
	})
}

// cohere2LayerTypes is the default of layer_types: of the dense layers, and of those
// after them, each one of a distance sees everything.
func cohere2LayerTypes(v values) (any, error) {
	dense, err := cohere2Dense(v)
	if err != nil {
		return nil, err
	}
	first, err := v.int("prefix_dense_sliding_window_pattern")
	if err != nil {
		return nil, err
	}
	rest, err := v.int("sliding_window_pattern")
	if err == nil && min(first, rest) < 1 {
		err = WrongType("sliding_window_pattern", "a positive number", min(first, rest))
	}
	if err != nil {
		return nil, err
	}
	return kinds(v, func(bid int64) string {
		distance := first
		if bid >= dense {
			bid, distance = bid-dense, rest
		}
		if (bid+1)%distance == 0 {
			return "full_attention"
		}
		return "sliding_attention"
	})
}

// cohere2MLPTypes is the default of mlp_layer_types.
func cohere2MLPTypes(v values) (any, error) {
	dense, err := cohere2Dense(v)
	if err != nil {
		return nil, err
	}
	return kinds(v, func(bid int64) string {
		if bid < dense {
			return "dense"
		}
		return "sparse"
	})
}

func cohere2Dense(v values) (int64, error) {
	n, _, err := Object{values: v}.Int("first_k_dense_replace")
	return n, err
}

// gemma3nLayerTypes is the default of layer_types: each fifth layer sees everything.
func gemma3nLayerTypes(v values) (any, error) {
	return kinds(v, func(bid int64) string {
		if (bid+1)%5 == 0 {
			return "full_attention"
		}
		return "sliding_attention"
	})
}

// gemma3nSparsity is the default of activation_sparsity_pattern: of models with more
// than ten layers, the first ten.
func gemma3nSparsity(v values) (any, error) {
	list, err := kinds(v, func(int64) string { return "" })
	if err != nil {
		return nil, err
	}
	pattern := list.([]any)
	for i := range pattern {
		pattern[i] = json.Number("0.0")
		if i < 10 && len(pattern) > 10 {
			pattern[i] = json.Number("0.95")
		}
	}
	return pattern, nil
}

// gemma4LayerTypes is the default of layer_types: each sixth layer and the last one
// see everything.
func gemma4LayerTypes(v values) (any, error) {
	last, err := v.int("num_hidden_layers")
	if err != nil {
		return nil, err
	}
	return kinds(v, func(bid int64) string {
		if (bid+1)%6 == 0 || bid+1 == last {
			return "full_attention"
		}
		return "sliding_attention"
	})
}

// mellumRope gives configs without rope settings those of the published model.
func mellumRope(c *Config) error {
	if c.values["rope_parameters"] == nil || c.defaulted["rope_parameters"] {
		c.rope = map[string]any{
			"full_attention":    map[string]any{"rope_type": "default", "rope_theta": json.Number("500000")},
			"sliding_attention": map[string]any{"rope_type": "default", "rope_theta": json.Number("10000")},
		}
	}
	return nil
}

// lagunaRope gives configs without rope settings those of the library.
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

// lagunaMLPTypes is the default of mlp_layer_types: experts after the first layer.
func lagunaMLPTypes(v values) (any, error) {
	return kinds(v, func(bid int64) string {
		if bid == 0 {
			return "dense"
		}
		return "sparse"
	})
}

// allFull is a default of layer_types: every layer sees everything.
func allFull(v values) (any, error) {
	return kinds(v, func(int64) string { return "full_attention" })
}

// phi3Rope does what the configuration class of Phi-3 does: older names of the
// type mean longrope, and the original context length next to the settings takes
// precedence over the one among them.
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

// NemotronKinds returns the kinds of layers of which text has a letter for each.
func NemotronKinds(text string) ([]string, error) {
	names := map[rune]string{'M': "mamba", '*': "attention", 'E': "moe", '-': "mlp"}
	var kinds []string
	for _, letter := range text {
		kind, ok := names[letter]
		if !ok || len(kinds) == MaxBlocks {
			return nil, WrongType("hybrid_override_pattern", "at most 65536 letters M, *, E or -", text)
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// nemotronHFirst makes the list of the kinds of layers, whose length is the number of
// layers whatever the file says, and gives the size of heads its newer name.
func nemotronHFirst(v values) error {
	const text, list = "hybrid_override_pattern", "layers_block_type"
	if s, ok := v[text].(string); ok {
		if v[list] == nil {
			kinds, err := NemotronKinds(s)
			if err != nil {
				return err
			}
			all := make([]any, len(kinds))
			for i := range kinds {
				all[i] = kinds[i]
			}
			v[list] = all
		}
		delete(v, text)
	}
	if v["head_dim"] == nil && v["attention_head_dim"] != nil {
		v["head_dim"] = v["attention_head_dim"]
	}
	if all, ok := v[list].([]any); ok {
		v["num_hidden_layers"] = json.Number(strconv.Itoa(len(all)))
	}
	return nil
}

// glmIndexerTypes is the default of indexer_types: a pattern with a letter for each
// layer, or every so many layers from one on.
func glmIndexerTypes(v values) (any, error) {
	c := Object{values: v}
	const pattern = "index_topk_pattern"
	switch p := c.Value(pattern).(type) {
	case nil:
	case string:
		letters := map[rune]string{'F': "full", 'S': "shared"}
		list := []any{}
		for _, letter := range p {
			kind, ok := letters[letter]
			if !ok {
				return nil, WrongType(pattern, "F or S for each layer", p)
			}
			list = append(list, kind)
		}
		return list, nil
	default:
		return p, nil
	}
	every, ok, err := c.Int("index_topk_freq")
	if err != nil {
		return nil, err
	}
	if !ok {
		every = 1
	}
	from, ok, err := c.Int("index_skip_topk_offset")
	if err != nil {
		return nil, err
	}
	if !ok {
		from = 2
	}
	return kinds(v, func(bid int64) string {
		if from <= bid && (bid-from+1)%max(every, 1) != 0 {
			return "shared"
		}
		return "full"
	})
}
