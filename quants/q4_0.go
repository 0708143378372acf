package quants

// Q4_0: 32 elements in 18 bytes, 4.5 bpw.
//
//	0  2  d   float16   scale, of either sign
//	2 16  qs  nibbles   byte j: low element j, high element j+16; x = d*(q - 8)
//
// Without importance the element of largest magnitude becomes level -8 and the
// others are rounded by adding 8.5 and truncating. With importance the scale is
// searched with weights importance*sqrt(mean square of the row + x*x).
const q4_0Bytes = 18

func quantizeQ4_0(dst []byte, src, importance []float32) {
	var codes [qk]uint8
	var w [qk]float32
	var s float32
	if importance != nil {
		s = sumSquares(src) / float32(len(src))
	}
	for off := 0; len(dst) > 0; off += qk {
		x, b := src[off:][:qk:qk], dst[:q4_0Bytes:q4_0Bytes]
		dst = dst[q4_0Bytes:]
		var d float32
		if importance != nil {
			importanceWeights(w[:], x, importance[off:][:qk], s)
			d = searchSym(8, x, w[:], codes[:])
		} else {
			d = largest(x) / -8
			id := inverse(d)
			for i, v := range x {
				codes[i] = uint8(min(15, int8(tr(float32(v*id)+8.5))))
			}
		}
		putF16(b, d)
		packNibbles(b[2:][:16], codes[:16], codes[16:])
	}
}

func dequantizeQ4_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:qk:qk], src[:q4_0Bytes:q4_0Bytes]
		dst, src = dst[qk:], src[q4_0Bytes:]
		d := getF16(b)
		for j, q := range b[2:][:16] {
			y[j] = d * float32(int32(q&15)-8)
			y[j+16] = d * float32(int32(q>>4)-8)
		}
	}
}
