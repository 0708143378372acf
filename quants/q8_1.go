package quants

// Q8_1: 32 elements in 36 bytes, 9 bpw. Only decoded: it is the form in which
// kernels hold activations, no tool writes tensors of it.
//
//	0  2  d   float16   scale
//	2  2  s   float16   d * sum of the quants, not needed for decoding
//	4 32  qs  int8      x = d*q
const q8_1Bytes = 36

func dequantizeQ8_1(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:qk:qk], src[:q8_1Bytes:q8_1Bytes]
		dst, src = dst[qk:], src[q8_1Bytes:]
		d := getF16(b)
		for i, q := range b[4:][:qk] {
			y[i] = d * float32(int8(q))
		}
	}
}
