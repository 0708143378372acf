package writer

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"ggforge/gguf"
	"ggforge/internal/io/mmap"
	"ggforge/rows"
)

// blockElements is the number of elements that a worker takes at a time, at most: enough to keep the cost of a write
// small (half a megabyte for 16 bits), few enough that all workers stay busy inside one tensor.
const blockElements = 256 << 10

// batchElements is the number of elements that a worker is given at a time, at least: blocks of
// small tensors go to it together, since to wake a worker takes longer than such a block.
const batchElements = 32 << 10

// defaultBuffer bounds the buffers where Options do not: it makes blocks smaller
// where there are many workers or many outputs.
const defaultBuffer = 96 << 20

// pool is the conversion of a list of tensors, whatever files they go to.
type pool struct {
	jobs  []*job
	opt   Options
	files []string // for the progress
	total int64    // bytes of tensor data to write
	work  int64    // picoseconds that all conversions take, about

	done   atomic.Int64 // bytes of tensor data written
	worked atomic.Int64 // of work
	reads  atomic.Bool  // the system cannot copy between these files
}

// job is one source tensor with its outputs.
type job struct {
	source  rows.Source
	ne      []int64
	outputs []*placed
	lo, hi  int64  // the rows to write: all, or those of a part
	spans   []span // the rows that missing pieces of objects need
}

// block is a run of rows [a, b) of one tensor.
type block struct {
	*job
	encoders []RowEncoder // of each output
	a, b     int64
}

// convert writes the data of all tensors at their offsets, and counts it in their results. Padding needs no write: a
// new file reads as zeros.
func convert(ctx context.Context, tensors []*placed, files []string, opt Options) error {
	p := &pool{opt: opt, files: files, jobs: jobsOf(tensors)}
	for _, j := range p.jobs {
		j.findSame()
	}
	if o := opt.Journal; o != nil && o.Part > 0 {
		p.share(o.Part, o.Parts)
	}
	for _, j := range p.jobs {
		n := (j.hi - j.lo) * gguf.RowLen(j.ne)
		p.work += j.workOf(n)
		for _, t := range j.outputs {
			p.total += t.Type.RowBytes(n)
			t.result.DataBytes += t.Type.RowBytes(n)
			t.result.Elements += n
		}
	}
	if err := p.run(ctx); err != nil {
		return err
	}
	for _, t := range tensors {
		t.result.Overflows = appendCount(t.result.Overflows, t, &t.overflows)
		t.result.Displaced = appendCount(t.result.Displaced, t, &t.displaced)
	}
	return nil
}

// jobsOf returns one job for each source of tensors.
func jobsOf(tensors []*placed) (list []*job) {
	jobs := map[rows.Source]*job{}
	for _, t := range tensors {
		j, ok := jobs[t.Source]
		if !ok {
			j = &job{source: t.Source, ne: t.Source.NE()}
			j.hi = gguf.Rows(j.ne)
			jobs[t.Source] = j
			list = append(list, j)
		}
		t.no = len(j.outputs)
		j.outputs = append(j.outputs, t)
	}
	return list
}

func appendCount(list []Count, t *placed, n *atomic.Int64) []Count {
	if n.Load() == 0 {
		return list
	}
	return append(list, Count{t.Name, t.Type, n.Load()})
}

// findSame sets same of outputs that have the bytes of an earlier one.
func (j *job) findSame() {
	type kind struct {
		typ     gguf.Type
		encoder Encoder
		swap    bool
	}
	first := map[kind]*placed{}
	for _, o := range j.outputs {
		o.same = nil
		if o.Type == j.source.Type() || len(j.outputs) == 1 {
			continue
		}
		k := kind{o.Type, o.encoder(), o.swap}
		if o.same = first[k]; o.same == nil {
			first[k] = o
		}
	}
}

// name returns the tensor's name for messages: that of its first output.
func (j *job) name() string { return j.outputs[0].Name }

func (p *pool) run(ctx context.Context) error {
	workers := p.opt.workers()
	buffer := int64(defaultBuffer)
	if p.opt.MaxBuffer > 0 {
		buffer = p.opt.MaxBuffer
	}
	started, stop := p.report()
	defer stop()
	if j := p.opt.Journal; j != nil && j.Finish {
		return p.complete(j, started)
	}

	inStore := p.opt.Journal.inStore()
	g, ctx := errgroup.WithContext(ctx)
	batches := make(chan []block, workers)
	g.Go(func() error {
		defer close(batches)
		var batch []block
		var n int64 // elements of it
		flush := func() error {
			if batch == nil {
				return nil
			}
			select {
			case batches <- batch:
				batch, n = nil, 0
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		send := func(b block) error {
			batch, n = append(batch, b), n+(b.b-b.a)*gguf.RowLen(b.ne)
			if n < batchElements {
				return nil
			}
			return flush()
		}
		for i, j := range p.jobs {
			if j.lo == j.hi && j.hi > 0 || inStore && len(j.spans) == 0 {
				continue // all rows are in other parts
			}
			started(i)
			missing := j.spans
			if !inStore {
				done := j.done()
				p.skip(j, done)
				missing = j.missing(done)
			}
			if err := j.cut(buffer/int64(workers), missing, send); err != nil {
				return fmt.Errorf("tensor %q: %w", j.name(), err)
			}
		}
		return flush()
	})
	for range workers {
		g.Go(func() error {
			var w worker
			for batch := range batches {
				for _, b := range batch {
					// a mapped input that is truncated meanwhile must not kill the process
					err := mmap.Guard("input", func() error { return w.convert(p, b) })
					if err != nil {
						return fmt.Errorf("tensor %q: %w", b.name(), err)
					}
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// missing returns the rows of the job that are not done, in order.
func (j *job) missing(done []span) (list []span) {
	a := j.lo
	for _, s := range append(slices.Clip(done), span{a: j.hi, b: j.hi}) {
		if b := min(s.a, j.hi); a < b {
			list = append(list, span{a: a, b: b})
		}
		a = max(a, s.b)
	}
	return list
}

// cut sends the missing rows of the tensor in blocks that need at most buffer bytes of a worker's buffers, at least one
// row each.
func (j *job) cut(buffer int64, missing []span, send func(block) error) error {
	if len(missing) == 0 && j.hi > 0 {
		return nil
	}
	encoders, err := j.begin()
	if err != nil {
		return err
	}
	step := max(1, min(blockElements/max(1, gguf.RowLen(j.ne)), buffer/max(1, j.rowBuffer())))
	for _, s := range missing {
		for a := s.a; a < s.b; a += step {
			if err := send(block{j, encoders, a, min(a+step, s.b)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// rowBuffer returns the number of bytes of a worker's buffers that a row takes: its source,
// float32 and outputs.
func (j *job) rowBuffer() int64 {
	rowLen := gguf.RowLen(j.ne)
	n := j.source.Type().RowBytes(rowLen) + 4*rowLen
	for _, o := range j.outputs {
		if o.Type != j.source.Type() && o.same == nil {
			n += o.Type.RowBytes(rowLen)
		}
	}
	return n
}

// begin returns the encoder for each output whose type changes, asking each
// Encoder once.
func (j *job) begin() ([]RowEncoder, error) {
	all := make([]RowEncoder, len(j.outputs))
	known := map[Encoder]RowEncoder{}
	for i, o := range j.outputs {
		if j.source.Type() == o.Type {
			continue
		}
		e := o.encoder()
		if known[e] == nil {
			rows, err := e.Begin(j.ne)
			if err != nil {
				return nil, err
			}
			known[e] = rows
		}
		all[i] = known[e]
	}
	return all, nil
}
