package eval

import (
	"encoding/binary"
	"math"

	"ggforge/fault"
)

// Measured is what is found of a model at the positions of some chunks, of which a
// Comparison is made.
type Measured struct {
	chunks int
	all    []difference // by position
	far    [][]apart    // by layer and position; nil if the base has other layers, or none
}

// difference is what is found at a position.
type difference struct{ base, model, divergence, right, top, top5 float64 }

// rounding is how far below 0 a loss or a divergence may be by rounding: what is saved of a base has 16 bits.
const rounding = 0.01

// possible reports whether the numbers can be what they are to be.
func (d *difference) possible() bool {
	within := func(v, lo, hi float64) bool { return v >= lo && v <= hi } // not of a NaN
	return within(d.base, -rounding, math.MaxFloat64) && within(d.model, -rounding, math.MaxFloat64) &&
		within(d.divergence, -rounding, math.MaxFloat64) &&
		within(d.right, -1-rounding, 1+rounding) && within(d.top, 0, 1) && within(d.top5, 0, 1+rounding)
}

// apart is how far a state is from the base's.
type apart struct{ square, base float64 } // |x-b|², |b|²

// Append adds what was found at the chunks that come next, of the same run. What is of another
// number of positions for each chunk, or of layers, is an error of kind fault.Refused.
func (x *Measured) Append(next *Measured) error {
	if next.chunks == 0 {
		return nil
	}
	if x.chunks > 0 && (len(x.all)*next.chunks != len(next.all)*x.chunks || len(x.far) != len(next.far)) {
		return fault.Errorf(fault.Refused, "%d positions of %d chunks and %d layers, those before have %d of %d and %d",
			len(next.all), next.chunks, len(next.far), len(x.all), x.chunks, len(x.far))
	}
	if x.far == nil && x.chunks == 0 && next.far != nil {
		x.far = make([][]apart, len(next.far))
	}
	x.chunks += next.chunks
	x.all = append(x.all, next.all...)
	for i, list := range next.far {
		x.far[i] = append(x.far[i], list...)
	}
	return nil
}

// Comparison returns the figures.
func (x *Measured) Comparison() *Comparison {
	c := summarize(x.all, x.chunks)
	for _, list := range x.far {
		c.Layers = append(c.Layers, distance(list))
	}
	return c
}

// measuredHead is what an encoded Measured begins with: chunks, positions, layers, positions
// of a layer.
const measuredHead = 4 * 8

// MarshalBinary returns x as 64-bit little-endian numbers: how many chunks, positions, layers
// and positions of a layer there are, then six float64 for each position, and layer by
// layer two for each of its positions.
func (x *Measured) MarshalBinary() ([]byte, error) {
	each := 0
	if len(x.far) > 0 {
		each = len(x.far[0])
	}
	b := make([]byte, 0, measuredHead+48*len(x.all)+16*each*len(x.far))
	for _, n := range []int{x.chunks, len(x.all), len(x.far), each} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	add := func(list ...float64) {
		for _, v := range list {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
	}
	for _, d := range x.all {
		add(d.base, d.model, d.divergence, d.right, d.top, d.top5)
	}
	for _, list := range x.far {
		for _, a := range list {
			add(a.square, a.base)
		}
	}
	return b, nil
}

// UnmarshalBinary sets x to what MarshalBinary has made b of. Anything else is an error of kind
// fault.Broken.
func (x *Measured) UnmarshalBinary(b []byte) error {
	if len(b) < measuredHead {
		return fault.Errorf(fault.Broken, "%d bytes, want at least %d", len(b), measuredHead)
	}
	var head [4]uint64
	for i := range head {
		head[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	chunks, positions, layers, each := head[0], head[1], head[2], head[3]
	rest := uint64(len(b) - measuredHead)
	// Each number is bounded by the bytes before two are multiplied.
	if chunks > positions || positions > rest/48 || positions > 0 && (chunks == 0 || positions%chunks != 0) ||
		layers > rest/16 || each > rest/16/max(1, layers) || layers > 0 != (each > 0) ||
		48*positions+16*layers*each != rest {
		return fault.Errorf(fault.Broken, "%d bytes with %d positions of %d chunks, %d positions of %d layers", len(b),
			positions, chunks, each, layers)
	}
	b = b[measuredHead:]
	next := func() float64 {
		v := math.Float64frombits(binary.LittleEndian.Uint64(b))
		b = b[8:]
		return v
	}
	*x = Measured{chunks: int(chunks), all: make([]difference, positions)}
	for i := range x.all {
		d := difference{next(), next(), next(), next(), next(), next()}
		if x.all[i] = d; !d.possible() {
			return fault.Errorf(fault.Broken, "position %d: %+v are no losses, divergence, probability and shares", i,
				d)
		}
	}
	for range layers {
		list := make([]apart, each)
		for i := range list {
			a := apart{next(), next()}
			if list[i] = a; !(a.square >= 0 && a.square <= math.MaxFloat64 && a.base >= 0 &&
				a.base <= math.MaxFloat64) {
				return fault.Errorf(fault.Broken, "sums of squares of %v and %v, want finite ones, not below 0",
					a.square, a.base)
			}
		}
		x.far = append(x.far, list)
	}
	return nil
}

// Size returns how many chunks it is of, and positions in all of them.
func (x *Measured) Size() (chunks, positions int) { return x.chunks, len(x.all) }
