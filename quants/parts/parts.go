// Package parts takes the blocks of quantized types apart: scales, minima, codes. It is for
// what chooses these in its own way, and puts blocks together again.
//
// A value is d·scale·level - dmin·min, in float32, each product rounded: as decoders compute
// it (package quants). Types whose codes stand for several values at once (IQ1, IQ2, IQ3)
// are not among them.
package parts

import (
	"encoding/binary"
	"math"
	"slices"

	"ggforge/gguf"
	"ggforge/internal/half"
	"ggforge/quants/internal/codebook"
)

// Format is what a type's blocks are made of.
type Format struct {
	Type       gguf.Type
	Block, Sub int // elements of a block and of each of its sub-blocks
	// Levels are the values of codes, in the order of codes.
	Levels []float32
	// Scales are the codes of the scales of sub-blocks, from the least to the largest: {1, 1}
	// where a block has one scale, d.
	Scales [2]int
	// Mins are those of minima: {0, 0} where there are none, {1, 1} where dmin is the only
	// one.
	Mins [2]int
	// Exponents says that d is a power of two, not a float16.
	Exponents bool

	order     []uint8   // codes by rising level
	step      bool      // levels are 1 apart, in the order of codes
	d, dmin   int       // where they are; dmin -1 for none
	negative  bool      // what is stored is -dmin
	codes     [][]place // of each element
	scales    [][]place // of each sub-block
	mins      [][]place // of each sub-block
	codeFlip  uint8     // of codes as they are stored
	scaleBias int       // stored code less this
}

// place is bits of a code: count of them, from bit shift of a byte on, are bits at of it.
type place struct{ byte, shift, count, at int }

// Block is a block taken apart. Only as many as its format has count.
type Block struct {
	D, Min float32 // d and dmin, as they are stored
	Scales [16]int16
	Mins   [16]int16
	Codes  [256]uint8
}

// Of returns the format of a type, nil if its blocks cannot be taken apart.
func Of(t gguf.Type) *Format { return formats[t] }

// Subs returns the number of sub-blocks of a block.
func (f *Format) Subs() int { return f.Block / f.Sub }

// HasMins reports whether blocks have minima.
func (f *Format) HasMins() bool { return f.Mins[1] > 0 }

// Unpack sets b from a block.
func (f *Format) Unpack(b *Block, src []byte) {
	src = src[:f.Type.BlockBytes()]
	if f.Exponents {
		b.D = power(src[f.d])
	} else {
		b.D = half.FromF16(binary.LittleEndian.Uint16(src[f.d:]))
	}
	b.Min = 0
	if f.dmin >= 0 {
		if b.Min = half.FromF16(binary.LittleEndian.Uint16(src[f.dmin:])); f.negative {
			b.Min = -b.Min
		}
	}
	for i, p := range f.codes {
		b.Codes[i] = uint8(get(src, p)) ^ f.codeFlip
	}
	for j := range f.Subs() {
		b.Scales[j], b.Mins[j] = int16(f.Scales[0]), int16(f.Mins[0])
		if f.scales != nil {
			b.Scales[j] = int16(get(src, f.scales[j]) + f.scaleBias)
			if f.Type == gguf.TypeQ6_K {
				b.Scales[j] = int16(int8(get(src, f.scales[j])))
			}
		}
		if f.mins != nil {
			b.Mins[j] = int16(get(src, f.mins[j]))
		}
	}
}

// Pack writes b as a block. D and Min are values that RoundD and RoundMin return.
func (f *Format) Pack(dst []byte, b *Block) {
	dst = dst[:f.Type.BlockBytes()]
	clear(dst)
	if f.Exponents {
		dst[f.d] = exponent(b.D)
	} else {
		binary.LittleEndian.PutUint16(dst[f.d:], half.ToF16(b.D))
	}
	if f.dmin >= 0 {
		m := b.Min
		if f.negative {
			m = -m
		}
		binary.LittleEndian.PutUint16(dst[f.dmin:], half.ToF16(m))
	}
	for i, p := range f.codes {
		put(dst, p, int(b.Codes[i]^f.codeFlip))
	}
	for j := range f.Subs() {
		if f.scales != nil {
			put(dst, f.scales[j], int(b.Scales[j])-f.scaleBias)
		}
		if f.mins != nil {
			put(dst, f.mins[j], int(b.Mins[j]))
		}
	}
}

func get(src []byte, places []place) (v int) {
	for _, p := range places {
		v |= int(src[p.byte]) >> p.shift & (1<<p.count - 1) << p.at
	}
	return v
}

func put(dst []byte, places []place, v int) {
	for _, p := range places {
		dst[p.byte] |= byte(v >> p.at & (1<<p.count - 1) << p.shift)
	}
}

// Scale returns what levels of sub-block j are multiplied by, and what is subtracted.
func (f *Format) Scale(b *Block, j int) (scale, min float32) {
	return b.D * float32(b.Scales[j]), b.Min * float32(b.Mins[j])
}

// Values sets dst to the values of a block.
func (f *Format) Values(dst []float32, b *Block) {
	for j := range f.Subs() {
		scale, min := f.Scale(b, j)
		for i := j * f.Sub; i < (j+1)*f.Sub; i++ {
			dst[i] = float32(scale*f.Levels[b.Codes[i]]) - min
		}
	}
}

// Nearest returns the code whose value in a sub-block of this scale and minimum is the
// nearest to x, or close to it. scale is not 0.
func (f *Format) Nearest(x, scale, min float32) uint8 {
	level := (x + min) / scale
	if f.step {
		n := float32(len(f.Levels) - 1)
		return uint8(max(0, min32(n, level-f.Levels[0]+0.5)))
	}
	lo, hi := 0, len(f.order)-1
	for lo < hi { // the first that the level is not above the middle of it and the next
		mid := (lo + hi) / 2
		if level > (f.Levels[f.order[mid]]+f.Levels[f.order[mid+1]])/2 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return f.order[lo]
}

// min32 is min for numbers, and a for what is not.
func min32(a, b float32) float32 {
	if b < a {
		return b
	}
	return a
}

// RoundD returns the value nearest to d that can be stored.
func (f *Format) RoundD(d float32) float32 {
	if f.Exponents {
		return power(exponent(d))
	}
	return half.FromF16(half.ToF16(d))
}

// RoundMin is RoundD for dmin.
func (f *Format) RoundMin(m float32) float32 { return half.FromF16(half.ToF16(m)) }

// power returns the value of the byte of a scale, halved because levels are doubled.
func power(e byte) float32 { return math.Float32frombits(codebook.E8M0Half[e]) }

// exponent returns the byte of the power of two that is the nearest to d by logarithm.
func exponent(d float32) byte {
	best := 0
	for e := range 255 {
		if math.Abs(math.Log2(float64(power(byte(e))))-math.Log2(float64(d))) < math.Abs(math.Log2(float64(power(byte(best))))-math.Log2(float64(d))) {
			best = e
		}
	}
	return byte(best)
}

// formats are made of tables: where bits are comes from the layouts that package
// quants/internal/scalar describes.
var formats = func() map[gguf.Type]*Format {
	m := map[gguf.Type]*Format{}
	add := func(f Format) {
		f.order = make([]uint8, len(f.Levels))
		for i := range f.order {
			f.order[i] = uint8(i)
		}
		slices.SortStableFunc(f.order, func(a, b uint8) int {
			switch x, y := f.Levels[a], f.Levels[b]; {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		})
		f.step = true
		for i := range f.Levels[1:] {
			f.step = f.step && f.Levels[i+1] == f.Levels[i]+1
		}
		m[f.Type] = &f
	}
	one := [2]int{1, 1}
	nibbles := func(from int) [][]place {
		return each(32, func(i int) []place { return []place{{from + i%16, i / 16 * 4, 4, 0}} })
	}
	// a fifth bit at bit i of 32
	fifth := func(from int, low [][]place) [][]place {
		return each(32, func(i int) []place { return append(low[i], place{from + i/8, i % 8, 1, 4}) })
	}
	add(Format{Type: gguf.TypeQ4_0, Block: 32, Sub: 32, Levels: levels(-8, 7), Scales: one, dmin: -1, codes: nibbles(2)})
	add(Format{Type: gguf.TypeQ4_1, Block: 32, Sub: 32, Levels: levels(0, 15), Scales: one, Mins: one, dmin: 2, negative: true, codes: nibbles(4)})
	add(Format{Type: gguf.TypeQ5_0, Block: 32, Sub: 32, Levels: levels(-16, 15), Scales: one, dmin: -1, codes: fifth(2, nibbles(6))})
	add(Format{Type: gguf.TypeQ5_1, Block: 32, Sub: 32, Levels: levels(0, 31), Scales: one, Mins: one, dmin: 2, negative: true, codes: fifth(4, nibbles(8))})
	add(Format{Type: gguf.TypeQ8_0, Block: 32, Sub: 32, Levels: levels(-128, 127), Scales: one, dmin: -1, codeFlip: 0x80,
		codes: each(32, func(i int) []place { return []place{{2 + i, 0, 8, 0}} })})
	add(Format{Type: gguf.TypeIQ4_NL, Block: 32, Sub: 32, Levels: codebook.ValuesIQ4[:], Scales: one, dmin: -1, codes: nibbles(2)})
	add(Format{Type: gguf.TypeMXFP4, Block: 32, Sub: 32, Levels: codebook.ValuesFP4[:], Scales: one, Exponents: true, dmin: -1, codes: nibbles(1)})

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
	add(Format{Type: gguf.TypeQ2_K, Block: 256, Sub: 16, Levels: levels(0, 3), Scales: [2]int{0, 15}, Mins: [2]int{0, 15}, d: 80, dmin: 82, codes: crumbs(16),
		scales: each(16, func(j int) []place { return []place{{j, 0, 4, 0}} }), mins: each(16, func(j int) []place { return []place{{j, 4, 4, 0}} })})
	add(Format{Type: gguf.TypeQ3_K, Block: 256, Sub: 16, Levels: levels(-4, 3), Scales: [2]int{-32, 31}, d: 108, dmin: -1, codes: masks(0, 2, crumbs(32)), scaleBias: -32,
		scales: each(16, func(j int) []place { return []place{{96 + j%8, j / 8 * 4, 4, 0}, {104 + j%4, j / 4 * 2, 2, 4}} })})
	add(Format{Type: gguf.TypeQ4_K, Block: 256, Sub: 32, Levels: levels(0, 15), Scales: [2]int{0, 63}, Mins: [2]int{0, 63}, d: 0, dmin: 2, codes: halves(16), scales: sixBits(4, 0), mins: sixBits(8, 4)})
	add(Format{Type: gguf.TypeQ5_K, Block: 256, Sub: 32, Levels: levels(0, 31), Scales: [2]int{0, 63}, Mins: [2]int{0, 63}, d: 0, dmin: 2, codes: masks(16, 4, halves(48)), scales: sixBits(4, 0), mins: sixBits(8, 4)})
	add(Format{Type: gguf.TypeQ6_K, Block: 256, Sub: 16, Levels: levels(-32, 31), Scales: [2]int{-128, 127}, d: 208, dmin: -1,
		codes: each(256, func(i int) []place {
			h, quarter, l := i/128, i%128/32, i%32
			return []place{{64*h + quarter&1*32 + l, quarter >> 1 * 4, 4, 0}, {128 + 32*h + l, 2 * quarter, 2, 4}}
		}),
		scales: each(16, func(j int) []place { return []place{{192 + j, 0, 8, 0}} })})
	add(Format{Type: gguf.TypeIQ4_XS, Block: 256, Sub: 32, Levels: codebook.ValuesIQ4[:], Scales: [2]int{-32, 31}, d: 0, dmin: -1, scaleBias: -32,
		codes:  each(256, func(i int) []place { return []place{{8 + i/32*16 + i%16, i % 32 / 16 * 4, 4, 0}} }),
		scales: each(8, func(j int) []place { return []place{{4 + j/2, j % 2 * 4, 4, 0}, {2 + j/4, j % 4 * 2, 2, 4}} })})
	return m
}()

func each(n int, f func(i int) []place) [][]place {
	all := make([][]place, n)
	for i := range all {
		all[i] = f(i)
	}
	return all
}

func levels(from, to int) []float32 {
	var all []float32
	for v := from; v <= to; v++ {
		all = append(all, float32(v))
	}
	return all
}
