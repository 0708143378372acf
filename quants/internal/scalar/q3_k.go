package scalar

import (
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/search"
)

// Q3_K: superblock of 256 elements, 16 sub-blocks of 16, in 110 bytes, 3.4375 bpw.
//
//	  0 32  hmask   third bits: element j is bit j/32 of byte j mod 32
//	 32 64  qs      low 2 bits, placed as in Q2_K
//	 96 12  scales  16 x 6 bits, see PackScalesQ3_K
//	108  2  d       float16, scale of the scales
//
// x = d*(scale - 32)*(q - 4). Without importance the scale of a sub-block is
// searched with weights x*x and coded against the scale of largest magnitude,
// which gets code 0. With importance both the scales (weights
// importance*sqrt(twice the mean square of the superblock + x*x)) and their
// codes are searched. Levels are rounded (half to even) again for the stored
// scale; where that is 0, those of the search stay.
const BytesQ3_K = 110

func QuantizeQ3_K(dst []byte, src, importance []float32) {
	var (
		codes          [pack.QK_K]uint8
		w              [16]float32
		scales, totals [16]float32
		cs             [16]uint8
	)
	for off := 0; len(dst) > 0; off += pack.QK_K {
		x, b := src[off:][:pack.QK_K:pack.QK_K], dst[:BytesQ3_K:BytesQ3_K]
		dst = dst[BytesQ3_K:]
		var d float32
		if importance != nil {
			qw, s := importance[off:][:pack.QK_K], float32(2*arith.SumSquares(x)/pack.QK_K)
			for j := range scales {
				sub := x[16*j:][:16]
				arith.ImportanceWeights(w[:], sub, qw[16*j:][:16], s)
				totals[j] = arith.Sum(w[:])
				scales[j] = search.Sym(4, sub, w[:], codes[16*j:][:16])
			}
			d = pack.PutF16(b[108:], search.Sym(32, scales[:], totals[:], cs[:]))
			PackScalesQ3_K(b[96:108], &cs)
		} else {
			for j := range scales {
				scales[j] = search.Sym3(4, x[16*j:][:16], codes[16*j:][:16])
			}
			CodeScalesQ3_K(b, scales[:])
			d = pack.F16(b[108:])
		}
		for j := range scales {
			search.RelevelSym(4, d*float32(int32(UnpackScaleQ3_K(b[96:108], j))-32), x[16*j:][:16], codes[16*j:][:16])
		}
		hmask := b[:32]
		clear(hmask)
		for i, c := range codes {
			hmask[i&31] |= c >> 2 & 1 << (i >> 5)
		}
		pack.Crumbs(b[32:96], &codes)
	}
}

// CodeScalesQ3_K codes the 16 scales of a block against the one of largest
// magnitude, without a search, and writes codes and d to the block.
func CodeScalesQ3_K(b []byte, scales []float32) {
	var (
		cs [16]uint8
		d  float32
	)
	clear(b[96:108])
	if m := arith.Largest(scales); m != 0 {
		step := -32 / m
		for j, s := range scales {
			cs[j] = uint8(min(max(int8(arith.RoundEven(float32(step*s))), -32), 31) + 32)
		}
		d = 1 / step
		PackScalesQ3_K(b[96:108], &cs)
	}
	pack.PutF16(b[108:], d)
}

// PackScalesQ3_K stores 16 codes of 6 bits in 12 bytes: the low 4 bits of
// codes 0..7 in the low halves of bytes 0..7, those of codes 8..15 in the high
// halves; the high 2 bits of code j in byte 8 + j mod 4 at bit 2*(j/4).
func PackScalesQ3_K(dst []byte, c *[16]uint8) {
	dst = dst[:12]
	pack.Nibbles(dst[:8], c[:8], c[8:])
	for j := range 4 {
		dst[8+j] = c[j]>>4&3 | c[j+4]>>4&3<<2 | c[j+8]>>4&3<<4 | c[j+12]>>4&3<<6
	}
}

// UnpackScaleQ3_K returns code j.
func UnpackScaleQ3_K(src []byte, j int) uint8 {
	src = src[:12]
	return src[j&7]>>(j>>3*4)&15 | src[8+j&3]>>(j>>2*2)&3<<4
}

func DequantizeQ3_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:pack.QK_K:pack.QK_K], src[:BytesQ3_K:BytesQ3_K]
		dst, src = dst[pack.QK_K:], src[BytesQ3_K:]
		d := pack.F16(b[108:])
		for j := range 16 {
			ds := d * float32(int32(UnpackScaleQ3_K(b[96:108], j))-32)
			// Low bits as in Q2_K; the third bit is bit j/2 of the mask byte.
			qs, shift := b[32+j>>3*32+j&1*16:][:16], j>>1&3*2
			hm, bit := b[j&1*16:][:16], j>>1
			for i, q := range qs {
				y[16*j+i] = ds * float32(int32(q>>shift&3|hm[i]>>bit&1<<2)-4)
			}
		}
	}
}
