package arch

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
)

// The values of pooling_type.
const (
	poolMean = 1
	poolCLS  = 2
	poolLast = 3
	poolRank = 4
)

// poolingType reads how an embedding model pools the states of its tokens from
// the files of the sentence-transformers library, modules.json and the config of
// the pooling module it names, or from embedding_config.json. A checkpoint
// without these files has no pooling. Source: _try_set_pooling_type of the
// reference.
func poolingType(c *Config) (v gguf.Value, ok bool, err error) {
	var modules []struct{ Type, Path string }
	if ok, err := c.file("modules.json", &modules); err != nil {
		return v, ok, err
	}
	for _, m := range modules {
		if !strings.HasSuffix(m.Type, "Pooling") {
			continue
		}
		name := path.Join(m.Path, ConfigFile)
		var pooling struct {
			Mean bool   `json:"pooling_mode_mean_tokens"`
			CLS  bool   `json:"pooling_mode_cls_token"`
			Last bool   `json:"pooling_mode_lasttoken"`
			Mode string `json:"pooling_mode"`
		}
		if ok, err = c.file(name, &pooling); err == nil && !ok {
			err = fault.Errorf(fault.Broken, "%s: %w (modules.json names it)", name, fs.ErrNotExist)
		}
		if err != nil {
			return v, false, err
		}
		switch {
		case pooling.Mean:
			return gguf.Uint32(poolMean), true, nil
		case pooling.CLS:
			return gguf.Uint32(poolCLS), true, nil
		case pooling.Last:
			return gguf.Uint32(poolLast), true, nil
		}
		if n, ok := poolModes[pooling.Mode]; ok {
			return gguf.Uint32(n), true, nil
		}
		return v, false, fault.Errorf(fault.Unsupported, "%s: pooling %q, want mean, cls or lasttoken", name, pooling.Mode)
	}
	var embedding struct{ Pooling *string }
	if ok, err := c.file("embedding_config.json", &embedding); err != nil || !ok || embedding.Pooling == nil {
		return v, false, err
	}
	if *embedding.Pooling != "last_token" {
		return v, false, fault.Errorf(fault.Unsupported, "embedding_config.json: pooling %q, want last_token", *embedding.Pooling)
	}
	return gguf.Uint32(poolLast), true, nil
}

var poolModes = map[string]uint32{"mean": poolMean, "cls": poolCLS, "lasttoken": poolLast}

// file reads a JSON file of the checkpoint into v; ok is false when there is none.
func (c *Config) file(name string, v any) (ok bool, err error) {
	if c.files == nil {
		return false, nil
	}
	data, err := c.files.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil && !fault.Has(err) {
		err = fault.Errorf(fault.Broken, "%w", err)
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return false, fault.Errorf(fault.Broken, "%s: %w", name, err)
	}
	return true, nil
}
