package quants

// TQ2_0: superblock of 256 elements in 66 bytes, 2.0625 bpw.
//
//	 0 64  qs  2 bits, placed as the 2 bits of Q2_K; x = d*(q - 1)
//	64  2  d   float16, scale
//
// d is the largest magnitude; levels are -1, 0 and 1, rounded half away from
// zero with the scale before it is stored. Level 2 decodes but is never
// written. Importance is ignored.
const tq2_0Bytes = 66

func quantizeTQ2_0(dst []byte, src, _ []float32) {
	var codes [qkK]uint8
	for len(src) > 0 {
		x, b := src[:qkK:qkK], dst[:tq2_0Bytes:tq2_0Bytes]
		src, dst = src[qkK:], dst[tq2_0Bytes:]
		id := ternaryScale(b[64:], x)
		for i, v := range x {
			codes[i] = uint8(ra(float32(v*id)) + 1)
		}
		packCrumbs(b[:64], &codes)
	}
}

func dequantizeTQ2_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:qkK:qkK], src[:tq2_0Bytes:tq2_0Bytes]
		dst, src = dst[qkK:], src[tq2_0Bytes:]
		d := getF16(b[64:])
		for h := range 2 {
			y := y[128*h:][:128]
			for l, q := range b[32*h:][:32] {
				for k := range 4 {
					y[32*k+l] = float32(int32(q>>(2*k)&3)-1) * d
				}
			}
		}
	}
}
