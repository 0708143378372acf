package scalar

import (
	"encoding/binary"
	"math/bits"

	"ggforge/internal/kernel/half"
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
	var fit FitIQ1
	var w [pack.QK_K]float32
	codebook.IQ1.Load()
	for off := 0; len(dst) > 0; off += pack.QK_K {
		x := src[off:][:pack.QK_K:pack.QK_K]
		if importance != nil {
			arith.ImportanceWeights(w[:], x, importance[off:][:pack.QK_K],
				float32(float32(2*arith.SumSquares(x))/pack.QK_K))
		} else {
			arith.SquareWeights(w[:], x)
		}
		for j := range fit.Scales {
			fit.Scales[j] = SearchIQ1_M(x[16*j:][:16], w[16*j:][:16], fit.Codes[2*j:][:2], fit.Shifts[2*j:][:2])
		}
		fit.PutIQ1_M(dst[:BytesIQ1_M:BytesIQ1_M], x, w[:])
		dst = dst[BytesIQ1_M:]
	}
}

// PutIQ1_M writes the block of the superblock x with weights w. The lists of the codebook must be loaded.
func (fit *FitIQ1) PutIQ1_M(b []byte, x, w []float32) {
	cb := &codebook.IQ1
	scales := fit.Scales[:]
	x, w = x[:pack.QK_K], w[:pack.QK_K]
	clear(b)
	for g, code := range fit.Codes {
		i := cb.Point(code)
		b[g] = uint8(i)
		b[32+g/2] |= uint8(i >> 8 << (g & 1 * 4))
	}
	m := codebook.Max(scales)
	if m == 0 {
		return // the indices stay
	}
	d := m / 15
	id := 1 / d
	var words [4]uint16
	var sumA, sumB float32
	for j, s := range scales {
		sc := codebook.ScaleCode(7, id, s)
		words[j/4] |= uint16(sc) << (j & 3 * 3)
		for g := 2 * j; g < 2*j+2; g++ {
			b[32+j] |= fit.Shifts[g] << 3 << (g & 1 * 4)
			values := &ValuesIQ1[fit.Shifts[g]&1]
			for k, v := range x[8*g:][:8] {
				q := values[fit.Codes[g]>>(2*k)&3] * float32(2*sc+1)
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

// SearchIQ1_M sets codes and shifts to those of the 2 groups of the sub-block x,
// and returns its scale. If there is no fit all are 0.
func SearchIQ1_M(x, w []float32, codes []uint16, shifts []uint8) (scale float32) {
	clear(codes)
	clear(shifts)
	if arith.Abs(arith.Largest(x)) < LimitIQ1_M {
		return 0
	}
	var order [16]uint8
	var c CutsIQ1_M
	sortOrder(order[:], x)
	c.sums(order[:], x, w)
	const all = 1<<17 - 1
	c.Tables(all)
	f := NoCuts
	for i1 := range 17 {
		c.Row(&f, i1, all)
	}
	if f.Cut1 < 0 {
		return 0
	}
	scale, kind, mirrored := f.Upright(4)
	shifts[0], shifts[1] = uint8(kind>>1), uint8(kind&1)
	levelCodes(codes, order[:], f.Cut1, f.Cut2, mirrored)
	return SnapIQ1(codes, x, w, scale, shifts)
}

// LimitIQ1_M: sub-blocks whose largest element is smaller get scale 0.
const LimitIQ1_M = 1e-7

// KindsIQ1_M are the shifts. With q = top, top-1, top-2 from the right, sum(w*x*q)
// is top times the whole less the sum up to either cut, and sum(w*q*q) follows
// likewise.
var KindsIQ1_M = [2]struct{ Top, C1, C2 float32 }{{1.125, 0.75, -1.25}, {0.875, 1.25, -0.75}}

// CutsIQ1_M are the tables of the search for cuts, by group and cut, and some by
// shift.
type CutsIQ1_M struct {
	Sx, Sw [2][17]float32    // sums of w*x and w over the elements before the cut
	XTop   [2][2]float32     // not by cut: the value of a without cuts
	W1, W2 [2][2][17]float32 // parts of b: for the first cut, the second cut
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

// Tables sets XTop, and W1 and W2 for the cuts that are bits of cuts.
func (c *CutsIQ1_M) Tables(cuts uint64) {
	for h := range 2 {
		for s, k := range KindsIQ1_M {
			c.XTop[h][s] = float32(c.Sx[h][16] * k.Top)
			w := float32(c.Sw[h][16]*k.Top) * k.Top
			for m := cuts; m != 0; m &= m - 1 {
				i := bits.TrailingZeros64(m)
				v := c.Sw[h][i]
				c.W1[h][s][i] = float32(w) + float32(v*k.C1)
				c.W2[h][s][i] = float32(v * k.C2)
			}
		}
	}
}

// Row tries the second cuts that are bits of cuts for the first cut i1, and the pairs of shifts for each.
func (c *CutsIQ1_M) Row(f *CutFit, i1 int, cuts uint64) {
	for cuts = cuts >> i1 << i1; cuts != 0; cuts &= cuts - 1 {
		i2 := bits.TrailingZeros64(cuts)
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
