package eval

import (
	"encoding/binary"
	"math"

	"ggforge/fault"
)

// Measured holds per-position results of one model for a range of chunks, from which a Comparison is computed.
type Measured struct {
	chunks    int
	positions []positionResult  // by position
	layers    [][]stateDistance // by layer and position; nil if the base has other layers, or none
}

// positionResult is the result at one position.
type positionResult struct{ base, model, divergence, deltaP, top, top5 float64 }

// rounding is how far below 0 a loss or a divergence may be by rounding: saved log-probabilities of a base have 16
// bits.
const rounding = 0.01

// possible reports whether the numbers are in the range of their quantities.
func (d *positionResult) possible() bool {
	within := func(v, lo, hi float64) bool { return v >= lo && v <= hi } // not of a NaN
	return within(d.base, -rounding, math.MaxFloat64) && within(d.model, -rounding, math.MaxFloat64) &&
		within(d.divergence, -rounding, math.MaxFloat64) &&
		within(d.deltaP, -1-rounding, 1+rounding) && within(d.top, 0, 1) && within(d.top5, 0, 1+rounding)
}

// stateDistance is the distance of a state from the base's.
type stateDistance struct{ square, base float64 } // |x-b|², |b|²

// Append adds the results of the next chunks of the same run. Another number of positions per
// chunk, or of layers, is an error of kind fault.Refused.
func (x *Measured) Append(next *Measured) error {
	if next.chunks == 0 {
		return nil
	}
	if x.chunks > 0 && (len(x.positions)*next.chunks != len(next.positions)*x.chunks ||
		len(x.layers) != len(next.layers)) {
		return fault.Errorf(fault.Refused, "%d positions of %d chunks and %d layers, those before have %d of %d and %d",
			len(next.positions), next.chunks, len(next.layers), len(x.positions), x.chunks, len(x.layers))
	}
	if x.layers == nil && x.chunks == 0 && next.layers != nil {
		x.layers = make([][]stateDistance, len(next.layers))
	}
	x.chunks += next.chunks
	x.positions = append(x.positions, next.positions...)
	for i, list := range next.layers {
		x.layers[i] = append(x.layers[i], list...)
	}
	return nil
}

// Comparison returns the figures.
func (x *Measured) Comparison() *Comparison {
	c := summarize(x.positions, x.chunks)
	for _, list := range x.layers {
		c.Layers = append(c.Layers, distance(list))
	}
	return c
}

// measuredHead is the size of the head of an encoded Measured: chunks, positions, layers, positions of a layer.
const measuredHead = 4 * 8

// MarshalBinary returns x as 64-bit little-endian numbers: the numbers of chunks, positions, layers
// and positions of a layer, then six float64 for each position, and layer by
// layer two for each of its positions.
func (x *Measured) MarshalBinary() ([]byte, error) {
	each := 0
	if len(x.layers) > 0 {
		each = len(x.layers[0])
	}
	b := make([]byte, 0, measuredHead+48*len(x.positions)+16*each*len(x.layers))
	for _, n := range []int{x.chunks, len(x.positions), len(x.layers), each} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	add := func(list ...float64) {
		for _, v := range list {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
	}
	for _, d := range x.positions {
		add(d.base, d.model, d.divergence, d.deltaP, d.top, d.top5)
	}
	for _, list := range x.layers {
		for _, a := range list {
			add(a.square, a.base)
		}
	}
	return b, nil
}

// UnmarshalBinary sets x to the Measured that MarshalBinary has encoded as b. Other bytes are an error of kind
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
	*x = Measured{chunks: int(chunks), positions: make([]positionResult, positions)}
	for i := range x.positions {
		d := positionResult{next(), next(), next(), next(), next(), next()}
		if x.positions[i] = d; !d.possible() {
			return fault.Errorf(fault.Broken,
				"position %d: %+v are not valid losses, divergence, probability change and shares", i,
				d)
		}
	}
	for range layers {
		list := make([]stateDistance, each)
		for i := range list {
			a := stateDistance{next(), next()}
			if list[i] = a; !(a.square >= 0 && a.square <= math.MaxFloat64 && a.base >= 0 &&
				a.base <= math.MaxFloat64) {
				return fault.Errorf(fault.Broken, "sums of squares of %v and %v, want finite ones, not below 0",
					a.square, a.base)
			}
		}
		x.layers = append(x.layers, list)
	}
	return nil
}

// Size returns the number of chunks, and of positions in all of them.
func (x *Measured) Size() (chunks, positions int) { return x.chunks, len(x.positions) }
