package parts

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"ggforge/quants"
)

// random returns blocks of random bytes whose scales are finite.
func random(f *Format, r *rand.Rand, n int) []byte {
	size := int(f.Type.BlockBytes())
	b := make([]byte, n*size)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	for i := range n {
		for _, at := range []int{f.d, f.dmin} {
			if at >= 0 && !f.Exponents {
				b[i*size+at+1] &^= 0x40 // exponents below 16
			}
		}
		if f.Exponents {
			b[i*size] = 100 + b[i*size]%60
		}
	}
	return b
}

// TestFormats checks that blocks are the same after they were taken apart, and that their
// values are those of the codec.
func TestFormats(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, f := range formats {
		t.Run(f.Type.String(), func(t *testing.T) {
			if int64(f.Block) != f.Type.BlockLen() {
				t.Fatalf("blocks of %d, want %d", f.Block, f.Type.BlockLen())
			}
			const n = 200
			raw, size := random(f, r, n), int(f.Type.BlockBytes())
			want := make([]float32, n*f.Block)
			if err := quants.Lookup(f.Type).Dequantize(want, raw); err != nil {
				t.Fatal(err)
			}
			got, again := make([]float32, f.Block), make([]byte, size)
			var b Block
			for i := range n {
				f.Unpack(&b, raw[i*size:])
				f.Values(got, &b)
				for k, v := range got {
					if math.Float32bits(v) != math.Float32bits(want[i*f.Block+k]) {
						t.Fatalf("block %d, element %d: %v, want %v", i, k, v, want[i*f.Block+k])
					}
				}
				for j := range f.Subs() {
					if s, m := int(b.Scales[j]), int(b.Mins[j]); s < f.Scales[0] || s > f.Scales[1] || m < f.Mins[0] || m > f.Mins[1] {
						t.Fatalf("block %d, sub-block %d: scale %d, minimum %d", i, j, s, m)
					}
				}
				if f.RoundD(b.D) != b.D || f.RoundMin(b.Min) != b.Min {
					t.Fatalf("block %d: %v and %v are rounded", i, b.D, b.Min)
				}
				if f.Pack(again, &b); !bytes.Equal(again, raw[i*size:][:size]) {
					t.Fatalf("block %d: % x, want % x", i, again, raw[i*size:][:size])
				}
			}
		})
	}
}

// TestNearest compares the nearest code with a search of all.
func TestNearest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, f := range formats {
		for range 2000 {
			scale, min := float32(r.NormFloat64()), float32(r.Float64())
			if !f.HasMins() {
				min = 0
			}
			x := float32(r.NormFloat64()) * scale * f.Levels[f.order[len(f.order)-1]]
			off := func(c uint8) float64 {
				return math.Abs(float64(scale)*float64(f.Levels[c]) - float64(min) - float64(x))
			}
			best := math.Inf(1)
			for c := range f.Levels {
				best = math.Min(best, off(uint8(c)))
			}
			if got := off(f.Nearest(x, scale, min)); got > best+1e-5*math.Abs(float64(scale)) {
				t.Fatalf("%v: %v by %v less %v: off by %v, want %v", f.Type, x, scale, min, got, best)
			}
		}
		if c := f.Nearest(float32(math.NaN()), 1, 0); int(c) >= len(f.Levels) {
			t.Errorf("%v: code %d", f.Type, c)
		}
	}
}
