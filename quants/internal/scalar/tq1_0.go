package scalar

import (
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
)

// TQ1_0: superblock of 256 elements in 54 bytes, 1.6875 bpw.
//
//	 0 48  qs  five trits per byte, x = d*(trit - 1); bytes 0..31 hold elements
//	           0..159, byte m element m + 32*k as trit k; bytes 32..47 elements
//	           160..239, byte 32+m element 160 + m + 16*k
//	48  4  qh  four trits per byte: byte j element 240 + j + 4*k as trit k
//	52  2  d   float16, scale
//
// Trits t0..t4 are the base 3 number v = t0*81 + t1*27 + t2*9 + t3*3 + t4 (t4 = 0
// in qh), stored as the fraction v/243 of 256, rounded up: trit k is then the
// whole part of 3 * (byte * 3^k mod 256) / 256. Scale and levels are those of
// TQ2_0.
const BytesTQ1_0 = 54

// tq1_0Runs describes where elements go: n bytes from off, byte m holding elements
// first + m + n*k for k < trits.
var tq1_0Runs = [3]struct{ off, n, first, trits int }{{0, 32, 0, 5}, {32, 16, 160, 5}, {48, 4, 240, 4}}

var pow3 = [5]uint8{1, 3, 9, 27, 81}

func QuantizeTQ1_0(dst []byte, src, _ []float32) {
	for len(src) > 0 {
		x, b := src[:pack.QK_K:pack.QK_K], dst[:BytesTQ1_0:BytesTQ1_0]
		src, dst = src[pack.QK_K:], dst[BytesTQ1_0:]
		id := ternaryScale(b[52:], x)
		for _, r := range &tq1_0Runs {
			for m := range r.n {
				var v uint8
				for k := range r.trits {
					v += uint8(arith.RoundAway(float32(x[r.first+m+r.n*k]*id))+1) * pow3[4-k]
				}
				b[r.off+m] = uint8((uint32(v)*256 + 242) / 243)
			}
		}
	}
}

func DequantizeTQ1_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:pack.QK_K:pack.QK_K], src[:BytesTQ1_0:BytesTQ1_0]
		dst, src = dst[pack.QK_K:], src[BytesTQ1_0:]
		d := pack.F16(b[52:])
		for _, r := range &tq1_0Runs {
			for m, q := range b[r.off:][:r.n] {
				for k := range r.trits {
					trit := uint32(q*pow3[k]) * 3 >> 8
					y[r.first+m+r.n*k] = float32(int32(trit)-1) * d
				}
			}
		}
	}
}
