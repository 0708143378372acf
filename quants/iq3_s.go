package quants

import "math"

// IQ3_S: superblock of 256 elements, 8 sub-blocks of 8 groups of 4, in 110 bytes,
// 3.4375 bpw.
//
//	  0  2  d       float16, scale of the scale codes
//	  2 64  qs      byte g: low 8 bits of the index of group g in gridIQ3_S
//	 66  8  qh      bit 8 of the index: byte g/8, bit g mod 8
//	 74 32  signs   byte k: sign bits of elements 8*k .. 8*k+7
//	106  4  scales  4 bits each: byte j/2, low for even sub-blocks j
//
// x = d*(2*scale + 1)*level, negative where the sign bit is set. The search is
// gridSearch, around the largest magnitude, with weights importance*sqrt(twice
// the mean square of the superblock + x*x), or x*x without importance. Scales are
// coded against the largest; d is stored 3.3% larger than that.
//
// A sub-block of zeros takes no place in qs and signs, which the decoder does not
// know: the bytes of all later sub-blocks of its superblock move up by one
// sub-block (the end is zero bytes), while those of qh and scales stay. Where
// such a sub-block is followed by one with an element that is not zero, the
// superblock decodes wrongly. This is the reference's way, and so the file's;
// ZeroSubBlocksIQ3_S counts the cases.
const iq3_SBytes = 110

var searchIQ3_S = gridSearch{
	cb: &codebookIQ3_S, size: 32, sumFactor: 2, limit: math.SmallestNonzeroFloat32,
	top: 15, step: 0.2, steps: 9, offGrid: true, refit: refitAny,
}

func quantizeIQ3_S(dst []byte, src, importance []float32) {
	encodeIQ3_S(dst, src, importance, (*gridSearch).superblock)
}

func encodeIQ3_S(dst []byte, src, importance []float32, superblock gridFitter) {
	fit := gridFits.Get().(*gridFit)
	defer gridFits.Put(fit)
	p := &searchIQ3_S
	p.cb.load()
	for off := 0; len(dst) > 0; off += qkK {
		x, b := src[off:][:qkK:qkK], dst[:iq3_SBytes:iq3_SBytes]
		dst = dst[iq3_SBytes:]
		var qw []float32
		if importance != nil {
			qw = importance[off:][:qkK]
		}
		clear(b)
		if m := superblock(p, fit, x, qw); m != 0 {
			d := m / 31
			putF16(b, d*1.033)
			packScaleCodes(b[106:], 1/d, fit.scales[:8])
		}
		// Without any scale, indices and signs are stored all the same.
		at := 0 // sub-blocks written
		for j, zero := range fit.zero[:8] {
			if zero {
				continue
			}
			for g, c := range fit.codes[8*j:][:8] {
				i := p.cb.point(c)
				b[2+8*at+g] = uint8(i)
				b[66+j] |= uint8(i >> 8 << g)
			}
			copy(b[74+4*at:][:4], fit.signs[4*j:])
			at++
		}
	}
}

// ZeroSubBlocksIQ3_S returns the number of sub-blocks of src that displace others
// when src is quantized to IQ3_S: runs of 32 zeros at a multiple of 32 that are
// followed, in the same superblock of 256, by an element that is not zero. Only
// superblocks with such sub-blocks are damaged. len(src) is a multiple of 256,
// else it panics.
func ZeroSubBlocksIQ3_S(src []float32) (n int) {
	for len(src) > 0 {
		x := src[:qkK:qkK]
		src = src[qkK:]
		zeros := 0
	subBlocks:
		for len(x) > 0 {
			sub := x[:qk]
			x = x[qk:]
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

func dequantizeIQ3_S(dst []float32, src []byte) {
	var values [8]float32
	for len(dst) > 0 {
		y, b := dst[:qkK:qkK], src[:iq3_SBytes:iq3_SBytes]
		dst, src = dst[qkK:], src[iq3_SBytes:]
		d := getF16(b)
		for j := range 8 {
			ds := d * float32(1+2*(b[106+j/2]>>(j&1*4)&15))
			for l, q := range levelsIQ3_S {
				values[l] = ds * q
			}
			high := uint(b[66+j])
			for g, q := range b[2+8*j:][:8] {
				code := gridIQ3_S[uint(q)|high>>g&1<<8]
				decodeGroup4(y[32*j+4*g:], code, b[74+4*j+g/2]>>(g&1*4), &values)
			}
		}
	}
}
