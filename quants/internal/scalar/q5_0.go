package scalar

import (
	"encoding/binary"

	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/search"
)

// Q5_0: 32 elements in 22 bytes, 5.5 bpw.
//
//	0  2  d   float16   scale, of either sign
//	2  4  qh  uint32    bit j: fifth bit of element j
//	6 16  qs  nibbles   byte j: low element j, high element j+16; x = d*(q - 16)
//
// As Q4_0 with 32 levels: the element of largest magnitude becomes level -16.
const BytesQ5_0 = 22

func QuantizeQ5_0(dst []byte, src, importance []float32) {
	var codes [pack.QK]uint8
	var w [pack.QK]float32
	var s float32
	if importance != nil {
		s = arith.SumSquares(src) / float32(len(src))
	}
	for off := 0; len(dst) > 0; off += pack.QK {
		x, b := src[off:][:pack.QK:pack.QK], dst[:BytesQ5_0:BytesQ5_0]
		dst = dst[BytesQ5_0:]
		var d float32
		if importance != nil {
			arith.ImportanceWeights(w[:], x, importance[off:][:pack.QK], s)
			d = search.Sym(16, x, w[:], codes[:])
		} else {
			d = arith.Largest(x) / -16
			id := arith.Inverse(d)
			for i, v := range x {
				codes[i] = uint8(min(31, int8(arith.Truncate(float32(v*id)+16.5))))
			}
		}
		pack.PutF16(b, d)
		binary.LittleEndian.PutUint32(b[2:], pack.FifthBits(&codes))
		pack.Nibbles(b[6:][:16], codes[:16], codes[16:])
	}
}

func DequantizeQ5_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:pack.QK:pack.QK], src[:BytesQ5_0:BytesQ5_0]
		dst, src = dst[pack.QK:], src[BytesQ5_0:]
		d, h := pack.F16(b), binary.LittleEndian.Uint32(b[2:])
		for j, q := range b[6:][:16] {
			y[j] = d * float32(int32(uint32(q&15)|h>>j&1<<4)-16)
			y[j+16] = d * float32(int32(uint32(q>>4)|h>>(j+16)&1<<4)-16)
		}
	}
}
