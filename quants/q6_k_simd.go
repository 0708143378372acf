//go:build goexperiment.simd && go1.27

package quants

import (
	"encoding/binary"

	"ggforge/internal/lane"
)

// Q6_K on tiles. Replaces quantizeQ6_K, with and without importance.
//
// 19 candidates, each 10 operations per element, 8 or 9 with AVX2 (searchSymAVX2).
// Unlike those of Q4_K they do not depend on each other, so two share the loads and
// the processor overlaps the rest; multiplications and additions are the limit.
//
// MB/s of float32 input on one core of a Zen 3 EPYC, go1.27.4, rows of 4096, best of
// several runs: scalar 80, simd-128 371, simd-256 760; importance 80, 301, 731.

var symQ6_K = newSymTable(32)

func quantizeQ6_KTiles(dst []byte, src, importance []float32) {
	s := kScratches.Get().(*kScratch)
	defer kScratches.Put(s)
	width := lane.Width()
	for len(src) > 0 {
		nb := min(width, len(src)/qkK)
		x := src[:nb*qkK]
		src = src[len(x):]
		tile := 16 * width
		for off := 0; off < len(x); off += tile {
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
		if importance != nil {
			importance = importance[len(x):]
		}
		for i := range nb {
			b, scales, ds := dst[i*q6_KBytes:][:q6_KBytes], s.scale[16*i:][:16], s.d[16*i:][:16]
			m := largest(scales)
			if abs32(m) < groupMaxEps {
				clear(b)
				clear(ds)
				continue
			}
			step := -128 / m
			d := putF16(b[208:], 1/step)
			sc := b[192:208]
			for j, v := range scales {
				sc[j] = uint8(min(127, rn(float32(step*v))))
				ds[j] = d * float32(int8(sc[j]))
			}
		}
		s.relevelSym(32, 16*nb, width)
		for i := range nb {
			b := dst[:q6_KBytes]
			dst = dst[q6_KBytes:]
			if abs32(largest(s.scale[16*i:][:16])) < groupMaxEps {
				continue
			}
			q := s.packed[i*qkK/4:][:qkK/4]
			for h := range 2 {
				for l := range 16 {
					c := q[32*h+l:][:17]
					binary.LittleEndian.PutUint32(b[64*h+4*l:], c[0]&0x0F0F0F0F|c[16]&0x0F0F0F0F<<4)
				}
				for l := range 8 {
					const low = 0x03030303
					c := q[32*h+l:][:25]
					binary.LittleEndian.PutUint32(b[128+32*h+4*l:], c[0]>>4&low|c[8]>>4&low<<2|c[16]>>4&low<<4|c[24]>>4&low<<6)
				}
			}
		}
	}
}
