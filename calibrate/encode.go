package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/parallel"
	"ggforge/quants"
	"ggforge/quants/parts"
	"ggforge/rows"
)

// encoder chooses the blocks of matrices.
type encoder struct {
	ctx    context.Context
	opt    *Options
	blocks *Blocks
	costs  map[string]*Moments // of errors of rows that are looked up, where that is known

	progress *progress // or nil
	journal  *journal  // or nil
}

// matrix is one of the matrices of a tensor: of several where it has experts.
type matrix struct{ tensor, at, of int }

// move sets w, rows of weights of n columns, to what is to be approximated instead of them.
type move func(w []float32, n int) error

// matrix chooses the blocks of a matrix at a type, by the moments of what it reads, range of
// columns by range, of so many rows of inputs; to may be nil.
func (e *encoder) matrix(m matrix, typ gguf.Type, inputs int, moments []*Moments, to move) error {
	t := Target{m.tensor, typ}
	if e.journal.has(t, m.at) {
		return nil
	}
	k := e.blocks.of(t, m.of)
	f := parts.Of(typ)
	var descenders []*Descender
	var importance []float32
	for _, m := range moments {
		descenders = append(descenders, &Descender{Format: f, Moments: m, Passes: e.opt.Passes, Workers: e.opt.Run.Workers, Feedback: e.opt.Feedback})
		importance = append(importance, m.Diagonal()...)
	}
	var sum Result
	err := e.each(k, m, func(w []float32, data []byte, n int) error {
		if to != nil {
			if err := to(w, n); err != nil {
				return err
			}
		}
		if err := e.start(typ, data, w, n, importance); err != nil {
			return err
		}
		from := 0
		for i, d := range descenders {
			r, err := d.columns(e.ctx, w, data, n, from)
			if err != nil {
				return err
			}
			sum.Before, sum.After = sum.Before+r.Before, sum.After+r.After
			from += moments[i].n
		}
		return nil
	})
	if err != nil {
		return err
	}
	var ratio traces
	for _, d := range descenders {
		ratio.add(d.traces())
	}
	k.seen[m.at] = true
	k.Rows, k.Before, k.After = k.Rows+inputs, k.Before+sum.Before, k.After+sum.After
	k.traces.add(ratio)
	return e.journal.add(e.blocks, k, m.at, inputs, sum, ratio)
}

// rows chooses the blocks of a tensor whose rows are looked up, if there are none, by what
// their errors cost; where that is not known errors of all weights count the same.
func (e *encoder) rows(t Target) error {
	if e.blocks.kept[t] != nil {
		return nil
	}
	k, f := e.blocks.of(t, 1), parts.Of(t.Type)
	k.seen[0] = true
	d := &Descender{Format: f, Passes: e.opt.Passes, Workers: e.opt.Run.Workers, Feedback: e.opt.Feedback, Search: true}
	var importance []float32
	if d.Moments = e.costs[k.Name]; d.Moments != nil {
		importance = d.Moments.Diagonal()
		k.Gradients = true
	} else {
		d.Moments = identity(f.Block) // block by block: no column has to do with another
	}
	return e.each(k, matrix{t.Tensor, 0, 1}, func(w []float32, data []byte, n int) error {
		err := e.start(t.Type, data, w, n, importance)
		if err != nil {
			return err
		}
		r, err := d.Rows(e.ctx, w, data)
		k.Before, k.After = k.Before+r.Before, k.After+r.After
		return err
	})
}

// each calls f with some rows of a matrix at a time, of n weights each, and room for their
// blocks, which are kept.
func (e *encoder) each(k *kept, m matrix, f func(w []float32, data []byte, n int) error) error {
	src := &e.blocks.m.Tensors[m.tensor]
	n, perRow := int(src.NE[0]), k.Type.RowBytes(src.NE[0])
	count := gguf.Rows(src.NE) / int64(max(1, m.of))
	var buf []byte
	w, data := make([]float32, batchRows*n), make([]byte, batchRows*perRow)
	for a, end := int64(m.at)*count, int64(m.at+1)*count; a < end; a += batchRows {
		some := min(int64(batchRows), end-a)
		w, data := w[:some*int64(n)], data[:some*perRow]
		err := rows.Decode(src.Source, w, &buf, a, a+some)
		for i, v := range w {
			if err == nil && (math.IsNaN(float64(v)) || math.IsInf(float64(v), 0)) {
				err = fault.Errorf(fault.Broken, "weight %d of row %d is %v", i%n, a+int64(i/n), v)
			}
		}
		if err == nil {
			err = f(w, data, n)
		}
		if err == nil {
			err = e.blocks.put(k, a, data)
		}
		if err != nil {
			return fmt.Errorf("%s: tensor %q: %w", e.blocks.m.Path, src.Name, err)
		}
		e.progress.encoded(src, float64(some)/float64(gguf.Rows(src.NE)))
	}
	return nil
}

// unseen encodes the matrices that nothing met, of tensors with others that were.
func (e *encoder) unseen() error {
	for _, k := range e.blocks.kept {
		for at, ok := range k.seen {
			if ok {
				continue
			}
			k.Unseen++
			err := e.each(k, matrix{k.Tensor, at, len(k.seen)}, func(w []float32, data []byte, n int) error {
				return e.start(k.Type, data, w, n, nil)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// start encodes rows as the reference does with importance; types that need some get the same
// for all columns if it is nil.
func (e *encoder) start(t gguf.Type, data []byte, w []float32, n int, importance []float32) error {
	codec := quants.Lookup(t)
	if importance == nil && codec.NeedsImportance() {
		importance = slices.Repeat([]float32{1}, n)
	}
	perRow := int(t.RowBytes(int64(n)))
	const some = 8
	return parallel.For(e.ctx, max(1, e.opt.Run.Workers), (len(w)/n+some-1)/some, func(i, _ int) error {
		a, b := i*some, min((i+1)*some, len(w)/n)
		return codec.Quantize(data[a*perRow:b*perRow], w[a*n:b*n], n, importance)
	})
}
