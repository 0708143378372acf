package precision

import (
	"encoding/binary"
	"math"
	"sync"

	"ggforge/checkpoint/safetensors"
	"ggforge/internal/kernel/half"
)

// codeValues are the values of 8-bit codes.
type codeValues struct {
	table [256]float32
	// vectors is scaledCodes for the codes of whole vector steps; it returns their number. scale and zero are bits of
	// float32. nil without vectors.
	vectors func(out, codes []byte, scale, zero uint32) int
}

// scaledCodes stores (value - zero) * scale for each code, as little-endian float32; len(out) = 4*len(codes). If zeros
// and values are integers below 2^24, only the product rounds.
func (v *codeValues) scaledCodes(out, codes []byte, scale, zero float32) {
	if v.vectors != nil {
		n := v.vectors(out, codes, bits(scale), bits(zero))
		out, codes = out[4*n:], codes[n:]
	}
	table := &v.table
	for len(codes) >= 4 && len(out) >= 16 {
		put(out, 0, (table[codes[0]]-zero)*scale)
		put(out, 1, (table[codes[1]]-zero)*scale)
		put(out, 2, (table[codes[2]]-zero)*scale)
		put(out, 3, (table[codes[3]]-zero)*scale)
		codes, out = codes[4:], out[16:]
	}
	for i, c := range codes {
		put(out, i, (table[c]-zero)*scale)
	}
}

// look stores the values of codes, as little-endian float32; len(out) = 4*len(codes).
func look(out, codes []byte, values *[256]float32) {
	for len(codes) >= 4 && len(out) >= 16 {
		put(out, 0, values[codes[0]])
		put(out, 1, values[codes[1]])
		put(out, 2, values[codes[2]])
		put(out, 3, values[codes[3]])
		codes, out = codes[4:], out[16:]
	}
	for i, c := range codes {
		put(out, i, values[c])
	}
}

// wholeNumbers are the values of unsigned bytes.
var wholeNumbers = sync.OnceValue(func() *codeValues {
	v := &codeValues{vectors: vectorsUnsigned}
	for c := range v.table {
		v.table[c] = float32(c)
	}
	return v
})

// rounding rounds to a floating-point type.
type rounding struct {
	one func(float32) float32
	all func([]float32) // in place
	// products is scaled for whole vector steps, like codeValues.vectors; nil without vectors.
	products func(x []byte, scale uint32) int
}

// scaled rounds the numbers of x, which are little-endian float32, and their products
// with scale, in place.
func (r *rounding) scaled(x []byte, scale float32) {
	if r.products != nil {
		x = x[4*r.products(x, bits(scale)):]
	}
	for ; len(x) >= 4; x = x[4:] {
		v := math.Float32frombits(binary.LittleEndian.Uint32(x))
		put(x, 0, r.one(r.one(v)*scale))
	}
}

// roundings has the rounding of each type of scales.
var roundings = sync.OnceValue(func() map[safetensors.DType]*rounding {
	return map[safetensors.DType]*rounding{
		safetensors.F32: {func(v float32) float32 { return v }, func([]float32) {}, nil},
		safetensors.F16: {half.RoundF16, func(x []float32) {
			for i, v := range x {
				x[i] = half.RoundF16(v)
			}
		}, productsF16},
		safetensors.BF16: {roundBF16, func(x []float32) {
			for i, v := range x {
				x[i] = half.FromBF16(half.ToBF16(v))
			}
		}, productsBF16},
	}
})

// Vectors for roundings of the two types, nil for none.
var productsF16, productsBF16 func(x []byte, scale uint32) int

// Vectors for codes of three kinds, nil for none: see codeValues.
var vectorsUnsigned, vectorsSigned, vectorsE4M3 func(out, codes []byte, scale, zero uint32) int
