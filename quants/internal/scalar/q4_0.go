package scalar

import (
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/search"
)

// Q4_0: 32 elements in 18 bytes, 4.5 bpw.
//
//	0  2  d   float16   scale, of either sign
//	2 16  qs  nibbles   byte j: low element j, high element j+16; x = d*(q - 8)
//
// Without importance the element of largest magnitude becomes level -8 and the
// others are rounded by adding 8.5 and truncating. With importance the scale is
// searched with weights importance*sqrt(mean square of the row + x*x).
const BytesQ4_0 = 18

func QuantizeQ4_0(dst []byte, src, importance []float32) {
	var codes [pack.QK]uint8
	var w [pack.QK]float32
	var s float32
	if importance != nil {
		s = arith.SumSquares(src) / float32(len(src))
	}
	for off := 0; len(dst) > 0; off += pack.QK {
		x, b := src[off:][:pack.QK:pack.QK], dst[:BytesQ4_0:BytesQ4_0]
		dst = dst[BytesQ4_0:]
		var d float32
		if importance != nil {
			arith.ImportanceWeights(w[:], x, importance[off:][:pack.QK], s)
			d = search.Sym(8, x, w[:], codes[:])
		} else {
			d = arith.Largest(x) / -8
			id := arith.Inverse(d)
			for i, v := range x {
				codes[i] = uint8(min(15, int8(arith.Truncate(float32(v*id)+8.5))))
			}
		}
		pack.PutF16(b, d)
		pack.Nibbles(b[2:][:16], codes[:16], codes[16:])
	}
}

func DequantizeQ4_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:pack.QK:pack.QK], src[:BytesQ4_0:BytesQ4_0]
		dst, src = dst[pack.QK:], src[BytesQ4_0:]
		d := pack.F16(b)
		for j, q := range b[2:][:16] {
			y[j] = d * float32(int32(q&15)-8)
			y[j+16] = d * float32(int32(q>>4)-8)
		}
	}
}
