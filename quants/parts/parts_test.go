package parts

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ggforge/gguf"
	"ggforge/quants"
)

// random returns blocks of random bytes whose scales are finite and which encoders can make.
func random(f *Format, r *rand.Rand, n int) []byte {
	size := int(f.Type.BlockBytes())
	data := make([]byte, n*size)
	for i := range data {
		if data[i] = byte(r.Uint32()); f.d == nil { // negative zeros are written as zeros
			for data[i]&15 == 8 || data[i]>>4 == 8 {
				data[i] = byte(r.Uint32())
			}
		}
	}
	for i := range n {
		raw := data[i*size:][:size]
		for _, at := range [][]place{f.d, f.dmin} {
			if at != nil { // exponents below 16
				last := at[len(at)-1]
				raw[last.byte] &^= 1 << (last.shift + 14 - last.at)
			}
		}
		switch f.Type {
		case gguf.TypeMXFP4:
			raw[0] = 100 + raw[0]%60
		case gguf.TypeNVFP4:
			for j := range 4 {
				raw[j] %= 127
			}
		case gguf.TypeTQ1_0: // not all bytes are fractions of trits
			var levels [256]int8
			for k := range levels {
				levels[k] = int8(r.IntN(3)) - 1
			}
			trits{}.pack(raw, levels[:])
		}
	}
	return data
}

// TestFormats checks that blocks are the same after they were taken apart, and that their
// values equal the codec's.
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
					if s, m := int(b.Scales[j]), int(b.Mins[j]); s < f.Scales[0] || s > f.Scales[1] || m < f.Mins[0] ||
						m > f.Mins[1] {
						t.Fatalf("block %d, sub-block %d: scale %d, minimum %d", i, j, s, m)
					}
				}
				if f.RoundD(b.D) != b.D || f.RoundMin(b.Min) != b.Min {
					t.Fatalf("block %d: %v and %v change when they are rounded", i, b.D, b.Min)
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
		if f.Grid != nil {
			continue
		}
		for range 2000 {
			scale, min := float32(r.NormFloat64()), float32(r.Float64())
			if !f.HasMins() {
				min = 0
			}
			x := float32(r.NormFloat64()) * scale * float32(f.Levels[len(f.Levels)-1])
			off := func(level int8) float64 {
				return math.Abs(float64(scale)*float64(level) - float64(min) - float64(x))
			}
			best := math.Inf(1)
			for _, level := range f.Levels {
				best = math.Min(best, off(level))
			}
			if got := off(f.Nearest(x, scale, min)); got > best+1e-5*math.Abs(float64(scale)) {
				t.Fatalf("%v: %v by %v less %v: off by %v, want %v", f.Type, x, scale, min, got, best)
			}
		}
		if level := f.Nearest(float32(math.NaN()), 1, 0); !slices.Contains(f.Levels, level) {
			t.Errorf("%v: level %d", f.Type, level)
		}
	}
}
