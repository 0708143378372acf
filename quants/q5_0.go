package quants

import "encoding/binary"

// Q5_0: 32 elements in 22 bytes, 5.5 bpw.
//
//	0  2  d   float16   scale, of either sign
//	2  4  qh  uint32    bit j: fifth bit of element j
//	6 16  qs  nibbles   byte j: low element j, high element j+16; x = d*(q - 16)
//
// As Q4_0 with 32 levels: the element of largest magnitude becomes level -16.
const q5_0Bytes = 22

func quantizeQ5_0(dst []byte, src, importance []float32) {
	var codes [qk]uint8
	var w [qk]float32
	var s float32
	if importance != nil {
		s = sumSquares(src) / float32(len(src))
	}
	for off := 0; len(dst) > 0; off += qk {
		x, b := src[off:][:qk:qk], dst[:q5_0Bytes:q5_0Bytes]
		dst = dst[q5_0Bytes:]
		var d float32
		if importance != nil {
			importanceWeights(w[:], x, importance[off:][:qk], s)
			d = searchSym(16, x, w[:], codes[:])
		} else {
			d = largest(x) / -16
			id := inverse(d)
			for i, v := range x {
				codes[i] = uint8(min(31, int8(tr(float32(v*id)+16.5))))
			}
		}
		putF16(b, d)
		binary.LittleEndian.PutUint32(b[2:], packFifthBits(&codes))
		packNibbles(b[6:][:16], codes[:16], codes[16:])
	}
}

func dequantizeQ5_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:qk:qk], src[:q5_0Bytes:q5_0Bytes]
		dst, src = dst[qk:], src[q5_0Bytes:]
		d, h := getF16(b), binary.LittleEndian.Uint32(b[2:])
		for j, q := range b[6:][:16] {
			y[j] = d * float32(int32(uint32(q&15)|h>>j&1<<4)-16)
			y[j+16] = d * float32(int32(uint32(q>>4)|h>>(j+16)&1<<4)-16)
		}
	}
}
