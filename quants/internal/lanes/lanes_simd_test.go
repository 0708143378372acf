//go:build goexperiment.simd && go1.27

package lanes

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ggforge/internal/kernel/lane"
	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
	"ggforge/quants/internal/widths"
)

// The inputs of the parity tests reach the rare paths of the tiles.
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

// TestTileMiddlesIQ4 checks the precondition of nearIQ4Tile: middles so far apart that no product crosses two of them
// between the smallest and the largest scale of the candidates.
func TestTileMiddlesIQ4(t *testing.T) {
	n := &iq4Const.numerators
	ratio := n[0][0] / n[len(n)-1][0]
	for i := range 14 {
		a, b := scalar.MiddlesIQ4[i], scalar.MiddlesIQ4[i+1]
		if a < 0 {
			a, b = -b, -a
		}
		if a > 0 && b/a <= 1.01*ratio {
			t.Errorf("middles %g and %g: ratio %g, want more than %g", scalar.MiddlesIQ4[i],
				scalar.MiddlesIQ4[i+1], b/a, ratio)
		}
	}
}

// A tile of IQ1 finds the same as the scalar search, whatever path a lane takes.
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
					t.Fatalf("IQ1_S, %s, lane %d: %g %d %x, want %g %d %x", c.name, k, f.Scales[j], f.Shifts[j],
						f.Codes[4*j:][:4], scale, shift, codes)
				}
				sure -= int(l.sure[k])
				lanes++
			}
			m = 16 * (1 + r.IntN(width))
			l.fitIQ1_M(x[:m], w[:m], 0, width)
			for k := range m / 16 {
				f, j := &l.fits[k/16], k%16
				scale := scalar.SearchIQ1_M(x[16*k:][:16], w[16*k:][:16], codes[:2], shifts[:])
				if f.Scales[j] != scale && scale == scale || [2]uint8(f.Shifts[2*j:]) != shifts ||
					[2]uint16(f.Codes[2*j:]) != [2]uint16(codes[:]) {
					t.Fatalf("IQ1_M, %s, lane %d: %g %d %x, want %g %d %x", c.name, k, f.Scales[j], f.Shifts[2*j:][:2],
						f.Codes[2*j:][:2], scale, shifts, codes)
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

// Groups whose elements are in the middle between two neighbours, or a few units in the last place
// off, at the scale of a candidate: the points' errors are equal there but for rounding, whatever the weights.
func TestTileNearTies(t *testing.T) {
	for _, c := range []struct {
		name         string
		cb           *codebook.Codebook
		size, steps  int
		top, step    float32
		bytes        int
		plain        bool // works without importance
		lanes, scale func(dst []byte, src, importance []float32)
	}{
		{"IQ2_XXS", &codebook.IQ2_XXS, 32, 6, 5, 0.1, scalar.BytesIQ2_XXS, false, QuantizeIQ2_XXS,
			scalar.QuantizeIQ2_XXS},
		{"IQ2_XS", &codebook.IQ2_XS, 16, 9, 5, 0.1, scalar.BytesIQ2_XS, false, QuantizeIQ2_XS, scalar.QuantizeIQ2_XS},
		{"IQ2_S", &codebook.IQ2_S, 16, 9, 5, 0.1, scalar.BytesIQ2_S, true, QuantizeIQ2_S, scalar.QuantizeIQ2_S},
		{"IQ3_XXS", &codebook.IQ3_XXS, 32, 15, 15, 0.2, scalar.BytesIQ3_XXS, true, QuantizeIQ3_XXS,
			scalar.QuantizeIQ3_XXS},
		{"IQ3_S", &codebook.IQ3_S, 32, 9, 15, 0.2, scalar.BytesIQ3_S, true, QuantizeIQ3_S, scalar.QuantizeIQ3_S},
	} {
		c.cb.Load()
		r := rand.New(rand.NewPCG(1, uint64(c.size*c.steps)))
		vectors := len(c.cb.Index)
		codes := make([]uint16, 0, vectors) // off grid
		for code := range 1 << (c.cb.Dim * c.cb.Bits) {
			if c.cb.Dim == 8 && code&(code>>1)&0x5555 != 0 {
				continue // a level of 3
			}
			if len(c.cb.List(uint16(code))) > 1 {
				codes = append(codes, uint16(code))
			}
		}
		level := func(code uint16, k int) float32 {
			return float32(2*(int(code)>>(c.cb.Bits*k)&(1<<c.cb.Bits-1)) + 1)
		}
		x, w := make([]float32, pack.QK_K), make([]float32, pack.QK_K)
		got, want := make([]byte, c.bytes), make([]byte, c.bytes)
		for round := range 40 {
			scale := float32(0.01) * (1 + r.Float32())
			var mx float32
			for i := 0; i < len(x); i += c.cb.Dim {
				if i%c.size == 0 {
					mx = scale * (c.top + float32(float32(r.IntN(2*c.steps+1)-c.steps)*c.step))
				}
				list := c.cb.List(codes[r.IntN(len(codes))])
				p, q := list[r.IntN(len(list))], list[r.IntN(len(list))]
				for k := range c.cb.Dim {
					e := min(scale*0.5*(level(p, k)+level(q, k)), mx)
					e = math.Float32frombits(math.Float32bits(e) + uint32(r.IntN(3)*r.IntN(2)))
					if x[i+k] = e; r.IntN(2) == 0 {
						x[i+k] = -e
					}
					w[i+k] = float32(r.IntN(4)) * 0.5
				}
				if i%c.size == 0 {
					x[i+r.IntN(c.cb.Dim)] = mx
				}
			}
			importance := w
			if c.plain && round%2 == 0 {
				importance = nil
			}
			c.scale(want, x, importance)
			c.lanes(got, x, importance)
			if !bytes.Equal(got, want) {
				t.Fatalf("%s, round %d: got %x, want %x\nx %v\nimportance %v", c.name, round, got, want, x, importance)
			}
		}
	}
}

// Lists, runs and chunks fit the memory that is reserved for them.
func TestShortLists(t *testing.T) {
	for _, c := range []struct {
		cb            *codebook.Codebook
		runs, longest int
	}{{&codebook.IQ2_XXS, 4 * 13, 150}, {&codebook.IQ2_XS, 2 * 19, 292}, {&codebook.IQ2_S, 2 * 19, 70},
		{&codebook.IQ3_XXS, 8 * 31, 36}, {&codebook.IQ3_S, 8 * 19, 38}} {
		longest := 0
		lists := chunked(c.cb).short
		for rank := range c.cb.Index {
			s, whole := lists.spans[rank], lists.spans[edge|rank]
			longest = max(longest, int(s.points), int(whole.points))
			codes := lists.codes[s.off:][:s.points]
			list := slices.Clone(c.cb.List(chunked(c.cb).spans[rank].code))
			slices.Sort(list)
			if got := lists.codes[whole.off:][:whole.points]; len(list) > 0 && !slices.Equal(got, list) ||
				whole.flag != s.flag {
				t.Fatalf("dimension %d, rank %d: whole list of %d points, want %d", c.cb.Dim, rank, len(got), len(list))
			}
			if !slices.IsSorted(codes) || (s.flag == 0) != (c.cb.Index[rank] >= 0) || s.flag == 0 && len(codes) != 1 {
				t.Fatalf("dimension %d, rank %d: points %x, flag %d", c.cb.Dim, rank, codes, s.flag)
			}
		}
		if chunks := c.runs * ((longest + neighbourChunk - 1) / neighbourChunk); longest != c.longest ||
			c.runs > maxRuns ||
			chunks > maxChunks {
			t.Errorf("longest list %d, want %d; %d runs, %d chunks", longest, c.longest, c.runs, chunks)
		}
	}
}

// TestWidths runs the tests of tiles at every vector width.
func TestWidths(t *testing.T) { widths.Run(t, "TestTile.*") }

func TestWidth(t *testing.T) { widths.Check(t) }
