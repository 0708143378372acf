package scalar

import (
	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
)

// IQ2_S: superblock of 256 elements, 16 sub-blocks of 2 groups of 8, in 82 bytes,
// 2.5625 bpw.
//
//	 0  2  d       float16, scale of the scale codes
//	 2 32  qs      low 8 bits of the index of group g in codebook.GridIQ2_S
//	34 32  signs   byte g: sign bits of group g
//	66  8  qh      high 2 bits of the index: byte g/4, bit 2*(g mod 4)
//	74  8  scales  4 bits each: byte j/2, low for even sub-blocks j
//
// x = d*(scale + 0.5)/4*level, negative where the sign bit is set. The search is
// codebook.GridSearch, around the largest magnitude, with weights importance*sqrt(twice
// the mean square of the superblock + x*x), or half the mean square + x*x. Scales
// are coded against the largest; d is stored 1.25% smaller than that.
const BytesIQ2_S = 82

var searchIQ2_S = codebook.GridSearch{
	Cb: &codebook.IQ2_S, Size: 16, SumFactor: 2, PlainFactor: 0.25, Limit: 1e-8,
	Top: 5, Step: 0.1, Steps: 9, Refit: codebook.RefitOffGrid,
}

func QuantizeIQ2_S(dst []byte, src, importance []float32) {
	EncodeIQ2_S(dst, src, importance, (*codebook.GridSearch).Superblock)
}

func EncodeIQ2_S(dst []byte, src, importance []float32, superblock codebook.GridFitter) {
	fit := codebook.GridFits.Get().(*codebook.GridFit)
	defer codebook.GridFits.Put(fit)
	p := &searchIQ2_S
	p.Cb.Load()
	for off := 0; len(dst) > 0; off += pack.QK_K {
		x, b := src[off:][:pack.QK_K:pack.QK_K], dst[:BytesIQ2_S:BytesIQ2_S]
		dst = dst[BytesIQ2_S:]
		var qw []float32
		if importance != nil {
			qw = importance[off:][:pack.QK_K]
		}
		clear(b)
		m := superblock(p, fit, x, qw)
		if m == 0 {
			continue
		}
		d := m / 31
		pack.PutF16(b, d*0.9875)
		copy(b[34:66], fit.Signs[:])
		codebook.PackScaleCodes(b[74:], 1/d, fit.Scales[:])
		for g := range 32 {
			i := p.Cb.Point(fit.Codes[g])
			b[2+g] = uint8(i)
			b[66+g/4] |= uint8(i >> 8 << (2 * (g & 3)))
		}
	}
}

func DequantizeIQ2_S(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:pack.QK_K:pack.QK_K], src[:BytesIQ2_S:BytesIQ2_S]
		dst, src = dst[pack.QK_K:], src[BytesIQ2_S:]
		d := pack.F16(b)
		for j := range 16 {
			values := codebook.ValuesIQ2(d, b[74+j/2]>>(j&1*4)&15)
			for g := 2 * j; g < 2*j+2; g++ {
				i := uint(b[2+g]) | uint(b[66+g/4])>>(2*(g&3))&3<<8
				codebook.DecodeGroup8(y[8*g:], codebook.GridIQ2_S[i], b[34+g], &values)
			}
		}
	}
}
