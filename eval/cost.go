package eval

import (
	"context"
	"math"
	"time"

	"ggforge/internal/kernel/gemm"
)

// sampleTokens is the number of tokens that a sample is multiplied with by Cost, samples how often: the quickest
// counts.
const (
	sampleTokens = 256
	samples      = 5
)

// Cost returns an estimate of the time for running so many tokens with so many workers on this machine: the products
// with weights, by the measured time of some rows of the largest matrix. Other operations, such as attention over long
// chunks, are not in it. No text is run.
func (m *Model) Cost(ctx context.Context, tokens, workers int) (time.Duration, error) {
	var all int64
	var sample *gemm.Weights
	size := func(w *gemm.Weights) int64 { return int64(w.Rows) * int64(w.K) }
	for w := range m.costs {
		all += size(w)
		if sample == nil || size(w) > size(sample) || size(w) == size(sample) && w.K > sample.K {
			sample = w
		}
	}
	for e := range m.experts() {
		for _, list := range [][]*linear{e.gate, e.up, e.down} {
			for _, l := range list[min(e.used, len(list)):] { // no token is multiplied with more of them than are used
				all -= size(l.w)
			}
		}
	}
	if sample == nil || all <= 0 || tokens <= 0 {
		return 0, nil
	}
	workers = max(1, workers)
	some := *sample
	some.Rows = min(some.Rows, 256*workers)
	n := min(tokens, sampleTokens)
	x := make([]float32, n*some.K)
	for i := range x {
		x[i] = 1
	}
	out := make([]float32, n*some.Rows)
	var panels gemm.Panels
	scratch := make([]gemm.Scratch, workers)
	took := time.Duration(math.MaxInt64)
	for range samples { // the first may wait for the disk, another one for other processes
		start := time.Now()
		panels.Pack(x, some.K, n, some.K)
		if err := gemm.Product(ctx, scratch, out, some.Rows, &panels, &some); err != nil {
			return 0, err
		}
		took = min(took, time.Since(start))
	}
	return time.Duration(float64(max(took, time.Microsecond)) * float64(all) / float64(size(&some)) * float64(
		tokens) / float64(n)), nil
}
