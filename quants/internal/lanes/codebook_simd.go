//go:build goexperiment.simd && go1.27

package lanes

import (
	"math"
	"simd"
	"sync"

	"ggforge/internal/lane"
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
	"ggforge/quants/internal/search"
)

// The search of IQ2 and IQ3, codebook.GridSearch, with vectors. It replaces Superblock and
// search of package codebook.
//
// Rounding and the sums that decide between candidates have one candidate in each
// lane, with all elements of a sub-block broadcast: every lane adds in the order
// of the elements, and the 13 to 31 candidates fill the lanes but for a rest.
// Weights and roots are element by element. Most of the time goes to the choice
// among near points, where a lane is a point of the list; see near. Ratios to the
// scalar code on Zen 3, Go 1.27.4: 4.1 (IQ2_S) to 4.9 (IQ2_XS, IQ3_XXS) at 256
// bits, 1.5 to 2 at 128; not measured at 512.
//
// At 256 bits the near points take 55 to 70% of the time, sorting their items 10 to
// 15%, rounding and sums 5 to 10% each. The first fit of IQ2_XXS has a sub-block in
// each lane (searchPosTile).
//
// Scalar floats are legacy instructions, which are slow while the upper halves of
// vector registers are in use: hence clearUpper at the end of a run of vector
// functions, and floats that are to be broadcast come as integers.

func QuantizeIQ2_XXS(dst []byte, src, importance []float32) {
	scalar.EncodeIQ2_XXS(dst, src, importance, superblockLanes)
}

func QuantizeIQ2_XS(dst []byte, src, importance []float32) {
	scalar.EncodeIQ2_XS(dst, src, importance, superblockLanes)
}

func QuantizeIQ2_S(dst []byte, src, importance []float32) {
	scalar.EncodeIQ2_S(dst, src, importance, superblockLanes)
}

func QuantizeIQ3_XXS(dst []byte, src, importance []float32) {
	scalar.EncodeIQ3_XXS(dst, src, importance, superblockLanes)
}

func QuantizeIQ3_S(dst []byte, src, importance []float32) {
	scalar.EncodeIQ3_S(dst, src, importance, superblockLanes)
}

const (
	// maxLanes is the largest number of float32 lanes.
	maxLanes = 16
	// nearChunk is the number of codes in a chunk of nearLists.
	nearChunk = 8
	// maxCandidates is the largest number of candidates of a codebook.GridSearch, 31,
	// rounded up to whole vectors.
	maxCandidates = 32
)

// nearSpan is where the list of a vector is in nearLists.codes.
type nearSpan struct {
	off  uint32
	n    uint16 // chunks, 0 for points
	code uint16 // of the vector
}

// nearLists are the lists of a codebook in whole chunks: the last is filled up
// with points that cannot win again, those of the same lanes of the chunk before,
// which make no ties between lanes, or the first of the list.
type nearLists struct {
	once  sync.Once
	spans []nearSpan // by rank
	codes []uint16
}

// chunked returns the lists of a codebook, built at the first call.
func chunked(cb *codebook.Codebook) *nearLists {
	n := &chunkedLists[0]
	for i, c := range [...]*codebook.Codebook{&codebook.IQ2_XXS, &codebook.IQ2_XS, &codebook.IQ2_S, &codebook.IQ3_XXS, &codebook.IQ3_S, &codebook.IQ1} {
		if c == cb {
			n = &chunkedLists[i]
		}
	}
	n.once.Do(func() {
		cb.Load()
		n.spans = make([]nearSpan, len(cb.Index))
		for code := range 1 << (cb.Bits * cb.Dim) {
			if cb.Dim == 8 && code&(code>>1)&0x5555 != 0 {
				continue // a level of 3
			}
			list := cb.List(uint16(code))
			n.spans[cb.Rank(uint16(code))] = nearSpan{uint32(len(n.codes)), uint16((len(list) + nearChunk - 1) / nearChunk), uint16(code)}
			n.codes = append(n.codes, list...)
			for len(n.codes)%nearChunk != 0 {
				again := list[0]
				if len(list) > nearChunk {
					again = n.codes[len(n.codes)-nearChunk]
				}
				n.codes = append(n.codes, again)
			}
		}
	})
	return n
}

var chunkedLists [6]nearLists

// gridLanes is the scratch of one superblock. By candidate means in the order of
// the candidates, from -steps up, filled up to whole vectors with copies.
type gridLanes struct {
	y, w, v [pack.QK_K]float32 // magnitudes, weights, their roots

	// The first fit of all sub-blocks: tiles, and scales by sub-block.
	yt, wt [tileLen]float32
	ct     [tileLen]int32
	first  [search.MaxLen]float32

	steps [maxCandidates]float32 // by candidate: see candidates

	// Of one sub-block:
	id                  [maxCandidates]float32 // by candidate: steps
	scale               [maxCandidates]uint32  // by candidate: bits of 1/id
	yBits, wBits, vBits [search.MaxLen]uint32
	ranks               [codebook.MaxGroups][maxCandidates]uint32 // by group, candidate: of the rounded vectors
	codes               [codebook.MaxGroups][maxCandidates]uint32 // by group, candidate: of the chosen points
	a, b                [maxCandidates]float32                    // by candidate: sums
	ys, ws              [search.MaxLen][maxLanes]float32          // y and w, each in all lanes
	vs, wys             [search.MaxLen][maxLanes]float32          // v and w*y
	values              [maxCandidates][maxLanes]float32          // by candidate: see setValuesLanes
	best                codebook.GridGroups
	least, index        [maxLanes]uint32                           // see nearLanes8
	one, more           [codebook.MaxGroups * maxCandidates]uint16 // see sortByLength
}

var gridLanesPool = sync.Pool{New: func() any { return new(gridLanes) }}

// superblockLanes is superblock with the candidates of a sub-block in lanes.
func superblockLanes(p *codebook.GridSearch, r *codebook.GridFit, x, importance []float32) float32 {
	s := gridLanesPool.Get().(*gridLanes)
	defer gridLanesPool.Put(s)
	lists := chunked(p.Cb)
	s.steps = candidates(p)
	mean := float32(float32(p.SumFactor*arith.SumSquares(x)) / pack.QK_K)
	x = x[:pack.QK_K:pack.QK_K]
	switch {
	case importance != nil:
		importanceLanes(s.w[:], s.v[:], x, importance[:pack.QK_K], math.Float32bits(mean))
	case p.PlainFactor == 0:
		squareLanes(s.w[:], s.v[:], x, 0)
	default:
		squareLanes(s.w[:], s.v[:], x, math.Float32bits(float32(p.PlainFactor*mean)))
	}
	clearUpper()
	for g := range pack.QK_K / 8 {
		if p.EvenSigns {
			r.Signs[g] = codebook.EvenSigns(s.y[8*g:][:8], x[8*g:][:8], s.w[8*g:][:8])
		} else {
			r.Signs[g] = codebook.SplitSigns(s.y[8*g:][:8], x[8*g:][:8])
		}
	}
	if p.FitFirst {
		s.fitFirst(p)
	}
	groups := p.Size / p.Cb.Dim
	for j := range pack.QK_K / p.Size {
		signs, codes := r.Signs[p.Size/8*j:][:p.Size/8], r.Codes[groups*j:][:groups]
		y, w, v := s.y[p.Size*j:][:p.Size], s.w[p.Size*j:][:p.Size], s.v[p.Size*j:][:p.Size]
		mx := codebook.Max(y)
		scale := mx / p.Top
		r.Zero[j] = mx < p.Limit
		if p.FitFirst && !r.Zero[j] {
			scale = s.first[j]
			mx = scale * 3
			r.Zero[j] = mx <= 0
		}
		if r.Zero[j] {
			r.Scales[j] = 0
			clear(codes)
			clear(signs)
			continue
		}
		scale = searchLanes(p, s, lists, y, w, v, mx, scale, codes)
		if scale < 0 {
			scale = -scale
			for g := range signs {
				signs[g] = ^signs[g]
			}
		}
		r.Scales[j] = scale
	}
	return codebook.Max(r.Scales[:pack.QK_K/p.Size])
}

// posFirst is the table of the fit by levels 0..4.
var posFirst = newPosTable(4)

// fitFirst sets s.first to the scales that search.Pos finds for the sub-blocks.
func (s *gridLanes) fitFirst(p *codebook.GridSearch) {
	width := lane.Width()
	tile := p.Size * width
	yt, wt, ct := s.yt[:tile], s.wt[:tile], s.ct[:tile]
	for off := 0; off < pack.QK_K; off += tile {
		end := min(off+tile, pack.QK_K)
		lane.Load(yt, s.y[off:end], p.Size, width)
		lane.Load(wt, s.w[off:end], p.Size, width)
		searchPosTile(posFirst, yt, wt, ct, s.first[off/p.Size:])
	}
	clearUpper()
}

// candidates returns top + step*t for t = -steps..steps, by candidate.
func candidates(p *codebook.GridSearch) (c [maxCandidates]float32) {
	for i := range c {
		t := min(i-p.Steps, p.Steps)
		c[i] = p.Top + float32(float32(t)*p.Step)
	}
	return c
}

// searchLanes is search.
func searchLanes(p *codebook.GridSearch, s *gridLanes, lists *nearLists, y, w, v []float32, mx, scale float32, codes []uint16) float32 {
	groups, n := len(codes), 2*p.Steps+1
	stepLanes(s, math.Float32bits(mx), n)
	spreadLanes(s, y, w, v)
	if p.Cb.Dim == 8 {
		roundLanes8(s, groups, n)
	} else {
		roundLanes4(s, groups, n)
	}
	failed := near(p.Cb, lists, s, groups, n)
	if p.Cb.Dim == 8 {
		sumLanes8(s, groups, n)
	} else {
		sumLanes4(s, groups, n)
	}
	clearUpper()

	var bestFit float32
	at := -1
	for t, a := range s.a[:n] {
		if b := s.b[t]; b > 0 && a*a > bestFit*b {
			scale = a / b
			bestFit = scale * a
			at = t
		}
	}
	best := &s.best
	for g := range groups {
		if at >= 0 {
			best.Codes[g] = uint16(s.codes[g][at])
			best.OnGrid[g] = lists.spans[s.ranks[g][at]].n == 0
		} else {
			best.Codes[g] = 0
			best.OnGrid[g] = !p.OffGrid
		}
	}
	if scale > 0 {
		refit, all := p.Refit == codebook.RefitAlways, p.Refit != codebook.RefitOffGrid
		for g := range groups {
			refit = refit || !best.OnGrid[g]
		}
		if refit {
			s.id[0] = 1 / scale
			s.scale[0] = math.Float32bits(scale)
			if p.Cb.Dim == 8 {
				roundLanes8(s, groups, 1)
			} else {
				roundLanes4(s, groups, 1)
			}
			for g := range groups {
				if !all && best.OnGrid[g] {
					s.ranks[g][0] = uint32(p.Cb.Rank(best.Codes[g]))
				}
			}
			failed = near(p.Cb, lists, s, groups, 1) || failed
			clearUpper()
			for g := range groups {
				best.Codes[g] = uint16(s.codes[g][0])
			}
			if a, b := p.Sums(best, y, w); b > 0 {
				scale = a / b
			}
		}
	}
	if failed {
		scale = float32(math.Inf(1))
	}
	copy(codes, best.Codes[:])
	return scale
}

// importanceLanes sets w to importance*sqrt(mean + x*x) and v to its root.
func importanceLanes(w, v, x, importance []float32, mean uint32) {
	m := simd.BroadcastUint32s(mean).BitsToFloat32()
	l := m.Len()
	for i := 0; i < len(x); i += l {
		e := simd.LoadFloat32s(x[i:])
		e = simd.LoadFloat32s(importance[i:]).Mul(m.Add(e.Mul(e)).Sqrt())
		e.Store(w[i:])
		e.Sqrt().Store(v[i:])
	}
}

// squareLanes sets w to plus + x*x and v to its root.
func squareLanes(w, v, x []float32, plus uint32) {
	m := simd.BroadcastUint32s(plus).BitsToFloat32()
	l := m.Len()
	for i := 0; i < len(x); i += l {
		e := simd.LoadFloat32s(x[i:])
		e = m.Add(e.Mul(e))
		e.Store(w[i:])
		e.Sqrt().Store(v[i:])
	}
}

// stepLanes sets s.id to s.steps/mx and s.scale to 1/id, for n candidates.
func stepLanes(s *gridLanes, mx uint32, n int) {
	m := simd.BroadcastUint32s(mx).BitsToFloat32()
	one := simd.BroadcastUint32s(0x3F800000).BitsToFloat32()
	l := m.Len()
	for t := 0; t < n; t += l {
		id := simd.LoadFloat32s(s.steps[t:]).Div(m)
		id.Store(s.id[t:])
		one.Div(id).ToBits().Store(s.scale[t:])
	}
}

// spreadLanes fills the arrays of values that are the same in all lanes. Values go
// by way of integers: see the head of the file.
func spreadLanes(s *gridLanes, y, w, v []float32) {
	w, v = w[:len(y)], v[:len(y)]
	for i, l := 0, (simd.Float32s{}).Len(); i < len(y); i += l {
		simd.LoadFloat32s(y[i:]).ToBits().Store(s.yBits[i:])
		simd.LoadFloat32s(w[i:]).ToBits().Store(s.wBits[i:])
		simd.LoadFloat32s(v[i:]).ToBits().Store(s.vBits[i:])
	}
	for i := range y {
		e := simd.BroadcastUint32s(s.yBits[i]).BitsToFloat32()
		f := simd.BroadcastUint32s(s.wBits[i]).BitsToFloat32()
		e.Store(s.ys[i][:])
		f.Store(s.ws[i][:])
		f.Mul(e).Store(s.wys[i][:])
		simd.BroadcastUint32s(s.vBits[i]).BitsToFloat32().Store(s.vs[i][:])
	}
}

// roundLanes8 sets ranks to those of the levels nearest to (y*id - 1)/2, half to
// even. arith.RoundEven is moved by a bit, as halving is exact: twice its magic number is added
// to twice the number, which gives the same low bits. Levels keep the 1<<22 of arith.RoundEven,
// whose multiple is taken off at the end, modulo 1<<32.
func roundLanes8(s *gridLanes, groups, n int) {
	one := simd.BroadcastUint32s(0x3F800000).BitsToFloat32()
	magic := simd.BroadcastUint32s(0x4BC00000).BitsToFloat32() // 3<<23
	low := simd.BroadcastUint32s(0x7FFFFF)
	bias := simd.BroadcastInt32s(1 << 22)
	top := simd.BroadcastInt32s(1<<22 + 2)
	excess := simd.BroadcastUint32s((6561 - 1) / 2 << 22 & math.MaxUint32)
	for t := 0; t < n; t += one.Len() {
		id := simd.LoadFloat32s(s.id[t:])
		for g := range groups {
			ys := s.ys[8*g:][:8]
			var r simd.Int32s
			for i := 7; i >= 0; i-- {
				v := id.Mul(simd.LoadFloat32s(ys[i][:])).Sub(one).Add(magic)
				l := v.ToBits().And(low).BitsToInt32().Max(bias).Min(top)
				r = r.Add(r).Add(r).Add(l)
			}
			r.ToBits().Sub(excess).Store(s.ranks[g][t:])
		}
	}
}

// roundLanes4 is roundLanes8 for codebooks of dimension 4, whose ranks are codes.
func roundLanes4(s *gridLanes, groups, n int) {
	one := simd.BroadcastUint32s(0x3F800000).BitsToFloat32()
	magic := simd.BroadcastUint32s(0x4BC00000).BitsToFloat32() // 3<<23
	low := simd.BroadcastUint32s(0x7FFFFF)
	bias := simd.BroadcastInt32s(1 << 22)
	top := simd.BroadcastInt32s(1<<22 + 7)
	excess := simd.BroadcastUint32s((4096 - 1) / 7 << 22 & math.MaxUint32)
	for t := 0; t < n; t += one.Len() {
		id := simd.LoadFloat32s(s.id[t:])
		for g := range groups {
			ys := s.ys[4*g:][:4]
			var r simd.Int32s
			for i := 3; i >= 0; i-- {
				v := id.Mul(simd.LoadFloat32s(ys[i][:])).Sub(one).Add(magic)
				l := v.ToBits().And(low).BitsToInt32().Max(bias).Min(top)
				r = r.ShiftAllLeft(3).Add(l)
			}
			r.ToBits().Sub(excess).Store(s.ranks[g][t:])
		}
	}
}

// sumLanes8 sets a and b to sum(w*y*q) and sum(w*q*q) of the codes.
func sumLanes8(s *gridLanes, groups, n int) {
	one := simd.BroadcastUint32s(1)
	mask := simd.BroadcastUint32s(6)
	for t := 0; t < n; t += one.Len() {
		var a, b simd.Float32s
		for g := range groups {
			ws, wys := s.ws[8*g:][:8], s.wys[8*g:][:8]
			code := simd.LoadUint32s(s.codes[g][t:]).ShiftAllLeft(1)
			for i := range 8 {
				q := code.And(mask).Or(one).BitsToInt32().ConvertToFloat32()
				code = code.ShiftAllRight(2)
				a = a.Add(simd.LoadFloat32s(wys[i][:]).Mul(q))
				b = b.Add(simd.LoadFloat32s(ws[i][:]).Mul(q).Mul(q))
			}
		}
		a.Store(s.a[t:])
		b.Store(s.b[t:])
	}
}

// sumLanes4 is sumLanes8 for codebooks of dimension 4.
func sumLanes4(s *gridLanes, groups, n int) {
	one := simd.BroadcastUint32s(1)
	mask := simd.BroadcastUint32s(14)
	for t := 0; t < n; t += one.Len() {
		var a, b simd.Float32s
		for g := range groups {
			ws, wys := s.ws[4*g:][:4], s.wys[4*g:][:4]
			code := simd.LoadUint32s(s.codes[g][t:]).ShiftAllLeft(1)
			for i := range 4 {
				q := code.And(mask).Or(one).BitsToInt32().ConvertToFloat32()
				code = code.ShiftAllRight(3)
				a = a.Add(simd.LoadFloat32s(wys[i][:]).Mul(q))
				b = b.Add(simd.LoadFloat32s(ws[i][:]).Mul(q).Mul(q))
			}
		}
		a.Store(s.a[t:])
		b.Store(s.b[t:])
	}
}

// sortByLength sets the codes of n candidates to their vectors and returns those
// that are not points, as group<<8 | candidate: first those with lists of one chunk,
// then the others. No branch depends on lengths, which are hard to predict.
func (s *gridLanes) sortByLength(lists *nearLists, groups, n int) (one, more []uint16) {
	spans := lists.spans
	n1, n2 := uint32(0), uint32(0)
	for g := range groups {
		ranks, codes := s.ranks[g][:n], s.codes[g][:n]
		for t, r := range ranks {
			span := spans[r]
			codes[t] = uint32(span.code)
			item := uint16(g<<8 | t)
			s.one[n1&(codebook.MaxGroups*maxCandidates-1)] = item
			s.more[n2&(codebook.MaxGroups*maxCandidates-1)] = item
			off, is1 := (uint32(span.n)-1)>>31^1, (uint32(span.n)^1-1)>>31
			n1 += is1
			n2 += off - is1
		}
	}
	return s.one[:n1], s.more[:n2]
}

// nearScalar sets the codes of the items of sortByLength by codebook.nearest.
func nearScalar(cb *codebook.Codebook, s *gridLanes, items []uint16) (failed bool) {
	clearUpper()
	top := 2
	if cb.Dim == 4 {
		top = 7
	}
	for _, item := range items {
		g, t := item>>8&(codebook.MaxGroups-1), item&(maxCandidates-1)
		var values [8]float32
		for l := range values {
			values[l] = float32(math.Float32frombits(s.scale[t]) * float32(2*l+1))
		}
		var y, v [8]float32
		for i := range cb.Dim {
			y[i] = s.ys[cb.Dim*int(g)+i][0]
			v[i] = s.vs[cb.Dim*int(g)+i][0]
		}
		var c codebook.Costs
		c.Set(y[:cb.Dim], v[:cb.Dim], values[:top+1])
		code, ok := cb.Nearest(cb.List(uint16(s.codes[g][t])), &c)
		failed = failed || !ok
		s.codes[g][t] = uint32(code)
	}
	return failed
}
