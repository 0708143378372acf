package mmap

import (
	"testing"
	"time"
)

// slowDisk is a disk with simulated time: a read ends after the disk's latency, however many bytes it asks for.
type slowDisk struct {
	latency time.Duration
	there   map[int64]time.Duration // by part, when it is there
}

func (d *slowDisk) ask(now time.Duration, from, to int64) {
	for p := from / aheadPart; p*aheadPart < to; p++ {
		if _, ok := d.there[p]; !ok {
			d.there[p] = now + d.latency
		}
	}
}

// read returns when a read that begins now ends.
func (d *slowDisk) read(now time.Duration, off, end int64) time.Duration {
	d.ask(now, off, end)
	for p := off / aheadPart; p*aheadPart < end; p++ {
		now = max(now, d.there[p])
	}
	return now + 10*time.Microsecond
}

// TestReadAhead has workers read a file, block after block, from a disk with a latency of 5 ms, and
// counts how often one waits.
func TestReadAhead(t *testing.T) {
	const size, block, piece = 256 << 20, 512 << 10, 64 << 10
	run := func(workers int, latency time.Duration, places int64, ask bool) (waits, asked int, last time.Duration) {
		d := &slowDisk{latency, map[int64]time.Duration{}}
		var a ahead
		type worker struct {
			now      time.Duration
			off, end int64
		}
		all := make([]worker, workers)
		next := int64(0)
		for {
			w := &all[0]
			for i := range all { // the worker that is ready first
				if all[i].now < w.now {
					w = &all[i]
				}
			}
			if w.off == w.end {
				if next == size/block {
					break
				}
				// tensors are not in the order of the file: in turn from each of its parts
				w.off = (next%places*(size/block/places) + next/places) * block
				w.end, next = w.off+block, next+1
			}
			done := d.read(w.now, w.off, w.off+piece)
			if done-w.now >= latency {
				waits++
			}
			if from, to := a.read(w.off, w.off+piece, size, done-w.now); ask && from < to {
				asked++
				d.ask(done, from, to)
			}
			w.now, w.off = done, w.off+piece
		}
		for _, w := range all {
			last = max(last, w.now)
		}
		if len(d.there) != size/aheadPart {
			t.Errorf("%d parts read, want %d", len(d.there), size/aheadPart)
		}
		return waits, asked, last
	}
	for _, workers := range []int{1, 2, 16} {
		for _, places := range []int64{1, 4} {
			without, _, long := run(workers, 5*time.Millisecond, places, false)
			waits, asked, short := run(workers, 5*time.Millisecond, places, true)
			t.Logf("%d workers, %d places: %d waits in %v; without reading ahead %d in %v", workers, places, waits,
				short, without, long)
			if without < size/aheadPart || waits > 30*workers*int(places) || asked > size/aheadPart+100 ||
				short > long/4 {
				t.Errorf("%d workers, %d places: waits %d times of %d, asks %d times, takes %v of %v", workers, places,
					waits, without, asked, short, long)
			}
		}
	}
	if _, asked, _ := run(4, 100*time.Microsecond, 1, true); asked != 0 {
		t.Errorf("asks %d times for parts that are in memory", asked)
	}
}
