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
)

// blockElements is how many elements a worker takes at a time: enough to keep
// the cost of a write small, few enough that all workers stay busy inside one
// tensor and that the buffers (about nine bytes per element) stay in the cache.
const blockElements = 128 << 10

// pool is the conversion of a list of tensors, whatever files they go to.
type pool struct {
	tensors []destined
	opt     Options
	total   int64 // bytes of tensor data to write

	done      atomic.Int64 // bytes of tensor data written
	current   atomic.Int64 // index of the tensor begun last
	overflows []atomic.Int64
}

// block is a run of rows [a, b) of one tensor.
type block struct {
	tensor int
	a, b   int64
}

// convert writes the data of all tensors to their places and adds to the result
// what it has written. The padding between them is there already: a new file
// reads as zeros.
func convert(ctx context.Context, tensors []destined, opt Options, result *Result) error {
	p := &pool{tensors: tensors, opt: opt, overflows: make([]atomic.Int64, len(tensors))}
	for _, t := range tensors {
		ne := t.Source.NE()
		p.total += gguf.DataBytes(t.Type, ne)
		result.Elements += gguf.Rows(ne) * gguf.RowLen(ne)
	}
	result.DataBytes += p.total
	if err := p.run(ctx); err != nil {
		return err
	}
	for i := range p.overflows {
		if n := p.overflows[i].Load(); n > 0 {
			result.Overflows = append(result.Overflows, Overflow{tensors[i].Name, tensors[i].Type, n})
		}
	}
	return nil
}

func (p *pool) run(ctx context.Context) error {
	workers := p.opt.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	stop := p.report()
	defer stop()

	g, ctx := errgroup.WithContext(ctx)
	blocks := make(chan block, workers)
	g.Go(func() error {
		defer close(blocks)
		for i := range p.tensors {
			p.current.Store(int64(i))
			ne := p.tensors[i].Source.NE()
			rowLen, n := gguf.RowLen(ne), gguf.Rows(ne)
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
				err := mmap.Guard("input", func() error { return w.convert(p, b) })
				if err != nil {
					return fmt.Errorf("tensor %q: %w", p.tensors[b.tensor].Name, err)
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// report calls Progress a few times a second until the returned function is
// called, which reports once more.
func (p *pool) report() (stop func()) {
	if p.opt.Progress == nil {
		return func() {}
	}
	send := func() {
		now := Progress{Done: p.done.Load(), Total: p.total}
		if i := p.current.Load(); i < int64(len(p.tensors)) {
			now.Tensor = p.tensors[i].Name
		}
		p.opt.Progress(now)
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
func (w *worker) convert(p *pool, b block) error {
	t := &p.tensors[b.tensor]
	src := t.Source
	rowLen := gguf.RowLen(src.NE())
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
	if src.Type() != t.Type {
		n := int((b.b - b.a) * rowLen)
		w.f32 = sized(w.f32, n)
		if err := from.Dequantize(w.f32, data); err != nil {
			return err
		}
		to := quants.Lookup(t.Type)
		w.out = sized(w.out, int(t.Type.RowBytes(int64(n))))
		data = w.out
		if err := to.Quantize(data, w.f32, int(rowLen), nil); err != nil {
			return err
		}
		if err := p.checkOutput(b, to, data); err != nil {
			return err
		}
	}
	if _, err := t.to.WriteAt(data, t.off+b.a*t.Type.RowBytes(rowLen)); err != nil {
		return err
	}
	p.done.Add(int64(len(data)))
	return nil
}

// checkOutput looks for infinities that the conversion made of finite weights.
func (p *pool) checkOutput(b block, to *quants.Codec, data []byte) error {
	err := to.Validate(data)
	if err == nil {
		return nil
	}
	if !p.opt.AllowOverflow {
		return fault.Errorf(fault.Broken, "rows %d to %d: weights too large for %v: %w", b.a, b.b-1, to.Type(), err)
	}
	size := to.Type().BlockBytes()
	for ; len(data) > 0; data = data[size:] {
		if to.Validate(data[:size]) != nil {
			p.overflows[b.tensor].Add(1)
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
