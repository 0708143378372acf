package parts

import "ggforge/quants/internal/codebook"

// Grid is the vectors of levels that a group can have: points with signs, or points that are
// shifted.
type Grid struct {
	Dim int // elements of a group
	// Points are the vectors without signs and shifts, element by element: [Dim][points].
	Points [][]int8
	Signs  Signs
}

// Signs says what can be done to a point.
type Signs uint8

const (
	AnySigns     Signs = iota // each element has a sign
	EvenSigns                 // of each 8 elements an even number is negative
	ShiftBySub                // Shift is added to each level, or subtracted in a whole sub-block
	ShiftByGroup              // Shift is added to each level, or subtracted in a group
)

// Shift is what is added to levels or subtracted.
const Shift = 1

// Shifts reports whether points are shifted, and have no other signs than those of their
// levels.
func (g *Grid) Shifts() bool { return g.Signs >= ShiftBySub }

// gridCoding is a coding of points by index.
type gridCoding struct {
	book   *codebook.Codebook
	values []int8 // of the levels of the book
	index  [][]place
	signs  [][]place // of each 8 elements; nil for none
	shifts [][]place // of each group; nil for none
	even   bool      // the last of 8 signs is not stored
	level  [256]uint16
}

func newGrid(g Grid, c *gridCoding) *Grid {
	g.Dim = c.book.Dim
	c.even = g.Signs == EvenSigns
	for range g.Dim {
		g.Points = append(g.Points, nil)
	}
	for _, code := range c.book.Points() {
		for i := range g.Dim {
			g.Points[i] = append(g.Points[i], c.values[c.digit(code, i)])
		}
	}
	for l, v := range c.values {
		for shift := range 2 {
			if c.shifts == nil {
				c.level[uint8(v)], c.level[uint8(-v)] = uint16(l), uint16(l)
			} else {
				c.level[uint8(v+Shift-2*Shift*int8(shift))] = uint16(l)
			}
		}
	}
	return &g
}

// digit returns the level of element i in the code of a point.
func (c *gridCoding) digit(code uint16, i int) int {
	return int(code) >> (i * c.book.Bits) & (1<<c.book.Bits - 1)
}

func (c *gridCoding) unpack(levels []int8, src []byte) {
	dim := c.book.Dim
	for g, p := range c.index {
		code := c.book.Points()[get(src, p)]
		for i := range dim {
			levels[g*dim+i] = c.values[c.digit(code, i)]
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
		if c.even {
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
	dim := c.book.Dim
	for g, p := range c.index {
		var code uint16
		down := 0
		for i, v := range levels[g*dim:][:dim] {
			code |= c.level[uint8(v)] << (i * c.book.Bits)
			if v&7 == 8-Shift {
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
