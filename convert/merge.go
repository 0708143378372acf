package convert

import (
	"context"
	"fmt"
	"strings"

	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/checkpoint"
	"ggforge/checkpoint/precision"
	"ggforge/fault"
	"ggforge/rows"
)

// Merge is an adapter to add to the weights.
type Merge struct {
	Dir   string  // the adapter's directory or address
	Scale float64 // of all its pairs, on top of their own scales; 1 for the adapter as it is
}

// merged has the products that adapters add to one weight, in the order of the adapters.
type merged struct {
	products []product
	done     bool // applied to a tensor of the file
}

type product struct {
	*rows.Factors
	scale     float32
	embedding bool
	from      string // the adapter's directory
}

// openMerges reads the adapters that the options name and finds their weights.
func (j *Job) openMerges(ctx context.Context) error {
	opt := j.options
	if len(opt.Merge) == 0 {
		return nil
	}
	byName := make(map[string]*precision.Weight, len(j.model.weights))
	for i := range j.model.weights {
		byName[j.model.weights[i].Name] = &j.model.weights[i]
	}
	if j.model.merges == nil {
		j.model.merges = map[*precision.Weight]*merged{}
	}
	for _, m := range opt.Merge {
		l, err := openLora(ctx, m.Dir, checkpoint.Options{OutsideLinks: opt.OutsideLinks, Remote: opt.Remote})
		if err != nil {
			return err
		}
		j.in.adapters = append(j.in.adapters, l)
		if err := j.addPairs(l, m, func(name string) *precision.Weight { return j.called(name, byName) }); err != nil {
			return err
		}
	}
	return nil
}

// addPairs adds the pairs of an adapter to the weights that find returns for their names.
func (j *Job) addPairs(l *lora, m Merge, find func(name string) *precision.Weight) error {
	if len(l.whole) > 0 {
		return fault.Errorf(fault.Unsupported, "%s: tensor %q is a whole norm: only pairs are merged", m.Dir,
			l.whole[0].Name)
	}
	if len(l.invocations) > 0 {
		return fault.Errorf(fault.Unsupported,
			"%s: is active from certain tokens on (alora_invocation_tokens), a merged one is always", m.Dir)
	}
	var lost []string
	for _, p := range l.pairs {
		w := find(p.name)
		if w == nil {
			lost = append(lost, p.name)
			continue
		}
		f, err := p.factors()
		if err != nil {
			return err
		}
		if j.model.merges[w] == nil {
			j.model.merges[w] = &merged{}
		}
		j.model.merges[w].products = append(j.model.merges[w].products,
			product{f, float32(l.scale(p, f.Rank()) * m.Scale), p.embedding, m.Dir})
	}
	if len(lost) > 0 {
		return fault.Errorf(fault.Broken, "%s: %d weights of the adapter are not in the model:%s", m.Dir, len(lost),
			fault.Lines(lost))
	}
	if l.embeds() {
		j.warnf("%s: the adapter changes the token embedding; where the output matrix is the same, that changes with it", m.Dir)
	}
	return nil
}

// called returns the weight for a name in an adapter, nil for none. A model without output head, or with two spellings
// of its names, may lack the first component.
func (j *Job) called(name string, byName map[string]*precision.Weight) *precision.Weight {
	w := byName[name]
	for _, r := range append([]table.Rename{{Prefix: j.Arch.Body.Prefix}}, j.Arch.Rename...) {
		if rest, ok := strings.CutPrefix(name, r.Prefix); ok && w == nil && !r.AfterModel {
			w = byName[r.With+rest]
		}
	}
	return w
}

// merge returns the rows of a weight with the adapters' products added. row is the weight's row in the architecture.
func (j *Job) merge(w *precision.Weight, row *table.TensorRow, src rows.Source) (rows.Source, error) {
	m := j.model.merges[w]
	if m == nil {
		return src, nil
	}
	m.done = true
	for _, p := range m.products {
		f := p.Factors
		if p.embedding || row.Transform == parts.Transpose { // the weight is stored transposed
			t, err := rows.Transpose(f)
			if err != nil {
				return nil, err
			}
			f = t.(*rows.Factors)
		}
		var err error
		if src, err = rows.AddProduct(src, f, p.scale); err != nil {
			return nil, fmt.Errorf("%s: the pair of %q: %w", p.from, w.Name, err)
		}
	}
	return src, nil
}

// allMerged returns an error if the file lacks a weight that adapters change.
func (j *Job) allMerged() error {
	var lost []string
	for i := range j.model.weights {
		if m := j.model.merges[&j.model.weights[i]]; m != nil && !m.done {
			lost = append(lost, j.model.weights[i].Name)
		}
	}
	if len(lost) > 0 {
		return fault.Errorf(fault.Unsupported, "adapters change %d weights that are not in the file:%s", len(lost),
			fault.Lines(lost))
	}
	return nil
}
