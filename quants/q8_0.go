package quants

// Q8_0: 32 elements in 34 bytes, 8.5 bpw.
//
//	0  2  d   float16   scale
//	2 32  qs  int8      x = d*q
//
// d is the largest magnitude / 127; levels are rounded half away from zero with
// the scale before it is stored. Importance is ignored.
const q8_0Bytes = 34

func quantizeQ8_0(dst []byte, src, _ []float32) {
	for len(src) > 0 {
		x, b := src[:qk:qk], dst[:q8_0Bytes:q8_0Bytes]
		src, dst = src[qk:], dst[q8_0Bytes:]
		d := abs32(largest(x)) / 127
		id := inverse(d)
		putF16(b, d)
		qs := b[2:][:qk]
		for i, v := range x {
			// When d is so small that id is infinite, this gives -2^31 and
			// the byte is 0.
			qs[i] = uint8(ra(float32(v * id)))
		}
	}
}

func dequantizeQ8_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:qk:qk], src[:q8_0Bytes:q8_0Bytes]
		dst, src = dst[qk:], src[q8_0Bytes:]
		d := getF16(b)
		for i, q := range b[2:][:qk] {
			y[i] = d * float32(int8(q))
		}
	}
}
