package precision

import (
	"maps"
	"slices"

	"ggforge/fault"
)

// Settings are the members of quantization_config, for what the tensors of a scheme do
// not show: sizes of blocks, bits, versions. ok is false for a key that is not there.
// The errors name file and key.
type Settings interface {
	Int(keys ...string) (n int64, ok bool, err error)
	Ints(keys ...string) (list []int64, ok bool, err error)
	String(keys ...string) (s string, ok bool, err error)
	// Under returns the object under a key, one without members when there is none.
	Under(key string) Settings
	// Members returns all members, not to be changed; nil for none.
	Members() map[string]any
}

// turned returns an error if a part of transform_config, which compressed-tensors has for
// matrices that turn weights and what they are multiplied with, is left to the program
// that runs the model: the turns that weights have got already change no result.
func turned(part any) error {
	switch part := part.(type) {
	case map[string]any:
		if where, ok := part["location"].(string); ok && where != "weight_input" && where != "weight_output" {
			return fault.Errorf(fault.Unsupported,
				"quantization_config: transform_config turns %q while the model runs, which files have no place for",
				where)
		}
		for _, key := range slices.Sorted(maps.Keys(part)) {
			if err := turned(part[key]); err != nil {
				return err
			}
		}
	case []any:
		for _, one := range part {
			if err := turned(one); err != nil {
				return err
			}
		}
	}
	return nil
}

// groups returns the settings of weights in each of config_groups, in the order of
// their names: of compressed-tensors, which may quantize some modules in another way
// than others.
func groups(settings Settings) (list []Settings) {
	all := settings.Under("config_groups")
	for _, name := range slices.Sorted(maps.Keys(all.Members())) {
		list = append(list, all.Under(name).Under("weights"))
	}
	return list
}
