package scalar

import (
	"encoding/binary"

	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/search"
)

// Q5_1: 32 elements in 24 bytes, 6 bpw.
//
//	0  2  d   float16   scale
//	2  2  m   float16   minimum
//	4  4  qh  uint32    bit j: fifth bit of element j
//	8 16  qs  nibbles   byte j: low element j, high element j+16; x = d*q + m
//
// As Q4_1 with 32 levels, but without importance no level is clamped: rounding
// cannot exceed 31.
const BytesQ5_1 = 24

var SearchQ5_1 = search.AsymParams{Levels: 31, R0: -0.9, Dr: 0.05, Steps: 36}

func QuantizeQ5_1(dst []byte, src, importance []float32) {
	var codes [pack.QK]uint8
	var w [pack.QK]float32
	var s float32
	if importance != nil {
		s = arith.SumSquares(src) / float32(len(src))
	}
	for off := 0; len(dst) > 0; off += pack.QK {
		x, b := src[off:][:pack.QK:pack.QK], dst[:BytesQ5_1:BytesQ5_1]
		dst = dst[BytesQ5_1:]
		var d, m float32
		if importance != nil {
			arith.ImportanceWeights(w[:], x, importance[off:][:pack.QK], s)
			d, m = search.Asym(&SearchQ5_1, x, w[:], codes[:])
			m = -m
		} else {
			mn, mx := search.BlockRange(x)
			d, m = (mx-mn)/31, mn
			id := arith.Inverse(d)
			for i, v := range x {
				codes[i] = uint8(arith.Truncate(float32((v-mn)*id) + 0.5))
			}
		}
		pack.PutF16(b, d)
		pack.PutF16(b[2:], m)
		binary.LittleEndian.PutUint32(b[4:], pack.FifthBits(&codes))
		pack.Nibbles(b[8:][:16], codes[:16], codes[16:])
	}
}

func DequantizeQ5_1(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:pack.QK:pack.QK], src[:BytesQ5_1:BytesQ5_1]
		dst, src = dst[pack.QK:], src[BytesQ5_1:]
		d, m, h := pack.F16(b), pack.F16(b[2:]), binary.LittleEndian.Uint32(b[4:])
		for j, q := range b[8:][:16] {
			y[j] = float32(d*float32(uint32(q&15)|h>>j&1<<4)) + m
			y[j+16] = float32(d*float32(uint32(q>>4)|h>>(j+16)&1<<4)) + m
		}
	}
}
