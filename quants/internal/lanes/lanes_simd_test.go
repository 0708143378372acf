//go:build goexperiment.simd && go1.27

package lanes

import (
	"math"
	"math/rand/v2"
	"testing"

	"ggforge/internal/lane"
	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
	"ggforge/quants/internal/widths"
)

// Rare paths of the tiles are reached by what the parity tests feed them.
func TestTileRarePaths(t *testing.T) {
	s, width := new(kScratch), lane.Width()
	x := make([]float32, pack.QK_K)
	for i := range x {
		x[i] = float32(i%7-3) * math.SmallestNonzeroFloat32
	}
	q4_KKernel.fit(s, x, nil, width)
	if !s.anyOneByOne {
		t.Error("a step that overflows was not searched one by one")
	}
	for i := range x {
		x[i] = float32(i%7-3) * 0.01
	}
	q4_KKernel.fit(s, x, nil, width)
	if s.anyOneByOne {
		t.Error("ordinary values were searched one by one")
	}
}

// nearIQ4Tile needs middles so far apart that no product meets two of them between
// the smallest and the largest scale of the candidates.
func TestTileMiddlesIQ4(t *testing.T) {
	n := &iq4Const.numerators
	ratio := n[0][0] / n[len(n)-1][0]
	for i := range 14 {
		a, b := scalar.MiddlesIQ4[i], scalar.MiddlesIQ4[i+1]
		if a < 0 {
			a, b = -b, -a
		}
		if a > 0 && b/a <= 1.01*ratio {
			t.Errorf("middles %g and %g: ratio %g, want more than %g", scalar.MiddlesIQ4[i], scalar.MiddlesIQ4[i+1], b/a, ratio)
		}
	}
}

// What a tile of IQ1 finds is what the scalar search finds, whatever path a lane takes.
func TestTileIQ1(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	normal := func() float32 { return float32(r.NormFloat64()) * 0.02 }
	weight := func() float32 { return r.Float32() }
	cases := []struct {
		name string
		sure bool // all lanes, else none
		x, w func() float32
	}{
		{"normal", true, normal, weight},
		{"BF16", true, func() float32 { return math.Float32frombits(math.Float32bits(normal()) &^ 0xFFFF) }, weight},
		{"equal", true, func() float32 { return -0.02 }, weight},
		{"three values", true, func() float32 { return float32(r.IntN(3) - 1) }, weight},
		{"in the last bits", false, func() float32 { return math.Float32frombits(0x3F800000 | r.Uint32()&15) }, weight},
		{"a negative weight", false, normal, func() float32 { return -r.Float32() }},
		{"small", false, func() float32 { return normal() * 1e-20 }, func() float32 { return 1e-20 }},
		{"large", false, func() float32 { return normal() * 1e30 }, weight},
		{"overflow", false, func() float32 { return normal() * 1e38 }, func() float32 { return 1e38 }},
		{"no weight", false, normal, func() float32 { return 0 }},
	}
	l, width := new(iq1Lanes), lane.Width()
	l.lists = chunked(&codebook.IQ1)
	for _, c := range cases {
		sure, lanes := 0, 0
		for range 20 {
			const n = pack.QK * maxLanes
			x, w := make([]float32, n), make([]float32, n)
			for i := range x {
				x[i], w[i] = c.x(), c.w()
			}
			var codes [4]uint16
			var shifts [2]uint8
			m := pack.QK * (1 + r.IntN(width))
			l.fitIQ1_S(x[:m], w[:m], 0, width)
			for k := range m / pack.QK {
				f, j := &l.fits[k/8], k%8
				scale, shift := scalar.SearchIQ1_S(x[pack.QK*k:][:pack.QK], w[pack.QK*k:][:pack.QK], codes[:])
				if f.Scales[j] != scale && scale == scale || f.Shifts[j] != shift || [4]uint16(f.Codes[4*j:]) != codes {
					t.Fatalf("IQ1_S, %s, lane %d: %g %d %x, want %g %d %x", c.name, k, f.Scales[j], f.Shifts[j], f.Codes[4*j:][:4], scale, shift, codes)
				}
				sure -= int(l.sure[k])
				lanes++
			}
			m = 16 * (1 + r.IntN(width))
			l.fitIQ1_M(x[:m], w[:m], 0, width)
			for k := range m / 16 {
				f, j := &l.fits[k/16], k%16
				scale := scalar.SearchIQ1_M(x[16*k:][:16], w[16*k:][:16], codes[:2], shifts[:])
				if f.Scales[j] != scale && scale == scale || [2]uint8(f.Shifts[2*j:]) != shifts || [2]uint16(f.Codes[2*j:]) != [2]uint16(codes[:]) {
					t.Fatalf("IQ1_M, %s, lane %d: %g %d %x, want %g %d %x", c.name, k, f.Scales[j], f.Shifts[2*j:][:2], f.Codes[2*j:][:2], scale, shifts, codes)
				}
				sure -= int(l.sure[k])
				lanes++
			}
		}
		if c.sure && sure < lanes || !c.sure && sure > 0 {
			t.Errorf("%s: %d of %d lanes are sure", c.name, sure, lanes)
		}
	}
}

// TestWidths runs the tests of tiles at every vector width.
func TestWidths(t *testing.T) { widths.Run(t, "TestTile.*") }

func TestWidth(t *testing.T) { widths.Check(t) }
