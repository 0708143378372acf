package convert

import (
	"path"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/checkpoint/precision"
	"ggforge/fault"
	"ggforge/gguf"
)

// planDense adds the weights of dense modules of an embedding model, before the checkpoint's: with Options.Dense, or if
// the architecture always has one.
func (j *Job) planDense(cfg *config.View) error {
	modules := cfg.Facts.Dense
	switch sources := j.Arch.Sources(); {
	case slices.Contains(sources, config.FirstDenseFiles):
		name := path.Join(config.FirstDense, "model.safetensors")
		if _, err := j.in.files.Stat(name); err == nil && len(modules) == 0 {
			return fault.Errorf(fault.Broken, "%s: is there, but no %s/%s with its sizes", name, config.FirstDense,
				config.ConfigFile)
		}
	case !j.options.Dense:
		return nil
	case !slices.Contains(sources, config.DenseFiles):
		j.warnf("models of architecture %s have no dense modules to take along", j.Arch.Name)
		return nil
	case len(modules) == 0:
		j.warnf("the checkpoint has no dense modules to take along")
	}
	for _, m := range modules {
		name := path.Join(m.Dir, "model.safetensors")
		store, err := j.in.files.File(name)
		if err != nil {
			return err
		}
		j.in.stores = append(j.in.stores, store)
		weights, _, err := precision.Weights(store.Tensors(), config.Object{})
		if err != nil {
			return err
		}
		for i := range weights {
			w := &weights[i]
			t := w.First()
			if !strings.HasSuffix(t.Name, ".weight") {
				j.warnf("%s: tensor %q left out: files have the weights of dense modules only", m.Dir, t.Name)
				continue
			}
			if t.Name != "linear.weight" || len(t.Shape) != 2 || t.Shape[0] != m.Out || t.Shape[1] != m.In {
				return fault.Errorf(fault.Broken, "%s: tensor %q of shape %v, want linear.weight of [%d %d]", t.File,
					t.Name, t.Shape, m.Out, m.In)
			}
			src, err := source(w, gguf.TypeF32)
			if err != nil {
				return err
			}
			j.Plan = append(j.Plan, Tensor{Name: m.Name + ".weight", From: m.Dir + "/" + t.Name,
				Type: j.Type.row().tensor, Source: src})
		}
	}
	return nil
}
