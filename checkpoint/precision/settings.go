package precision

import (
	"maps"
	"slices"

	"ggforge/fault"
)

// Settings are the members of quantization_config, for properties of a scheme that do not follow from the tensors:
// sizes of blocks, bits, versions. ok is false for a missing key. Errors have file and key.
type Settings interface {
	Int(keys ...string) (n int64, ok bool, err error)
	Ints(keys ...string) (list []int64, ok bool, err error)
	String(keys ...string) (s string, ok bool, err error)
	// Under returns the object under a key, an empty one if there is none.
	Under(key string) Settings
	// Members returns all members, not to be changed; nil for none.
	Members() map[string]any
}

// checkTransforms refuses transforms of transform_config (compressed-tensors' rotations of weights and inputs) that run
// with the model. Transforms at weight_input and weight_output are already in the weights and cancel out.
func checkTransforms(part any) error {
	switch part := part.(type) {
	case map[string]any:
		if where, ok := part["location"].(string); ok && where != "weight_input" && where != "weight_output" {
			return fault.Errorf(fault.Unsupported,
				"quantization_config: transform_config has a transform at %q, which runs with the model: files cannot hold it",
				where)
		}
		for _, key := range slices.Sorted(maps.Keys(part)) {
			if err := checkTransforms(part[key]); err != nil {
				return err
			}
		}
	case []any:
		for _, one := range part {
			if err := checkTransforms(one); err != nil {
				return err
			}
		}
	}
	return nil
}

// groups returns the settings of weights in each of compressed-tensors' config_groups (which have different modules),
// in the order of the groups' names.
func groups(settings Settings) (list []Settings) {
	all := settings.Under("config_groups")
	for _, name := range slices.Sorted(maps.Keys(all.Members())) {
		list = append(list, all.Under(name).Under("weights"))
	}
	return list
}
