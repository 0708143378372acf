package scalar

import (
	"math"
	"testing"

	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/codebook"
	"ggforge/test/gen"
)

// belowPower[k] is the number of float32 values just below 2^k whose log2, as a
// float32, is k: measured on the reference.
func belowPower(k int) int {
	for _, r := range []struct{ from, to, n int }{
		{-149, -132, 0}, {-131, -131, 1}, {-130, -130, 2}, {-129, -129, 5}, {-128, -127, 11}, {-126, -126, 22},
		{-125, -64, 44}, {-63, -32, 22}, {-31, -16, 11}, {-15, -8, 5}, {-7, -4, 2}, {-3, -2, 1}, {-1, 2, 0},
		{3, 4, 1}, {5, 8, 2}, {9, 16, 5}, {17, 32, 11}, {33, 64, 22}, {65, 128, 44},
	} {
		if r.from <= k && k <= r.to {
			return r.n
		}
	}
	panic("no such power")
}

func TestFloorLog2(t *testing.T) {
	pow := func(k int) uint32 { // bits of 2^k
		if k == 128 {
			return 0x7F800000
		}
		return math.Float32bits(float32(math.Ldexp(1, k)))
	}
	for k := -149; k <= 128; k++ {
		p, n := pow(k), belowPower(k)
		for d := -300; d <= 300; d++ {
			u := int64(p) + int64(d)
			if u <= 0 || u >= 0x7F800000 || d >= 0 && k == 128 {
				continue
			}
			v := math.Float32frombits(uint32(u))
			if v < float32(math.Ldexp(1, k-1)) || k < 128 && float64(v) >= math.Ldexp(1, k+1)*0.999 {
				continue // nearer to another power
			}
			want := k - 1
			if d >= -n {
				want = k
			}
			if got := FloorLog2(v); got != want {
				t.Fatalf("floorLog2(2^%d %+d ulp) = %d, want %d", k, d, got, want)
			}
		}
	}
}

// The shortened search gives the code of the definition: the first of all 16
// with the smallest error.
func TestEncodeFP4(t *testing.T) {
	x, _ := gen.Input("normal/1x4096")
	ties, _ := gen.Input("grid16/2x512")
	x = append(append(x, ties...), 0, float32(math.Copysign(0, -1)), 1e30, -1e30, 1e-40, -1e-40)
	codes := make([]uint8, len(x))
	for _, s := range []float32{0, 1e-40, 0.001, 0.01, 0.0625, 0.125, 3, 0x1p126} {
		EncodeFP4(s, x, codes)
		for i, v := range x {
			best, want := arith.Abs(float32(codebook.ValuesFP4[0]*s)-v), uint8(0)
			for c, q := range codebook.ValuesFP4 {
				if e := arith.Abs(float32(q*s) - v); e < best {
					best, want = e, uint8(c)
				}
			}
			if codes[i] != want {
				t.Fatalf("scale %v: %v has code %d, want %d", s, v, codes[i], want)
			}
		}
	}
}

func TestToUE4M3(t *testing.T) {
	// Every scale comes back as itself; 0x7F is not a scale.
	for u := range uint8(0x7F) {
		if v := 2 * scaleNVFP4(u); ToUE4M3(v) != u && v < 256 {
			t.Errorf("toUE4M3(%v) = %#x, want %#x", v, ToUE4M3(v), u)
		}
	}
	for _, c := range []struct {
		v    float32
		want uint8
	}{
		{0, 0}, {-1, 0}, {float32(math.NaN()), 0}, {1e-40, 0}, {0x1p-10, 1}, {0x1p-10 * 0.999, 0},
		{0x1p-6 - 0x1p-11, 7}, {0x1p-6, 8}, {1.0625, 0x39}, {1.0624999, 0x38}, {1.9375, 0x40},
		{239.9, 0x77}, {247.9, 0x77}, {248, 0x7E}, {256, 0x7E}, {1e30, 0x7E},
	} {
		if got := ToUE4M3(c.v); got != c.want {
			t.Errorf("toUE4M3(%v) = %#x, want %#x", c.v, got, c.want)
		}
	}
}

// The index search by table gives the nearest entry, the higher one on ties.
func TestNearestIQ4(t *testing.T) {
	check := func(v float32) {
		want := 0
		for i, q := range codebook.ValuesIQ4 {
			if math.Abs(float64(q)-float64(v)) <= math.Abs(float64(codebook.ValuesIQ4[want])-float64(v)) {
				want = i
			}
		}
		if got := nearestIQ4(v); int(got) != want {
			t.Fatalf("nearestIQ4(%v) = %d, want %d", v, got, want)
		}
	}
	for v := float32(-140); v <= 130; v += 0.25 {
		check(v)
		check(math.Nextafter32(v, 200))
		check(math.Nextafter32(v, -200))
	}
	check(1000)
	check(-1000)
	if got := nearestIQ4(float32(math.NaN())); got != 15 {
		t.Errorf("NaN has index %d, want 15", got)
	}
}
