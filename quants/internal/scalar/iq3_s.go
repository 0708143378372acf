package scalar

import (
	"math"

	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
)

// IQ3_S: superblock of 256 elements, 8 sub-blocks of 8 groups of 4, in 110 bytes,
// 3.4375 bpw.
//
//	  0  2  d       float16, scale of the scale codes
//	  2 64  qs      byte g: low 8 bits of the index of group g in codebook.GridIQ3_S
//	 66  8  qh      bit 8 of the index: byte g/8, bit g mod 8
//	 74 32  signs   byte k: sign bits of elements 8*k .. 8*k+7
//	106  4  scales  4 bits each: byte j/2, low for even sub-blocks j
//
// x = d*(2*scale + 1)*level, negative where the sign bit is set. The search is
// codebook.GridSearch, around the largest magnitude, with weights importance*sqrt(twice
// the mean square of the superblock + x*x), or x*x without importance. Scales are
// coded against the largest; d is stored 3.3% larger than that.
//
// A sub-block of zeros has no bytes in qs and signs, which the decoder cannot know: the bytes of all later sub-blocks
// of its superblock move up by one sub-block (the end is zero bytes), while those of qh and scales stay. If a later
// sub-block has an element that is not zero, the superblock decodes wrongly. llama.cpp writes the same bytes;
// ZeroSubBlocksIQ3_S counts the cases.
const BytesIQ3_S = 110

var searchIQ3_S = codebook.GridSearch{
	Cb: &codebook.IQ3_S, Size: 32, SumFactor: 2, Limit: math.SmallestNonzeroFloat32,
	Top: 15, Step: 0.2, Steps: 9, OffGrid: true, Refit: codebook.RefitAny,
}

func QuantizeIQ3_S(dst []byte, src, importance []float32) {
	EncodeIQ3_S(dst, src, importance, (*codebook.GridSearch).Superblock)
}

func EncodeIQ3_S(dst []byte, src, importance []float32, superblock codebook.GridFitter) {
	fit := codebook.GridFits.Get().(*codebook.GridFit)
	defer codebook.GridFits.Put(fit)
	p := &searchIQ3_S
	p.Cb.Load()
	for off := 0; len(dst) > 0; off += pack.QK_K {
		x, b := src[off:][:pack.QK_K:pack.QK_K], dst[:BytesIQ3_S:BytesIQ3_S]
		dst = dst[BytesIQ3_S:]
		var qw []float32
		if importance != nil {
			qw = importance[off:][:pack.QK_K]
		}
		clear(b)
		if m := superblock(p, fit, x, qw); m != 0 {
			d := m / 31
			pack.PutF16(b, d*1.033)
			codebook.PackScaleCodes(b[106:], 1/d, fit.Scales[:8])
		}
		// Without any scale, indices and signs are stored anyway.
		at := 0 // sub-blocks written
		for j, zero := range fit.Zero[:8] {
			if zero {
				continue
			}
			for g, c := range fit.Codes[8*j:][:8] {
				i := p.Cb.Point(c)
				b[2+8*at+g] = uint8(i)
				b[66+j] |= uint8(i >> 8 << g)
			}
			copy(b[74+4*at:][:4], fit.Signs[4*j:])
			at++
		}
	}
}

// ZeroSubBlocksIQ3_S counts the displaced sub-blocks of quants.Codec.DisplacedSubBlocks.
func ZeroSubBlocksIQ3_S(src []float32) (n int) {
	for len(src) > 0 {
		x := src[:pack.QK_K:pack.QK_K]
		src = src[pack.QK_K:]
		zeros := 0
	subBlocks:
		for len(x) > 0 {
			sub := x[:pack.QK]
			x = x[pack.QK:]
			for _, v := range sub {
				if v != 0 {
					n += zeros
					zeros = 0
					continue subBlocks
				}
			}
			zeros++
		}
	}
	return n
}

func DequantizeIQ3_S(dst []float32, src []byte) {
	var values [8]float32
	for len(dst) > 0 {
		y, b := dst[:pack.QK_K:pack.QK_K], src[:BytesIQ3_S:BytesIQ3_S]
		dst, src = dst[pack.QK_K:], src[BytesIQ3_S:]
		d := pack.F16(b)
		for j := range 8 {
			ds := d * float32(1+2*(b[106+j/2]>>(j&1*4)&15))
			for l, q := range codebook.LevelsIQ3_S {
				values[l] = ds * q
			}
			high := uint(b[66+j])
			for g, q := range b[2+8*j:][:8] {
				code := codebook.GridIQ3_S[uint(q)|high>>g&1<<8]
				codebook.DecodeGroup4(y[32*j+4*g:], code, b[74+4*j+g/2]>>(g&1*4), &values)
			}
		}
	}
}
