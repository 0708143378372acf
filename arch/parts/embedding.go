package parts

import (
	"io/fs"
	"path"
	"strings"

	"ggforge/arch/hparams"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

// DenseRows write the sizes of the dense modules if they are taken along.
func DenseRows() []table.Row {
	var list []table.Row
	for _, name := range []string{"dense_2", "dense_3"} {
		size := func(of func(hparams.DenseModule) int64) table.Derive {
			return func(c *hparams.View) (v gguf.Value, ok bool, err error) {
				if !c.Dense {
					return v, false, nil
				}
				modules, err := c.DenseModules()
				if err != nil {
					return v, false, err
				}
				for _, m := range modules {
					if m.Name == name {
						return table.Uint32Of(of(m), true, nil)
					}
				}
				return v, false, nil
			}
		}
		list = append(list,
			table.Row{Key: name + "_feat_in", Derive: size(func(m hparams.DenseModule) int64 { return m.In })},
			table.Row{Key: name + "_feat_out", Derive: size(func(m hparams.DenseModule) int64 { return m.Out })})
	}
	return list
}

// The values of pooling_type.
const (
	PoolMean = 1
	PoolCLS  = 2
	poolLast = 3
	PoolRank = 4
)

// PoolingType reads how an embedding model pools the states of its tokens from
// the files of the sentence-transformers library, modules.json and the config of
// the pooling module it names, or from embedding_config.json. A checkpoint
// without these files has no pooling. Source: _try_set_pooling_type of the
// reference.
func PoolingType(c *hparams.View) (v gguf.Value, ok bool, err error) {
	var modules []struct{ Type, Path string }
	if ok, err := c.File("modules.json", &modules); err != nil {
		return v, ok, err
	}
	for _, m := range modules {
		if !strings.HasSuffix(m.Type, "Pooling") {
			continue
		}
		name := path.Join(m.Path, hparams.ConfigFile)
		var pooling struct {
			Mean bool   `json:"pooling_mode_mean_tokens"`
			CLS  bool   `json:"pooling_mode_cls_token"`
			Last bool   `json:"pooling_mode_lasttoken"`
			Mode string `json:"pooling_mode"`
		}
		if ok, err = c.File(name, &pooling); err == nil && !ok {
			err = fault.Errorf(fault.Broken, "%s: %w (modules.json names it)", name, fs.ErrNotExist)
		}
		if err != nil {
			return v, false, err
		}
		switch {
		case pooling.Mean:
			return gguf.Uint32(PoolMean), true, nil
		case pooling.CLS:
			return gguf.Uint32(PoolCLS), true, nil
		case pooling.Last:
			return gguf.Uint32(poolLast), true, nil
		}
		if n, ok := PoolModes[pooling.Mode]; ok {
			return gguf.Uint32(n), true, nil
		}
		return v, false, fault.Errorf(fault.Unsupported, "%s: pooling %q, want mean, cls or lasttoken", name, pooling.Mode)
	}
	var embedding struct{ Pooling *string }
	if ok, err := c.File("embedding_config.json", &embedding); err != nil || !ok || embedding.Pooling == nil {
		return v, false, err
	}
	if *embedding.Pooling != "last_token" {
		return v, false, fault.Errorf(fault.Unsupported, "embedding_config.json: pooling %q, want last_token", *embedding.Pooling)
	}
	return gguf.Uint32(poolLast), true, nil
}

var PoolModes = map[string]uint32{"mean": PoolMean, "cls": PoolCLS, "lasttoken": poolLast}
