//go:build goexperiment.simd && go1.27

package lanes

import (
	"math"
	"math/bits"
	"simd"
	"sync"

	"ggforge/internal/kernel/lane"
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
	"ggforge/quants/internal/search"
)

// The search of IQ2 and IQ3, codebook.GridSearch, with vectors. It replaces Superblock and
// search of package codebook.
//
// Rounding and the sums that decide between candidates have one candidate in each lane, with all elements of a
// sub-block broadcast: every lane adds in the order of the elements, and the 13 to 31 candidates fill the lanes but for
// a rest. Weights and roots are element by element. The choice among neighbours is in codebook_runs_simd.go; its
// version for 256 bits is in codebook_rows_simd_amd64.go and codebook_runs_simd_amd64.go. There an element of IQ3_S
// takes 530 instructions, of 5100 in scalar code (BENCHMARKS.md, "Instructions on amd64"), three in a cycle: runs that
// may have one point 18%, the others 21%, finding runs 11%, rounding 9%, tables and broadcasts 8%, sums 6%, repeating
// choices as the reference makes them 6%. The first fit of IQ2_XXS has a sub-block in each lane (searchPosTile).
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
	// neighbourChunk is the number of codes in a chunk of neighbourLists.
	neighbourChunk = 8
	// maxCandidates is the largest number of candidates of a codebook.GridSearch, 31,
	// rounded up to whole vectors.
	maxCandidates = 32
)

// neighbourSpan is where the list of a vector is in neighbourLists.codes.
type neighbourSpan struct {
	off  uint32
	n    uint8  // chunks, 0 for points
	code uint16 // of the vector
}

// neighbourLists are the lists of a codebook in whole chunks: the last is filled up
// with points that cannot win again, those of the same lanes of the chunk before,
// which make no ties between lanes, or the first of the list.
type neighbourLists struct {
	once  sync.Once
	spans []neighbourSpan // by rank
	codes []uint16
	short *shortLists // nil of IQ1
}

// chunked returns the lists of a codebook, built at the first call.
func chunked(cb *codebook.Codebook) *neighbourLists {
	n := &chunkedLists[0]
	for i, c := range [...]*codebook.Codebook{&codebook.IQ2_XXS, &codebook.IQ2_XS, &codebook.IQ2_S, &codebook.IQ3_XXS,
		&codebook.IQ3_S, &codebook.IQ1} {
		if c == cb {
			n = &chunkedLists[i]
		}
	}
	n.once.Do(func() {
		cb.Load()
		n.spans = make([]neighbourSpan, len(cb.Index))
		for code := range 1 << (cb.Bits * cb.Dim) {
			if cb.Dim == 8 && code&(code>>1)&0x5555 != 0 {
				continue // a level of 3
			}
			list := cb.List(uint16(code))
			n.spans[cb.Rank(uint16(code))] = neighbourSpan{uint32(len(n.codes)),
				uint8((len(list) + neighbourChunk - 1) / neighbourChunk), uint16(code)}
			n.codes = append(n.codes, list...)
			for len(n.codes)%neighbourChunk != 0 {
				again := list[0]
				if len(list) > neighbourChunk {
					again = n.codes[len(n.codes)-neighbourChunk]
				}
				n.codes = append(n.codes, again)
			}
		}
		if cb != &codebook.IQ1 {
			n.short = shortened(cb, n.spans)
		}
	})
	return n
}

var chunkedLists [6]neighbourLists

// gridLanes is the scratch of one superblock. By candidate means in the order of the candidates, from -steps up, filled
// up to whole vectors with copies. The arrays of vectors come first, in whole cache lines, so that none is in two.
type gridLanes struct {
	y, w, v [pack.QK_K]float32 // magnitudes, weights, their roots

	// Of one sub-block:
	id                  [maxCandidates]uint32     // by candidate: bits of steps/mx
	scale               [2 * maxCandidates]uint32 // by candidate: bits of 1/id; room as candidateRows
	yBits, wBits, vBits [search.MaxLen]uint32
	ranks               candidateRows                        // of the rounded vectors
	codes               candidateRows                        // of the chosen points
	own                 candidateRows                        // of candidates that have codes of their own
	a, b                [maxCandidates]float32               // by candidate: sums
	ys, ws              [search.MaxLen + 4][maxLanes]float32 // y and w, each in all lanes, and room: see rowPointers
	vs, wys             [search.MaxLen + 4][maxLanes]float32 // v and w*y
	values              [maxCandidates][maxLanes]float32     // by candidate: see valuesAVX2
	least, index        [maxLanes]uint32                     // see neighboursLanes8

	steps   [maxCandidates]float32 // by candidate: see candidates
	largest [16]uint32             // by sub-block: bits of the largest y, at least 0
	lanes   [maxLanes]uint32       // of a vector

	// The first fit of all sub-blocks: tiles, and scales by sub-block.
	yt, wt [tileLen]float32
	ct     [tileLen]int32
	first  [search.MaxLen]float32

	top     uint32               // bits of the largest odd number
	reach   uint32               // of the term that is added to |y|, in scales: see the head of codebook_runs_simd.go
	from    [maxCandidates]uint8 // the candidates of own
	changed bool                 // see refitLanes
	best    codebook.GridGroups
	one     [maxRuns]uint16 // see findRuns
	items   [maxRuns]uint16 // see findRuns, roundAgain
	lines   *gridLines
	rows    rowPointers
}

// candidateRows have a value for each candidate of a group, and room for vectors that begin
// at any.
type candidateRows [codebook.MaxGroups][2 * maxCandidates]uint32

var gridLanesPool = sync.Pool{New: func() any { return new(gridLanes) }}

// superblockLanes is superblock with the candidates of a sub-block in lanes.
func superblockLanes(p *codebook.GridSearch, r *codebook.GridFit, x, importance []float32) float32 {
	if !searchByAVX2 && simd.VectorBitSize() != 16*neighbourChunk {
		return p.Superblock(r, x, importance)
	}
	s := gridLanesPool.Get().(*gridLanes)
	defer gridLanesPool.Put(s)
	if s.lines == nil {
		s.lines = newGridLines()
	}
	s.point(p.Cb.Dim)
	lists := chunked(p.Cb)
	s.steps, s.top, s.reach = candidates(p), math.Float32bits(p.Top), lists.short.reach
	x = x[:pack.QK_K:pack.QK_K]
	var sum float32
	if p.EvenSigns {
		sum = arith.SumSquares(x)
	} else {
		sum = signsAndSum(s, &r.Signs, x)
	}
	mean := float32(float32(p.SumFactor*sum) / pack.QK_K)
	switch {
	case importance != nil:
		importanceLanes(s.w[:], s.v[:], x, importance[:pack.QK_K], math.Float32bits(mean))
	case p.PlainFactor == 0:
		squareLanes(s.w[:], s.v[:], x, 0)
	default:
		squareLanes(s.w[:], s.v[:], x, math.Float32bits(float32(p.PlainFactor*mean)))
	}
	if p.EvenSigns {
		clearUpper()
		splitSigns(s, &r.Signs, x, true)
	}
	largest(s, p.Size)
	clearUpper()
	if p.FitFirst {
		s.fitFirst(p)
	}
	groups := p.Size / p.Cb.Dim
	for j := range pack.QK_K / p.Size {
		signs, codes := r.Signs[p.Size/8*j:][:p.Size/8], r.Codes[groups*j:][:groups]
		y, w, v := s.y[p.Size*j:][:p.Size], s.w[p.Size*j:][:p.Size], s.v[p.Size*j:][:p.Size]
		mx := math.Float32frombits(s.largest[j])
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

// largestLanes sets largest to codebook.Max of the sub-blocks.
func largestLanes(s *gridLanes, size int) {
	width := (simd.Float32s{}).Len()
	for j := range pack.QK_K / size {
		y := s.y[size*j:][:size]
		var m simd.Float32s
		for i := 0; i < len(y); i += width {
			e := simd.LoadFloat32s(y[i:])
			m = e.IfElse(e.Greater(m), m)
		}
		m.ToBits().Store(s.lanes[:])
		most := uint32(0) // not negative, so in order
		for _, e := range s.lanes[:width] {
			most = max(most, e)
		}
		s.largest[j] = most
	}
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
func searchLanes(p *codebook.GridSearch, s *gridLanes, lists *neighbourLists, y, w, v []float32, mx, scale float32,
	codes []uint16) float32 {
	groups, n := len(codes), 2*p.Steps+1
	stepLanes(s, math.Float32bits(mx), n)
	spread(s, y, w, v)
	roundRows(s, p.Cb.Dim, groups, n)
	lineTables(s, p.Cb.Dim, groups, s.scale[n-1], s.scale[0], s.id[n-1])
	failed := neighboursOfRuns(p, lists, s, groups, n)
	count := n
	rows := &s.own
	if sumAll(p.Cb.Dim) {
		rows = &s.codes
	} else {
		n = s.distinct(groups, n)
	}
	sumRows(s, p.Cb.Dim, groups, n)
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
			best.Codes[g] = uint16(rows[g][at])
			best.OnGrid[g] = rows[g][at]&offGrid == 0
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
			failed = refitLanes(p, s, lists, best, all, at, scale, groups, count) || failed
			if s.changed {
				if a, b := p.Sums(best, y, w); b > 0 {
					scale = a / b
				}
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
		id.ToBits().Store(s.id[t:])
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

// roundLanes is roundLanes8 or roundLanes4.
func roundLanes(s *gridLanes, dim, groups, n int) {
	if dim == 8 {
		roundLanes8(s, groups, n)
	} else {
		roundLanes4(s, groups, n)
	}
}

// sumLanes is sumLanes8 or sumLanes4.
func sumLanes(s *gridLanes, dim, groups, n int) {
	if dim == 8 {
		sumLanes8(s, groups, n)
	} else {
		sumLanes4(s, groups, n)
	}
}

// splitSignsScalar sets y to the magnitudes of x, and signs, by 8 elements.
func splitSignsScalar(s *gridLanes, signs *[32]uint8, x []float32, even bool) {
	for g := range signs {
		if even {
			signs[g] = codebook.EvenSigns(s.y[8*g:][:8], x[8*g:][:8], s.w[8*g:][:8])
		} else {
			signs[g] = codebook.SplitSigns(s.y[8*g:][:8], x[8*g:][:8])
		}
	}
}

// distinct sets own to the codes of candidates that are not those of the candidate after it, and
// returns their number.
func (s *gridLanes) distinct(groups, n int) int {
	var masks [codebook.MaxGroups]uint32
	changes(&masks, &s.codes, groups, n)
	var all uint32
	for _, m := range masks[:groups] {
		all |= m
	}
	k := 0
	for ; all != 0; all &= all - 1 {
		s.from[k&(maxCandidates-1)] = uint8(bits.TrailingZeros32(all))
		k++
	}
	for g := range groups {
		row, own := &s.codes[g], &s.own[g]
		for i, t := range s.from[:k] {
			own[i] = row[t&(maxCandidates-1)]
		}
	}
	return k
}

// refitLanes sets the codes of best, the candidate with place at in the sums or without sums, for its scale:
// of all groups or of those that are off grid. It sets changed if codes are others than before, or
// there was no candidate, and reports whether a group had no neighbour with a finite error.
//
// Between two of n neighbouring candidates that round a group to the same vector and have the
// same point, all scales do: see the head of codebook_runs_simd.go.
func refitLanes(p *codebook.GridSearch, s *gridLanes, lists *neighbourLists, best *codebook.GridGroups,
	all bool, at int,
	scale float32, groups, n int) bool {
	scaleBits, id := math.Float32bits(scale), math.Float32bits(1/scale) // positive, so in order
	t := 0
	if at >= 0 {
		t = at
		if !sumAll(p.Cb.Dim) {
			t = int(s.from[at&(maxCandidates-1)])
		}
	}
	for t+2 < n && s.id[t+1] < id {
		t++
	}
	for t > 0 && s.id[t] > id {
		t--
	}
	between := s.id[t] <= id && id <= s.id[t+1] && s.scale[t+1] <= scaleBits && scaleBits <= s.scale[t]
	s.changed = at < 0
	doubts := &s.lines.doubts
	clear(doubts[:])
	any := false
	for g := range groups {
		if !all && best.OnGrid[g] {
			continue
		}
		code := s.codes[g][t]
		if rank := s.ranks[g][t]; between && rank == s.ranks[g][t+1] && rank < edge && code == s.codes[g][t+1] {
			s.changed = s.changed || uint16(code) != best.Codes[g]
			best.Codes[g] = uint16(code)
			continue
		}
		s.codes[g][0] = unsure
		doubts[g] = 1
		any = true
	}
	if !any {
		return false
	}
	s.id[0], s.scale[0] = id, scaleBits
	failed := neighboursAgain(p, lists, s, groups, 1)
	for g, d := range doubts[:groups] {
		if code := uint16(s.codes[g][0]); d != 0 {
			s.changed = s.changed || code != best.Codes[g]
			best.Codes[g] = code
		}
	}
	return failed
}
