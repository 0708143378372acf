package config

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// KevHead is the file of Kev's head and its settings, written by torch.save.
const KevHead = "head.pt"

// isKev reports whether an adapter was trained with Kev's pointer head. Other trainers, too, write a
// training_config.json: one without "head_dim" is not parsed.
func isKev(files Files) (bool, error) {
	data, ok, err := ReadFile(files, trainingConfig)
	if !ok || !bytes.Contains(data, []byte(`"head_dim"`)) {
		return false, err
	}
	training, err := parseRoot(trainingConfig, data)
	args, _ := training["args"].(map[string]any)
	_, ok = args["head_dim"]
	return ok, err
}

// SetSettings sets the settings, for models that have them in no JSON file: values of file as returned by package
// torch.
func (d *Decision) SetSettings(file string, values map[string]any) {
	d.settings, d.settingsFile = map[string]any{}, file
	for key, v := range values {
		d.settings[key] = asJSON(v)
	}
}

// asJSON returns a value of torch.File.Values as encoding/json would decode it.
func asJSON(v any) any {
	switch v := v.(type) {
	case int64:
		return json.Number(strconv.FormatInt(v, 10))
	case float64:
		return json.Number(strconv.FormatFloat(v, 'g', -1, 64))
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = asJSON(v[i])
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, x := range v {
			m[key] = asJSON(x)
		}
		return m
	}
	return v
}
