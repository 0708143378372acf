package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
	"ggforge/quants"
	"ggforge/quants/parts"
	"ggforge/rows"
)

// encoder encodes matrices.
type encoder struct {
	ctx    context.Context
	opt    *Options
	blocks *Blocks
	costs  map[string]*Moments // of errors in embedding rows, where gradients gave them
	// outputs has the moments of the gradients at outputs, or is nil: rows are independent.
	outputs *outputMoments

	progress *progress // or nil
	journal  *journal  // or nil
}

// matrix is one of the matrices of a tensor, of several in a tensor of experts.
type matrix struct{ tensor, at, of int }

// correction replaces w, rows of n weights, by the target to encode instead.
type correction func(w []float32, n int) error

// matrix encodes a matrix at a type by the moments of its inputs, one for each range of columns, over that many rows
// of inputs; to may be nil.
func (e *encoder) matrix(m matrix, typ gguf.Type, inputs int, moments []*Moments, to correction) error {
	t := Target{m.tensor, typ}
	if e.journal.has(t, m.at) {
		return nil
	}
	k := e.blocks.of(t, m.of)
	var how *method
	var err error
	if o := e.outputs.of(key{k.Name, m.at}, gguf.Rows(e.blocks.m.Tensors[m.tensor].NE)/int64(max(1, m.of))); o != nil {
		how = e.byMoments(typ, moments, nil)
		err = e.matrixTwoSided(k, m, how, to, o)
	} else {
		how = e.byMoments(typ, moments, to)
		err = e.each(k, m, how.encode)
	}
	if err != nil {
		return err
	}
	var ratio traces
	for _, d := range how.descents {
		ratio.add(d.traces())
	}
	sum := how.sum
	k.seen[m.at] = true
	k.Rows, k.Before, k.After = k.Rows+inputs, k.Before+sum.Before, k.After+sum.After
	k.traces.add(ratio)
	return e.journal.add(e.blocks, k, m.at, inputs, sum, ratio)
}

// method encodes the rows of a matrix.
type method struct {
	encode   func(w []float32, data []byte, n int) error // of some rows of n weights
	descents []*CoordinateDescent
	sum      Result // of the rows so far
}

// byMoments encodes by the moments of the inputs, one for each range of columns; to may be nil.
func (e *encoder) byMoments(typ gguf.Type, moments []*Moments, to correction) *method {
	x := &method{}
	var importance []float32
	for _, m := range moments {
		x.descents = append(x.descents, &CoordinateDescent{Format: parts.Of(typ), Moments: m, Passes: e.opt.Passes,
			Workers: e.opt.Run.Workers, Feedback: e.opt.Feedback})
		importance = append(importance, m.Diagonal()...)
	}
	x.encode = func(w []float32, data []byte, n int) error {
		if to != nil {
			if err := to(w, n); err != nil {
				return err
			}
		}
		if err := e.encodeWeighted(typ, data, w, n, importance); err != nil {
			return err
		}
		from := 0
		for i, d := range x.descents {
			r, err := d.columns(e.ctx, w, data, n, from)
			if err != nil {
				return err
			}
			x.sum.Before, x.sum.After = x.sum.Before+r.Before, x.sum.After+r.After
			from += moments[i].n
		}
		return nil
	}
	return x
}

// embeddingRows encodes an embedding unless it is encoded already: by gradients, or without them with all weights
// counting equally.
func (e *encoder) embeddingRows(t Target) error {
	if e.blocks.tensors[t] != nil {
		return nil
	}
	k := e.blocks.of(t, 1)
	k.seen[0] = true
	k.Gradients = e.costs[k.Name] != nil
	x := e.byEmbedding(t.Type, k.Name)
	err := e.each(k, matrix{t.Tensor, 0, 1}, x.encode)
	k.Before, k.After = k.Before+x.sum.Before, k.After+x.sum.After
	return err
}

// byEmbedding encodes embedding rows by the cost of their errors.
func (e *encoder) byEmbedding(typ gguf.Type, name string) *method {
	d := &CoordinateDescent{Format: parts.Of(typ), Passes: e.opt.Passes, Workers: e.opt.Run.Workers,
		Feedback: e.opt.Feedback,
		Search:   true}
	var importance []float32
	if d.Moments = e.costs[name]; d.Moments != nil {
		importance = d.Moments.Diagonal()
	} else {
		d.Moments = identity(d.Format.Block) // one block of columns is enough: all are independent
	}
	x := &method{}
	x.encode = func(w []float32, data []byte, n int) error {
		err := e.encodeWeighted(typ, data, w, n, importance)
		if err != nil {
			return err
		}
		r, err := d.Rows(e.ctx, w, data)
		x.sum.Before, x.sum.After = x.sum.Before+r.Before, x.sum.After+r.After
		return err
	}
	return x
}

// unweighted encodes a matrix without inputs, of a tensor with others that have some.
func (e *encoder) unweighted(typ gguf.Type) *method {
	return &method{encode: func(w []float32, data []byte,
		n int) error {
		return e.encodeWeighted(typ, data, w, n, nil)
	}}
}

// each calls f with up to batchRows rows of n weights of a matrix at a time, and stores the blocks that it sets.
func (e *encoder) each(k *encodedTensor, m matrix, f func(w []float32, data []byte, n int) error) error {
	count := gguf.Rows(e.blocks.m.Tensors[m.tensor].NE) / int64(max(1, m.of))
	return e.some(k, int64(m.at)*count, int64(m.at+1)*count, f)
}

// some is each for rows [a, end) of the tensor.
func (e *encoder) some(k *encodedTensor, a, end int64, f func(w []float32, data []byte, n int) error) error {
	src := &e.blocks.m.Tensors[k.Tensor]
	n, perRow := int(src.NE[0]), k.Type.RowBytes(src.NE[0])
	var buf []byte
	w, data := make([]float32, batchRows*n), make([]byte, batchRows*perRow)
	for ; a < end; a += batchRows {
		some := min(int64(batchRows), end-a)
		w, data := w[:some*int64(n)], data[:some*perRow]
		err := decode(src.Source, w, &buf, n, a)
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

// decode sets w to rows of n weights of a tensor, from row first on, which have to be finite.
func decode(src rows.Source, w []float32, buf *[]byte, n int, first int64) error {
	if err := rows.Decode(src, w, buf, first, first+int64(len(w)/n)); err != nil {
		return err
	}
	if vecmath.Finite(w) {
		return nil
	}
	for i, v := range w {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return fault.Errorf(fault.Broken, "weight %d of row %d is %v", i%n, first+int64(i/n), v)
		}
	}
	return nil
}

// unseen encodes the matrices without inputs of tensors with others that have some.
func (e *encoder) unseen() error {
	for _, k := range e.blocks.tensors {
		for at, ok := range k.seen {
			if ok {
				continue
			}
			k.Unseen++
			if err := e.each(k, matrix{k.Tensor, at, len(k.seen)}, e.unweighted(k.Type).encode); err != nil {
				return err
			}
		}
	}
	return nil
}

// encodeWeighted encodes rows as llama-quantize does, with importance; if it is nil, types that need importance get 1
// for all columns.
func (e *encoder) encodeWeighted(t gguf.Type, data []byte, w []float32, n int, importance []float32) error {
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
