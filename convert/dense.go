package convert

import (
	"path"
	"slices"
	"strings"

	"ggforge/arch/hparams"
	"ggforge/checkpoint/precision"
	"ggforge/fault"
	"ggforge/gguf"
)

// planDense adds the weights of the dense modules after an embedding model, which
// come before those of the checkpoint.
func (j *Job) planDense(config *hparams.View) error {
	if !slices.Contains(j.Arch.Sources(), hparams.DenseFiles) {
		j.warnf("models of architecture %s have no dense modules to take along", j.Arch.Name)
		return nil
	}
	modules := config.Facts.Dense
	if len(modules) == 0 {
		j.warnf("the checkpoint has no dense modules to take along")
	}
	for _, m := range modules {
		name := path.Join(m.Dir, "model.safetensors")
		store, err := j.files.File(name)
		if err != nil {
			return err
		}
		j.stores = append(j.stores, store)
		weights, _, err := precision.Weights(store.Tensors(), hparams.Object{})
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
				return fault.Errorf(fault.Broken, "%s: tensor %q of shape %v, want linear.weight of [%d %d]", t.File, t.Name, t.Shape, m.Out, m.In)
			}
			src, err := source(w, gguf.TypeF32)
			if err != nil {
				return err
			}
			j.Plan = append(j.Plan, Tensor{Name: m.Name + ".weight", From: m.Dir + "/" + t.Name, Type: j.Type.row().tensor, Source: src})
		}
	}
	return nil
}
