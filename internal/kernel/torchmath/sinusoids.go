package torchmath

import "math"

// Sinusoids is a table of sines and cosines for positions, as Whisper has it: the first
// half of a row is the sines of the position times each scale, the second the cosines.
// Scales go from 1 down to 1/10000 in a geometric series.
type Sinusoids struct {
	rows   int64
	scales []float32
}

// NewSinusoids returns a table of rows of an even length, 4 at least.
func NewSinusoids(rows int64, columns int) *Sinusoids {
	s := make([]float32, columns/2)
	step := float32(-(math.Log(10000) / float64(len(s)-1)))
	for i := range s {
		s[i] = float32(step * float32(i))
	}
	Exp(s)
	return &Sinusoids{rows, s}
}

// Rows fills dst with the rows from the given one on. It starts with the vector that
// the row's first angle is in: the last bit of a result depends on the other angles of its vector.
func (t *Sinusoids) Rows(dst []float32, row int64) {
	half := int64(len(t.scales))
	rows := int64(len(dst)) / (2 * half)
	first, end := row*half, (row+rows)*half
	from := first / trigLanes * trigLanes
	angles := make([]float32, (end-from+trigLanes-1)/trigLanes*trigLanes)
	for k, apply := range []func([]float32){Sin, Cos} {
		for i := range angles {
			angles[i] = 0
			if at := from + int64(i); at < t.rows*half {
				angles[i] = float32(at/half) * t.scales[at%half]
			}
		}
		apply(angles)
		for r := range rows {
			copy(dst[(2*r+int64(k))*half:][:half], angles[first-from+r*half:])
		}
	}
}
