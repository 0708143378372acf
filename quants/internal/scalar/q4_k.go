package scalar

import (
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/search"
)

// Q4_K: superblock of 256 elements, 8 sub-blocks of 32, in 144 bytes, 4.5 bpw.
//
//	 0   2  d       float16, scale of the scale codes
//	 2   2  dmin    float16, scale of the min codes
//	 4  12  scales  8 scale and 8 min codes of 6 bits, see pack.ScaleMin
//	16 128  qs      nibbles; 64 elements take 32 bytes, byte l holds element l
//	                (low) and l+32 (high)
//
// x = d*scale*q - dmin*min; for the choice of codes see fitScaleMin.
const BytesQ4_K = 144

var FitQ4_K = ScaleMinFit{
	Plain:    search.AsymParams{Levels: 15, R0: -1, Dr: 0.1, Steps: 20},
	Weighted: search.AsymParams{Levels: 15, R0: -0.9, Dr: 0.05, Steps: 36},
}

func QuantizeQ4_K(dst []byte, src, importance []float32) {
	var codes [pack.QK_K]uint8
	for off := 0; len(dst) > 0; off += pack.QK_K {
		x, b := src[off:][:pack.QK_K:pack.QK_K], dst[:BytesQ4_K:BytesQ4_K]
		dst = dst[BytesQ4_K:]
		var qw []float32
		if importance != nil {
			qw = importance[off:][:pack.QK_K]
		}
		fitScaleMin(&FitQ4_K, b[:16], x, qw, &codes)
		for g := range 4 {
			pack.Nibbles(b[16+32*g:][:32], codes[64*g:][:32], codes[64*g+32:][:32])
		}
	}
}

// ScaleMinFit are the parameters of fitScaleMin.
type ScaleMinFit struct {
	Plain    search.AsymParams // without importance
	Weighted search.AsymParams // with importance
	Clamp    bool              // with importance: cut scale and min codes to 6 bits
}

// fitScaleMin is the common part of Q4_K and Q5_K: it chooses d, dmin, the 6-bit
// codes and the levels of one superblock x, writes the first 16 bytes of its
// block to head and the levels to codes.
//
// Without importance, scale and min of each sub-block are searched with weights
// sqrt(mean square of the sub-block) + |x|, then coded against their maximum.
// With importance the weights are importance*sqrt(twice the mean square of the
// superblock + x*x), and the codes are searched too, each sub-block weighing as
// much as its elements. Levels are rounded (half to even) again for the stored
// scale and min; where the stored scale is 0, those of the search stay.
func fitScaleMin(p *ScaleMinFit, head []byte, x, importance []float32, codes *[pack.QK_K]uint8) {
	var (
		w                    [32]float32
		scales, mins, totals [8]float32
		cs, cm               [8]uint8
		d, dmin              float32
	)
	if importance != nil {
		s := float32(2 * arith.SumSquares(x) / pack.QK_K)
		for j := range scales {
			sub := x[32*j:][:32]
			arith.ImportanceWeights(w[:], sub, importance[32*j:][:32], s)
			totals[j] = arith.Sum(w[:])
			scales[j], mins[j] = search.Asym(&p.Weighted, sub, w[:], codes[32*j:][:32])
		}
		d = search.Pos(63, scales[:], totals[:], cs[:])
		dmin = search.Pos(63, mins[:], totals[:], cm[:])
	} else {
		for j := range scales {
			sub := x[32*j:][:32]
			av := arith.Sqrt(arith.SumSquares(sub) / 32)
			for i, v := range sub {
				w[i] = av + arith.Abs(v)
			}
			scales[j], mins[j] = search.Asym(&p.Plain, sub, w[:], codes[32*j:][:32])
		}
		d = search.CodeMax(63, scales[:], cs[:])
		dmin = search.CodeMax(63, mins[:], cm[:])
	}
	if importance == nil || p.Clamp {
		for j := range cs {
			cs[j], cm[j] = min(cs[j], 63), min(cm[j], 63)
		}
	}
	d, dmin = pack.PutF16(head, d), pack.PutF16(head[2:], dmin)
	pack.ScaleMin(head[4:16], &cs, &cm)
	for j := range cs {
		s, m := pack.UnpackScaleMin(head[4:16], j)
		search.RelevelMin(p.Plain.Levels, d*float32(s), float32(dmin*float32(m)), x[32*j:][:32], codes[32*j:][:32])
	}
}

func DequantizeQ4_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:pack.QK_K:pack.QK_K], src[:BytesQ4_K:BytesQ4_K]
		dst, src = dst[pack.QK_K:], src[BytesQ4_K:]
		d, dmin := pack.F16(b), pack.F16(b[2:])
		for g := range 4 {
			s0, m0 := pack.UnpackScaleMin(b[4:16], 2*g)
			s1, m1 := pack.UnpackScaleMin(b[4:16], 2*g+1)
			d0, min0 := d*float32(s0), float32(dmin*float32(m0))
			d1, min1 := d*float32(s1), float32(dmin*float32(m1))
			lo, hi := y[64*g:][:32], y[64*g+32:][:32]
			for l, q := range b[16+32*g:][:32] {
				lo[l] = float32(d0*float32(q&15)) - min0
				hi[l] = float32(d1*float32(q>>4)) - min1
			}
		}
	}
}
