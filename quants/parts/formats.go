package parts

import (
	"math"
	"slices"

	"ggforge/gguf"
	"ggforge/quants/internal/codebook"
)

// formats are made of tables: where bits are comes from the layouts that package
// quants/internal/scalar describes.
var formats = func() map[gguf.Type]*Format {
	m := map[gguf.Type]*Format{}
	// add adds a format whose elements have codes of their own; levels are by code, flip is
	// of codes as they are stored.
	add := func(f Format, levels []int8, codes [][]place, flip uint8) {
		f.levels = newTable(levels, codes, flip)
		f.ladder(levels)
		m[f.Type] = &f
	}
	one, none := [2]int{1, 1}, []place(nil)
	nibbles := func(from int) [][]place {
		return each(32, func(i int) []place { return []place{{from + i%16, i / 16 * 4, 4, 0}} })
	}
	// a fifth bit at bit i of 32
	fifth := func(from int, low [][]place) [][]place {
		return each(32, func(i int) []place { return append(low[i], place{from + i/8, i % 8, 1, 4}) })
	}
	iq4, fp4 := whole(codebook.ValuesIQ4[:]), whole(codebook.ValuesFP4[:])
	add(Format{Type: gguf.TypeQ4_0, Block: 32, Sub: 32, Scales: one, d: word(0)}, span(-8, 7), nibbles(2), 0)
	add(Format{Type: gguf.TypeQ4_1, Block: 32, Sub: 32, Scales: one, Mins: one, d: word(0), dmin: word(2),
		inverse: true}, span(0, 15), nibbles(4), 0)
	add(Format{Type: gguf.TypeQ5_0, Block: 32, Sub: 32, Scales: one, d: word(0)}, span(-16, 15),
		fifth(2, nibbles(6)), 0)
	add(Format{Type: gguf.TypeQ5_1, Block: 32, Sub: 32, Scales: one, Mins: one, d: word(0), dmin: word(2),
		inverse: true}, span(0, 31), fifth(4, nibbles(8)), 0)
	add(Format{Type: gguf.TypeQ8_0, Block: 32, Sub: 32, Scales: one, d: word(0)}, span(-128, 127),
		each(32, func(i int) []place { return []place{{2 + i, 0, 8, 0}} }), 0x80)
	add(Format{Type: gguf.TypeIQ4_NL, Block: 32, Sub: 32, Scales: one, d: word(0)}, iq4, nibbles(2), 0)
	add(Format{Type: gguf.TypeMXFP4, Block: 32, Sub: 32, Scales: [2]int{0, 254}, d: none,
		factors: bitsOf(codebook.E8M0Half[:]), scales: octets(1, 0)}, fp4, nibbles(1), 0)
	add(Format{Type: gguf.TypeNVFP4, Block: 64, Sub: 16, Scales: [2]int{0, 126}, d: none,
		factors: bitsOf(codebook.UE4M3Half[:]), scales: octets(4, 0)}, fp4,
		each(64, func(i int) []place { return []place{{4 + i/16*8 + i%8, i % 16 / 8 * 4, 4, 0}} }), 0)
	add(Format{Type: gguf.TypeQ1_0, Block: 128, Sub: 128, Scales: one, d: word(0)}, []int8{-1, 1},
		each(128, func(i int) []place { return []place{{2 + i/8, i % 8, 1, 0}} }), 0)
	add(Format{Type: gguf.TypeQ2_0, Block: 64, Sub: 64, Scales: one, d: word(0)}, span(-1, 2),
		each(64, func(i int) []place { return []place{{2 + i/4, i % 4 * 2, 2, 0}} }), 0)

	crumbs := func(from int) [][]place {
		return each(256, func(i int) []place { return []place{{from + i/128*32 + i%32, i % 128 / 32 * 2, 2, 0}} })
	}
	// bit of 32 bytes for each of 8 runs of 32
	masks := func(from, at int, low [][]place) [][]place {
		return each(256, func(i int) []place { return append(low[i], place{from + i%32, i / 32, 1, at}) })
	}
	halves := func(from int) [][]place {
		return each(256, func(i int) []place { return []place{{from + i/64*32 + i%32, i % 64 / 32 * 4, 4, 0}} })
	}
	sixBits := func(from, shift int) [][]place { // see pack.ScaleMin
		return each(8, func(j int) []place {
			if j < 4 {
				return []place{{from + j, 0, 6, 0}}
			}
			return []place{{4 + 8 + j - 4, shift, 4, 0}, {from + j - 4, 6, 2, 4}}
		})
	}
	add(Format{Type: gguf.TypeQ2_K, Block: 256, Sub: 16, Scales: [2]int{0, 15}, Mins: [2]int{0, 15}, d: word(80),
		dmin:   word(82),
		scales: each(16, func(j int) []place { return []place{{j, 0, 4, 0}} }),
		mins:   each(16, func(j int) []place { return []place{{j, 4, 4, 0}} })}, span(0, 3), crumbs(16), 0)
	add(Format{Type: gguf.TypeQ3_K, Block: 256, Sub: 16, Scales: [2]int{-32, 31}, d: word(108), bias: -32,
		scales: each(16, func(j int) []place {
			return []place{{96 + j%8, j / 8 * 4, 4, 0},
				{104 + j%4, j / 4 * 2, 2, 4}}
		})}, span(-4, 3), masks(0, 2, crumbs(32)), 0)
	add(Format{Type: gguf.TypeQ4_K, Block: 256, Sub: 32, Scales: [2]int{0, 63}, Mins: [2]int{0, 63}, d: word(0),
		dmin: word(2), scales: sixBits(4, 0), mins: sixBits(8, 4)}, span(0, 15), halves(16), 0)
	add(Format{Type: gguf.TypeQ5_K, Block: 256, Sub: 32, Scales: [2]int{0, 63}, Mins: [2]int{0, 63}, d: word(0),
		dmin: word(2), scales: sixBits(4, 0), mins: sixBits(8, 4)}, span(0, 31), masks(16, 4, halves(48)), 0)
	add(Format{Type: gguf.TypeQ6_K, Block: 256, Sub: 16, Scales: [2]int{-128, 127}, d: word(208), signed: true,
		scales: octets(16, 192)}, span(-32, 31),
		each(256, func(i int) []place {
			h, quarter, l := i/128, i%128/32, i%32
			return []place{{64*h + quarter&1*32 + l, quarter >> 1 * 4, 4, 0}, {128 + 32*h + l, 2 * quarter, 2, 4}}
		}), 0)
	add(Format{Type: gguf.TypeIQ4_XS, Block: 256, Sub: 32, Scales: [2]int{-32, 31}, d: word(0), bias: -32,
		scales: each(8, func(j int) []place {
			return []place{{4 + j/2, j % 2 * 4, 4, 0},
				{2 + j/4, j % 4 * 2, 2, 4}}
		})},
		iq4, each(256, func(i int) []place { return []place{{8 + i/32*16 + i%16, i % 32 / 16 * 4, 4, 0}} }), 0)
	// ternary weights, of which one coding has room for a fourth level
	add(Format{Type: gguf.TypeTQ2_0, Block: 256, Sub: 256, Scales: one, d: word(64)}, span(-1, 2), crumbs(0), 0)
	m[gguf.TypeTQ2_0].ladder(span(-1, 1))
	tq1 := &Format{Type: gguf.TypeTQ1_0, Block: 256, Sub: 256, Scales: one, d: word(52), levels: trits{}}
	tq1.ladder(span(-1, 1))
	m[tq1.Type] = tq1

	grid := func(f Format, signs Signs, book *codebook.Codebook, levels []int8, c gridCoding) {
		f.Block, f.Grid = 256, &Grid{Dim: book.Dim, Signs: signs, Levels: levels, book: book}
		c.Grid = f.Grid
		c.prepare()
		f.levels = &c
		m[f.Type] = &f
	}
	// scales of 4 bits
	fours := func(n, from int) [][]place {
		return each(n, func(j int) []place { return []place{{from + j/2, j % 2 * 4, 4, 0}} })
	}
	// low bits of indices, a byte for each group
	low := func(n, from int) [][]place {
		return each(n, func(g int) []place { return []place{{from + g, 0, 8, 0}} })
	}
	// signs: 7 bits each in words, from bit 0
	sevens := func(word func(k int) int) [][]place {
		return each(32, func(k int) (all []place) {
			return cut(8*word(k)+k%4*7, 7, 0)
		})
	}
	iq2, iq3xxs, iq3s := whole(codebook.LevelsIQ2[:]), whole(codebook.LevelsIQ3_XXS[:]), whole(codebook.LevelsIQ3_S[:])
	grid(Format{Type: gguf.TypeIQ2_XXS, Sub: 32, Scales: [2]int{0, 15}, d: word(0), factors: steps(16, 0.125, 0.25),
		scales: each(8, func(j int) []place { return []place{{2 + 8*j + 7, 4, 4, 0}} })},
		EvenSigns, &codebook.IQ2_XXS, iq2, gridCoding{
			index: each(32, func(g int) []place { return []place{{2 + g/4*8 + g%4, 0, 8, 0}} }),
			signs: sevens(func(k int) int { return 2 + k/4*8 + 4 })})
	grid(Format{Type: gguf.TypeIQ2_XS, Sub: 16, Scales: [2]int{0, 15}, d: word(0), factors: steps(16, 0.125, 0.25),
		scales: fours(16, 66)},
		EvenSigns, &codebook.IQ2_XS, iq2, gridCoding{
			index: each(32, func(g int) []place { return cut(8*(2+2*g), 9, 0) }),
			signs: each(32, func(g int) []place { return cut(8*(2+2*g)+9, 7, 0) })})
	grid(Format{Type: gguf.TypeIQ2_S, Sub: 16, Scales: [2]int{0, 15}, d: word(0), factors: steps(16, 0.125, 0.25),
		scales: fours(16, 74)},
		AnySigns, &codebook.IQ2_S, iq2, gridCoding{
			index: each(32, func(g int) []place { return []place{{2 + g, 0, 8, 0}, {66 + g/4, g % 4 * 2, 2, 8}} }),
			signs: low(32, 34)})
	grid(Format{Type: gguf.TypeIQ3_XXS, Sub: 32, Scales: [2]int{0, 15}, d: word(0), factors: steps(16, 0.25, 0.5),
		scales: each(8, func(j int) []place { return []place{{66 + 4*j + 3, 4, 4, 0}} })},
		EvenSigns, &codebook.IQ3_XXS, iq3xxs, gridCoding{
			index: low(64, 2),
			signs: sevens(func(k int) int { return 66 + k/4*4 })})
	grid(Format{Type: gguf.TypeIQ3_S, Sub: 32, Scales: [2]int{0, 15}, d: word(0), factors: steps(16, 1, 2),
		scales: fours(8, 106)},
		AnySigns, &codebook.IQ3_S, iq3s, gridCoding{
			index: each(64, func(g int) []place { return []place{{2 + g, 0, 8, 0}, {66 + g/8, g % 8, 1, 8}} }),
			signs: low(32, 74)})
	grid(Format{Type: gguf.TypeIQ1_S, Sub: 32, Scales: [2]int{0, 7}, d: word(0), factors: steps(8, 0.125, 0.25),
		scales: each(8, func(j int) []place { return []place{{34 + 2*j + 1, 4, 3, 0}} })},
		ShiftBySub, &codebook.IQ1, []int8{-8, 0, 8}, gridCoding{
			index: each(32, func(g int) []place {
				return append([]place{{2 + g, 0, 8, 0}},
					cut(8*(34+g/4*2)+g%4*3, 3, 8)...)
			}),
			shifts: each(32, func(g int) []place { return []place{{34 + g/4*2 + 1, 7, 1, 0}} })})
	grid(Format{Type: gguf.TypeIQ1_M, Sub: 16, Scales: [2]int{0, 7},
		d: []place{{49, 4, 4, 0}, {51, 4, 4, 4}, {53, 4, 4, 8}, {55, 4, 4, 12}}, factors: steps(8, 0.125, 0.25),
		scales: each(16, func(j int) []place { return cut(8*(48+j/4*2)+j%4*3, 3, 0) })},
		ShiftByGroup, &codebook.IQ1, []int8{-8, 0, 8}, gridCoding{
			index:  each(32, func(g int) []place { return []place{{g, 0, 8, 0}, {32 + g/2, g % 2 * 4, 3, 8}} }),
			shifts: each(32, func(g int) []place { return []place{{32 + g/2, g%2*4 + 3, 1, 0}} })})
	return m
}()

// ladder sets the levels that elements can have from those of codes.
func (f *Format) ladder(levels []int8) {
	f.Levels = slices.Clone(levels)
	slices.Sort(f.Levels)
	f.Levels = slices.Compact(f.Levels)
	f.step = int(f.Levels[len(f.Levels)-1])-int(f.Levels[0]) == len(f.Levels)-1
}

func each(n int, f func(i int) []place) [][]place {
	all := make([][]place, n)
	for i := range all {
		all[i] = f(i)
	}
	return all
}

// word is where a number of 16 bits is.
func word(from int) []place { return []place{{from, 0, 8, 0}, {from + 1, 0, 8, 8}} }

// octets is where numbers of 8 bits are.
func octets(n, from int) [][]place {
	return each(n, func(i int) []place { return []place{{from + i, 0, 8, 0}} })
}

// cut is where count bits from bit on are, byte by byte; they are bits at of the code.
func cut(bit, count, at int) (all []place) {
	for count > 0 {
		n := min(count, 8-bit%8)
		all = append(all, place{bit / 8, bit % 8, n, at})
		bit, count, at = bit+n, count-n, at+n
	}
	return all
}

// span has all levels of a range.
func span(from, to int) []int8 {
	var all []int8
	for v := from; v <= to; v++ {
		all = append(all, int8(v))
	}
	return all
}

// whole returns values that are whole numbers.
func whole(values []float32) []int8 {
	all := make([]int8, len(values))
	for i, v := range values {
		all[i] = int8(v)
	}
	return all
}

// steps has n factors, from first on, step apart.
func steps(n int, first, step float32) []float32 {
	all := make([]float32, n)
	for i := range all {
		all[i] = first + float32(i)*step
	}
	return all
}

func bitsOf(bits []uint32) []float32 {
	all := make([]float32, len(bits))
	for i, b := range bits {
		all[i] = math.Float32frombits(b)
	}
	return all
}

// table is a coding of codes for each element.
type table struct {
	byCode []int8
	byte   [256]uint8 // by level as a byte: the first code of it
	places [][]place
	flip   uint8
}

func newTable(levels []int8, places [][]place, flip uint8) *table {
	t := &table{byCode: levels, places: places, flip: flip}
	for c := len(levels) - 1; c >= 0; c-- {
		t.byte[uint8(levels[c])] = uint8(c)
	}
	return t
}

func (t *table) unpack(levels []int8, src []byte) {
	for i, p := range t.places {
		levels[i] = t.byCode[uint8(get(src, p))^t.flip]
	}
}

func (t *table) pack(dst []byte, levels []int8) {
	for i, p := range t.places {
		put(dst, p, int(t.byte[uint8(levels[i])]^t.flip))
	}
}

// trits is the coding of TQ1_0.
type trits struct{}

// runs describes where elements go: n bytes from off, byte m holding elements first + m + n*k for
// k < trits.
var runs = [3]struct{ off, n, first, trits int }{{0, 32, 0, 5}, {32, 16, 160, 5}, {48, 4, 240, 4}}

func (trits) unpack(levels []int8, src []byte) {
	for _, r := range &runs {
		for m, q := range src[r.off:][:r.n] {
			for k := range r.trits {
				levels[r.first+m+r.n*k] = int8(uint32(q)*3>>8) - 1
				q *= 3
			}
		}
	}
}

func (trits) pack(dst []byte, levels []int8) {
	for _, r := range &runs {
		for m := range r.n {
			v := 0
			for k := range 5 {
				v *= 3
				if k < r.trits {
					v += int(levels[r.first+m+r.n*k]) + 1
				}
			}
			dst[r.off+m] = uint8((v*256 + 242) / 243)
		}
	}
}
