package quants

import (
	"errors"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"testing"

	"ggforge/gguf"
	"ggforge/internal/gen"
)

var codebooks = []struct {
	name string
	cb   *codebook
	near int // length of all lists
}{
	{"iq1", &codebookIQ1, 327721},
	{"iq2_xxs", &codebookIQ2_XXS, 113157},
	{"iq2_xs", &codebookIQ2_XS, 181721},
	{"iq2_s", &codebookIQ2_S, 44716},
	{"iq3_xxs", &codebookIQ3_XXS, 18985},
	{"iq3_s", &codebookIQ3_S, 24733},
}

// unpack returns the levels of a code.
func (cb *codebook) unpack(code uint16) (levels []int) {
	for k := range cb.dim {
		levels = append(levels, int(code>>(cb.bits*k))&(1<<cb.bits-1))
	}
	return levels
}

// The lists are those of the definition: all points sorted by distance and index,
// cut after the first keep distances.
func TestNeighbours(t *testing.T) {
	for _, c := range codebooks {
		cb := c.cb
		cb.load()
		if len(cb.near) != c.near {
			t.Errorf("%s: %d near points in all, want %d", c.name, len(cb.near), c.near)
		}
		points := map[uint16]int{}
		for i, code := range cb.codes {
			points[code] = i
		}
		top, vectors, offGrid := 2, 0, 0
		if cb.dim == 4 {
			top = 7
		}
	codes:
		for code := range 1 << (cb.dim * cb.bits) {
			code := uint16(code)
			levels := cb.unpack(code)
			for _, l := range levels {
				if l > top {
					continue codes
				}
			}
			vectors++
			list := cb.list(code)
			if i, ok := points[code]; ok {
				if cb.point(code) != i || len(list) != 0 {
					t.Fatalf("%s: vector %#x is point %d with %d near points, want point %d", c.name, code, cb.point(code), len(list), i)
				}
				continue
			}
			if cb.point(code) != -1 {
				t.Fatalf("%s: vector %#x is point %d, want none", c.name, code, cb.point(code))
			}
			if offGrid++; offGrid%16 != 0 {
				continue // sorting is slow
			}
			distance := make([]int, len(cb.codes))
			order := make([]int, len(cb.codes))
			for i, p := range cb.codes {
				order[i] = i
				for k, l := range cb.unpack(p) {
					d := (2*l + 1) - (2*levels[k] + 1)
					distance[i] += d * d
				}
			}
			slices.SortStableFunc(order, func(a, b int) int { return distance[a] - distance[b] })
			var want []uint16
			seen, last := 0, -1
			for _, i := range order {
				if distance[i] != last {
					if seen++; seen > cb.keep {
						break
					}
					last = distance[i]
				}
				want = append(want, cb.codes[i])
			}
			if !slices.Equal(list, want) {
				t.Fatalf("%s: vector %#x has near points %x, want %x", c.name, code, list, want)
			}
		}
		if len(cb.index) != vectors || offGrid != vectors-len(cb.codes) {
			t.Errorf("%s: %d vectors, %d off the grid; want %d, %d", c.name, len(cb.index), offGrid, vectors, vectors-len(cb.codes))
		}
	}
}

// The lists do not depend on the number of cores.
func TestNeighboursAnyCores(t *testing.T) {
	cb := &codebookIQ3_S
	want := cb.build()
	for _, n := range []int{1, 3, 7} {
		old := runtime.GOMAXPROCS(n)
		got := cb.build()
		runtime.GOMAXPROCS(old)
		if !slices.Equal(got.index, want.index) || !slices.Equal(got.start, want.start) || !slices.Equal(got.near, want.near) {
			t.Errorf("other lists with GOMAXPROCS %d", n)
		}
	}
}

func TestNearest(t *testing.T) {
	var c costs
	for i := range c {
		c[i] = float32(math.Inf(1))
	}
	if got, ok := codebookIQ2_XS.nearest([]uint16{7, 5}, &c); got != 7 || ok {
		t.Errorf("got %d, %v, want the first code, not ok", got, ok)
	}
	c.set([]float32{0.9, 0, 0, 0, 0, 0, 0, 2}, []float32{1, 1, 1, 1, 1, 1, 1, 0}, []float32{0, 1, 2})
	if got, ok := codebookIQ2_XS.nearest([]uint16{2, 1, 1 | 2<<14}, &c); got != 1 || !ok {
		t.Errorf("got %#x, want 1: element 7 has no weight, the first wins", got)
	}
	c.set([]float32{0.9, 6.6, 0, 0}, []float32{1, 1, 1, 1}, []float32{0, 1, 2, 3, 4, 5, 6, 7})
	if got, ok := codebookIQ3_S.nearest([]uint16{6 << 3, 1 | 6<<3, 1 | 7<<3}, &c); got != 1|7<<3 || !ok {
		t.Errorf("got %#o, want 071", got)
	}
}

// Elements whose errors overflow float32, where the reference stops, give blocks
// that are not valid rather than blocks of zeros. (IQ2_XXS and IQ1 already find
// no scale for them, and zeros are the reference's blocks.)
func TestOverflowIsInvalid(t *testing.T) {
	x, n := gen.Input("normal/2x512")
	for i := range x {
		x[i] *= 1e30
	}
	for _, typ := range []gguf.Type{gguf.TypeIQ2_XS, gguf.TypeIQ2_S, gguf.TypeIQ3_XXS, gguf.TypeIQ3_S} {
		c := Lookup(typ)
		for _, variant := range variantsOf(c, "none", "uni") {
			if err := c.Validate(quantized(t, c, x, n, gen.Importance(variant, n))); !errors.Is(err, ErrBroken) {
				t.Errorf("%v %s: error %v, want ErrBroken", typ, variant, err)
			}
		}
	}
}

func TestEvenSigns(t *testing.T) {
	for i, s := range signs7 {
		if int(s&127) != i || bits.OnesCount8(s)%2 != 0 {
			t.Errorf("signs7[%d] = %#b", i, s)
		}
	}
	var y [8]float32
	x := []float32{3, -2, 1, 4, -5, -6, 7, -1}
	w := []float32{1, 1, 1, 1, 1, 1, 1, 1}
	if s := evenSigns(y[:], x, w); s != 0b10110010 || y[7] != 1 {
		t.Errorf("signs %#b, y %v", s, y)
	}
	x[0] = -3
	if s := evenSigns(y[:], x, w); s != 0b10110111 || y[2] != -1 {
		t.Errorf("signs %#b, y %v: want element 2 flipped, the first of the smallest", s, y)
	}
}

func TestZeroSubBlocksIQ3_S(t *testing.T) {
	set := func(x []float32, subBlocks ...int) []float32 {
		for _, j := range subBlocks {
			x[32*j+j] = 1
		}
		return x
	}
	negZero := make([]float32, 256)
	for i := range negZero {
		negZero[i] = float32(math.Copysign(0, -1))
	}
	for i, c := range []struct {
		x    []float32
		want int
	}{
		{nil, 0},
		{make([]float32, 512), 0},
		{set(make([]float32, 256), 0, 1, 2, 3, 4, 5, 6, 7), 0},
		{set(make([]float32, 256), 0, 1), 0}, // nothing behind the zeros
		{set(make([]float32, 256), 7), 7},
		{set(negZero, 1, 3), 2},
		{set(make([]float32, 512), 1, 8+0, 8+5), 1 + 4},
	} {
		if got := ZeroSubBlocksIQ3_S(c.x); got != c.want {
			t.Errorf("case %d: %d, want %d", i, got, c.want)
		}
	}

	// Where the count is not 0 the superblock decodes wrongly, else well.
	for _, name := range []string{"normal/2x512", "zblk/2x512"} {
		x, n := gen.Input(name)
		c := Lookup(gguf.TypeIQ3_S)
		y := dequantized(t, c, quantized(t, c, x, n, nil), len(x))
		for off := 0; off < len(x); off += 256 {
			x, y := x[off:][:256], y[off:][:256]
			zeros := make([]float32, 256)
			rel := rmse(x, y) / max(rmse(x, zeros), 1e-30)
			if hit := ZeroSubBlocksIQ3_S(x) > 0; hit != (rel > 0.5) {
				t.Errorf("%s at %d: displaced %v, relative error %.2f", name, off, hit, rel)
			}
		}
	}
}

// BenchmarkNeighbours builds the lists of a codebook; bytes is what they keep.
func BenchmarkNeighbours(b *testing.B) {
	for _, c := range codebooks {
		b.Run(c.name, func(b *testing.B) {
			var n neighbours
			for b.Loop() {
				n = c.cb.build()
			}
			b.ReportMetric(float64(2*cap(n.index)+4*cap(n.start)+2*cap(n.near)), "bytes")
			b.ReportMetric(float64(len(n.near))/float64(len(n.index)-len(c.cb.codes)), "points/list")
			b.ReportMetric(float64(runtime.GOMAXPROCS(0)), "cores")
		})
	}
}
