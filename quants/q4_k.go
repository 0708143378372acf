package quants

// Q4_K: superblock of 256 elements, 8 sub-blocks of 32, in 144 bytes, 4.5 bpw.
//
//	 0   2  d       float16, scale of the scale codes
//	 2   2  dmin    float16, scale of the min codes
//	 4  12  scales  8 scale and 8 min codes of 6 bits, see packScaleMin
//	16 128  qs      nibbles; 64 elements take 32 bytes, byte l holds element l
//	                (low) and l+32 (high)
//
// x = d*scale*q - dmin*min; for the choice of codes see fitScaleMin.
const q4_KBytes = 144

var q4_KFit = scaleMinFit{
	plain:    asymSearch{levels: 15, r0: -1, dr: 0.1, steps: 20},
	weighted: asymSearch{levels: 15, r0: -0.9, dr: 0.05, steps: 36},
}

func quantizeQ4_K(dst []byte, src, importance []float32) {
	var codes [qkK]uint8
	for off := 0; len(dst) > 0; off += qkK {
		x, b := src[off:][:qkK:qkK], dst[:q4_KBytes:q4_KBytes]
		dst = dst[q4_KBytes:]
		var qw []float32
		if importance != nil {
			qw = importance[off:][:qkK]
		}
		fitScaleMin(&q4_KFit, b[:16], x, qw, &codes)
		for g := range 4 {
			packNibbles(b[16+32*g:][:32], codes[64*g:][:32], codes[64*g+32:][:32])
		}
	}
}

// scaleMinFit are the parameters of fitScaleMin.
type scaleMinFit struct {
	plain    asymSearch // without importance
	weighted asymSearch // with importance
	clamp    bool       // with importance: cut scale and min codes to 6 bits
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
func fitScaleMin(p *scaleMinFit, head []byte, x, importance []float32, codes *[qkK]uint8) {
	var (
		w                    [32]float32
		scales, mins, totals [8]float32
		cs, cm               [8]uint8
		d, dmin              float32
	)
	if importance != nil {
		s := float32(2 * sumSquares(x) / qkK)
		for j := range scales {
			sub := x[32*j:][:32]
			importanceWeights(w[:], sub, importance[32*j:][:32], s)
			totals[j] = sum(w[:])
			scales[j], mins[j] = searchAsym(&p.weighted, sub, w[:], codes[32*j:][:32])
		}
		d = searchPos(63, scales[:], totals[:], cs[:])
		dmin = searchPos(63, mins[:], totals[:], cm[:])
	} else {
		for j := range scales {
			sub := x[32*j:][:32]
			av := sqrt32(sumSquares(sub) / 32)
			for i, v := range sub {
				w[i] = av + abs32(v)
			}
			scales[j], mins[j] = searchAsym(&p.plain, sub, w[:], codes[32*j:][:32])
		}
		d = codeMax(63, scales[:], cs[:])
		dmin = codeMax(63, mins[:], cm[:])
	}
	if importance == nil || p.clamp {
		for j := range cs {
			cs[j], cm[j] = min(cs[j], 63), min(cm[j], 63)
		}
	}
	d, dmin = putF16(head, d), putF16(head[2:], dmin)
	packScaleMin(head[4:16], &cs, &cm)
	for j := range cs {
		s, m := unpackScaleMin(head[4:16], j)
		relevelMin(p.plain.levels, d*float32(s), float32(dmin*float32(m)), x[32*j:][:32], codes[32*j:][:32])
	}
}

func dequantizeQ4_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:qkK:qkK], src[:q4_KBytes:q4_KBytes]
		dst, src = dst[qkK:], src[q4_KBytes:]
		d, dmin := getF16(b), getF16(b[2:])
		for g := range 4 {
			s0, m0 := unpackScaleMin(b[4:16], 2*g)
			s1, m1 := unpackScaleMin(b[4:16], 2*g+1)
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
