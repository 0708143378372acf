package quants

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
const q2_KBytes = 84

var (
	q2_KSearch           = asymSearch{levels: 3, r0: -0.5, dr: 0.1, steps: 15, absErr: true}
	q2_KSearchImportance = asymSearch{levels: 3, r0: -0.9, dr: 0.05, steps: 36}
)

func quantizeQ2_K(dst []byte, src, importance []float32) {
	var (
		codes                [qkK]uint8
		w                    [16]float32
		scales, mins, totals [16]float32
		cs, cm               [16]uint8
	)
	for off := 0; len(dst) > 0; off += qkK {
		x, b := src[off:][:qkK:qkK], dst[:q2_KBytes:q2_KBytes]
		dst = dst[q2_KBytes:]
		var d, dmin float32
		if importance != nil {
			qw, s := importance[off:][:qkK], float32(sumSquares(x)/qkK)
			for j := range scales {
				sub := x[16*j:][:16]
				importanceWeights(w[:], sub, qw[16*j:][:16], s)
				totals[j] = sum(w[:])
				scales[j], mins[j] = searchAsym(&q2_KSearchImportance, sub, w[:], codes[16*j:][:16])
			}
			d = searchPos(15, scales[:], totals[:], cs[:])
			dmin = searchPos(15, mins[:], totals[:], cm[:])
		} else {
			for j := range scales {
				sub := x[16*j:][:16]
				for i, v := range sub {
					w[i] = abs32(v)
				}
				scales[j], mins[j] = searchAsym(&q2_KSearch, sub, w[:], codes[16*j:][:16])
			}
			d = codeMax(15, scales[:], cs[:])
			dmin = codeMax(15, mins[:], cm[:])
		}
		for j := range cs {
			b[j] = cs[j] | cm[j]<<4
		}
		d, dmin = putF16(b[80:], d), putF16(b[82:], dmin)
		for j := range cs {
			relevelMin(3, d*float32(b[j]&15), float32(dmin*float32(b[j]>>4)), x[16*j:][:16], codes[16*j:][:16])
		}
		packCrumbs(b[16:80], &codes)
	}
}

func dequantizeQ2_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:qkK:qkK], src[:q2_KBytes:q2_KBytes]
		dst, src = dst[qkK:], src[q2_KBytes:]
		d, dmin := getF16(b[80:]), getF16(b[82:])
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
