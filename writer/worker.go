package writer

import (
	"errors"
	"fmt"

	"ggforge/gguf"
	"ggforge/internal/fault"
	"ggforge/quantize/quants"
)

// importance is one weight per column, for all rows or for each slice of rows.
type importance struct {
	values    []float32 // nil for none
	rowLen    int64
	sliceRows int64 // 0 when values holds for all rows
	slices    int64
}

// newImportance takes values for a tensor of dimensions ne apart.
func newImportance(values []float32, ne []int64) (importance, error) {
	im := importance{values: values, rowLen: gguf.RowLen(ne)}
	switch n := int64(len(values)); {
	case n == 0:
		return importance{}, nil
	case n == im.rowLen:
	case len(ne) > 2 && n == ne[0]*ne[2]:
		im.sliceRows, im.slices = ne[1], ne[2]
	default:
		return im, fault.Errorf(fault.Refused, "%d importance values for dimensions %s", n, gguf.Shape(ne))
	}
	return im, nil
}

// at returns the weights for row a, and up to which row, at most b, they hold.
// Slices along dimension 2 have weights of their own; those along dimension 3
// have them in common.
func (im importance) at(a, b int64) (w []float32, end int64) {
	if im.sliceRows == 0 {
		return im.values, b
	}
	slice := a / im.sliceRows
	off := slice % im.slices * im.rowLen
	return im.values[off : off+im.rowLen : off+im.rowLen], min(b, (slice+1)*im.sliceRows)
}

// worker holds the buffers of one worker; they grow to one block and stay.
type worker struct {
	raw []byte
	f32 []float32
	out []byte
}

// convert reads a block and writes what it becomes.
func (w *worker) convert(p *pool, b block) error {
	src, rowLen := b.source, gguf.RowLen(b.ne)
	raw, err := src.Raw(&w.raw, b.a, b.b)
	if err != nil {
		return err
	}
	from := quants.Lookup(src.Type())
	if from.CanDequantize() { // integers have nothing to check
		if err := from.Validate(raw); err != nil {
			return sourceError(err, src.Type(), b.a, rowLen)
		}
	}
	decoded := false
	for i, o := range b.outputs {
		data := raw
		if src.Type() != o.Type {
			if !decoded {
				w.f32 = sized(w.f32, int((b.b-b.a)*rowLen))
				if err := from.Dequantize(w.f32, raw); err != nil {
					return err
				}
				decoded = true
			}
			if data, err = w.encode(p, b, o, b.importance[i]); err != nil {
				return err
			}
		}
		if o.swap {
			w.out = append(w.out[:0], data...) // raw rows are not ours to change
			o.Type.SwapBytes(w.out)
			data = w.out
		}
		if _, err := o.to.WriteAt(data, o.off+b.a*o.Type.RowBytes(rowLen)); err != nil {
			return err
		}
		p.done.Add(int64(len(data)))
		p.worked.Add(workOf(o, (b.b-b.a)*rowLen))
	}
	return nil
}

// encode converts the rows in w.f32 to the output's type.
func (w *worker) encode(p *pool, b block, o *destined, im importance) ([]byte, error) {
	rowLen := gguf.RowLen(b.ne)
	rowBytes := o.Type.RowBytes(rowLen)
	to := quants.Lookup(o.Type)
	w.out = sized(w.out, int((b.b-b.a)*rowBytes))
	for i := b.a; i < b.b; {
		weights, end := im.at(i, b.b)
		x := w.f32[(i-b.a)*rowLen : (end-b.a)*rowLen]
		if err := to.Quantize(w.out[(i-b.a)*rowBytes:(end-b.a)*rowBytes], x, int(rowLen), weights); err != nil {
			return nil, err
		}
		i = end
	}
	if o.Type == gguf.TypeIQ3_S {
		if n := quants.ZeroSubBlocksIQ3_S(w.f32); n > 0 {
			o.displaced.Add(int64(n))
		}
	}
	return w.out, p.checkOutput(b, o, w.out)
}

// checkOutput looks for infinities that the conversion made of finite weights.
func (p *pool) checkOutput(b block, o *destined, data []byte) error {
	to := quants.Lookup(o.Type)
	err := to.Validate(data)
	if err == nil {
		return nil
	}
	if !p.opt.AllowOverflow {
		return fault.Errorf(fault.Broken, "%s: weights too large for %v", place(err, to.Type(), b.a, gguf.RowLen(b.ne)), to.Type())
	}
	size := to.Type().BlockBytes()
	for ; len(data) > 0; data = data[size:] {
		if to.Validate(data[:size]) != nil {
			o.overflows.Add(1)
		}
	}
	return nil
}

// sourceError says where in the tensor the bad number stands, and what it is.
func sourceError(err error, t gguf.Type, firstRow, rowLen int64) error {
	var bad *quants.FormatError
	if !errors.As(err, &bad) {
		return err
	}
	return fault.Errorf(fault.Broken, "%s: %s is %s, want a finite number", place(err, t, firstRow, rowLen), bad.Field, bad.Value)
}

// place names the row and the columns that the *quants.FormatError err is about;
// the data begin with firstRow.
func place(err error, t gguf.Type, firstRow, rowLen int64) string {
	var bad *quants.FormatError
	if !errors.As(err, &bad) {
		return "unknown place"
	}
	at := int64(bad.Block) * t.BlockLen()
	row, column := firstRow+at/rowLen, at%rowLen
	if n := t.BlockLen(); n > 1 {
		return fmt.Sprintf("row %d, columns %d to %d, %v block", row, column, column+n-1, t)
	}
	return fmt.Sprintf("row %d, column %d", row, column)
}

func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
