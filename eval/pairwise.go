package eval

import "math"

// LeastChunks is the least number of chunks from which Closer tells which of two models is closer to their base.
const LeastChunks = 8

// Difference is by how much more a model diverges from its base than another model, over the same text.
type Difference struct {
	Figure     // of the divergence, in nats per token; the error is over chunks
	Chunks int // that the error is of
}

// Compared returns the difference of the divergence of a from that of b, which must be of the same base and run. ends
// has the number of positions up to the end of each chunk. Positions of a chunk depend on each other, chunks hardly:
// the error is that of the chunks' means, weighted by their positions, and not a number for fewer than two.
func Compared(a, b *Comparison, ends []int) Difference {
	d := Difference{Chunks: len(ends)}
	n := float64(len(a.Divergences))
	sums, from := make([]float64, len(ends)), 0
	for i, to := range ends {
		for k := from; k < to; k++ {
			sums[i] += a.Divergences[k] - b.Divergences[k]
		}
		d.Mean += sums[i] / n
		from = to
	}
	var squares float64
	from = 0
	for i, to := range ends {
		off := sums[i] - float64(d.Mean*float64(to-from))
		squares += float64(off * off)
		from = to
	}
	chunks := float64(len(ends))
	if chunks < 2 {
		squares = math.NaN()
	}
	d.Error = math.Sqrt(squares*chunks/(chunks-1)) / n
	return d
}

// Closer returns -1 if the first model is closer to the base than the second, 1 if it is farther away, and 0 if the
// difference may be chance: less than two errors, or of fewer than LeastChunks chunks.
func (d Difference) Closer() int {
	switch {
	case d.Chunks < LeastChunks || !(math.Abs(d.Mean) > 2*d.Error):
		return 0
	case d.Mean < 0:
		return -1
	}
	return 1
}
