package torchmath

import (
	"math"
	"testing"
)

// TestSum compares Sum with torch.sum of torch 2.14 on one thread of a CPU with AVX2.
func TestSum(t *testing.T) {
	for _, c := range []struct {
		n    int
		want uint32
	}{
		{1, 0x3ef2d212},
		{7, 0x40608d82},
		{31, 0x418f924c},
		{32, 0x41926b64},
		{33, 0x4197e4ae},
		{100, 0x42526996},
		{1000, 0x43fb5008},
		{4096, 0x44ffdfc6},
		{30001, 0x4669f4b8},
		{65536, 0x47003b42},
		{197525, 0x47c148eb},
		{1000003, 0x48f46f38},
	} {
		x := make([]float32, c.n)
		state := uint64(88172645463325252)
		for i := range x {
			state ^= state << 13
			state ^= state >> 7
			state ^= state << 17
			x[i] = float32(state>>40) / (1 << 24)
		}
		for _, piece := range []int{c.n, 1, 50, 32} {
			s := NewSum(int64(c.n))
			for i := 0; i < c.n; i += piece {
				s.Add(x[i:min(i+piece, c.n)])
			}
			if got := math.Float32bits(s.Value()); got != c.want {
				t.Errorf("%d elements in pieces of %d: %#08x, want %#08x", c.n, piece, got, c.want)
			}
		}
	}
}
