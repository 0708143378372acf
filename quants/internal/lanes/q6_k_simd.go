//go:build goexperiment.simd && go1.27

package lanes

import (
	"encoding/binary"

	"ggforge/internal/kernel/lane"
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
	"ggforge/quants/internal/search"
)

// Q6_K on tiles. Replaces scalar.QuantizeQ6_K, with and without importance.
//
// 19 candidates, each 10 operations per element, 8 or 9 with AVX2 (searchSymAVX2).
// Unlike those of Q4_K they do not depend on each other, so two share the loads and
// the processor overlaps the rest; multiplications and additions are the limit.
//
// MB/s of float32 input on one core of a Zen 3 EPYC, go1.27.4, rows of 4096, best of
// several runs: scalar 80, simd-128 371, simd-256 760; importance 80, 301, 731. On a Sapphire Rapids simd-256 has 705
// (663 before last levels had AVX2), 700 (636) with importance, simd-512 860 and 796.

var symQ6_K = newSymTable(32)

func QuantizeQ6_K(dst []byte, src, importance []float32) {
	s := kScratches.Get().(*kScratch)
	defer kScratches.Put(s)
	width := lane.Width()
	for len(src) > 0 {
		nb := min(width, len(src)/pack.QK_K)
		x := src[:nb*pack.QK_K]
		src = src[len(x):]
		tile := 16 * width
		for off := 0; off < len(x); off += tile {
			clearUpper()
			end := min(off+tile, len(x))
			xt, w := s.x[off:][:tile], s.w[:tile]
			lane.Load(xt, x[off:end], 16, width)
			if importance != nil {
				lane.Load(w, importance[off:end], 16, width)
			} else {
				squareTile(w, xt)
			}
			searchSymRows(symQ6_K, xt, w, s.pairs[:3*tile+1], s.scale[off/16:], s.step[off/16:], s.base[off/16:])
			symCodesTile(32, xt, s.step[off/16:], s.base[off/16:], s.kept[off/4:][:tile/4])
		}
		clearUpper()
		if importance != nil {
			importance = importance[len(x):]
		}
		for i := range nb {
			b, scales, ds := dst[i*scalar.BytesQ6_K:][:scalar.BytesQ6_K], s.scale[16*i:][:16], s.d[16*i:][:16]
			m := arith.Largest(scales)
			if arith.Abs(m) < search.GroupMaxEps {
				clear(b)
				clear(ds)
				continue
			}
			step := -128 / m
			d := pack.PutF16(b[208:], 1/step)
			sc := b[192:208]
			for j, v := range scales {
				sc[j] = uint8(min(127, arith.RoundEven(float32(step*v))))
				ds[j] = d * float32(int8(sc[j]))
			}
		}
		s.relevelSym(32, 16*nb, width)
		s.store(16*nb, width)
		for i := range nb {
			b := dst[:scalar.BytesQ6_K]
			dst = dst[scalar.BytesQ6_K:]
			if arith.Abs(arith.Largest(s.scale[16*i:][:16])) < search.GroupMaxEps {
				continue
			}
			q := s.packed[i*pack.QK_K/4:][:pack.QK_K/4]
			for h := range 2 {
				for l := range 16 {
					c := q[32*h+l:][:17]
					binary.LittleEndian.PutUint32(b[64*h+4*l:], c[0]&0x0F0F0F0F|c[16]&0x0F0F0F0F<<4)
				}
				for l := range 8 {
					const low = 0x03030303
					c := q[32*h+l:][:25]
					binary.LittleEndian.PutUint32(b[128+32*h+4*l:],
						c[0]>>4&low|c[8]>>4&low<<2|c[16]>>4&low<<4|c[24]>>4&low<<6)
				}
			}
		}
	}
}
