package convert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"ggforge/checkpoint"
	"ggforge/checkpoint/precision"
	"ggforge/fault"
)

// A decision adapter (which turns its base model into a decision model) is converted to a model: the base with the
// adapter's pairs added, named and described by the adapter's files. Source: the _DecisionLoraMixin of the reference
// (lev.py).

// modelDir returns the directory of the model's weights, configuration and vocabulary.
func (j *Job) modelDir() *checkpoint.Dir {
	if j.model.decider != nil {
		return j.in.base
	}
	return j.in.files
}

// openDecider opens the base model of a decision adapter.
func (j *Job) openDecider(ctx context.Context) (err error) {
	opt := j.options
	if j.model.pairs, err = readLora(j.in.files); err != nil {
		return err
	}
	j.in.stores, j.in.ignoredByAuto = append(j.in.stores, j.model.pairs.store),
		append(j.in.ignoredByAuto, j.model.pairs.store)
	if d := j.model.decider; d.HeadFile != "" {
		head, values, err := j.in.files.Nested(d.HeadFile)
		if errors.Is(err, fs.ErrNotExist) && !fault.Has(err) {
			err = fault.Errorf(fault.Broken, "%w: %s has its head there", err, d.Class)
		}
		if err != nil {
			return err
		}
		d.SetSettings(values)
		if err := head.Close(); err != nil { // its tensors are opened with the weights
			return err
		}
	}
	dir, err := opt.baseOf(j.model.pairs, j.model.decider.Revision)
	if err != nil {
		return err
	}
	if j.in.base, err = open(ctx, dir, checkpoint.Options{OutsideLinks: opt.OutsideLinks,
		Remote: opt.Remote}); err != nil {
		return err
	}
	if err := j.model.decider.WithBase(j.in.base); err != nil {
		return fmt.Errorf("the base model, %s: %w", dir, err)
	}
	return nil
}

// addDecider adds the adapter's pairs to the weights of the base model, whose layer names may have another prefix.
func (j *Job) addDecider() error {
	byLayer := map[string]*precision.Weight{}
	for i := range j.model.weights {
		w := &j.model.weights[i]
		if !strings.HasPrefix(strings.TrimPrefix(w.Name, "model."), "mtp.") {
			byLayer[fromLayers(w.Name)] = w
		}
	}
	j.model.merges = map[*precision.Weight]*merged{}
	return j.addPairs(j.model.pairs, Merge{j.Dir, 1},
		func(name string) *precision.Weight { return byLayer[fromLayers(name)] })
}

// fromLayers returns the part of a name from "layers." on, else the whole name.
func fromLayers(name string) string {
	if at := strings.Index(name, "layers."); at >= 0 {
		return name[at:]
	}
	return name
}
