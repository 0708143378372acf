package config

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// KevHead is the file with the head of Kev and its settings, one of torch.save.
const KevHead = "head.pt"

// isKev reports whether an adapter was trained with a head that points at options. Any
// trainer may write a file of that name: others are not looked into.
func isKev(files Files) (bool, error) {
	data, ok, err := readFile(files, trainingConfig)
	if !ok || !bytes.Contains(data, []byte(`"head_dim"`)) {
		return false, err
	}
	training, err := parseRoot(trainingConfig, data)
	args, _ := training["args"].(map[string]any)
	_, ok = args["head_dim"]
	return ok, err
}

// SetSettings completes what ReadAdapterDecision has read with settings that are in no JSON
// file: values of file as package torch has them.
func (d *Decision) SetSettings(file string, values map[string]any) {
	d.settings, d.settingsFile = map[string]any{}, file
	for key, v := range values {
		d.settings[key] = asJSON(v)
	}
}

// asJSON is a value of torch.File.Values as one that a configuration has.
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
