package config

import (
	"encoding/json"
	"maps"
	"slices"

	"ggforge/fault"
)

// ParamsFile is the configuration of a checkpoint in Mistral's own format.
const ParamsFile = "params.json"

// ParseParams reads the bytes of params.json.
func ParseParams(data []byte) (*Config, error) {
	raw, err := parseRoot(ParamsFile, data)
	if err != nil {
		return nil, err
	}
	c := &Config{Raw: raw, File: ParamsFile, values: maps.Clone(raw), used: map[string]bool{}}
	if err := c.gatherExperts(); err != nil {
		return nil, err
	}
	return c, c.gatherRope()
}

// paramsExperts maps the keys of the object "moe" of params.json to keys of config.json. "" is for keys that only
// training reads.
var paramsExperts = map[string]string{"route_every_n": "moe_layer_freq",
	"first_k_dense_replace": "first_k_dense_replace", "num_experts_per_tok": "num_experts_per_tok",
	"num_experts": "n_routed_experts", "expert_hidden_dim": "moe_intermediate_size",
	"routed_scale": "routed_scaling_factor", "num_shared_experts": "n_shared_experts",
	"num_expert_groups": "n_group", "num_expert_groups_per_tok": "topk_group", "expert_parallel": "",
	"expert_model_parallel": ""}

// gatherExperts copies the expert settings of params.json to the keys of config.json. Source: the reference's
// MistralMoeModel.
func (c *Config) gatherExperts() error {
	if IsNo(c.Raw["moe"]) {
		return nil
	}
	moe, ok := c.Raw["moe"].(map[string]any)
	if !ok {
		return WrongType("moe", "an object", c.Raw["moe"])
	}
	for _, key := range slices.Sorted(maps.Keys(moe)) {
		to, known := paramsExperts[key]
		if !known {
			return fault.Errorf(fault.Unsupported, "%s: key %q: what it means is not known", ParamsFile, "moe."+key)
		}
		if to != "" {
			c.values[to] = moe[key]
		}
	}
	c.values["norm_topk_prob"], c.values["scoring_func"] = true, "softmax"
	if _, ok := c.values["max_position_embeddings"]; !ok {
		c.values["max_position_embeddings"] = json.Number("128000")
	}
	return nil
}
