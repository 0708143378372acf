package config

import (
	"io/fs"
	"path"
	"strings"

	"ggforge/fault"
)

// modulesFile lists the layers of a model of the sentence-transformers library.
const modulesFile = "modules.json"

type module struct{ Type, Path string }

// readPooling reads the files of the sentence-transformers library, modules.json and
// the configuration of the pooling module that it names, or embedding_config.json.
// Source: _try_set_pooling_type of the reference.
func readPooling(files Files, _ *View, f *Facts) error {
	var modules []module
	if _, err := ReadJSON(files, modulesFile, &modules); err != nil {
		return err
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
		ok, err := ReadJSON(files, name, &pooling)
		if err == nil && !ok {
			err = fault.Errorf(fault.Broken, "%s: %w (%s names it)", name, fs.ErrNotExist, modulesFile)
		}
		if err != nil {
			return err
		}
		switch {
		case pooling.Mean:
			f.Pooling = "mean"
		case pooling.CLS:
			f.Pooling = "cls"
		case pooling.Last:
			f.Pooling = "lasttoken"
		case pooling.Mode == "mean", pooling.Mode == "cls", pooling.Mode == "lasttoken":
			f.Pooling = pooling.Mode
		default:
			return fault.Errorf(fault.Unsupported, "%s: pooling %q, want mean, cls or lasttoken", name, pooling.Mode)
		}
		return nil
	}
	const embeddingFile = "embedding_config.json"
	var embedding struct{ Pooling *string }
	if ok, err := ReadJSON(files, embeddingFile, &embedding); err != nil || !ok || embedding.Pooling == nil {
		return err
	}
	if *embedding.Pooling != "last_token" {
		return fault.Errorf(fault.Unsupported, "%s: pooling %q, want last_token", embeddingFile, *embedding.Pooling)
	}
	f.Pooling = "lasttoken"
	return nil
}
