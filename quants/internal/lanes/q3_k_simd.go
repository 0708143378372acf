//go:build goexperiment.simd && go1.27

package lanes

import (
	"encoding/binary"
	"math"
	"simd"

	"ggforge/internal/kernel/lane"
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
	"ggforge/quants/internal/search"
)

// Q3_K on tiles. Replaces scalar.QuantizeQ3_K.
//
// With importance it works like Q6_K. Without, levels are moved one at a time, each move
// changing the criterion of the next one: a chain of about 60 cycles per element with a division
// in it, in up to 5 passes. But half of the sub-blocks, whose largest element is positive, cannot
// change, and of the others three of five of normal weights keep all their levels. So a look without divisions at
// each tile, in which nothing waits, finds the rest, a fifth of all; they are gathered from 16 superblocks, and the
// chains of up to 64 sub-blocks take turns (sym3.search). The codes that this search finds are needed
// only where the scale of a sub-block is coded as 0: there they come from search.Sym3.
//
// With 256 bits and more on amd64 the search without importance is QuantizePlainQ3_KAVX2.
//
// MB/s of float32 input with importance on one core of a Zen 3 EPYC, go1.27.4, rows of 4096,
// best of several runs: scalar 74, simd-128 272, simd-256 644. Without, on one core of a Sapphire
// Rapids, best of many short runs: scalar 377, simd-128 700.
//
// Tried and lost: chains of all sub-blocks in one or two tiles at a time; gathering while tiles are looked at
// (whether there is anything to gather is hard to predict, and all that follows waits for it: half the
// speed); two passes of chains, or the rest of the search by the scalar code (both as fast or slower); 6 to 12
// superblocks at a time (4 to 9% slower); moving without clearUpper before it, which takes twice the time.

var symQ3_K, symQ3_KScales = newSymTable(4), newSymTable(32)

func QuantizeQ3_K(dst []byte, src, importance []float32) {
	s := kScratches.Get().(*kScratch)
	defer kScratches.Put(s)
	width := lane.Width()
	tile := 16 * width
	plain := importance == nil
	for len(src) > 0 {
		nb := min(lane.MaxWidth, len(src)/pack.QK_K)
		if !plain {
			nb = min(nb, width)
		}
		x := src[:nb*pack.QK_K]
		src = src[len(x):]
		if importance != nil {
			s.chunkSquares(x, 16, 2, 1.0/pack.QK_K)
		}
		if importance == nil {
			s.sym3.search(symQ3_K, x, s.x[:], s.scale[:])
		}
		for off := 0; importance != nil && off < len(x); off += tile {
			sub, end := off/16, min(off+tile, len(x))
			xt, w := s.x[off:][:tile], s.w[:tile]
			clearUpper()
			lane.Load(xt, x[off:end], 16, width)
			lane.Load(s.imp[:tile], importance[off:end], 16, width)
			importanceTile(w, xt, s.imp[:tile], s.square[sub:], s.total[sub:])
			searchSymRows(symQ3_K, xt, w, s.pairs[:3*tile+1], s.scale[sub:], s.step[sub:], s.base[sub:])
			symCodesTile(4, xt, s.step[sub:], s.base[sub:], s.kept[off/4:][:tile/4])
		}
		clearUpper()
		if plain {
			for i := 0; i < nb; i += width {
				s.codeScalesQ3_K(dst[i*scalar.BytesQ3_K:], s.scale[16*i:], s.d[16*i:], min(nb-i, width), width)
			}
		} else {
			importance = importance[len(x):]
			s.fitScalesQ3_K(dst, nb, width)
		}
		s.relevelSym(4, 16*nb, width)
		if plain {
			s.keepSym3(x, width)
		}
		s.packQ3_K(dst, nb, width)
		dst = dst[nb*scalar.BytesQ3_K:]
	}
}

// storeQ3_K packs the levels s.kept of nb superblocks.
func (s *kScratch) storeQ3_K(dst []byte, nb, width int) {
	s.store(16*nb, width)
	for i := range nb {
		b, q := dst[i*scalar.BytesQ3_K:][:96], (*[pack.QK_K / 4]uint32)(s.packed[i*pack.QK_K/4:])
		for l := range 8 {
			var h uint32
			for j := range 8 {
				h |= q[8*j+l] >> 2 & 0x01010101 << j
			}
			binary.LittleEndian.PutUint32(b[4*l:], h)
		}
		packCrumbWords(b[32:96], q)
	}
}

// codeScalesQ3_K is scalar.CodeScalesQ3_K for nb superblocks, up to one per lane. It sets d to the values
// of the codes.
func (s *kScratch) codeScalesQ3_K(dst []byte, scales, d []float32, nb, width int) {
	n, rows := 16*nb, 16*width
	lane.Load(s.xt[:rows], scales[:n], 16, width)
	codeScalesTile(s.xt[:rows], s.ct[:rows], s.ds[:])
	clearUpper()
	for i := range nb {
		s.ds[i] = pack.PutF16(dst[i*scalar.BytesQ3_K+108:], s.ds[i])
	}
	packScalesTile(s.ct[:rows], s.xt[:rows], s.ds[:], s.words[:3*width])
	clearUpper()
	lane.Store(d[:n], s.xt[:rows], 16, width)
	for i := range nb {
		b := dst[i*scalar.BytesQ3_K+96:][:12]
		for j := range 3 {
			binary.LittleEndian.PutUint32(b[4*j:], s.words[j*width+i])
		}
	}
}

// codeScalesTile codes scales, 16 rows, against the largest of their lane. Where that is 0 codes and d are 0.
func codeScalesTile(scales []float32, codes []int32, d []float32) {
	var zero simd.Float32s
	width := zero.Len()
	codes = codes[:len(scales)]
	m := largestTile(scales)
	some := m.NotEqual(zero)
	step := splatBits(0xC2000000).Div(m) // -32
	splatBits(0x3F800000).Div(step).Masked(some).Store(d)
	low, high, half := simd.BroadcastInt32s(-32), simd.BroadcastInt32s(31), simd.BroadcastInt32s(32)
	for i := 0; i <= len(scales)-width; i += width {
		c := roundLevels(step.Mul(simd.LoadFloat32s(scales[i : i+width]))).ShiftAllLeft(24).ShiftAllRight(24) // int8
		c.Max(low).Min(high).Add(half).Masked(some).Store(codes[i : i+width])
	}
}

// packScalesTile sets scales to the values of the codes with d, and words to scalar.PackScalesQ3_K of them.
func packScalesTile(codes []int32, scales, d []float32, words []uint32) {
	dv := simd.LoadFloat32s(d)
	width := dv.Len()
	scales = scales[:len(codes)]
	low, high, half := simd.BroadcastInt32s(15), simd.BroadcastInt32s(3), simd.BroadcastInt32s(32)
	var w0, w1, w2 simd.Int32s
	for j := 3 * width; j >= 0; j -= width {
		a, b := simd.LoadInt32s(codes[j:j+width]), simd.LoadInt32s(codes[j+4*width:j+5*width])
		c, e := simd.LoadInt32s(codes[j+8*width:j+9*width]), simd.LoadInt32s(codes[j+12*width:j+13*width])
		w0 = w0.ShiftAllLeft(8).Or(a.And(low)).Or(c.And(low).ShiftAllLeft(4))
		w1 = w1.ShiftAllLeft(8).Or(b.And(low)).Or(e.And(low).ShiftAllLeft(4))
		w2 = w2.ShiftAllLeft(8).Or(a.ShiftAllRight(4).And(high)).Or(b.ShiftAllRight(4).And(high).ShiftAllLeft(2))
		w2 = w2.Or(c.ShiftAllRight(4).And(high).ShiftAllLeft(4)).Or(e.ShiftAllRight(4).And(high).ShiftAllLeft(6))
	}
	w0.ToBits().Store(words)
	w1.ToBits().Store(words[width:])
	w2.ToBits().Store(words[2*width:])
	for i := 0; i <= len(codes)-width; i += width {
		dv.Mul(simd.LoadInt32s(codes[i : i+width]).Sub(half).ConvertToFloat32()).Store(scales[i : i+width])
	}
}

// keepSym3 sets s.kept of sub-blocks with a scale of 0 to the levels that search.Sym3 finds. Others
// have no use for those.
func (s *kScratch) keepSym3(x []float32, width int) {
	for j, d := range s.d[:len(x)/16] {
		if d == 0 {
			var c [16]uint8
			search.Sym3(4, x[16*j:][:16], c[:])
			for i := range 4 {
				s.kept[j/width*4*width+i*width+j%width] = binary.LittleEndian.Uint32(c[4*i:])
			}
		}
	}
}

// fitScalesQ3_K searches the codes of the scales of nb superblocks and their
// scales, and writes both to the blocks dst. It sets s.d.
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
		d = pack.PutF16(b[108:], d)
		for j := range 16 {
			s.d[16*i+j] = d * float32(int32(scalar.UnpackScaleQ3_K(b[96:108], j))-32)
		}
	}
}
