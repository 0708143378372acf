package scalar

import (
	"encoding/binary"

	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/search"
)

// IQ2_XS: superblock of 256 elements, 16 sub-blocks of 2 groups of 8, in 74
// bytes, 2.3125 bpw.
//
//	 0  2  d       float16, scale of the scale codes
//	 2 64  qs      a group takes a uint16: index in codebook.GridIQ2_XS (9 bits), 7 sign bits
//	66  8  scales  4 bits each: byte j/2, low for even sub-blocks j
//
// x = d*(scale + 0.5)/4*level, negative where the sign bit is set; the eighth
// sign makes their number even. The search is codebook.GridSearch, around the largest
// magnitude, with weights importance*sqrt(mean square of the superblock + x*x).
// Scales are coded against the largest before d is stored. There is no search
// without importance.
const BytesIQ2_XS = 74

var searchIQ2_XS = codebook.GridSearch{
	Cb: &codebook.IQ2_XS, Size: 16, SumFactor: 1, EvenSigns: true, Limit: search.GroupMaxEps,
	Top: 5, Step: 0.1, Steps: 9, Refit: codebook.RefitOffGrid,
}

func QuantizeIQ2_XS(dst []byte, src, importance []float32) {
	EncodeIQ2_XS(dst, src, importance, (*codebook.GridSearch).Superblock)
}

func EncodeIQ2_XS(dst []byte, src, importance []float32, superblock codebook.GridFitter) {
	fit := codebook.GridFits.Get().(*codebook.GridFit)
	defer codebook.GridFits.Put(fit)
	p := &searchIQ2_XS
	p.Cb.Load()
	for off := 0; len(dst) > 0; off += pack.QK_K {
		x, b := src[off:][:pack.QK_K:pack.QK_K], dst[:BytesIQ2_XS:BytesIQ2_XS]
		dst = dst[BytesIQ2_XS:]
		clear(b)
		m := superblock(p, fit, x, importance[off:][:pack.QK_K])
		if m == 0 {
			continue
		}
		d := m / 31
		pack.PutF16(b, d)
		codebook.PackScaleCodes(b[66:], 1/d, fit.Scales[:])
		for g, signs := range fit.Signs {
			binary.LittleEndian.PutUint16(b[2+2*g:], uint16(p.Cb.Point(fit.Codes[g]))|uint16(signs&127)<<9)
		}
	}
}

func DequantizeIQ2_XS(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:pack.QK_K:pack.QK_K], src[:BytesIQ2_XS:BytesIQ2_XS]
		dst, src = dst[pack.QK_K:], src[BytesIQ2_XS:]
		d := pack.F16(b)
		for j := range 16 {
			values := codebook.ValuesIQ2(d, b[66+j/2]>>(j&1*4)&15)
			for g := 2 * j; g < 2*j+2; g++ {
				q := binary.LittleEndian.Uint16(b[2+2*g:])
				codebook.DecodeGroup8(y[8*g:], codebook.GridIQ2_XS[q&511], codebook.Signs7[q>>9], &values)
			}
		}
	}
}
