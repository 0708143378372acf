package quants

// Q4_1: 32 elements in 20 bytes, 5 bpw.
//
//	0  2  d   float16   scale
//	2  2  m   float16   minimum
//	4 16  qs  nibbles   byte j: low element j, high element j+16; x = d*q + m
//
// Without importance d and m span the range of the block and levels are rounded
// by adding 0.5 and truncating, before d and m are. With importance both are
// searched, with the weights of Q4_0; m is then not positive.
const q4_1Bytes = 20

var q4_1Search = asymSearch{levels: 15, r0: -0.9, dr: 0.05, steps: 36}

func quantizeQ4_1(dst []byte, src, importance []float32) {
	var codes [qk]uint8
	var w [qk]float32
	var s float32
	if importance != nil {
		s = sumSquares(src) / float32(len(src))
	}
	for off := 0; len(dst) > 0; off += qk {
		x, b := src[off:][:qk:qk], dst[:q4_1Bytes:q4_1Bytes]
		dst = dst[q4_1Bytes:]
		var d, m float32
		if importance != nil {
			importanceWeights(w[:], x, importance[off:][:qk], s)
			d, m = searchAsym(&q4_1Search, x, w[:], codes[:])
			m = -m
		} else {
			mn, mx := blockRange(x)
			d, m = (mx-mn)/15, mn
			id := inverse(d)
			for i, v := range x {
				codes[i] = uint8(min(15, int8(tr(float32((v-mn)*id)+0.5))))
			}
		}
		putF16(b, d)
		putF16(b[2:], m)
		packNibbles(b[4:][:16], codes[:16], codes[16:])
	}
}

func dequantizeQ4_1(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:qk:qk], src[:q4_1Bytes:q4_1Bytes]
		dst, src = dst[qk:], src[q4_1Bytes:]
		d, m := getF16(b), getF16(b[2:])
		for j, q := range b[4:][:16] {
			y[j] = float32(d*float32(q&15)) + m
			y[j+16] = float32(d*float32(q>>4)) + m
		}
	}
}
