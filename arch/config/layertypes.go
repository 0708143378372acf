package config

import (
	"encoding/json"
	"slices"
	"strconv"

	"ggforge/fault"
)

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

// cohere2LayerTypes is the default of layer_types: every n-th dense layer, and every n-th one of the layers after them,
// has full attention.
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

// gemma3nLayerTypes is the default of layer_types: every fifth layer has full attention.
func gemma3nLayerTypes(v values) (any, error) {
	return kinds(v, func(bid int64) string {
		if (bid+1)%5 == 0 {
			return "full_attention"
		}
		return "sliding_attention"
	})
}

// gemma3nSparsity is the default of activation_sparsity_pattern: the first ten layers, in models with more than ten.
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

// gemma4LayerTypes is the default of layer_types: every sixth layer and the last one have full attention.
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

// lagunaMLPTypes is the default of mlp_layer_types: experts after the first layer.
func lagunaMLPTypes(v values) (any, error) {
	return kinds(v, func(bid int64) string {
		if bid == 0 {
			return "dense"
		}
		return "sparse"
	})
}

// allFull is a default of layer_types: every layer has full attention.
func allFull(v values) (any, error) {
	return kinds(v, func(int64) string { return "full_attention" })
}

// NemotronKinds returns the kinds of layers for a string with a letter per layer.
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

// nemotronHFirst builds the list of layer kinds, sets the number of layers to its length, and renames the key of the
// head size.
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

// glmIndexerTypes is the default of indexer_types: from a string with a letter per layer, else from an offset and a
// period.
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

// SlidingPattern reads the key sliding_window_pattern; of returns whether a layer has a sliding window.
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
