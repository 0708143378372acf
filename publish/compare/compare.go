// Package compare measures the weight error of a model against a base, tensor by tensor: of a quantized model
// against the one it was made from.
//
// All sums are float64, over blocks of rows whose size does not depend on the number of workers, added in row order:
// the figures are the same for any number of workers.
package compare

import (
	"context"
	"math"
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/internal/io/mmap"
	"ggforge/internal/kernel/parallel"
	"ggforge/model"
	"ggforge/rows"
)

// Sums are the sums from which the figures of one or several tensors are computed. x is a weight of the base, x+e
// the same weight of the model: e is the weight error.
type Sums struct {
	Elements, Bytes int64
	// Over all elements: x², e², x·(x+e), (x+e)².
	Base, Error, Product, Model float64
	// Over the elements with importance, each multiplied by it: x² and e².
	WeightedBase, WeightedError float64
	Max                         float64 // the largest |e|
}

// RMSE is the root mean squared error.
func (s *Sums) RMSE() float64 { return math.Sqrt(s.Error / float64(max(1, s.Elements))) }

// Relative is the norm of the errors divided by the norm of the base's weights; NaN where all weights are 0.
func (s *Sums) Relative() float64 { return math.Sqrt(s.Error / s.Base) }

// Weighted is Relative with importance; NaN without.
func (s *Sums) Weighted() float64 { return math.Sqrt(s.WeightedError / s.WeightedBase) }

// SQNR is the signal-to-quantization-noise ratio in decibels; +Inf without errors.
func (s *Sums) SQNR() float64 { return 10 * math.Log10(s.Base/s.Error) }

// Cosine is the cosine similarity of base and model as vectors.
func (s *Sums) Cosine() float64 { return s.Product / math.Sqrt(s.Base*s.Model) }

// BPW is the bits per weight of the model.
func (s *Sums) BPW() float64 { return 8 * float64(s.Bytes) / float64(max(1, s.Elements)) }

// Add adds the sums of other tensors.
func (s *Sums) Add(o *Sums) {
	s.Elements, s.Bytes = s.Elements+o.Elements, s.Bytes+o.Bytes
	s.Base, s.Error, s.Product, s.Model = s.Base+o.Base, s.Error+o.Error, s.Product+o.Product, s.Model+o.Model
	s.WeightedBase, s.WeightedError = s.WeightedBase+o.WeightedBase, s.WeightedError+o.WeightedError
	s.Max = max(s.Max, o.Max)
}

// Tensor holds the weight error of one tensor.
type Tensor struct {
	Name     string
	From, To gguf.Type // types in the base and in the model
	NE       []int64
	Sums
	// Where the largest error is: the column, and the row counted through all matrices.
	Column, Row int64
	at          bool // Column and Row are set
}

// Result is the result of a comparison.
type Result struct {
	Tensors []Tensor // in the order of the model
	// Missing are tensors that only the base has, Added those that only the model has, Unread those of a type that
	// cannot be decoded.
	Missing, Added, Unread []string
}

// Options are the settings of a comparison. The zero value is one worker and no importance.
type Options struct {
	Workers int
	Matrix  *imatrix.Matrix // importance, nil for none
}

// block is the number of elements that one worker compares at a time.
const block = 256 << 10

// Compare compares the weights of a model with those of its base. Tensors whose dimensions differ are an error of
// kind fault.Refused, values that are not finite one of kind fault.Broken.
func Compare(ctx context.Context, base, m *model.Model, opt Options) (*Result, error) {
	r := &Result{}
	of := map[string]*model.Tensor{}
	for i := range base.Tensors {
		of[base.Tensors[i].Name] = &base.Tensors[i]
	}
	type job struct {
		tensor   int
		from, to int64 // rows
	}
	var jobs []job
	var pairs [][2]rows.Source
	var importance [][]float32
	for i := range m.Tensors {
		t := &m.Tensors[i]
		b := of[t.Name]
		if b == nil {
			r.Added = append(r.Added, t.Name)
			continue
		}
		delete(of, t.Name)
		if t.Elements() == 0 && b.Elements() == 0 {
			continue // nothing to compare
		}
		if !slices.Equal(withoutOnes(b.NE), withoutOnes(t.NE)) {
			return nil, fault.Errorf(fault.Refused, "%s: tensor %q: dimensions %s, %s has %s", m.Path, t.Name,
				gguf.Shape(t.NE), base.Path, gguf.Shape(b.NE))
		}
		if !decodes(b) || !decodes(t) {
			r.Unread = append(r.Unread, t.Name)
			continue
		}
		values, err := importanceOf(opt.Matrix, t)
		if err != nil {
			return nil, err
		}
		n, row := gguf.Rows(t.NE), gguf.RowLen(t.NE)
		step := max(1, block/row)
		for from := int64(0); from < n; from += step {
			jobs = append(jobs, job{len(pairs), from, min(from+step, n)})
		}
		r.Tensors = append(r.Tensors, Tensor{Name: t.Name, From: b.Type, To: t.Type, NE: t.NE,
			Sums: Sums{Elements: t.Elements(), Bytes: t.Bytes()}})
		pairs, importance = append(pairs, [2]rows.Source{b.Source, t.Source}), append(importance, values)
	}
	for i := range base.Tensors {
		if name := base.Tensors[i].Name; of[name] != nil {
			r.Missing = append(r.Missing, name)
		}
	}
	workers := max(1, opt.Workers)
	parts := make([]Tensor, len(jobs))
	scratch := make([]struct {
		x, y []float32
		raw  []byte
	}, workers)
	err := parallel.For(ctx, workers, len(jobs), func(i, worker int) error {
		j, s := &jobs[i], &scratch[worker]
		t := &r.Tensors[j.tensor]
		n := int((j.to - j.from) * gguf.RowLen(t.NE))
		s.x, s.y = slices.Grow(s.x[:0], n)[:n], slices.Grow(s.y[:0], n)[:n]
		return mmap.Guard(m.Path+" or "+base.Path, func() error {
			for k, dst := range [][]float32{s.x, s.y} {
				if err := rows.Decode(pairs[j.tensor][k], dst, &s.raw, j.from, j.to); err != nil {
					return err
				}
			}
			parts[i].add(t, s.x, s.y, j.from, importance[j.tensor])
			if p := &parts[i]; p.Error-p.Error != 0 || p.Base-p.Base != 0 { // Inf or NaN
				return fault.Errorf(fault.Broken, "tensor %q, rows %d to %d: values that are not finite in %s or %s",
					t.Name, j.from, j.to-1, base.Path, m.Path)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	for i := range parts {
		t, p := &r.Tensors[jobs[i].tensor], &parts[i]
		if p.at && p.Max > t.Max {
			t.Column, t.Row = p.Column, p.Row
		}
		t.Sums.Add(&p.Sums)
	}
	return r, nil
}

// withoutOnes returns dimensions without ones at the end, which a quantized image model has lost.
func withoutOnes(ne []int64) []int64 {
	for len(ne) > 1 && ne[len(ne)-1] == 1 {
		ne = ne[:len(ne)-1]
	}
	return ne
}

// decodes reports whether a tensor has a type that can be decoded to float32.
func decodes(t *model.Tensor) bool {
	switch t.Type {
	case gguf.TypeI8, gguf.TypeI16, gguf.TypeI32, gguf.TypeI64, gguf.TypeF64:
		return false
	}
	return t.Type.Known()
}

// importanceOf returns the importance of a tensor's columns, nil if the matrix has none.
func importanceOf(m *imatrix.Matrix, t *model.Tensor) ([]float32, error) {
	if m == nil {
		return nil, nil
	}
	v, warning, err := m.Lookup(t.Name, t.NE)
	if err == nil && warning != nil {
		return nil, nil
	}
	return v, err
}

// add adds the rows of t that start at row from: x of the base, y of the model.
func (p *Tensor) add(t *Tensor, x, y []float32, from int64, importance []float32) {
	n := int(gguf.RowLen(t.NE))
	per := int64(1) // rows of a matrix
	if len(t.NE) > 1 {
		per = t.NE[1]
	}
	for r := 0; r*n < len(x); r++ {
		a, b := x[r*n:][:n], y[r*n:][:n]
		var base, err, product, model float64
		for i, v := range a {
			u, w := float64(v), float64(b[i])
			e := w - u
			base += float64(u * u)
			err += float64(e * e)
			product += float64(u * w)
			model += float64(w * w)
			if e = math.Abs(e); e > p.Max {
				p.Max, p.Column, p.Row, p.at = e, int64(i), from+int64(r), true
			}
		}
		p.Base, p.Error, p.Product, p.Model = p.Base+base, p.Error+err, p.Product+product, p.Model+model
		if importance == nil {
			continue
		}
		of := importance
		if len(importance) > n {
			of = importance[int((from+int64(r))/per)*n%len(importance):][:n]
		}
		var weightedBase, weightedError float64
		for i, v := range a {
			u, w, imp := float64(v), float64(b[i]), float64(of[i])
			e := w - u
			weightedBase += float64(imp * u * u)
			weightedError += float64(imp * e * e)
		}
		p.WeightedBase, p.WeightedError = p.WeightedBase+weightedBase, p.WeightedError+weightedError
	}
}
