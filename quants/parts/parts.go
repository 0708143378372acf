// Package parts decodes blocks of quantized types to scales, minima and levels, and encodes them again. It is for
// searches that choose these in their own way.
//
// A value is d·factor·level - dmin·min, in float32, each product rounded: as decoders compute
// it (package quants). The factor is that of the code of a sub-block's scale. Levels are whole
// numbers: any of a list for each element, or, where codes stand for several elements at
// once (IQ1, IQ2, IQ3), vectors of a grid.
package parts

import (
	"math"

	"ggforge/gguf"
	"ggforge/internal/kernel/half"
)

// Format describes the blocks of a type.
type Format struct {
	Type       gguf.Type
	Block, Sub int // elements of a block and of each of its sub-blocks
	// Levels are the possible levels of elements, rising; nil if there is a Grid.
	Levels []int8
	// Grid has the possible levels of groups of elements; nil for Levels.
	Grid *Grid
	// Scales are the codes of the scales of sub-blocks, from the least to the largest: {1, 1}
	// where a block has one scale, d.
	Scales [2]int
	// Mins are the codes of minima: {0, 0} where there are none, {1, 1} where dmin is the only
	// one.
	Mins [2]int

	step    bool      // levels are 1 apart
	factors []float32 // by code of a scale less bias; nil for the code itself
	bias    int
	d, dmin []place // nil for none: d is 1 then
	scales  [][]place
	signed  bool      // codes of scales are two's complement
	mins    [][]place // of each sub-block
	inverse bool      // blocks store -dmin
	levels  coding
}

// coding is how levels are stored.
type coding interface {
	unpack(levels []int8, src []byte)
	pack(dst []byte, levels []int8)
}

// place locates bits of a code: count bits of a byte, from bit shift on, are the bits of the code from bit at on.
type place struct{ byte, shift, count, at int }

// Block is a block taken apart. Of each array only as many elements as the format has are used.
type Block struct {
	D, Min float32 // d and dmin, as they are stored
	Scales [16]int16
	Mins   [16]int16
	Levels [256]int8
}

// Of returns the format of a type, nil if its blocks cannot be taken apart.
func Of(t gguf.Type) *Format { return formats[t] }

// Subs returns the number of sub-blocks of a block.
func (f *Format) Subs() int { return f.Block / f.Sub }

// HasMins reports whether blocks have minima.
func (f *Format) HasMins() bool { return f.Mins[1] > 0 }

// HasD reports whether blocks have a scale besides those of sub-blocks.
func (f *Format) HasD() bool { return f.d != nil }

// Gap returns the least distance of two levels; 0 if there is a Grid.
func (f *Format) Gap() float32 {
	gap := math.MaxInt
	for i := range f.Levels[:max(0, len(f.Levels)-1)] {
		gap = min(gap, int(f.Levels[i+1])-int(f.Levels[i]))
	}
	if f.Grid != nil {
		return 0
	}
	return float32(gap)
}

// Unpack sets b from a block.
func (f *Format) Unpack(b *Block, src []byte) {
	src = src[:f.Type.BlockBytes()]
	b.D, b.Min = 1, 0
	if f.d != nil {
		b.D = half.FromF16(uint16(get(src, f.d)))
	}
	if f.dmin != nil {
		if b.Min = half.FromF16(uint16(get(src, f.dmin))); f.inverse {
			b.Min = -b.Min
		}
	}
	for j := range f.Subs() {
		b.Scales[j], b.Mins[j] = int16(f.Scales[0]), int16(f.Mins[0])
		if f.scales != nil {
			b.Scales[j] = int16(get(src, f.scales[j]) + f.bias)
			if f.signed {
				b.Scales[j] = int16(int8(b.Scales[j]))
			}
		}
		if f.mins != nil {
			b.Mins[j] = int16(get(src, f.mins[j]))
		}
	}
	f.levels.unpack(b.Levels[:f.Block], src)
}

// Pack writes b as a block. D and Min are values that RoundD and RoundMin return, levels
// are levels of the format.
func (f *Format) Pack(dst []byte, b *Block) {
	dst = dst[:f.Type.BlockBytes()]
	clear(dst)
	if f.d != nil {
		put(dst, f.d, int(half.ToF16(b.D)))
	}
	if f.dmin != nil {
		m := b.Min
		if f.inverse {
			m = -m
		}
		put(dst, f.dmin, int(half.ToF16(m)))
	}
	for j := range f.Subs() {
		if f.scales != nil {
			put(dst, f.scales[j], int(b.Scales[j])-f.bias)
		}
		if f.mins != nil {
			put(dst, f.mins[j], int(b.Mins[j]))
		}
	}
	f.levels.pack(dst, b.Levels[:f.Block])
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

// Factor returns the factor of d for the code of a scale.
func (f *Format) Factor(code int16) float32 {
	if f.factors != nil {
		return f.factors[int(code)-f.bias]
	}
	return float32(code)
}

// Scale returns the factor of the levels of sub-block j, and the minimum that is subtracted.
func (f *Format) Scale(b *Block, j int) (scale, min float32) {
	return b.D * f.Factor(b.Scales[j]), b.Min * float32(b.Mins[j])
}

// Values sets dst to the values of a block.
func (f *Format) Values(dst []float32, b *Block) {
	for j := range f.Subs() {
		scale, min := f.Scale(b, j)
		for i := j * f.Sub; i < (j+1)*f.Sub; i++ {
			dst[i] = float32(scale*float32(b.Levels[i])) - min
		}
	}
}

// Nearest returns the level whose value in a sub-block of this scale and minimum is the
// nearest to x, or close to it, for a format without a grid. scale is not 0.
func (f *Format) Nearest(x, scale, min float32) int8 {
	level := (x + min) / scale
	if f.step {
		n := float32(len(f.Levels) - 1)
		return f.Levels[0] + int8(uint8(max(0, min32(n, level-float32(f.Levels[0])+0.5))))
	}
	lo, hi := 0, len(f.Levels)-1
	for lo < hi { // the first level whose middle to the next one is not below
		mid := (lo + hi) / 2
		if level > float32(int(f.Levels[mid])+int(f.Levels[mid+1]))/2 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return f.Levels[lo]
}

// min32 is min for numbers; it returns a if one of them is NaN.
func min32(a, b float32) float32 {
	if b < a {
		return b
	}
	return a
}

// RoundD returns the value nearest to d that can be stored.
func (f *Format) RoundD(d float32) float32 { return half.FromF16(half.ToF16(d)) }

// RoundMin is RoundD for dmin.
func (f *Format) RoundMin(m float32) float32 { return half.FromF16(half.ToF16(m)) }
