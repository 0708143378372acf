package convert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"ggforge/arch/config"
	"ggforge/checkpoint"
	"ggforge/checkpoint/precision"
	"ggforge/fault"
)

// An adapter that makes its base model decide between options becomes a model: the base
// with the adapter's pairs added, named and described by the adapter's files. Source:
// the _DecisionLoraMixin of the reference (lev.py).

// model returns the directory of the model's weights, configuration and vocabulary.
func (j *Job) model() *checkpoint.Dir {
	if j.decider != nil {
		return j.base
	}
	return j.files
}

// openDecider opens the base model of such an adapter.
func (j *Job) openDecider(ctx context.Context, opt Options) (err error) {
	if j.pairs, err = readLora(j.files); err != nil {
		return err
	}
	j.stores, j.made = append(j.stores, j.pairs.store), append(j.made, j.pairs.store)
	if j.decider.Class == config.Kev {
		head, values, err := j.files.Nested(config.KevHead)
		if errors.Is(err, fs.ErrNotExist) && !fault.Has(err) {
			err = fault.Errorf(fault.Broken, "%w: %s has its head there", err, config.Kev)
		}
		if err != nil {
			return err
		}
		j.decider.SetSettings(config.KevHead, values)
		if err := head.Close(); err != nil { // its tensors are opened with the weights
			return err
		}
	}
	dir, err := opt.baseOf(j.pairs, j.decider.Revision)
	if err != nil {
		return err
	}
	if j.base, err = open(ctx, dir, checkpoint.Options{OutsideLinks: opt.OutsideLinks,
		Remote: opt.Remote}); err != nil {
		return err
	}
	if err := j.decider.WithBase(j.base); err != nil {
		return fmt.Errorf("the base model, %s: %w", dir, err)
	}
	return nil
}

// addDecider adds the adapter's pairs to the weights of the base model, whose layers may
// have other names in front of theirs.
func (j *Job) addDecider() error {
	byLayer := map[string]*precision.Weight{}
	for i := range j.weights {
		w := &j.weights[i]
		if !strings.HasPrefix(strings.TrimPrefix(w.Name, "model."), "mtp.") {
			byLayer[fromLayers(w.Name)] = w
		}
	}
	j.merges = map[*precision.Weight]*merged{}
	return j.addPairs(j.pairs, Merge{j.Dir, 1},
		func(name string) *precision.Weight { return byLayer[fromLayers(name)] })
}

// fromLayers returns the part of a name that begins with "layers.", the whole name if it
// has none.
func fromLayers(name string) string {
	if at := strings.Index(name, "layers."); at >= 0 {
		return name[at:]
	}
	return name
}
