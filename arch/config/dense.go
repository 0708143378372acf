package config

import (
	"path"
	"strings"

	"ggforge/fault"
)

// DenseModule is a linear layer of the sentence-transformers library after an embedding model, in a separate folder.
type DenseModule struct {
	Name    string // of its tensor in the file, without suffix
	Dir     string // in the checkpoint
	In, Out int64  // sizes of its input and output
}

// denseNames are the names of the dense modules by their folders, which are named
// after their places in modules.json.
var denseNames = map[string]string{"2_Dense": "dense_2", "3_Dense": "dense_3"}

// readDense reads the dense modules that modules.json names.
func readDense(files Files, v *View, f *Facts) error {
	if !v.Options.Dense {
		return nil
	}
	var modules []module
	if _, err := ReadJSON(files, modulesFile, &modules); err != nil {
		return err
	}
	for _, m := range modules {
		if !strings.HasSuffix(m.Type, "Dense") {
			continue
		}
		d := DenseModule{Name: denseNames[m.Path], Dir: m.Path}
		if d.Name == "" {
			return fault.Errorf(fault.Unsupported, "%s: dense module in %q, want 2_Dense or 3_Dense",
				modulesFile, m.Path)
		}
		ok, err := d.readConfig(files)
		if err == nil && !ok {
			err = errDense(d.Dir)
		}
		if err != nil {
			return err
		}
		f.Dense = append(f.Dense, d)
	}
	return nil
}

// FirstDense is the folder of the only dense module of models for late interaction.
const FirstDense = "1_Dense"

// readFirstDense reads the dense module in FirstDense. Source: the LFM2ColBert class of
// the reference's converter.
func readFirstDense(files Files, _ *View, f *Facts) error {
	d := DenseModule{Name: denseNames["2_Dense"], Dir: FirstDense}
	ok, err := d.readConfig(files)
	if ok {
		f.Dense = append(f.Dense, d)
	}
	return err
}

// readConfig reads the sizes of the module; ok is false when it has no such file.
func (d *DenseModule) readConfig(files Files) (ok bool, err error) {
	var config struct {
		In         *int64 `json:"in_features"`
		Out        *int64 `json:"out_features"`
		Activation string `json:"activation_function"`
	}
	name := path.Join(d.Dir, ConfigFile)
	if ok, err = ReadJSON(files, name, &config); err != nil || !ok {
		return false, err
	}
	switch {
	case config.In == nil || config.Out == nil:
		return false, errDense(d.Dir)
	case config.Activation != "" && !strings.HasSuffix(config.Activation, ".Identity"):
		return false, fault.Errorf(fault.Unsupported, "%s: activation_function %q, want none", name, config.Activation)
	}
	d.In, d.Out = *config.In, *config.Out
	return true, nil
}

func errDense(dir string) error {
	return fault.Errorf(fault.Broken, "%s: want in_features and out_features of the dense module",
		path.Join(dir, ConfigFile))
}
