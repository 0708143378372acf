package scalar

import (
	"encoding/binary"

	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/search"
)

// IQ2_XXS: superblock of 256 elements, 8 sub-blocks of 4 groups of 8, in 66
// bytes, 2.0625 bpw.
//
//	0  2  d   float16, scale of the scale codes
//	2 64  qs  a sub-block takes 8 bytes: 4 x uint8 index in codebook.GridIQ2_XXS, then a
//	          uint32 of 4 x 7 sign bits, from bit 0, and the scale code in bits
//	          28-31
//
// x = d*(scale + 0.5)/4*level, negative where the sign bit is set; the eighth
// sign makes their number even. The search is codebook.GridSearch, around the scale of a
// fit by levels 0..4 without codebook, with weights importance*sqrt(mean square
// of the superblock + x*x). Scales are coded against the largest before d is
// stored. There is no search without importance.
const BytesIQ2_XXS = 66

var searchIQ2_XXS = codebook.GridSearch{
	Cb: &codebook.IQ2_XXS, Size: 32, SumFactor: 1, EvenSigns: true, Limit: search.GroupMaxEps,
	FitFirst: true, Top: 5, Step: 0.1, Steps: 6, Refit: codebook.RefitAlways,
}

func QuantizeIQ2_XXS(dst []byte, src, importance []float32) {
	EncodeIQ2_XXS(dst, src, importance, (*codebook.GridSearch).Superblock)
}

func EncodeIQ2_XXS(dst []byte, src, importance []float32, superblock codebook.GridFitter) {
	fit := codebook.GridFits.Get().(*codebook.GridFit)
	defer codebook.GridFits.Put(fit)
	p := &searchIQ2_XXS
	p.Cb.Load()
	for off := 0; len(dst) > 0; off += pack.QK_K {
		x, b := src[off:][:pack.QK_K:pack.QK_K], dst[:BytesIQ2_XXS:BytesIQ2_XXS]
		dst = dst[BytesIQ2_XXS:]
		clear(b)
		m := superblock(p, fit, x, importance[off:][:pack.QK_K])
		if m == 0 {
			continue
		}
		d := m / 31
		pack.PutF16(b, d)
		id := 1 / d
		for j, s := range fit.Scales[:8] {
			q := b[2+8*j:][:8]
			word := uint32(codebook.ScaleCode(15, id, s)) << 28
			for g := range 4 {
				q[g] = uint8(p.Cb.Point(fit.Codes[4*j+g]))
				word |= uint32(fit.Signs[4*j+g]&127) << (7 * g)
			}
			binary.LittleEndian.PutUint32(q[4:], word)
		}
	}
}

func DequantizeIQ2_XXS(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:pack.QK_K:pack.QK_K], src[:BytesIQ2_XXS:BytesIQ2_XXS]
		dst, src = dst[pack.QK_K:], src[BytesIQ2_XXS:]
		d := pack.F16(b)
		for j := range 8 {
			q := b[2+8*j:][:8]
			word := binary.LittleEndian.Uint32(q[4:])
			values := codebook.ValuesIQ2(d, uint8(word>>28))
			for g := range 4 {
				codebook.DecodeGroup8(y[32*j+8*g:], codebook.GridIQ2_XXS[q[g]],
					codebook.Signs7[word>>(7*g)&127], &values)
			}
		}
	}
}
