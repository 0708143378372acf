//go:build goexperiment.simd && go1.27

package lanes

import (
	"simd"
	"sync"

	"ggforge/internal/kernel/lane"
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/search"
)

// Q2_K, Q4_K, Q5_K on tiles. Replaces the scalar encoders of these types.
//
// The K types work on chunks of as many superblocks as a vector has lanes, the
// last chunk of a row on fewer. Their sub-blocks make whole tiles; of the scales,
// each lane takes those of one superblock. With fewer superblocks than lanes the
// other lanes run on zeros.
//
// Its time is mostly the search of scale and minimum: 21, 16 and 16 candidates without importance, 37 with. A candidate
// takes 12 operations and a store per element for its sums and 6 for its error, over three and one chains of dependent
// additions, and then three divisions before the next one can start, because it uses the minimum that won so far.
// Alone, a tile waits for these chains: about 10 cycles per row and candidate on Zen 3, where additions take 3. So two
// tiles are searched together; see searchAsymAVX2 for their limits. With 256 bits two pairs of them take turns: with
// rows of 16 elements (Q2_K) a pair alone still waits.
//
// MB/s of float32 input on one core of a Zen 3 EPYC, go1.27.4, rows of 4096, best
// of several runs:
//
//	              scalar   simd-128   simd-256
//	Q4_K              51        241        494
//	Q4_K importance   29        142        296
//	Q5_K              63        291        569
//	Q5_K importance   30        141        289
//	Q2_K              53        262        484
//	Q2_K importance   26        121        232
//
// Since then, on a Sapphire Rapids, best of many short runs, 256 bits, before and after pairs take turns and lane.Load
// has constants: Q4_K 437 and 452, 260 and 272 with importance; Q5_K 505 and 527, 253 and 261; Q2_K 447 and 495, 210
// and 234.
//
// Operations for 8 weights, 256 bits, without importance: Q2_K, Q4_K, Q5_K 17 to 22 times 17, so 36 to 47 for each
// weight. Instructions of all for each weight (qemu-x86_64): 97, 101 and 88, of which the loops over candidates are 50,
// 64 and 49. Alone, a loop over rows of 32 elements takes 1.5 to 2 ns for a row's sums and 0.7 to 0.9 for its error on
// a Sapphire Rapids, 2 and 1.1 for 16, where the two ports for 7 multiplications and roundings would allow 1.2. With
// these times nothing else but candidates would be 620 MB/s for Q2_K, 500 to 660 for Q4_K and 650 to 850 for Q5_K. That
// rows of the second pair have whole lines of the cache gains 1 to 3%.
//
// Tried and lost: the whole search as one function (sums of the inner loop live on
// the stack, half the speed).

// maxSub is the largest number of sub-blocks of a chunk.
const maxSub = 16 * lane.MaxWidth

// kScratch has the buffers of a chunk. Arrays of maxSub are in the order of the sub-blocks, so tile t has elements
// t*width and up. Its contents between uses do not matter.
type kScratch struct {
	x           [pack.QK_K * lane.MaxWidth]float32 // all tiles of a chunk
	w           [2 * tileLen]float32               // of two tiles, or four of half the width
	lv, imp     [tileLen]float32                   // of one tile
	above       [tileLen]float32                   // of one tile, IQ4
	scale, mins [maxSub]float32                    // fit
	step, base  [maxSub]float32                    // fit
	total       [maxSub]float32                    // sum of weights
	exact       [maxSub]int32
	square      [maxSub]float32 // mean square that goes into the weights
	d, m        [maxSub]float32 // scale and minimum as stored

	xt, wt, mt  [maxSub]float32 // scales, totals, minimums: lane = superblock
	ct          [maxSub]int32
	ds, dms     [lane.MaxWidth]float32
	cs, cm      [maxSub]int32
	words       [tileLen / 4]uint32                   // codes of a tile, 4 in one
	kept        [pack.QK_K / 4 * lane.MaxWidth]uint32 // codes of the search, all tiles, 4 in one
	packed      [pack.QK_K / 4 * lane.MaxWidth]uint32 // the same, in order of elements
	codes       [pack.QK_K * lane.MaxWidth]uint8      // of sub-blocks searched one by one
	oneByOne    [search.MaxLen]float32                // weights of a sub-block searched alone
	pairs       [6*tileLen + 32]float32               // see searchAsymTiles
	anyOneByOne bool
	sym3        sym3
}

var kScratches = sync.Pool{New: func() any { return new(kScratch) }}

// chunkSquares sets s.square of the n sub-blocks of each superblock of x to
// before*arith.SumSquares(superblock)*after.
func (s *kScratch) chunkSquares(x []float32, n int, before, after float32) {
	squaresOf(s.square[:], x, n, before, after)
}

// squaresOf sets n elements of out for each superblock of x to
// before*arith.SumSquares(superblock)*after.
func squaresOf(out, x []float32, n int, before, after float32) {
	put := func(sum float32) {
		sum = float32(float32(before*sum) * after)
		for j := range out[:n] {
			out[j] = sum
		}
		out = out[n:]
	}
	for ; len(x) >= 4*pack.QK_K; x = x[4*pack.QK_K:] {
		for _, sum := range fourSquares(x, pack.QK_K) {
			put(sum)
		}
	}
	for ; len(x) > 0; x = x[pack.QK_K:] {
		put(arith.SumSquares(x[:pack.QK_K]))
	}
}

// fourSquares returns arith.SumSquares of the first four runs of n elements. Four sums at a
// time hide the latency of the additions, whose order is fixed.
func fourSquares(x []float32, n int) [4]float32 {
	a, b, c, d := x[:n], x[n:][:n], x[2*n:][:n], x[3*n:][:n]
	var sa, sb, sc, sd float32
	for i := range a {
		sa += float32(a[i] * a[i])
		sb += float32(b[i] * b[i])
		sc += float32(c[i] * c[i])
		sd += float32(d[i] * d[i])
	}
	return [4]float32{sa, sb, sc, sd}
}

// importanceTile sets w to importance*sqrt(square + x*x), square one per lane,
// and total to the sums of w.
func importanceTile(w, x, importance, square, total []float32) {
	var sum simd.Float32s
	width := sum.Len()
	w, importance = w[:len(x)], importance[:len(x)]
	sq := simd.LoadFloat32s(square)
	for i := 0; i <= len(x)-width; i += width {
		v := simd.LoadFloat32s(x[i : i+width])
		wi := simd.LoadFloat32s(importance[i : i+width]).Mul(sq.Add(v.Mul(v)).Sqrt())
		wi.Store(w[i : i+width])
		sum = sum.Add(wi)
	}
	sum.Store(total)
}

// plainTile32 sets w to sqrt(mean square of the sub-block) + |x|, for sub-blocks of
// 32.
func plainTile32(w, x []float32) {
	var sum simd.Float32s
	width := sum.Len()
	w = w[:len(x)]
	for i := 0; i <= len(x)-width; i += width {
		v := simd.LoadFloat32s(x[i : i+width])
		sum = sum.Add(v.Mul(v))
	}
	const bits = 0x3D000000 // of 1/32
	av := sum.Mul(simd.BroadcastUint32s(bits).BitsToFloat32()).Sqrt()
	for i := 0; i <= len(x)-width; i += width {
		av.Add(simd.LoadFloat32s(x[i : i+width]).Abs()).Store(w[i : i+width])
	}
}

// absTile sets w to |x|.
func absTile(w, x []float32) {
	var v simd.Float32s
	width := v.Len()
	w = w[:len(x)]
	for i := 0; i <= len(x)-width; i += width {
		simd.LoadFloat32s(x[i : i+width]).Abs().Store(w[i : i+width])
	}
}

// squareTile sets w to x*x.
func squareTile(w, x []float32) {
	var v simd.Float32s
	width := v.Len()
	w = w[:len(x)]
	for i := 0; i <= len(x)-width; i += width {
		v = simd.LoadFloat32s(x[i : i+width])
		v.Mul(v).Store(w[i : i+width])
	}
}

// relevelSym turns s.kept, codes of n sub-blocks of 16 elements in s.x, into those
// for the scales s.d.
func (s *kScratch) relevelSym(levels int32, n, width int) {
	for sub := 0; sub < n; sub += width {
		relevelTile(levels, s.x[16*sub:][:16*width], s.d[sub:], s.kept[4*sub:][:4*width])
	}
}

// store puts s.kept into s.packed in the order of the elements of n sub-blocks of 16.
func (s *kScratch) store(n, width int) {
	for sub := 0; sub < n; sub += width {
		lane.Store(s.packed[4*sub:4*min(sub+width, n)], s.kept[4*sub:][:4*width], 4, width)
	}
}

// relevelMinTile is search.RelevelMin on a tile: d and m have one value per lane, and
// lanes with a d of 0 get the levels of step*(x - base). words receives the levels
// of four rows at a time, the first in the low byte.
func relevelMinTile(levels int32, x, d, m, step, base []float32, words []uint32) {
	var zero simd.Float32s
	width := zero.Len()
	words = words[:len(x)/4]
	dv, mv, sv, bv := simd.LoadFloat32s(d), simd.LoadFloat32s(m), simd.LoadFloat32s(step), simd.LoadFloat32s(base)
	none := dv.Equal(zero)
	low, high := simd.BroadcastInt32s(magicZero), simd.BroadcastInt32s(magicZero+levels)
	mask, magic := simd.BroadcastUint32s(magicMask), simd.BroadcastUint32s(magicBits).BitsToFloat32()
	for i, o := 0, 0; i <= len(x)-4*width; i, o = i+4*width, o+width {
		var q simd.Int32s
		for j := 3; j >= 0; j-- {
			v := simd.LoadFloat32s(x[i+j*width : i+j*width+width])
			t := sv.Mul(v.Sub(bv)).IfElse(none, v.Add(mv).Div(dv))
			l := t.Add(magic).ToBits().And(mask).BitsToInt32().Max(low).Min(high).Sub(low)
			q = q.ShiftAllLeft(8).Or(l)
		}
		q.ToBits().Store(words[o : o+width])
	}
}

// scaleMinKernel has the differences between Q2_K, Q4_K and Q5_K up to the scale codes.
type scaleMinKernel struct {
	n, subs               int // elements of a sub-block, sub-blocks of a superblock
	scalar, scalarWeights *search.AsymParams
	plain, weighted       *asymTable
	pos                   *posTable
	factor                float32 // of the mean square in the weights
	levels                int32
	plainWeights          func(w, x []float32)
}

// fit searches scales and minimums of the sub-blocks of x, up to one superblock
// per lane, into s.scale and s.mins. With importance it also searches the codes of
// both, into s.cs and s.cm, and their scales, into s.ds and s.dms.
func (k *scaleMinKernel) fit(s *kScratch, x, importance []float32, width int) {
	if importance == nil {
		k.search(s, x, nil, width)
		return
	}
	s.chunkSquares(x, k.subs, k.factor, 1.0/pack.QK_K)
	k.search(s, x, importance, width)
	n, rows := len(x)/k.n, k.subs*width
	lane.Load(s.wt[:rows], s.total[:n], k.subs, width)
	lane.Load(s.xt[:rows], s.scale[:n], k.subs, width)
	lane.Load(s.mt[:rows], s.mins[:n], k.subs, width)
	searchPosTile(k.pos, s.xt[:rows], s.wt[:rows], s.ct[:rows], s.ds[:])
	lane.Store(s.cs[:n], s.ct[:rows], k.subs, width)
	searchPosTile(k.pos, s.mt[:rows], s.wt[:rows], s.ct[:rows], s.dms[:])
	lane.Store(s.cm[:n], s.ct[:rows], k.subs, width)
}

// search loads the sub-blocks of x into the tiles s.x and fits a scale and a minimum
// to each. With importance s.square must be set.
func (k *scaleMinKernel) search(s *kScratch, x, importance []float32, width int) {
	tile := k.n * width
	s.anyOneByOne = false
	for off, sub, tiles := 0, 0, 0; off < len(x); off, sub = off+tiles*tile, sub+tiles*width {
		clearUpper()
		// Two tiles or four, of which the last may have lanes of zeros only.
		tiles = 2
		if len(x)-off > 2*tile {
			tiles = asymTiles()
		}
		xt, w := s.x[off:][:tiles*tile], s.w[:tiles*tile]
		p, t := k.scalar, k.plain
		if importance != nil {
			p, t = k.scalarWeights, k.weighted
		}
		for i := range tiles {
			start, end := min(off+i*tile, len(x)), min(off+i*tile+tile, len(x))
			xi, wi := xt[i*tile:][:tile], w[i*tile:][:tile]
			lane.Load(xi, x[start:end], k.n, width)
			if importance != nil {
				lane.Load(s.imp[:tile], importance[start:end], k.n, width)
				importanceTile(wi, xi, s.imp[:tile], s.square[sub+i*width:], s.total[sub+i*width:])
			} else {
				k.plainWeights(wi, xi)
			}
		}
		fit := asymFit{s.scale[sub:], s.mins[sub:], s.step[sub:], s.base[sub:], s.exact[sub:]}
		searchAsym(t, k.n, xt, w, s.pairs[:], &fit)
		n := (min(off+tiles*tile, len(x)) - off) / k.n
		for l, ok := range fit.exact[:n] {
			if ok == 0 {
				s.anyOneByOne = true
				for i := range k.n {
					s.oneByOne[i] = w[l/width*tile+i*width+l%width]
				}
				s.scale[sub+l], s.mins[sub+l] = search.Asym(p, x[off+l*k.n:][:k.n], s.oneByOne[:k.n],
					s.codes[off+l*k.n:][:k.n])
			}
		}
	}
}

// relevel sets s.packed to the levels of the n sub-blocks for the scales s.d and
// minimums s.m, in the order of the elements, four in one, the first in the low
// byte.
func (k *scaleMinKernel) relevel(s *kScratch, n, width int) {
	tile := k.n * width
	for sub := 0; sub < n; sub += width {
		words := s.words[:tile/4]
		relevelMin(k.levels, s.x[sub*k.n:][:tile], s.d[sub:], s.m[sub:], s.step[sub:], s.base[sub:], words)
		lane.Store(s.packed[sub*k.n/4:min(sub+width, n)*k.n/4], words, k.n/4, width)
	}
	if s.anyOneByOne {
		for sub, ok := range s.exact[:n] {
			if ok == 0 && s.d[sub] == 0 {
				for i := range k.n / 4 {
					c := s.codes[sub*k.n+4*i:][:4]
					s.packed[sub*k.n/4+i] = uint32(c[0]) | uint32(c[1])<<8 | uint32(c[2])<<16 | uint32(c[3])<<24
				}
			}
		}
	}
}

// codesOf copies superblock i's scale and min codes.
func (s *kScratch) codesOf(i int, cs, cm []uint8) {
	for j := range cs {
		cs[j], cm[j] = uint8(s.cs[i*len(cs)+j]), uint8(s.cm[i*len(cs)+j])
	}
}
