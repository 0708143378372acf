package parts

import (
	"sync"

	"ggforge/quants/internal/codebook"
)

// Grid is the vectors of levels that a group can have: points with signs, or points that are
// shifted.
type Grid struct {
	Dim   int // elements of a group
	Signs Signs
	// Levels are those of an element of a point, without sign and shift, rising.
	Levels []int8

	book *codebook.Codebook
	once sync.Once
	near []float32
}

// Near is the number of points that are looked at for a group. With 16, blocks lose nothing to those that
// are chosen among all points.
const Near = 16

// Nearby returns the points nearest to each vector of levels: those of the vector that has
// levels Levels[l_i] are at Σ l_i len(Levels)^i · Dim·Near, first the first elements of all
// of them, then the second ones and so on. It is built at the first call.
func (g *Grid) Nearby() []float32 {
	g.once.Do(func() {
		codes := g.book.Nearby(Near)
		g.near = make([]float32, 0, len(codes)*g.Dim)
		for ; len(codes) > 0; codes = codes[Near:] {
			for i := range g.Dim {
				for _, code := range codes[:Near] {
					g.near = append(g.near, float32(g.Levels[digit(g.book, code, i)]))
				}
			}
		}
	})
	return g.near
}

// digit returns the level of element i in the code of a point.
func digit(book *codebook.Codebook, code uint16, i int) int {
	return int(code) >> (i * book.Bits) & (1<<book.Bits - 1)
}

// Signs is the kind of signs, or of the shift, that a point may have.
type Signs uint8

const (
	AnySigns     Signs = iota // each element has a sign
	EvenSigns                 // of each 8 elements an even number is negative
	ShiftBySub                // Shift is added to each level, or subtracted in a whole sub-block
	ShiftByGroup              // Shift is added to each level, or subtracted in a group
)

// Shift is added to levels or subtracted.
const Shift = 1

// Shifts reports whether points are shifted, and have no other signs than those of their
// levels.
func (g *Grid) Shifts() bool { return g.Signs >= ShiftBySub }

// IsDown reports whether a level of a shifted point is one that was subtracted from: the
// others are multiples of 8.
func IsDown(level int8) bool { return level&7 == 8-Shift }

// gridCoding is a coding of points by index.
type gridCoding struct {
	*Grid
	index  [][]place
	signs  [][]place // of each 8 elements; nil for none
	shifts [][]place // of each group; nil for none
	level  [256]uint16
}

// prepare sets the fields that follow from the levels.
func (c *gridCoding) prepare() {
	for l, v := range c.Levels {
		if c.Shifts() {
			c.level[uint8(v+Shift)], c.level[uint8(v-Shift)] = uint16(l), uint16(l)
		} else {
			c.level[uint8(v)], c.level[uint8(-v)] = uint16(l), uint16(l)
		}
	}
}

func (c *gridCoding) unpack(levels []int8, src []byte) {
	dim := c.Dim
	for g, p := range c.index {
		code := c.book.Points()[get(src, p)]
		for i := range dim {
			levels[g*dim+i] = c.Levels[digit(c.book, code, i)]
		}
		if c.shifts != nil {
			shift := int8(Shift - 2*Shift*get(src, c.shifts[g]))
			for i := range dim {
				levels[g*dim+i] += shift
			}
		}
	}
	for k, p := range c.signs {
		signs := uint8(get(src, p))
		if c.Signs == EvenSigns {
			signs = codebook.Signs7[signs]
		}
		for i := range 8 {
			if signs>>i&1 != 0 {
				levels[8*k+i] = -levels[8*k+i]
			}
		}
	}
}

func (c *gridCoding) pack(dst []byte, levels []int8) {
	c.book.Load()
	dim := c.Dim
	for g, p := range c.index {
		var code uint16
		down := 0
		for i, v := range levels[g*dim:][:dim] {
			code |= c.level[uint8(v)] << (i * c.book.Bits)
			if IsDown(v) {
				down = 1
			}
		}
		put(dst, p, c.book.Point(code))
		if c.shifts != nil { // groups that share one have the same
			put(dst, c.shifts[g], down)
		}
	}
	for k, p := range c.signs {
		signs := 0
		for i, v := range levels[8*k:][:8] {
			if v < 0 {
				signs |= 1 << i
			}
		}
		put(dst, p, signs) // of 7 places, the first 7
	}
}
