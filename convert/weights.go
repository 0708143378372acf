package convert

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/checkpoint"
	"ggforge/checkpoint/precision"
	"ggforge/fault"
)

// openWeights opens the weights.
func (j *Job) openWeights(cfg *config.View) error {
	opt := j.options
	var store checkpoint.Store
	var err error
	if folder, ok := table.Find[table.Folder](j.Arch); ok {
		store, err = j.modelDir().WeightsIn(string(folder))
	} else {
		store, err = j.modelDir().Weights(opt.Mistral)
	}
	if errors.Is(err, checkpoint.ErrNone) {
		if opt.VocabOnly {
			return nil
		}
	}
	if err != nil {
		return err
	}
	j.in.stores = append(j.in.stores, store)
	var left []*precision.Tensor
	if j.model.quantization, err = j.quantized(cfg); err != nil {
		return err
	}
	if j.model.weights, left, err = precision.Weights(store.Tensors(), j.model.quantization); len(left) > 0 {
		j.warnf("%d tensors left out: scales of activations and of the cache of keys and values, such as %q", len(left),
			left[0].Name)
	}
	if prefix, ok := table.Find[table.LastOfNVFP4](j.Arch); ok && j.isNVFP4() {
		isLast := func(w precision.Weight) bool { return strings.HasPrefix(w.Name, string(prefix)) }
		last := slices.DeleteFunc(slices.Clone(j.model.weights), func(w precision.Weight) bool { return !isLast(w) })
		j.model.weights = append(slices.DeleteFunc(j.model.weights, isLast), last...)
	}
	if err == nil && !opt.VocabOnly {
		err = j.openBeside()
	}
	return err
}

// openBeside opens files of weights next to the model's.
func (j *Job) openBeside() error {
	for _, s := range j.Arch.Special {
		b, ok := s.(table.ExtraFile)
		if !ok {
			continue
		}
		store, err := j.in.files.FileAsLaidOut(b.File)
		if errors.Is(err, fs.ErrNotExist) && !fault.Has(err) {
			err = fault.Errorf(fault.Broken, "%w: %s has weights there", err, j.Arch.Classes[0])
		}
		if err != nil {
			return err
		}
		j.in.stores = append(j.in.stores, store)
		if b.Generated {
			j.in.ignoredByAuto = append(j.in.ignoredByAuto, store)
		}
		var list []*precision.Tensor
		for _, t := range store.Tensors() {
			named := *t
			named.Name = b.Prefix + t.Name
			list = append(list, &named)
		}
		weights, _, err := precision.Weights(list, config.Object{})
		if err != nil {
			return err
		}
		j.model.weights = append(j.model.weights, weights...)
	}
	return nil
}

// expectReads gives stores that read ahead the order in which the weights will be read.
func (j *Job) expectReads() {
	for _, store := range j.in.stores {
		if store, ok := store.(checkpoint.Expecter); ok {
			store.Expect(j.reads)
		}
	}
}
