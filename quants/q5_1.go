package quants

import "encoding/binary"

// Q5_1: 32 elements in 24 bytes, 6 bpw.
//
//	0  2  d   float16   scale
//	2  2  m   float16   minimum
//	4  4  qh  uint32    bit j: fifth bit of element j
//	8 16  qs  nibbles   byte j: low element j, high element j+16; x = d*q + m
//
// As Q4_1 with 32 levels, but without importance no level is clamped: rounding
// cannot exceed 31.
const q5_1Bytes = 24

var q5_1Search = asymSearch{levels: 31, r0: -0.9, dr: 0.05, steps: 36}

func quantizeQ5_1(dst []byte, src, importance []float32) {
	var codes [qk]uint8
	var w [qk]float32
	var s float32
	if importance != nil {
		s = sumSquares(src) / float32(len(src))
	}
	for off := 0; len(dst) > 0; off += qk {
		x, b := src[off:][:qk:qk], dst[:q5_1Bytes:q5_1Bytes]
		dst = dst[q5_1Bytes:]
		var d, m float32
		if importance != nil {
			importanceWeights(w[:], x, importance[off:][:qk], s)
			d, m = searchAsym(&q5_1Search, x, w[:], codes[:])
			m = -m
		} else {
			mn, mx := blockRange(x)
			d, m = (mx-mn)/31, mn
			id := inverse(d)
			for i, v := range x {
				codes[i] = uint8(tr(float32((v-mn)*id) + 0.5))
			}
		}
		putF16(b, d)
		putF16(b[2:], m)
		binary.LittleEndian.PutUint32(b[4:], packFifthBits(&codes))
		packNibbles(b[8:][:16], codes[:16], codes[16:])
	}
}

func dequantizeQ5_1(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:qk:qk], src[:q5_1Bytes:q5_1Bytes]
		dst, src = dst[qk:], src[q5_1Bytes:]
		d, m, h := getF16(b), getF16(b[2:]), binary.LittleEndian.Uint32(b[4:])
		for j, q := range b[8:][:16] {
			y[j] = float32(d*float32(uint32(q&15)|h>>j&1<<4)) + m
			y[j+16] = float32(d*float32(uint32(q>>4)|h>>(j+16)&1<<4)) + m
		}
	}
}
