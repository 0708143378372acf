package cli

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"ggforge/internal/text/size"
)

// Cost measures wall time and peak memory of a run. Memory is sampled, as anonymous and shared pages of the process;
// pages of mapped input files, which the system can drop at any time, do not count.
type Cost struct {
	start time.Time
	stop  context.CancelFunc
	peak  chan int64
}

// StartCost begins to measure, until Stop or the end of ctx.
func StartCost(ctx context.Context) *Cost {
	ctx, stop := context.WithCancel(ctx)
	c := &Cost{start: time.Now(), stop: stop, peak: make(chan int64, 1)}
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		peak := memory()
		for {
			select {
			case <-tick.C:
				peak = max(peak, memory())
			case <-ctx.Done():
				c.peak <- max(peak, memory())
				return
			}
		}
	}()
	return c
}

// Stop ends the measurement and returns it as text; bytes is the number of bytes written in that time.
func (c *Cost) Stop(bytes int64) string {
	seconds, peak := c.End()
	return costText(seconds, peak, bytes)
}

// costText describes the cost of a run that wrote bytes bytes.
func costText(seconds float64, peak, bytes int64) string {
	return fmt.Sprintf("%.2f s, %.0f MB/s written, peak memory %s", seconds, float64(bytes)/1e6/seconds, Bytes(peak))
}

// End ends the measurement and returns it: seconds, and bytes of memory.
func (c *Cost) End() (seconds float64, peak int64) {
	seconds = max(time.Since(c.start).Seconds(), 1e-9)
	c.stop()
	return seconds, <-c.peak
}

// Bytes returns n as text: see size.Text.
func Bytes(n int64) string { return size.Text(n) }

// heap returns the bytes that the Go runtime has taken from the system and not given back, for systems that do not
// report resident memory.
func heap() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys - m.HeapReleased)
}
