package scalar

import (
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/search"
)

// Q6_K: superblock of 256 elements, 16 sub-blocks of 16, in 210 bytes, 6.5625 bpw.
//
//	  0 128  ql      low 4 bits; a half of 128 elements takes 64 bytes: byte l
//	                 holds elements l (low) and l+64 (high), byte 32+l holds
//	                 l+32 and l+96
//	128  64  qh      high 2 bits, placed as the 2 bits of Q2_K
//	192  16  scales  int8
//	208   2  d       float16, scale of the scales
//
// x = d*scale*(q - 32). The scale of a sub-block is searched with the bare
// importance, or x*x, as weights, and coded against the scale of largest
// magnitude, which gets -128. Levels are rounded (half to even) again for the
// stored scale; where that is 0, those of the search stay. If no scale reaches
// search.GroupMaxEps the whole block is zero bytes.
const BytesQ6_K = 210

func QuantizeQ6_K(dst []byte, src, importance []float32) {
	var (
		codes  [pack.QK_K]uint8
		high   [pack.QK_K]uint8
		w      [16]float32
		scales [16]float32
	)
	for off := 0; len(dst) > 0; off += pack.QK_K {
		x, b := src[off:][:pack.QK_K:pack.QK_K], dst[:BytesQ6_K:BytesQ6_K]
		dst = dst[BytesQ6_K:]
		for j := range scales {
			sub := x[16*j:][:16]
			if importance != nil {
				copy(w[:], importance[off+16*j:][:16])
			} else {
				for i, v := range sub {
					w[i] = v * v
				}
			}
			scales[j] = search.Sym(32, sub, w[:], codes[16*j:][:16])
		}
		m := arith.Largest(scales[:])
		if arith.Abs(m) < search.GroupMaxEps {
			clear(b)
			continue
		}
		step := -128 / m
		d := pack.PutF16(b[208:], 1/step)
		sc := b[192:208]
		for j, s := range scales {
			sc[j] = uint8(min(127, arith.RoundEven(float32(step*s))))
			search.RelevelSym(32, d*float32(int8(sc[j])), x[16*j:][:16], codes[16*j:][:16])
		}
		for h := range 2 {
			ql, c := b[64*h:][:64], codes[128*h:][:128]
			pack.Nibbles(ql[:32], c[:32], c[64:96])
			pack.Nibbles(ql[32:], c[32:64], c[96:])
		}
		for i, c := range codes {
			high[i] = c >> 4
		}
		pack.Crumbs(b[128:192], &high)
	}
}

func DequantizeQ6_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:pack.QK_K:pack.QK_K], src[:BytesQ6_K:BytesQ6_K]
		dst, src = dst[pack.QK_K:], src[BytesQ6_K:]
		d := pack.F16(b[208:])
		for j := range 16 {
			ds := d * float32(int8(b[192+j]))
			h, quarter, odd := j>>3, j>>1&3, j&1*16
			ql, lowShift := b[64*h+quarter&1*32+odd:][:16], quarter>>1*4
			qh, highShift := b[128+32*h+odd:][:16], quarter*2
			for i, q := range ql {
				y[16*j+i] = ds * float32(int32(q>>lowShift&15|qh[i]>>highShift&3<<4)-32)
			}
		}
	}
}
