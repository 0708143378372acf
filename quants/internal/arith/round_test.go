package arith

import (
	"math"
	"testing"
)

func TestRounding(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		v          float32
		rn, ra, tr int32
	}{
		{0, 0, 0, 0}, {0.5, 0, 1, 0}, {1.5, 2, 2, 1}, {2.5, 2, 3, 2}, {-0.5, 0, -1, 0}, {-1.5, -2, -2, -1},
		{-2.5, -2, -3, -2},
		{0.49999997, 0, 0, 0}, {-0.49999997, 0, 0, 0}, {127.49999, 127, 127, 127},
		{4194303, 4194303, 4194303, 4194303},
		{inf, -4194304, math.MinInt32, math.MinInt32}, {-inf, -4194304, math.MinInt32, math.MinInt32},
		{nan, 0, math.MinInt32, math.MinInt32},
		{0x1p31, 0, math.MinInt32, math.MinInt32}, {-0x1p31, 0, math.MinInt32, math.MinInt32},
		{0x1p31 - 128, 0, math.MaxInt32 - 127, math.MaxInt32 - 127},
	} {
		if Abs(c.v) < 0x1p22 || c.v != c.v || Abs(c.v) == inf {
			if got := RoundEven(c.v); got != c.rn {
				t.Errorf("rn(%v) = %d, want %d", c.v, got, c.rn)
			}
		}
		if got := RoundAway(c.v); got != c.ra {
			t.Errorf("ra(%v) = %d, want %d", c.v, got, c.ra)
		}
		if got := Truncate(c.v); got != c.tr {
			t.Errorf("tr(%v) = %d, want %d", c.v, got, c.tr)
		}
	}
}
