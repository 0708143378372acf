package writer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/disk"
	"ggforge/internal/kernel/buffer"
	"ggforge/quants"
)

// worker holds the buffers of one worker, which are reused.
type worker struct {
	raw []byte    // a piece, or a block that is written as it is
	f32 []float32 // a piece
	out [][]byte  // a block of each output
	n   []tally   // of each output in the block
	sum xxh3.Hasher

	scratch Scratch
}

// pieceElements is about the number of elements that are checked, decoded and encoded at a time, in whole rows: few
// enough that they stay in the cache nearest to the CPU from one step to the next, while blocks are long enough to be
// read and written at little cost.
const pieceElements = 32 << 10

// convert reads a block, and writes it to its outputs.
func (w *worker) convert(p *pool, b block) error {
	if done, err := p.copied(b); done || err != nil {
		return err
	}
	src, rowLen := b.source, gguf.RowLen(b.ne)
	keeps, changes := false, false
	buffer.Resize(&w.out, len(b.outputs))
	buffer.Resize(&w.n, len(b.outputs))
	clear(w.n)
	for i, o := range b.outputs {
		if !o.wants(b.a) && !b.wanted(o) {
			continue
		}
		if o.Type == src.Type() {
			keeps = true
			continue
		}
		changes = true
		if o.same != nil {
			continue
		}
		buffer.Resize(&w.out[i], (b.b-b.a)*o.Type.RowBytes(rowLen))
	}
	step := b.b - b.a
	if changes {
		step = max(1, pieceElements/rowLen)
	}
	logged := b.outputs[0].log != nil
	w.sum.Reset()
	var block []byte // all rows of the block, where they are written
	var err error
	if keeps {
		if block, err = src.Raw(&w.raw, b.a, b.b); err != nil {
			return err
		}
	}
	rowBytes := src.Type().RowBytes(rowLen)
	for a := b.a; a < b.b; a += step {
		end := min(a+step, b.b)
		var raw []byte
		if keeps {
			raw = block[(a-b.a)*rowBytes : (end-b.a)*rowBytes]
		} else if raw, err = src.Raw(&w.raw, a, end); err != nil {
			return err
		}
		if logged {
			w.sum.Write(raw)
		}
		if err := w.piece(p, b, raw, a, end, changes); err != nil {
			return err
		}
	}
	source := w.sum.Sum64()
	for i, o := range b.outputs {
		wants := o.wants(b.a)
		if !wants && !b.wanted(o) {
			continue
		}
		data := block
		switch {
		case o.same != nil:
			data, w.n[i] = w.out[o.same.no], w.n[o.same.no]
		case o.Type != src.Type():
			data = w.out[i]
		}
		if o.swap && o.same == nil {
			w.out[i] = append(w.out[i][:0], data...) // raw rows are not ours to change
			data = w.out[i]
			o.Type.SwapBytes(data)
		}
		if !wants {
			continue
		}
		if err := o.put(span{b.a, b.b, w.n[i], source, nil}, data); err != nil {
			return err
		}
		if o.sink == nil { // else with its piece
			o.count(w.n[i])
		}
		p.done.Add(int64(len(data)))
		p.worked.Add(workOf(o, (b.b-b.a)*rowLen))
	}
	p.worked.Add(b.readWork((b.b - b.a) * rowLen))
	return nil
}

// wanted reports whether another output wants the block's rows of o.
func (b *block) wanted(o *placed) bool {
	return o.sink != nil && slices.ContainsFunc(b.outputs, func(t *placed) bool { return t.same == o && t.wants(b.a) })
}

// put writes rows in the output's form.
func (t *placed) put(s span, data []byte) error {
	if t.sink != nil {
		return t.sink.writeRows(t, s, data)
	}
	if t.to != nil { // a part in a file of its own is the log
		_, rowLen := rowsOf(t)
		if _, err := t.to.WriteAt(data, t.off+s.a*t.Type.RowBytes(rowLen)); err != nil {
			return err
		}
	}
	return t.log.add(t, s, data)
}

// copied has the system copy a block of a tensor that is only copied, and reports whether it did.
func (p *pool) copied(b block) (bool, error) {
	o := b.outputs[0]
	if o.Copy == nil || o.sink != nil || len(b.outputs) > 1 || b.source.Type() != gguf.TypeI8 || o.Type != gguf.TypeI8 || o.swap ||
		o.log != nil || p.reads.Load() {
		return false, nil
	}
	rowLen := gguf.RowLen(b.ne) // bytes
	n := (b.b - b.a) * rowLen
	err := o.to.use(func(f *disk.File) error {
		return disk.Do(disk.OpCopy, f.Name(), func() error { return o.Copy(f.OS(), o.off+b.a*rowLen, b.a*rowLen, n) })
	})
	if errors.Is(err, errors.ErrUnsupported) {
		p.reads.Store(true) // for all other blocks, too
		return false, nil
	}
	if err != nil {
		return false, err
	}
	o.to.wrote(n)
	p.done.Add(n)
	p.worked.Add(workOf(o, n) + b.readWork(n))
	return true, nil
}

// piece checks rows [a, end) of a block, which are raw, and with convert encodes
// them for the outputs of another type.
func (w *worker) piece(p *pool, b block, raw []byte, a, end int64, convert bool) error {
	rowLen := gguf.RowLen(b.ne)
	from := quants.Lookup(b.source.Type())
	if !convert {
		return check(from, raw, a, rowLen)
	}
	if err := w.decode(from, raw, a, rowLen); err != nil {
		return err
	}
	for i, o := range b.outputs {
		if o.Type == from.Type() || o.same != nil || !o.wants(b.a) && !b.wanted(o) {
			continue
		}
		n := o.Type.RowBytes(rowLen)
		out := w.out[i][(a-b.a)*n : (end-b.a)*n]
		if err := b.encoders[i].Encode(out, o.Type, w.f32, a, end, &w.scratch); err != nil {
			return err
		}
		w.n[i].displaced += int64(quants.Lookup(o.Type).DisplacedSubBlocks(w.f32))
		if err := p.checkOutput(o, out, a, rowLen, &w.n[i]); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error if raw rows from firstRow on have numbers that are not finite.
func check(from *quants.Codec, raw []byte, firstRow, rowLen int64) error {
	if !from.CanDequantize() { // integers have nothing to check
		return nil
	}
	if err := from.Validate(raw); err != nil {
		return sourceError(err, from.Type(), firstRow, rowLen)
	}
	return nil
}

// decode checks raw rows from firstRow on and sets w.f32 to them.
func (w *worker) decode(from *quants.Codec, raw []byte, firstRow, rowLen int64) error {
	if err := check(from, raw, firstRow, rowLen); err != nil {
		return err
	}
	buffer.Resize(&w.f32, len(raw)/int(from.Type().BlockBytes())*int(from.Type().BlockLen()))
	return from.Dequantize(w.f32, raw)
}

// checkOutput looks for infinities that the conversion made of finite weights in
// data, rows from firstRow on.
func (p *pool) checkOutput(o *placed, data []byte, firstRow, rowLen int64, count *tally) error {
	to := quants.Lookup(o.Type)
	err := to.Validate(data)
	if err == nil {
		return nil
	}
	if !p.opt.AllowOverflow {
		return overflow(err, to.Type(), firstRow, rowLen)
	}
	size := to.Type().BlockBytes()
	for ; len(data) > 0; data = data[size:] {
		if to.Validate(data[:size]) != nil {
			count.overflows++
		}
	}
	return nil
}

// sourceError returns an error with the place and the value of the bad number of err.
func sourceError(err error, t gguf.Type, firstRow, rowLen int64) error {
	var bad *quants.FormatError
	if !errors.As(err, &bad) {
		return err
	}
	return fault.Errorf(fault.Broken, "%s: %s is %s, want a finite number", place(err, t, firstRow, rowLen),
		bad.Field, bad.Value)
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
