// Package writer turns a list of planned tensors into a GGUF file.
//
// The layout is computed first: every offset and the size of the file are known
// before the first byte is written. Then workers take blocks of rows, each
// reads, converts and writes its block at its place; which worker takes which
// block has no influence on the bytes. The file grows under a temporary name in
// the output's directory and takes its own name when it is whole, on disk and
// its header has been read back. After an error nothing is left behind.
package writer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ggforge/gguf"
	"ggforge/internal/fault"
	"ggforge/internal/mmap"
	"ggforge/quantize/quants"
	"ggforge/rows"
)

// blockElements is how many elements a worker takes at a time: enough to keep
// the cost of a write small, few enough that all workers stay busy inside one
// tensor and that the buffers (about nine bytes per element) stay in the cache.
const blockElements = 128 << 10

// Tensor is one tensor of the output. Its dimensions are those of the source.
type Tensor struct {
	Name   string
	Type   gguf.Type
	Source rows.Source
}

// File is a file to write: its metadata and tensors in their final order.
type File struct {
	Path      string
	Metadata  gguf.Metadata
	Tensors   []Tensor
	Alignment int64 // of tensor data; 0 means gguf.DefaultAlignment
}

// Options says how to write.
type Options struct {
	Workers int  // 0 means one per CPU
	Force   bool // replace an existing file
	// AllowOverflow lets finite weights become infinite in a narrower type, as
	// the reference's converter does; they are counted in the Result. Without it
	// they are an error.
	AllowOverflow bool
	// Progress, if set, is called from one goroutine, a few times a second and
	// once at the end.
	Progress func(Progress)
}

// Progress tells how far a write has come.
type Progress struct {
	Done, Total int64  // bytes of tensor data written, and to write
	Tensor      string // begun last
}

// Result tells what was written.
type Result struct {
	Bytes     int64 // size of the file
	DataBytes int64 // of the tensors alone, padding not counted
	Elements  int64
	Overflows []Overflow
}

// Overflow counts the blocks of a tensor that hold an infinity which its source
// does not: elements for plain types.
type Overflow struct {
	Tensor string
	Type   gguf.Type
	Blocks int64
}

// Size returns the size in bytes that the file will have.
func (f *File) Size() int64 {
	_, header, dataBytes := f.layout()
	return int64(len(header)) + dataBytes
}

// layout computes where everything goes: the tensors with their offsets, the
// header bytes and the size of the data section.
func (f *File) layout() (infos []gguf.Tensor, header []byte, dataBytes int64) {
	alignment := f.alignment()
	infos = make([]gguf.Tensor, len(f.Tensors))
	for i, t := range f.Tensors {
		infos[i] = gguf.Tensor{Name: t.Name, NE: t.Source.NE(), Type: t.Type}
	}
	dataBytes = gguf.Layout(infos, alignment)
	return infos, gguf.AppendHeader(nil, f.Metadata, infos, alignment), dataBytes
}

func (f *File) alignment() int64 {
	if f.Alignment == 0 {
		return gguf.DefaultAlignment
	}
	return f.Alignment
}

// Write writes f. Every tensor's rows must be whole blocks of its type. An
// existing file without Force gives an error of kind fault.Usage, weights that
// are not finite one of kind fault.Broken.
func Write(ctx context.Context, f *File, opt Options) (*Result, error) {
	infos, header, dataBytes := f.layout()
	out, err := create(f.Path, int64(len(header))+dataBytes, opt.Force)
	if err != nil {
		return nil, err
	}
	defer out.discard()
	if _, err := out.WriteAt(header, 0); err != nil {
		return nil, err
	}
	r := &run{file: f, infos: infos, dataStart: int64(len(header)), out: out, opt: opt, overflows: make([]atomic.Int64, len(infos))}
	for i := range infos {
		r.result.DataBytes += infos[i].Bytes()
		r.result.Elements += infos[i].Elements()
	}
	if err := r.data(ctx); err != nil {
		return nil, err
	}
	if err := out.sync(); err != nil {
		return nil, err
	}
	if err := r.readBack(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := out.commit(opt.Force); err != nil {
		return nil, err
	}
	r.result.Bytes = out.size
	for i := range r.overflows {
		if n := r.overflows[i].Load(); n > 0 {
			r.result.Overflows = append(r.result.Overflows, Overflow{infos[i].Name, infos[i].Type, n})
		}
	}
	return &r.result, nil
}

// run is one call of Write.
type run struct {
	file      *File
	infos     []gguf.Tensor
	dataStart int64
	out       *partial
	opt       Options
	result    Result

	done      atomic.Int64 // bytes of tensor data written
	current   atomic.Int64 // index of the tensor begun last
	overflows []atomic.Int64
}

// block is a run of rows [a, b) of one tensor.
type block struct {
	tensor int
	a, b   int64
}

// data fills the data section. The padding is there already: a new file reads
// as zeros.
func (r *run) data(ctx context.Context) error {
	workers := r.opt.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	stop := r.report()
	defer stop()

	g, ctx := errgroup.WithContext(ctx)
	blocks := make(chan block, workers)
	g.Go(func() error {
		defer close(blocks)
		for i := range r.infos {
			r.current.Store(int64(i))
			rowLen, n := gguf.RowLen(r.infos[i].NE), gguf.Rows(r.infos[i].NE)
			step := max(1, blockElements/rowLen)
			for a := int64(0); a < n; a += step {
				select {
				case blocks <- block{i, a, min(a+step, n)}:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
		return nil
	})
	for range workers {
		g.Go(func() error {
			var w worker
			for b := range blocks {
				// mapped input that shrinks meanwhile must not kill the process
				err := mmap.Guard("input", func() error { return w.convert(r, b) })
				if err != nil {
					return fmt.Errorf("tensor %q: %w", r.infos[b.tensor].Name, err)
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// report calls Progress a few times a second until the returned function is
// called, which reports once more.
func (r *run) report() (stop func()) {
	if r.opt.Progress == nil {
		return func() {}
	}
	send := func() {
		p := Progress{Done: r.done.Load(), Total: r.result.DataBytes}
		if i := r.current.Load(); i < int64(len(r.infos)) {
			p.Tensor = r.infos[i].Name
		}
		r.opt.Progress(p)
	}
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				send()
			case <-quit:
				send()
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-gone
	}
}

// worker holds the buffers of one worker; they grow to one block and stay.
type worker struct {
	raw []byte
	f32 []float32
	out []byte
}

// convert reads a block, converts it and writes it.
func (w *worker) convert(r *run, b block) error {
	src, info := r.file.Tensors[b.tensor].Source, &r.infos[b.tensor]
	rowLen := gguf.RowLen(info.NE)
	data, err := src.Raw(&w.raw, b.a, b.b)
	if err != nil {
		return err
	}
	from := quants.Lookup(src.Type())
	if from.CanDequantize() { // integers have nothing to check
		if err := from.Validate(data); err != nil {
			return sourceError(err, src.Type(), b.a, rowLen)
		}
	}
	if src.Type() != info.Type {
		n := int((b.b - b.a) * rowLen)
		w.f32 = sized(w.f32, n)
		if err := from.Dequantize(w.f32, data); err != nil {
			return err
		}
		to := quants.Lookup(info.Type)
		w.out = sized(w.out, int(info.Type.RowBytes(int64(n))))
		data = w.out
		if err := to.Quantize(data, w.f32, int(rowLen), nil); err != nil {
			return err
		}
		if err := r.checkOutput(b, to, data); err != nil {
			return err
		}
	}
	off := r.dataStart + info.Offset + b.a*info.Type.RowBytes(rowLen)
	if _, err := r.out.WriteAt(data, off); err != nil {
		return err
	}
	r.done.Add(int64(len(data)))
	return nil
}

// checkOutput looks for infinities that the conversion made of finite weights.
func (r *run) checkOutput(b block, to *quants.Codec, data []byte) error {
	err := to.Validate(data)
	if err == nil {
		return nil
	}
	if !r.opt.AllowOverflow {
		return fault.Errorf(fault.Broken, "rows %d to %d: weights too large for %v: %w", b.a, b.b-1, to.Type(), err)
	}
	size := to.Type().BlockBytes()
	for ; len(data) > 0; data = data[size:] {
		if to.Validate(data[:size]) != nil {
			r.overflows[b.tensor].Add(1)
		}
	}
	return nil
}

// sourceError says where in the tensor the bad element stands.
func sourceError(err error, t gguf.Type, firstRow, rowLen int64) error {
	var bad *quants.FormatError
	if !errors.As(err, &bad) {
		return err
	}
	at := int64(bad.Block) * t.BlockLen()
	return fault.Errorf(fault.Broken, "row %d, column %d: %w", firstRow+at/rowLen, at%rowLen, err)
}

func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// readBack parses the header of the written file and compares it with the plan.
func (r *run) readBack() error {
	f, err := gguf.Open(r.out.name)
	if err != nil {
		return fmt.Errorf("written file does not read back: %w", err)
	}
	defer f.Close()
	if len(f.Tensors) != len(r.infos) || f.DataStart != r.dataStart || f.Size != r.out.size {
		return fmt.Errorf("written file does not read back: %d tensors, data at %d, %d bytes; want %d, %d, %d",
			len(f.Tensors), f.DataStart, f.Size, len(r.infos), r.dataStart, r.out.size)
	}
	return nil
}
