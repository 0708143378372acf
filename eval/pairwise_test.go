package eval

import (
	"math"
	"testing"
)

// TestCompared checks the difference of two models, and from which on it is no chance.
func TestCompared(t *testing.T) {
	of := func(ends []int, each func(chunk, i int) float64) *Comparison {
		c, chunk := new(Comparison), 0
		for i := range ends[len(ends)-1] {
			if i == ends[chunk] {
				chunk++
			}
			c.Divergences = append(c.Divergences, each(chunk, i))
		}
		return c
	}
	var ends []int
	for i := range 10 {
		ends = append(ends, 5*(i+1))
	}
	zero := of(ends, func(int, int) float64 { return 0 })
	// 3 more on average, and chunks 1 apart from it
	far := of(ends, func(chunk, i int) float64 { return 3 + float64(chunk%2*2-1) + float64(i%5-2) })
	d := Compared(far, zero, ends)
	if math.Abs(d.Mean-3) > 1e-12 || math.Abs(d.Error-math.Sqrt(10.0/9/10)) > 1e-12 || d.Closer() != 1 {
		t.Errorf("%+v, %d", d, d.Closer())
	}
	if d := Compared(zero, far, ends); math.Abs(d.Mean+3) > 1e-12 || d.Closer() != -1 {
		t.Errorf("%+v, %d", d, d.Closer())
	}
	if d := Compared(far, zero, ends[:7]); d.Closer() != 0 {
		t.Errorf("7 chunks tell: %+v", d)
	}
	near := of(ends, func(chunk, _ int) float64 { return 0.1 + float64(chunk%2*2-1) })
	if d := Compared(near, zero, ends); d.Closer() != 0 || !(d.Error > 0) {
		t.Errorf("chance: %+v", d)
	}
	if d := Compared(near, zero, ends[:1]); !math.IsNaN(d.Error) || d.Closer() != 0 {
		t.Errorf("one chunk: %+v", d)
	}
	// a chunk with more positions counts more
	uneven := of([]int{1, 4}, func(chunk, _ int) float64 { return float64(chunk) })
	if d := Compared(uneven, of([]int{1, 4}, func(int, int) float64 { return 0 }), []int{1, 4}); d.Mean != 0.75 {
		t.Errorf("%+v, want 0.75", d)
	}
}
