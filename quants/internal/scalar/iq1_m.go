package scalar

import (
	"encoding/binary"

	"ggforge/internal/half"
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
)

// IQ1_M: superblock of 256 elements, 16 sub-blocks of 2 groups of 8, in 56 bytes,
// 1.75 bpw.
//
//	 0 32  qs      byte g: low 8 bits of the index of group g in codebook.GridIQ1
//	32 16  qh      byte j, low half for the first group of sub-block j, high half
//	               for the second: high 3 bits of the index, shift in bit 3
//	48  8  scales  4 x uint16: scale codes of 4 sub-blocks of 3 bits each, from bit
//	               0; the top 4 bits of all four are the float16 d, lowest first
//
// x = d*(2*scale + 1)*value, the value of the level being moved by the shift. The
// search is that of IQ1_S, with a shift for each group; without importance
// weights are x*x. Scales are coded against the largest, then d is fitted again
// to all elements, and stored 11.25% larger.
const BytesIQ1_M = 56

func QuantizeIQ1_M(dst []byte, src, importance []float32) {
	EncodeIQ1_M(dst, src, importance, searchIQ1_M)
}

func EncodeIQ1_M(dst []byte, src, importance []float32, search func(x, w []float32, codes []uint16, shifts []uint8) (scale float32)) {
	fit := iq1Fits.Get().(*iq1Fit)
	defer iq1Fits.Put(fit)
	w, scales, codes, shifts := fit.w[:], fit.scales[:], fit.codes[:], fit.shifts[:]
	cb := &codebook.IQ1
	cb.Load()
	for off := 0; len(dst) > 0; off += pack.QK_K {
		x, b := src[off:][:pack.QK_K:pack.QK_K], dst[:BytesIQ1_M:BytesIQ1_M]
		dst = dst[BytesIQ1_M:]
		if importance != nil {
			arith.ImportanceWeights(w, x, importance[off:][:pack.QK_K], float32(float32(2*arith.SumSquares(x))/pack.QK_K))
		} else {
			arith.SquareWeights(w, x)
		}
		for j := range scales {
			scales[j] = search(x[16*j:][:16], w[16*j:][:16], codes[2*j:][:2], shifts[2*j:][:2])
		}
		clear(b)
		for g, code := range codes {
			i := cb.Point(code)
			b[g] = uint8(i)
			b[32+g/2] |= uint8(i >> 8 << (g & 1 * 4))
		}
		m := codebook.Max(scales)
		if m == 0 {
			continue // the indices stay
		}
		d := m / 15
		id := 1 / d
		var words [4]uint16
		var sumA, sumB float32
		for j, s := range scales {
			sc := codebook.ScaleCode(7, id, s)
			words[j/4] |= uint16(sc) << (j & 3 * 3)
			for g := 2 * j; g < 2*j+2; g++ {
				b[32+j] |= shifts[g] << 3 << (g & 1 * 4)
				values := &ValuesIQ1[shifts[g]]
				for k, v := range x[8*g:][:8] {
					q := values[codes[g]>>(2*k)&3] * float32(2*sc+1)
					wq := float32(w[8*g+k] * q)
					sumA += float32(wq * v)
					sumB += float32(wq * q)
				}
			}
		}
		if sumB > 0 {
			d = sumA / sumB
		}
		h := half.ToF16(d * 1.1125)
		for k, word := range words {
			binary.LittleEndian.PutUint16(b[48+2*k:], word|h>>(4*k)<<12)
		}
	}
}

// searchIQ1_M sets codes and shifts to those of the 2 groups of the sub-block x,
// and returns its scale. If there is no fit all are 0.
func searchIQ1_M(x, w []float32, codes []uint16, shifts []uint8) (scale float32) {
	clear(codes)
	clear(shifts)
	if arith.Abs(arith.Largest(x)) < 1e-7 {
		return 0
	}
	var order [16]uint8
	var c CutsIQ1_M
	sortOrder(order[:], x)
	c.sums(order[:], x, w)
	for h := range 2 {
		for s, k := range KindsIQ1_M {
			c.XTop[h][s] = float32(c.Sx[h][16] * k.Top)
			w := float32(c.Sw[h][16]*k.Top) * k.Top
			for i, v := range c.Sw[h][:17] {
				c.W1[h][s][i] = float32(w) + float32(v*k.C1)
				c.W2[h][s][i] = float32(v * k.C2)
			}
		}
	}
	f := NoCuts
	for i1 := range 17 {
		c.Row(&f, i1, nil)
	}
	if f.Cut1 < 0 {
		return 0
	}
	scale = f.CodesIQ1_M(order[:], codes, shifts)
	return SnapIQ1(codes, x, w, scale, shifts)
}

// KindsIQ1_M are the shifts. With q = top, top-1, top-2 from the right, sum(w*x*q)
// is top times the whole less the sum up to either cut, and sum(w*q*q) follows
// likewise.
var KindsIQ1_M = [2]struct{ Top, C1, C2 float32 }{{1.125, 0.75, -1.25}, {0.875, 1.25, -0.75}}

// CutsIQ1_M are the tables of the search for cuts, by group and cut, and some by
// shift.
type CutsIQ1_M struct {
	Sx, Sw [2][CutsLen]float32    // sums of w*x and w over the elements before the cut
	XTop   [2][2]float32          // not by cut: what a is without cuts
	W1, W2 [2][2][CutsLen]float32 // parts of b: for the first cut, the second cut
}

// sums sets sx and sw, each group counting its own elements.
func (c *CutsIQ1_M) sums(order []uint8, x, w []float32) {
	for k, i := range order[:16] {
		for h := range c.Sx {
			c.Sx[h][k+1], c.Sw[h][k+1] = c.Sx[h][k], c.Sw[h][k]
		}
		h := i >> 3 & 1
		c.Sx[h][k+1] += float32(w[i] * x[i])
		c.Sw[h][k+1] += w[i]
	}
}

// Row tries all second cuts for the first cut i1, and the pairs of shifts for each.
// For hits see CutFit.skips.
func (c *CutsIQ1_M) Row(f *CutFit, i1 int, hits []int32) {
	start := f.Best
	for i2 := i1; i2 < 17; i2++ {
		if f.skips(hits, i2-i1, start) {
			continue
		}
		var a, b [2][2]float32
		for h := range 2 {
			x12 := c.Sx[h][i1] + c.Sx[h][i2]
			for s := range 2 {
				a[h][s] = c.XTop[h][s] - x12
				b[h][s] = c.W1[h][s][i1] + c.W2[h][s][i2]
			}
		}
		for k := range 4 {
			a, b := a[0][k>>1]+a[1][k&1], b[0][k>>1]+b[1][k&1]
			if b > 0 && a*a > f.Best*b {
				f.take(a, b, i1, i2, k)
			}
		}
	}
}

// CodesIQ1_M sets codes and shifts to the levels and shifts of the fit and returns its scale.
func (f *CutFit) CodesIQ1_M(order []uint8, codes []uint16, shifts []uint8) (scale float32) {
	scale, pair := f.scale, f.kind
	mirrored := scale < 0
	if mirrored {
		scale, pair = -scale, 3-pair
	}
	shifts[0], shifts[1] = uint8(pair>>1), uint8(pair&1)
	levelCodes(codes, order, f.Cut1, f.cut2, mirrored)
	return scale
}

// ScaleIQ1_M returns the float16 d of a block.
func ScaleIQ1_M(b []byte) (d uint16) {
	for k := range 4 {
		d |= binary.LittleEndian.Uint16(b[48+2*k:]) >> 12 << (4 * k)
	}
	return d
}

func DequantizeIQ1_M(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:pack.QK_K:pack.QK_K], src[:BytesIQ1_M:BytesIQ1_M]
		dst, src = dst[pack.QK_K:], src[BytesIQ1_M:]
		d := half.FromF16(ScaleIQ1_M(b))
		for g, q := range b[:32] {
			j := g / 2
			sc := binary.LittleEndian.Uint16(b[48+j/4*2:]) >> (j & 3 * 3) & 7
			high := b[32+j] >> (g & 1 * 4)
			decodeIQ1(y[8*g:], d*float32(2*sc+1), codebook.GridIQ1[uint(q)|uint(high&7)<<8], high>>3&1)
		}
	}
}
