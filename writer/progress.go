package writer

import (
	"time"

	"ggforge/gguf"
)

// writeCost is about the time to write a byte in picoseconds, including the read for it: 0.5 s for a GB.
const writeCost = 500

// workOf returns about how many picoseconds it takes to make n elements of t,
// whole rows.
func workOf(t *placed, n int64) int64 {
	work := t.Type.RowBytes(n) * writeCost
	if t.Source.Type() != t.Type && t.same == nil {
		work += n * t.encoder().Cost(t.Type)
	}
	return work
}

// readWork returns about how many picoseconds it takes to make n elements of the
// source, which is done once for all outputs.
func (j *job) readWork(n int64) int64 { return n * j.source.Cost() }

// workOf returns about how many picoseconds it takes to make n elements for all outputs.
func (j *job) workOf(n int64) int64 {
	work := j.readWork(n)
	for _, t := range j.outputs {
		work += workOf(t, n)
	}
	return work
}

// tick is how often Progress is called between tensors.
const tick = 100 * time.Millisecond

// report starts the goroutine that calls Progress. started is called at the start of job i; stop makes the goroutine
// report once more and ends it.
func (p *pool) report() (started func(i int), stop func()) {
	if p.opt.Progress == nil {
		return func(int) {}, func() {}
	}
	start := time.Now()
	starts, quit, gone := make(chan int), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		now := Progress{Tensors: len(p.jobs), Total: p.total, Files: p.files}
		send := func(started bool) {
			now.Begun, now.Done, now.Elapsed = started, p.done.Load(), time.Since(start)
			if p.work > 0 {
				now.Work = float64(p.worked.Load()) / float64(p.work)
			}
			now.Remaining = 0
			if now.Work > 0 {
				now.Remaining = time.Duration(float64(now.Elapsed) * (1 - now.Work) / now.Work)
			}
			p.opt.Progress(now)
		}
		for {
			select {
			case i := <-starts:
				now.Index, now.Tensor, now.Types, now.Bytes = i, p.jobs[i].name(), nil, 0
				for _, o := range p.jobs[i].outputs {
					now.Types = append(now.Types, o.Type)
					now.Bytes += gguf.DataBytes(o.Type, p.jobs[i].ne)
				}
				send(true)
			case <-ticker.C:
				send(false)
			case <-quit:
				now.Last = true
				send(false)
				return
			}
		}
	}()
	started = func(i int) { starts <- i }
	stop = func() {
		close(quit)
		<-gone
	}
	return started, stop
}
