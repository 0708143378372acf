package table

import (
	"fmt"

	"ggforge/fault"
	"ggforge/rows"
)

// Result is a tensor of the file.
type Result struct {
	Name   string
	Source rows.Source
}

// Build returns the tensors of an output, made from its sources.
func (o *Output) Build(sources []rows.Source) ([]Result, error) {
	row := o.Row
	for i, s := range sources {
		var err error
		if sources[i], err = row.PerSource.Apply(o.Layer, s); err != nil {
			return nil, err
		}
	}
	src := sources[0]
	if row.joins() {
		join := row.Join
		switch {
		case join != nil:
		case row.hasExperts():
			join = func(_ Layer, s []rows.Source) (rows.Source, error) { return rows.Stack(s) }
		default:
			join = func(_ Layer, s []rows.Source) (rows.Source, error) { return rows.Concat(s) }
		}
		var err error
		if src, err = join(o.Layer, sources); err != nil {
			return nil, asBroken(err)
		}
	}
	parts := row.Split
	if parts == nil {
		parts = []Part{{row.GGUF, row.Transform}}
	}
	var out []Result
	names := row.Outputs(o.Layer.Bid, o.Suffix)
	for i, p := range parts {
		s, err := p.Transform.Apply(o.Layer, src)
		if err != nil {
			return nil, err
		}
		out = append(out, Result{names[i], s})
	}
	return out, nil
}

// Transform changes a tensor between checkpoint and file: Forward for the conversion to GGUF, Inverse for the way back,
// nil if there is none.
type Transform struct {
	Name    string
	Forward func(Layer, rows.Source) (rows.Source, error)
	Inverse func(*Keys, rows.Source) (rows.Source, error)
}

// Apply returns the tensor after the transform; t is nil for none. A shape that does
// not fit gives an error of kind fault.Broken.
func (t *Transform) Apply(l Layer, s rows.Source) (rows.Source, error) {
	if t == nil {
		return s, nil
	}
	s, err := t.Forward(l, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, asBroken(err))
	}
	return s, nil
}

// asBroken makes an error about the shape of a tensor one of kind fault.Broken.
func asBroken(err error) error {
	if fault.Has(err) {
		return err
	}
	return fault.Errorf(fault.Broken, "%w", err)
}
