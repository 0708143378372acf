package config

import (
	"slices"
	"strings"
)

// windowKeys configure sliding windows; Window reads them all, for every architecture.
var windowKeys = set("sliding_window", "use_sliding_window", "max_window_layers")

// contextKeys are the keys of the context length.
var contextKeys = []string{"max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length", "seq_length"}

// Window returns the sliding window of the model's SWA layers and the context length, 0 if the file has none; ok is
// false when all layers have full attention. Source: the configurations of the transformers library. Model types
// without such a key there have no window; unknown model types have one if config.json has a key for it.
func (v *View) Window() (window, context int64, ok bool) {
	if m := modelTypes()[v.modelType]; m != nil {
		if _, windowed := m.Defaults["sliding_window"]; !windowed {
			return 0, 0, false
		}
	}
	values := v.Object.values
	if use, set := values["use_sliding_window"].(bool); set && !use {
		return 0, 0, false
	}
	integer := func(key string) (int64, bool) {
		n, ok, err := asInt(key, values[key])
		return n, ok && err == nil
	}
	if window, ok = integer("sliding_window"); !ok || window <= 0 {
		return 0, 0, false
	}
	if kinds, set := values["layer_types"].([]any); set {
		if !slices.Contains(kinds, any("sliding_attention")) {
			return 0, 0, false
		}
	} else if first, set := integer("max_window_layers"); set && !strings.HasSuffix(v.modelType, "_moe") {
		// the layers from this one on have the window
		for _, key := range BlockCountKeys {
			if n, ok := integer(key); ok && first >= n {
				return 0, 0, false
			}
		}
	}
	for _, key := range contextKeys {
		if n, ok := integer(key); ok {
			if window >= n {
				return 0, 0, false
			}
			return window, n, true
		}
	}
	return window, 0, true
}

// onlyWindows reports whether layer_types has full and sliding-window attention only.
func onlyWindows(v any) bool {
	kinds, ok := v.([]any)
	return ok && !slices.ContainsFunc(kinds, func(k any) bool {
		return k != "full_attention" &&
			k != "sliding_attention"
	})
}
