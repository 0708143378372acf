package scalar

import (
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/search"
)

// Q2_K: superblock of 256 elements, 16 sub-blocks of 16, in 84 bytes, 2.625 bpw.
//
//	 0 16  scales  sub-block j: scale code in bits 0-3, min code in bits 4-7
//	16 64  qs      2 bits each; a half of 128 elements takes 32 bytes, byte l
//	               holds elements l, l+32, l+64, l+96 at bits 0, 2, 4, 6
//	80  2  d       float16, scale of the scale codes
//	82  2  dmin    float16, scale of the min codes
//
// x = d*scale*q - dmin*min. Scale and min of a sub-block are searched with
// weights |x| and absolute errors, then coded against their maximum. With
// importance the weights are importance*sqrt(mean square of the superblock +
// x*x), errors are squared, and the codes are searched too, each sub-block
// weighing as much as its elements. Levels are rounded (half to even) again for
// the stored scale and min; where the stored scale is 0, those of the search
// stay.
const BytesQ2_K = 84

var (
	SearchQ2_K           = search.AsymParams{Levels: 3, R0: -0.5, Dr: 0.1, Steps: 15, AbsErr: true}
	SearchImportanceQ2_K = search.AsymParams{Levels: 3, R0: -0.9, Dr: 0.05, Steps: 36}
)

func QuantizeQ2_K(dst []byte, src, importance []float32) {
	var (
		codes                [pack.QK_K]uint8
		w                    [16]float32
		scales, mins, totals [16]float32
		cs, cm               [16]uint8
	)
	for off := 0; len(dst) > 0; off += pack.QK_K {
		x, b := src[off:][:pack.QK_K:pack.QK_K], dst[:BytesQ2_K:BytesQ2_K]
		dst = dst[BytesQ2_K:]
		var d, dmin float32
		if importance != nil {
			qw, s := importance[off:][:pack.QK_K], float32(arith.SumSquares(x)/pack.QK_K)
			for j := range scales {
				sub := x[16*j:][:16]
				arith.ImportanceWeights(w[:], sub, qw[16*j:][:16], s)
				totals[j] = arith.Sum(w[:])
				scales[j], mins[j] = search.Asym(&SearchImportanceQ2_K, sub, w[:], codes[16*j:][:16])
			}
			d = search.Pos(15, scales[:], totals[:], cs[:])
			dmin = search.Pos(15, mins[:], totals[:], cm[:])
		} else {
			for j := range scales {
				sub := x[16*j:][:16]
				for i, v := range sub {
					w[i] = arith.Abs(v)
				}
				scales[j], mins[j] = search.Asym(&SearchQ2_K, sub, w[:], codes[16*j:][:16])
			}
			d = search.CodeMax(15, scales[:], cs[:])
			dmin = search.CodeMax(15, mins[:], cm[:])
		}
		for j := range cs {
			b[j] = cs[j] | cm[j]<<4
		}
		d, dmin = pack.PutF16(b[80:], d), pack.PutF16(b[82:], dmin)
		for j := range cs {
			search.RelevelMin(3, d*float32(b[j]&15), float32(dmin*float32(b[j]>>4)), x[16*j:][:16], codes[16*j:][:16])
		}
		pack.Crumbs(b[16:80], &codes)
	}
}

func DequantizeQ2_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:pack.QK_K:pack.QK_K], src[:BytesQ2_K:BytesQ2_K]
		dst, src = dst[pack.QK_K:], src[BytesQ2_K:]
		d, dmin := pack.F16(b[80:]), pack.F16(b[82:])
		for j := range 16 {
			// Sub-block j: bits 2*(j/2 mod 4) of 16 bytes of half j/8.
			ds, ms := d*float32(b[j]&15), float32(dmin*float32(b[j]>>4))
			qs, shift := b[16+j>>3*32+j&1*16:][:16], j>>1&3*2
			for i, q := range qs {
				y[16*j+i] = float32(ds*float32(q>>shift&3)) - ms
			}
		}
	}
}
