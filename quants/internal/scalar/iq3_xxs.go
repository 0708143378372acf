package scalar

import (
	"encoding/binary"

	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
)

// IQ3_XXS: superblock of 256 elements, 8 sub-blocks of 8 groups of 4, in 98
// bytes, 3.0625 bpw.
//
//	 0  2  d      float16, scale of the scale codes
//	 2 64  qs     byte g: index of group g in codebook.GridIQ3_XXS
//	66 32  signs  a sub-block takes a uint32 of 4 x 7 sign bits, from bit 0, each
//	              for 8 elements, and the scale code in bits 28-31
//
// x = d*(scale + 0.5)/2*level, negative where the sign bit is set; the eighth
// sign makes their number even. The search is codebook.GridSearch, around the largest
// magnitude, with weights importance*sqrt(twice the mean square of the superblock
// + x*x), or x*x without importance. Scales are coded against the largest; d is
// stored 1.25% larger than that.
const BytesIQ3_XXS = 98

var searchIQ3_XXS = codebook.GridSearch{
	Cb: &codebook.IQ3_XXS, Size: 32, SumFactor: 2, EvenSigns: true, Limit: 1e-8,
	Top: 15, Step: 0.2, Steps: 15, Refit: codebook.RefitOffGrid,
}

func QuantizeIQ3_XXS(dst []byte, src, importance []float32) {
	EncodeIQ3_XXS(dst, src, importance, (*codebook.GridSearch).Superblock)
}

func EncodeIQ3_XXS(dst []byte, src, importance []float32, superblock codebook.GridFitter) {
	fit := codebook.GridFits.Get().(*codebook.GridFit)
	defer codebook.GridFits.Put(fit)
	p := &searchIQ3_XXS
	p.Cb.Load()
	for off := 0; len(dst) > 0; off += pack.QK_K {
		x, b := src[off:][:pack.QK_K:pack.QK_K], dst[:BytesIQ3_XXS:BytesIQ3_XXS]
		dst = dst[BytesIQ3_XXS:]
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
		pack.PutF16(b, d*1.0125)
		id := 1 / d
		for g, c := range fit.Codes {
			b[2+g] = uint8(p.Cb.Point(c))
		}
		for j, s := range fit.Scales[:8] {
			word := uint32(codebook.ScaleCode(15, id, s)) << 28
			for g := range 4 {
				word |= uint32(fit.Signs[4*j+g]&127) << (7 * g)
			}
			binary.LittleEndian.PutUint32(b[66+4*j:], word)
		}
	}
}

func DequantizeIQ3_XXS(dst []float32, src []byte) {
	var values [8]float32
	for len(dst) > 0 {
		y, b := dst[:pack.QK_K:pack.QK_K], src[:BytesIQ3_XXS:BytesIQ3_XXS]
		dst, src = dst[pack.QK_K:], src[BytesIQ3_XXS:]
		d := pack.F16(b)
		for j := range 8 {
			word := binary.LittleEndian.Uint32(b[66+4*j:])
			ds := d * (0.5 + float32(word>>28)) * 0.5
			for l, q := range codebook.LevelsIQ3_XXS {
				values[l] = ds * q
			}
			for g := range 4 {
				y, q, signs := y[32*j+8*g:], b[2+8*j+2*g:], codebook.Signs7[word>>(7*g)&127]
				codebook.DecodeGroup4(y, codebook.GridIQ3_XXS[q[0]], signs, &values)
				codebook.DecodeGroup4(y[4:], codebook.GridIQ3_XXS[q[1]], signs>>4, &values)
			}
		}
	}
}
