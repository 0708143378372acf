package half

import (
	"flag"
	"math"
	"runtime"
	"sync"
	"testing"

	"github.com/x448/float16"
)

var all = flag.Bool("all", false, "check all 2^32 floats, not a sample")

// wantF16 is ToF16 by another implementation, which keeps payload bits of a NaN.
func wantF16(v float32) uint16 {
	if v != v {
		return uint16(math.Float32bits(v)>>16)&0x8000 | 0x7E00
	}
	return float16.Fromfloat32(v).Bits()
}

func TestFromF16(t *testing.T) {
	for i := range 1 << 16 {
		b := uint16(i)
		got, want := math.Float32bits(FromF16(b)), math.Float32bits(float16.Frombits(b).Float32())
		if got != want {
			t.Fatalf("FromF16(%#04x) = %#08x, want %#08x", b, got, want)
		}
		if v := FromF16(b); v == v && ToF16(v) != b {
			t.Fatalf("%#04x comes back as %#04x", b, ToF16(v))
		}
	}
}

// By default the sample has every 251st float, and all within 300 of a place
// where the result changes between two neighbouring halves or kinds of half.
func TestToF16(t *testing.T) {
	check := func(u uint32) {
		v := math.Float32frombits(u)
		if got, want := ToF16(v), wantF16(v); got != want {
			t.Errorf("ToF16(%#08x) = %#04x, want %#04x", u, got, want)
		}
	}
	step := uint64(251)
	switch {
	case *all:
		step = 1
	case testing.Short():
		step = 7919
	}
	var wg sync.WaitGroup
	n := uint64(runtime.GOMAXPROCS(0))
	for k := range n {
		wg.Go(func() {
			for u := k << 32 / n; u < (k+1)<<32/n && !t.Failed(); u += step {
				check(uint32(u))
			}
		})
	}
	wg.Wait()
	for _, edge := range []uint32{0, 0x33000000, 0x33800000, 0x387FC000, 0x38800000, 0x477FE000, 0x477FF000, 0x47800000,
		0x7F800000, 0x7FC00000} {
		for d := range uint32(601) {
			check(edge + d - 300)
			check(edge + d - 300 ^ 1<<31)
		}
	}
	for h := range uint32(0x7C00) { // around the middle of two halves
		mid := (math.Float32bits(FromF16(uint16(h))) + math.Float32bits(FromF16(uint16(h+1)))) / 2
		for d := range uint32(3) {
			check(mid + d - 1)
			check(mid + d - 1 ^ 1<<31)
		}
	}
}

func BenchmarkF16(b *testing.B) {
	b.Run("to", func(b *testing.B) {
		var s uint16
		for i := range b.N {
			s += ToF16(math.Float32frombits(0x3C000000 + uint32(i)*0x3F1))
		}
		sinkU = s
	})
	b.Run("from", func(b *testing.B) {
		var s uint32
		for i := range b.N {
			s += math.Float32bits(FromF16(uint16(i)))
		}
		sinkU = uint16(s)
	})
}

var sinkU uint16

// TestRoundF16 takes every pattern of the upper bits, with lower ones around the halves.
func TestRoundF16(t *testing.T) {
	for u := range uint32(1 << 19) {
		for _, low := range []uint32{0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF} {
			v := math.Float32frombits(u<<13 | low)
			if got, want := math.Float32bits(RoundF16(v)), math.Float32bits(FromF16(ToF16(v))); got != want {
				t.Fatalf("%v (%08x): %08x, want %08x", v, math.Float32bits(v), got, want)
			}
		}
	}
}
