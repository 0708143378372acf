package arch

import (
	"path"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
)

// DenseModule is a layer of the sentence-transformers library that stands behind
// an embedding model, in a folder of its own.
type DenseModule struct {
	Name    string // of its tensor in the file, without suffix
	Dir     string // in the checkpoint
	In, Out int64  // sizes of its input and output
}

// denseNames are the names of the dense modules by their folders, which are named
// after their places in modules.json.
var denseNames = map[string]string{"2_Dense": "dense_2", "3_Dense": "dense_3"}

// DenseModules lists the dense modules that modules.json of the checkpoint names.
func (c *Config) DenseModules() ([]DenseModule, error) {
	var modules []struct{ Type, Path string }
	if ok, err := c.file("modules.json", &modules); err != nil || !ok {
		return nil, err
	}
	var list []DenseModule
	for _, m := range modules {
		if !strings.HasSuffix(m.Type, "Dense") {
			continue
		}
		d := DenseModule{Name: denseNames[m.Path], Dir: m.Path}
		if d.Name == "" {
			return nil, fault.Errorf(fault.Unsupported, "modules.json: dense module in %q, want 2_Dense or 3_Dense", m.Path)
		}
		var config struct {
			In         *int64 `json:"in_features"`
			Out        *int64 `json:"out_features"`
			Activation string `json:"activation_function"`
		}
		name := path.Join(m.Path, ConfigFile)
		ok, err := c.file(name, &config)
		switch {
		case err != nil:
			return nil, err
		case !ok || config.In == nil || config.Out == nil:
			return nil, fault.Errorf(fault.Broken, "%s: want in_features and out_features of the dense module", name)
		case config.Activation != "" && !strings.HasSuffix(config.Activation, ".Identity"):
			return nil, fault.Errorf(fault.Unsupported, "%s: activation_function %q, want none", name, config.Activation)
		}
		d.In, d.Out = *config.In, *config.Out
		list = append(list, d)
	}
	return list, nil
}

// denseRows write the sizes of the dense modules if they are taken along.
func denseRows() []Row {
	var list []Row
	for _, name := range []string{"dense_2", "dense_3"} {
		size := func(of func(DenseModule) int64) Derive {
			return func(c *Config) (v gguf.Value, ok bool, err error) {
				if !c.Dense {
					return v, false, nil
				}
				modules, err := c.DenseModules()
				if err != nil {
					return v, false, err
				}
				for _, m := range modules {
					if m.Name == name {
						return uint32Of(of(m), true, nil)
					}
				}
				return v, false, nil
			}
		}
		list = append(list,
			Row{Key: name + "_feat_in", Derive: size(func(m DenseModule) int64 { return m.In })},
			Row{Key: name + "_feat_out", Derive: size(func(m DenseModule) int64 { return m.Out })})
	}
	return list
}
