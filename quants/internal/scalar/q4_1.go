package scalar

import (
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/search"
)

// Q4_1: 32 elements in 20 bytes, 5 bpw.
//
//	0  2  d   float16   scale
//	2  2  m   float16   minimum
//	4 16  qs  nibbles   byte j: low element j, high element j+16; x = d*q + m
//
// Without importance d and m span the range of the block and levels are rounded
// by adding 0.5 and truncating, before d and m are. With importance both are
// searched, with the weights of Q4_0; m is then not positive.
const BytesQ4_1 = 20

var SearchQ4_1 = search.AsymParams{Levels: 15, R0: -0.9, Dr: 0.05, Steps: 36}

func QuantizeQ4_1(dst []byte, src, importance []float32) {
	var codes [pack.QK]uint8
	var w [pack.QK]float32
	var s float32
	if importance != nil {
		s = arith.SumSquares(src) / float32(len(src))
	}
	for off := 0; len(dst) > 0; off += pack.QK {
		x, b := src[off:][:pack.QK:pack.QK], dst[:BytesQ4_1:BytesQ4_1]
		dst = dst[BytesQ4_1:]
		var d, m float32
		if importance != nil {
			arith.ImportanceWeights(w[:], x, importance[off:][:pack.QK], s)
			d, m = search.Asym(&SearchQ4_1, x, w[:], codes[:])
			m = -m
		} else {
			mn, mx := search.BlockRange(x)
			d, m = (mx-mn)/15, mn
			id := arith.Inverse(d)
			for i, v := range x {
				codes[i] = uint8(min(15, int8(arith.Truncate(float32((v-mn)*id)+0.5))))
			}
		}
		pack.PutF16(b, d)
		pack.PutF16(b[2:], m)
		pack.Nibbles(b[4:][:16], codes[:16], codes[16:])
	}
}

func DequantizeQ4_1(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:pack.QK:pack.QK], src[:BytesQ4_1:BytesQ4_1]
		dst, src = dst[pack.QK:], src[BytesQ4_1:]
		d, m := pack.F16(b), pack.F16(b[2:])
		for j, q := range b[4:][:16] {
			y[j] = float32(d*float32(q&15)) + m
			y[j+16] = float32(d*float32(q>>4)) + m
		}
	}
}
