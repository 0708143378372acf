//go:build goexperiment.simd && go1.27

package lanes

import (
	"encoding/binary"
	"math"

	"ggforge/internal/lane"
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
	"ggforge/quants/internal/search"
)

// Q3_K on tiles. Replaces scalar.QuantizeQ3_K.
//
// With importance it works like Q6_K. Without, levels are moved one at a time, each move
// changing what the next is judged by: a chain of about 50 cycles per element with a division
// in it, in up to 5 passes. But four of five sub-blocks of normal weights keep all their levels
// and the others change 2.2 on average, so searchSym3Tile looks at all elements at once and
// then moves one in each lane that is not settled: 3.4 rounds per tile of 8 lanes, as many as
// its most restless lane needs.
//
// MB/s of float32 input with importance on one core of a Zen 3 EPYC, go1.27.4, rows of 4096,
// best of several runs: scalar 74, simd-128 272, simd-256 644. Without, on one core of a Sapphire
// Rapids whose other thread was busy, and with that chain in two tiles at a time: scalar
// 377, simd-128 627 (401), simd-256 934 (671), simd-512 865 (842). Of the time, 29% go to looking, 13%
// to moving, 17% to the first levels and what they are made from, 10% to the last levels, the rest to
// scales and packing.
//
// Tried and lost: one tile at a time with that chain; four tiles taking turns, with
// their sums in memory and without those that no longer change; moving without
// clearUpper before it, which takes twice the time.

var symQ3_K, symQ3_KScales = newSymTable(4), newSymTable(32)

func QuantizeQ3_K(dst []byte, src, importance []float32) {
	s := kScratches.Get().(*kScratch)
	defer kScratches.Put(s)
	width := lane.Width()
	tile := 16 * width
	for len(src) > 0 {
		nb := min(width, len(src)/pack.QK_K)
		x := src[:nb*pack.QK_K]
		src = src[len(x):]
		if importance != nil {
			s.chunkSquares(x, 16, 2, 1.0/pack.QK_K)
		}
		for off := 0; importance == nil && off < len(x); off += tile {
			xt := s.x[off:][:tile]
			lane.Load(xt, x[off:min(off+tile, len(x))], 16, width)
			searchSym3Tile(symQ3_K, xt, &s.sym3, s.scale[off/16:], s.kept[off/4:])
		}
		for off := 0; importance != nil && off < len(x); off += tile {
			sub, end := off/16, min(off+tile, len(x))
			xt, w := s.x[off:][:tile], s.w[:tile]
			lane.Load(xt, x[off:end], 16, width)
			lane.Load(s.imp[:tile], importance[off:end], 16, width)
			importanceTile(w, xt, s.imp[:tile], s.square[sub:], s.total[sub:])
			searchSymRows(symQ3_K, xt, w, s.pairs[:3*tile+1], s.scale[sub:], s.step[sub:], s.base[sub:])
			symCodesTile(4, xt, s.step[sub:], s.base[sub:], s.kept[off/4:][:tile/4])
		}
		clearUpper()
		if importance != nil {
			importance = importance[len(x):]
			s.fitScalesQ3_K(dst, nb, width)
		} else {
			for i := range nb {
				scalar.CodeScalesQ3_K(dst[i*scalar.BytesQ3_K:][:scalar.BytesQ3_K], s.scale[16*i:][:16])
			}
		}
		for i := range nb {
			b := dst[i*scalar.BytesQ3_K:][:scalar.BytesQ3_K]
			d := pack.F16(b[108:])
			for j := range 16 {
				s.d[16*i+j] = d * float32(int32(scalar.UnpackScaleQ3_K(b[96:108], j))-32)
			}
		}
		s.relevelSym(4, 16*nb, width)
		for i := range nb {
			q := (*[pack.QK_K / 4]uint32)(s.packed[i*pack.QK_K/4:])
			for l := range 8 {
				var h uint32
				for j := range 8 {
					h |= q[8*j+l] >> 2 & 0x01010101 << j
				}
				binary.LittleEndian.PutUint32(dst[4*l:], h)
			}
			packCrumbWords(dst[32:96], q)
			dst = dst[scalar.BytesQ3_K:]
		}
	}
}

// fitScalesQ3_K searches the codes of the scales of nb superblocks and their
// scales, and writes both to the blocks dst.
func (s *kScratch) fitScalesQ3_K(dst []byte, nb, width int) {
	n, rows := 16*nb, 16*width
	lane.Load(s.xt[:rows], s.scale[:n], 16, width)
	lane.Load(s.wt[:rows], s.total[:n], 16, width)
	searchSymRows(symQ3_KScales, s.xt[:rows], s.wt[:rows], s.pairs[:3*rows+1], s.ds[:], s.dms[:], s.square[:])
	symCodesTile(32, s.xt[:rows], s.dms[:], s.square[:], s.words[:rows/4])
	lane.Store(s.packed[:n/4], s.words[:rows/4], 4, width)
	for i := range nb {
		b := dst[i*scalar.BytesQ3_K:][:scalar.BytesQ3_K]
		var cs [16]uint8
		for j := range 4 {
			binary.LittleEndian.PutUint32(cs[4*j:], s.packed[4*i+j])
		}
		d := s.ds[i]
		for _, v := range s.scale[16*i:][:16] {
			if !(arith.Abs(v) <= math.MaxFloat32) {
				// Weights overflowed; levels of such scales are not sums.
				d = search.Sym(32, s.scale[16*i:][:16], s.total[16*i:][:16], cs[:])
				break
			}
		}
		scalar.PackScalesQ3_K(b[96:108], &cs)
		pack.PutF16(b[108:], d)
	}
}
