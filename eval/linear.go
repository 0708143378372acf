package eval

import (
	"fmt"

	"ggforge/fault"
	"ggforge/internal/kernel/gemm"
	"ggforge/internal/kernel/vecmath"
)

// linear is a linear layer: y = scale · W x + bias.
type linear struct {
	name            string // of its weights
	matrix          int    // of several in a tensor,
	of              int    // as many as these; 0 where there is but one
	routed          bool   // tokens choose among them
	single          bool   // see Inputs
	w               *gemm.Weights
	reportedByOther bool      // its inputs are reported as those of another
	scale           *float32  // or nil
	bias            []float32 // or nil
	fold            *hadamard // of the inputs, or nil
	adapters        []adapter // of its outputs, or nil
}

// reportInputs calls Run.Inputs for the inputs of linear layers; leave: their outputs shall be zeros.
func (s *stream) reportInputs(x []float32, rows int, layers ...*linear) (leave bool, err error) {
	s.products++
	if s.r.Inputs == nil {
		return false, nil
	}
	for _, l := range layers {
		if l.reportedByOther {
			continue
		}
		in := l.inputs(x, rows)
		in.Product = s.products
		switch err := s.r.Inputs(in); err {
		case nil:
		case errZeros:
			leave = true
		default:
			return false, err
		}
	}
	return leave, nil
}

// linear sets dst, of rows that are ld apart, to the outputs of layers for rows of x, one
// after the other in each row.
func (s *stream) linear(dst []float32, ld int, x []float32, rows int, layers ...*linear) error {
	k := layers[0].w.K
	if n := sameInputs(layers); n < len(layers) {
		if err := s.linear(dst, ld, x, rows, layers[:n]...); err != nil {
			return err
		}
		for _, l := range layers[:n] {
			dst = dst[l.w.Rows:]
		}
		return s.linear(dst, ld, x, rows, layers[n:]...)
	}
	x, err := s.folded(layers[0].fold, x, rows, k)
	if err != nil {
		return err
	}
	leave, err := s.reportInputs(x, rows, layers...)
	if err != nil {
		return err
	}
	if s.r.dry || leave {
		columns := 0
		for _, l := range layers {
			columns += l.w.Rows
		}
		for t := range rows {
			clear(dst[t*ld:][:columns])
		}
		if leave {
			return nil
		}
		return s.adapt(dst, ld, x, rows, layers)
	}
	s.xp.Reset(rows, k)
	if err := s.eachRows(rows, func(a, b int) { s.xp.PackRows(x[a*k:], k, a, b) }); err != nil {
		return err
	}
	if s.checksFinite && !vecmath.Finite(x[:rows*k]) {
		return fault.Errorf(fault.Broken, "tensor %q: its inputs are not finite", layers[0].name)
	}
	at := 0
	for _, l := range layers {
		if err := gemm.Product(s.ctx, s.scratch, dst[at:], ld, &s.xp, s.weights(l.w)); err != nil {
			return err
		}
		if l.scale != nil || l.bias != nil {
			if err := s.eachRows(rows, func(a, b int) {
				for t := a; t < b; t++ {
					row := dst[t*ld+at:][:l.w.Rows]
					if l.scale != nil {
						vecmath.Scale(row, row, *l.scale)
					}
					if l.bias != nil {
						vecmath.Add(row, l.bias)
					}
				}
			}); err != nil {
				return err
			}
		}
		for t := 0; s.checksFinite && t < rows; t++ {
			if !vecmath.Finite(dst[t*ld+at:][:l.w.Rows]) {
				return fault.Errorf(fault.Broken, "tensor %q%s: its output for token %d is not finite", l.name,
					l.matrixName(), t)
			}
		}
		at += l.w.Rows
	}
	return s.adapt(dst, ld, x, rows, layers)
}

// matrixName returns ", matrix N" for a matrix of a stack, "" otherwise.
func (l *linear) matrixName() string {
	if l.of > 1 {
		return fmt.Sprintf(", matrix %d", l.matrix)
	}
	return ""
}

func (l *linear) inputs(x []float32, rows int) Inputs {
	k := l.w.K
	return Inputs{Name: l.name, Matrix: l.matrix, Matrices: max(1, l.of), Routed: l.routed, Single: l.single,
		Rows: rows, Columns: k, X: x[:rows*k]}
}

// project sets y to the output of a layer for rows of a, one for each of n tokens; if it
// is the last layer's, only for rows that are wanted, which it moves together.
func (s *stream) project(y, a []float32, n int, last bool, out *linear) error {
	if last {
		n = s.keepPredicting(a, out.w.K, n)
	}
	return s.linear(y, out.w.Rows, a, n, out)
}
