package scalar

import (
	"math"

	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/search"
)

// IQ4_NL: 32 elements in 18 bytes, 4.5 bpw.
//
//	0  2  d   float16   scale
//	2 16  qs  nibbles   byte j: low element j, high element j+16; x = d*codebook.ValuesIQ4[q]
//
// The scale is that of fitIQ4, with weights importance*sqrt(twice the mean
// square of the block + x*x), or x*x without importance. Codes are the nearest
// for the scale before it is stored.
const BytesIQ4_NL = 18

func QuantizeIQ4_NL(dst []byte, src, importance []float32) {
	var w [pack.QK]float32
	var codes [pack.QK]uint8
	for off := 0; len(dst) > 0; off += pack.QK {
		x, b := src[off:][:pack.QK:pack.QK], dst[:BytesIQ4_NL:BytesIQ4_NL]
		dst = dst[BytesIQ4_NL:]
		if importance != nil {
			arith.ImportanceWeights(w[:], x, importance[off:][:pack.QK], float32(arith.SumSquares(x)*(2.0/pack.QK)))
		} else {
			arith.SquareWeights(w[:], x)
		}
		d := fitIQ4(x, w[:])
		pack.PutF16(b, d)
		encodeIQ4(arith.Inverse(d), x, codes[:])
		pack.Nibbles(b[2:][:16], codes[:16], codes[16:])
	}
}

// ReferenceIQ4_NL encodes without a search: the element of largest magnitude becomes -127, the others the nearest codes,
// and the scale is the one that fits these best, with weights x*x.
func ReferenceIQ4_NL(dst []byte, src []float32) {
	var w [pack.QK]float32
	var codes [pack.QK]uint8
	for off := 0; len(dst) > 0; off += pack.QK {
		x, b := src[off:][:pack.QK:pack.QK], dst[:BytesIQ4_NL:BytesIQ4_NL]
		dst = dst[BytesIQ4_NL:]
		var d float32
		clear(codes[:])
		if m := arith.Largest(x); arith.Abs(m) >= search.GroupMaxEps {
			id := 1 / (m / codebook.ValuesIQ4[0])
			arith.SquareWeights(w[:], x)
			if p, q := sumsIQ4(id, x, w[:]); q > 0 {
				d = p / q
			}
			encodeIQ4(id, x, codes[:])
		}
		pack.PutF16(b, d)
		pack.Nibbles(b[2:][:16], codes[:16], codes[16:])
	}
}

// indexIQ4[v+127] is the last i with codebook.ValuesIQ4[i] <= v, at most 14, for v up to
// 113.
var indexIQ4 = func() (index [241]uint8) {
	for v := range index {
		for i, value := range codebook.ValuesIQ4[:15] {
			if value <= float32(v-127) {
				index[v] = uint8(i)
			}
		}
	}
	return index
}()

// MiddlesIQ4[i] is halfway between entries i and i+1 of codebook.ValuesIQ4; half of any gap
// is exact.
var MiddlesIQ4 = func() (middles [16]float32) {
	for i, value := range codebook.ValuesIQ4[:15] {
		middles[i] = (value + codebook.ValuesIQ4[i+1]) / 2
	}
	return middles
}()

// nearestIQ4 returns the index of the entry of codebook.ValuesIQ4 nearest to v, the higher
// one on ties. NaN gives 15.
func nearestIQ4(v float32) uint8 {
	lowest, highest := codebook.ValuesIQ4[0], codebook.ValuesIQ4[15]
	if v <= lowest {
		return 0
	}
	if !(v < highest) {
		return 15
	}
	// v - lowest may round up to the next integer. If that is an entry, it is the nearest
	// one anyway. v - MiddlesIQ4[i] is exact near 0, and its sign decides without a
	// branch, which would be hard to predict.
	i := indexIQ4[int32(v-lowest)] & 15
	return i + 1 - uint8(math.Float32bits(v-MiddlesIQ4[i])>>31)
}

// encodeIQ4 sets codes to the indices of the entries of codebook.ValuesIQ4 nearest to
// id*x.
func encodeIQ4(id float32, x []float32, codes []uint8) {
	codes = codes[:len(x)]
	for i, v := range x {
		codes[i] = nearestIQ4(float32(id * v))
	}
}

// fitIQ4 returns the scale d with which d*codebook.ValuesIQ4 fits x best. It tries those
// that put the element of largest magnitude at -127 and, changing the range a
// little, around it. Values all below search.GroupMaxEps give 0.
func fitIQ4(x, w []float32) float32 {
	m := arith.Largest(x)
	if arith.Abs(m) < search.GroupMaxEps {
		return 0
	}
	var d float32
	a, b := sumsIQ4(1/(-m/codebook.ValuesIQ4[0]), x, w)
	if b > 0 {
		d = a / b
	}
	best := d * a
	for t := float32(-7); t <= 7; t++ {
		a, b := sumsIQ4((t+codebook.ValuesIQ4[0])/m, x, w)
		if b > 0 && a*a > best*b {
			d = a / b
			best = d * a
		}
	}
	return d
}

// sumsIQ4 returns sum(w*x*q) and sum(w*q*q) for the table entries q nearest to
// id*x.
func sumsIQ4(id float32, x, w []float32) (a, b float32) {
	w = w[:len(x)]
	for i, v := range x {
		q := codebook.ValuesIQ4[nearestIQ4(float32(id*v))&15]
		wq := float32(w[i] * q)
		a += float32(wq * v)
		b += float32(wq * q)
	}
	return a, b
}

func DequantizeIQ4_NL(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:pack.QK:pack.QK], src[:BytesIQ4_NL:BytesIQ4_NL]
		dst, src = dst[pack.QK:], src[BytesIQ4_NL:]
		decodeIQ4(y, pack.F16(b), b[2:])
	}
}

// decodeIQ4 decodes 16 bytes to 32 elements.
func decodeIQ4(y []float32, d float32, qs []byte) {
	lo, hi := y[:16], y[16:32]
	for j, q := range qs[:16] {
		lo[j] = d * codebook.ValuesIQ4[q&15]
		hi[j] = d * codebook.ValuesIQ4[q>>4]
	}
}
