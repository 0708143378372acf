package writer

import (
	"sync"
	"weak"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/mmap"
	"ggforge/internal/kernel/buffer"
	"ggforge/quants"
	"ggforge/rows"
)

// Encoded returns the rows of t as a file would hold them: read, checked and encoded on demand, so that a tensor can be
// used as if it had been written. For a tensor that keeps its type it returns the source, unchecked.
//
// The importance of the tensor is kept in memory while rows are being encoded and as long as nothing else needs the
// memory.
func Encoded(t Tensor) rows.Source {
	if t.Type == t.Source.Type() {
		return t.Source
	}
	return &encoded{Tensor: t}
}

type encoded struct {
	Tensor
	mu      sync.Mutex
	started weak.Pointer[RowEncoder]
}

// pieces are the buffers of goroutines that encode rows.
var pieces = sync.Pool{New: func() any { return &worker{} }}

func (e *encoded) NE() []int64     { return e.Source.NE() }
func (e *encoded) Type() gguf.Type { return e.Tensor.Type }

func (e *encoded) Cost() int64 { return e.Source.Cost() + e.encoder().Cost(e.Tensor.Type) }

func (e *encoded) Raw(buf *[]byte, a, b int64) (out []byte, err error) {
	rowLen := gguf.RowLen(e.NE())
	buffer.Resize(buf, (b-a)*e.Tensor.Type.RowBytes(rowLen))
	rows, err := e.begin()
	if err != nil {
		return nil, err
	}
	w := pieces.Get().(*worker)
	defer pieces.Put(w)
	// mapped input that shrinks meanwhile must not kill the process
	err = mmap.Guard("input", func() error { return e.encode(*buf, *rows, w, a, b) })
	return *buf, err
}

// begin returns the encoder of rows.
func (e *encoded) begin() (*RowEncoder, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if rows := e.started.Value(); rows != nil {
		return rows, nil
	}
	rows, err := e.encoder().Begin(e.NE())
	if err != nil {
		return nil, err
	}
	e.started = weak.Make(&rows)
	return &rows, nil
}

// encode sets out to rows [a, b).
func (e *encoded) encode(out []byte, rows RowEncoder, w *worker, a, b int64) error {
	from, to, rowLen := quants.Lookup(e.Source.Type()), quants.Lookup(e.Tensor.Type), gguf.RowLen(e.NE())
	for step := max(1, pieceElements/rowLen); a < b; a += step {
		end := min(a+step, b)
		raw, err := e.Source.Raw(&w.raw, a, end)
		if err != nil {
			return err
		}
		if err := w.decode(from, raw, a, rowLen); err != nil {
			return err
		}
		n := (end - a) * e.Tensor.Type.RowBytes(rowLen)
		if err := rows.Encode(out[:n], e.Tensor.Type, w.f32, a, end, &w.scratch); err != nil {
			return err
		}
		if err := to.Validate(out[:n]); err != nil {
			return overflow(err, to.Type(), a, rowLen)
		}
		out = out[n:]
	}
	return nil
}

// overflow reports which finite weights have become infinite.
func overflow(err error, t gguf.Type, firstRow, rowLen int64) error {
	return fault.Errorf(fault.Broken, "%s: weights too large for %v", place(err, t, firstRow, rowLen), t)
}
