package codebook

import (
	"math"
	"math/bits"
	"runtime"
	"slices"
	"testing"
)

var codebooks = []struct {
	name string
	cb   *Codebook
	near int // length of all lists
}{
	{"iq1", &IQ1, 327721},
	{"iq2_xxs", &IQ2_XXS, 113157},
	{"iq2_xs", &IQ2_XS, 181721},
	{"iq2_s", &IQ2_S, 44716},
	{"iq3_xxs", &IQ3_XXS, 18985},
	{"iq3_s", &IQ3_S, 24733},
}

// unpack returns the levels of a code.
func (cb *Codebook) unpack(code uint16) (levels []int) {
	for k := range cb.Dim {
		levels = append(levels, int(code>>(cb.Bits*k))&(1<<cb.Bits-1))
	}
	return levels
}

// The lists are those of the definition: all points sorted by distance and index,
// cut after the first keep distances.
func TestNeighbours(t *testing.T) {
	for _, c := range codebooks {
		cb := c.cb
		cb.Load()
		if len(cb.near) != c.near {
			t.Errorf("%s: %d neighbours in all, want %d", c.name, len(cb.near), c.near)
		}
		points := map[uint16]int{}
		for i, code := range cb.codes {
			points[code] = i
		}
		top, vectors, offGrid := 2, 0, 0
		if cb.Dim == 4 {
			top = 7
		}
	codes:
		for code := range 1 << (cb.Dim * cb.Bits) {
			code := uint16(code)
			levels := cb.unpack(code)
			for _, l := range levels {
				if l > top {
					continue codes
				}
			}
			vectors++
			list := cb.List(code)
			if i, ok := points[code]; ok {
				if cb.Point(code) != i || len(list) != 0 {
					t.Fatalf("%s: vector %#x is point %d with %d neighbours, want point %d", c.name, code,
						cb.Point(code), len(list), i)
				}
				continue
			}
			if cb.Point(code) != -1 {
				t.Fatalf("%s: vector %#x is point %d, want none", c.name, code, cb.Point(code))
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
				t.Fatalf("%s: vector %#x has neighbours %x, want %x", c.name, code, list, want)
			}
		}
		if len(cb.Index) != vectors || offGrid != vectors-len(cb.codes) {
			t.Errorf("%s: %d vectors, %d off the grid; want %d, %d", c.name, len(cb.Index), offGrid, vectors,
				vectors-len(cb.codes))
		}
	}
}

// The lists do not depend on the number of cores.
func TestNeighboursAnyCores(t *testing.T) {
	cb := &IQ3_S
	want := cb.build()
	for _, n := range []int{1, 3, 7} {
		old := runtime.GOMAXPROCS(n)
		got := cb.build()
		runtime.GOMAXPROCS(old)
		if !slices.Equal(got.Index, want.Index) || !slices.Equal(got.start, want.start) ||
			!slices.Equal(got.near, want.near) {
			t.Errorf("other lists with GOMAXPROCS %d", n)
		}
	}
}

// The points nearby are the first of all, sorted by distance and index.
func TestNearby(t *testing.T) {
	for _, c := range codebooks {
		cb, count := c.cb, 16
		near, vectors := cb.Nearby(count), cb.vectors()
		for r := 0; r < len(vectors); r += 211 {
			order, levels, distance := slices.Clone(cb.codes), cb.unpack(vectors[r]), map[uint16]int{}
			for _, code := range order {
				for k, l := range cb.unpack(code) {
					distance[code] += (l - levels[k]) * (l - levels[k])
				}
			}
			slices.SortStableFunc(order, func(a, b uint16) int { return distance[a] - distance[b] })
			if got := near[r*count:][:count]; cb.Rank(vectors[r]) != uint(r) || !slices.Equal(got, order[:count]) {
				t.Fatalf("%s: near vector %#x of rank %d are %x, want %x", c.name, vectors[r], r, got, order[:count])
			}
		}
	}
}

func TestNearest(t *testing.T) {
	var c Costs
	for i := range c {
		c[i] = float32(math.Inf(1))
	}
	if got, ok := IQ2_XS.Nearest([]uint16{7, 5}, &c); got != 7 || ok {
		t.Errorf("got %d, %v, want the first code, not ok", got, ok)
	}
	c.Set([]float32{0.9, 0, 0, 0, 0, 0, 0, 2}, []float32{1, 1, 1, 1, 1, 1, 1, 0}, []float32{0, 1, 2})
	if got, ok := IQ2_XS.Nearest([]uint16{2, 1, 1 | 2<<14}, &c); got != 1 || !ok {
		t.Errorf("got %#x, want 1: element 7 has no weight, the first wins", got)
	}
	c.Set([]float32{0.9, 6.6, 0, 0}, []float32{1, 1, 1, 1}, []float32{0, 1, 2, 3, 4, 5, 6, 7})
	if got, ok := IQ3_S.Nearest([]uint16{6 << 3, 1 | 6<<3, 1 | 7<<3}, &c); got != 1|7<<3 || !ok {
		t.Errorf("got %#o, want 071", got)
	}
}

func TestEvenSigns(t *testing.T) {
	for i, s := range Signs7 {
		if int(s&127) != i || bits.OnesCount8(s)%2 != 0 {
			t.Errorf("signs7[%d] = %#b", i, s)
		}
	}
	var y [8]float32
	x := []float32{3, -2, 1, 4, -5, -6, 7, -1}
	w := []float32{1, 1, 1, 1, 1, 1, 1, 1}
	if s := EvenSigns(y[:], x, w); s != 0b10110010 || y[7] != 1 {
		t.Errorf("signs %#b, y %v", s, y)
	}
	x[0] = -3
	if s := EvenSigns(y[:], x, w); s != 0b10110111 || y[2] != -1 {
		t.Errorf("signs %#b, y %v: want element 2 flipped, the first of the smallest", s, y)
	}
}

// BenchmarkNeighbours builds the lists of a codebook; bytes is their size.
func BenchmarkNeighbours(b *testing.B) {
	for _, c := range codebooks {
		b.Run(c.name, func(b *testing.B) {
			var n neighbours
			for b.Loop() {
				n = c.cb.build()
			}
			b.ReportMetric(float64(2*cap(n.Index)+4*cap(n.start)+2*cap(n.near)), "bytes")
			b.ReportMetric(float64(len(n.near))/float64(len(n.Index)-len(c.cb.codes)), "points/list")
			b.ReportMetric(float64(runtime.GOMAXPROCS(0)), "cores")
		})
	}
}
