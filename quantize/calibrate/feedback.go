package calibrate

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/gemm"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
	"ggforge/quants"
	"ggforge/quants/parts"
)

// feedback is error feedback (GPTQ, LDLQ): columns are rounded one after the other, each with a target that compensates
// the errors of those before it. With H = L D Lᵀ the error is Σ D_i (e_i + Σ_{k>i} L_ki e_k)², so from the last column
// to the first each can compensate for the later ones. Columns with large mean squares come last and so are rounded
// first.
type feedback struct {
	n     int
	order []int     // place -> column; blocks and sub-blocks stay together
	l     []float32 // [n, n]: L by places, rows k, columns i < k, and its transpose; not the diagonal
	d     []float32 // by column
	// search looks for scales and minima once more than the encoders do.
	search bool
	// tries are changes of the codes of scales and minima of sub-blocks that are tried inside feedback, the first one none;
	// nil for formats without codes.
	tries [][2]int16
	grid  *grid
	// conditional has, for a format with a grid, the moments of each sub-block given the columns that are rounded
	// later (Schur complement): [n, Sub], by column.
	conditional []float32
	forms       []uint32
}

// feedback returns the factors for a format. The last ones are cached: matrices with the same input often have types
// with the same block sizes.
func (m *Moments) feedback(ctx context.Context, f *parts.Format, scratches []scratch) (*feedback, error) {
	if m.factors != nil && m.cut == [2]int{f.Block, f.Sub} {
		return m.factors, nil
	}
	m.factors = nil // makes room
	b, err := newFeedback(ctx, m, f, scratches)
	if err == nil {
		m.factors, m.cut = b, [2]int{f.Block, f.Sub}
	}
	return b, err
}

// newFeedback factors moments for a format.
func newFeedback(ctx context.Context, m *Moments, f *parts.Format, scratches []scratch) (*feedback, error) {
	b := &feedback{n: m.n, order: orderOf(m, f), l: make([]float32, m.n*m.n), d: make([]float32, m.n)}
	n, l := b.n, b.l
	if err := parallel.For(ctx, len(scratches), n, func(i, _ int) error {
		row, from := l[i*n:][:n], m.h[b.order[i]*n:][:n]
		for k := range row[:i+1] {
			row[k] = from[b.order[k]]
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if err := cholesky(ctx, l, n, scratches); err != nil {
		return nil, err
	}
	by := make([]float32, n)
	for i := range n {
		d := l[i*n+i]
		b.d[b.order[i]], by[i] = d*d, d
	}
	const some = 64
	return b, parallel.For(ctx, len(scratches), (n+some-1)/some, func(i, _ int) error { // columns
		from, to := i*some, min((i+1)*some, n)
		for k := from; k < n; k++ {
			row := l[k*n:]
			for c := from; c < min(to, k); c++ {
				row[c] /= by[c]
				l[c*n+k] = row[c]
			}
		}
		return nil
	})
}

// orderOf returns the places of columns: by rising mean square, blocks as a whole, then
// sub-blocks, then columns.
func orderOf(m *Moments, f *parts.Format) []int {
	sum := func(from, n int) (s float64) {
		for i := from; i < from+n; i++ {
			s += float64(m.h[i*m.n+i])
		}
		return s
	}
	sorted := func(from, n, size int) []int {
		var list []int
		for at := from; at < from+n; at += size {
			list = append(list, at)
		}
		slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(sum(a, size), sum(b, size)) })
		return list
	}
	var order []int
	for _, block := range sorted(0, m.n, f.Block) {
		for _, sub := range sorted(block, f.Block, f.Sub) {
			order = append(order, sorted(sub, f.Sub, 1)...)
		}
	}
	return order
}

// cholesky sets the lower triangle of a, which has that of a symmetric matrix, to C with
// C Cᵀ that matrix.
func cholesky(ctx context.Context, a []float32, n int, scratches []scratch) error {
	var inverse gemm.Panels
	for at := 0; at < n; at += visitColumns {
		w := min(visitColumns, n-at)
		// the block on the diagonal
		for i := at; i < at+w; i++ {
			for k := at; k <= i; k++ {
				s := float64(a[i*n+k]) - vecmath.SumProducts(a[i*n+at:i*n+k], a[k*n+at:k*n+k])
				if k < i {
					a[i*n+k] = float32(s / float64(a[k*n+k]))
					continue
				}
				if !(s > 0) {
					return fault.Errorf(fault.Broken,
						"second moments are not positive definite at column %d: more damping is needed",
						i)
				}
				a[i*n+i] = float32(math.Sqrt(s))
			}
		}
		below := n - at - w
		if below == 0 {
			break
		}
		// the rows below it times the inverse of its transpose
		inverse.PackRight(invertLower(a[at*n+at:], n, w), w, w, w)
		if err := parallel.For(ctx, len(scratches), (below+tile-1)/tile, func(i, worker int) error {
			s, from := &scratches[worker], at+w+i*tile
			rows := min(tile, n-from)
			s.left.Pack(a[from*n+at:], n, rows, w)
			gemm.Multiply(&s.scratch, a[from*n+at:], n, &s.left, &inverse, w)
			return nil
		}); err != nil {
			return err
		}
		tiles := (below + tile - 1) / tile
		if err := parallel.For(ctx, len(scratches), tiles*(tiles+1)/2, func(i, worker int) error {
			row := 0
			for i > row {
				row++
				i -= row
			}
			s, x, y := &scratches[worker], at+w+row*tile, at+w+i*tile
			rows, columns := min(tile, n-x), min(tile, n-y)
			s.left.Pack(a[x*n+at:], n, rows, w)
			s.right.PackRight(a[y*n+at:], n, columns, w)
			p := buffer.Resize(&s.y, rows*columns)
			if row == i {
				gemm.MultiplyLower(&s.scratch, p, columns, &s.left, &s.right)
			} else {
				gemm.Multiply(&s.scratch, p, columns, &s.left, &s.right, columns)
			}
			for r := range rows {
				to := a[(x+r)*n+y:][:min(columns, x+r+1-y)]
				for c := range to {
					to[c] -= p[r*columns+c]
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// invertLower returns the inverse of the lower triangle of w rows of l, which are ld apart: [w, w], 0 above the diagonal.
func invertLower(l []float32, ld, w int) []float32 {
	m := make([]float32, w*w)
	factors := make([]uint32, w)
	for i := range w {
		row, by := l[i*ld:][:i+1], 1/l[i*ld+i]
		for k, v := range row[:i] {
			factors[k] = math.Float32bits(float32(-v * by))
		}
		vecmath.Combine(m[i*w:][:i], m, w, factors[:i])
		m[i*w+i] = by
	}
	return m
}

// groups prepares for a grid, if there is one: conditional is L D Lᵀ of the places of each
// sub-block alone.
func (b *feedback) groups(ctx context.Context, f *parts.Format, g *grid, workers int) error {
	if g == nil {
		return nil
	}
	sub := f.Sub
	b.grid, b.conditional = g, make([]float32, b.n*sub)
	if err := parallel.For(ctx, workers, b.n/sub, func(block, _ int) error {
		at := block * sub
		lower := func(i, k int) float64 {
			if i == k {
				return 1
			}
			return float64(b.l[(at+i)*b.n+at+k])
		}
		for i := range sub {
			for k := range i + 1 {
				sum := 0.0
				for p := range k + 1 {
					sum += float64(float64(lower(i, p)*float64(b.d[b.order[at+p]])) * lower(k, p))
				}
				x, y := b.order[at+i], b.order[at+k]
				b.conditional[x*sub+y%sub], b.conditional[y*sub+x%sub] = float32(sum), float32(sum)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	b.forms = g.forms(b.conditional, sub, b.n, sub)
	return nil
}

// rows encodes rows with error feedback.
func (b *feedback) rows(ctx context.Context, f *parts.Format, all []rowState, v []float32, scratches []scratch) error {
	n, rows, ld := b.n, len(all), b.n+gap
	room := feedbackPool.Get().(*feedbackRoom)
	defer feedbackPool.Put(room)
	add, e := make([]float32, rows*ld), make([]float32, rows*visitColumns) // by places
	l := buffer.Resize(&room.l, visitColumns*blockStride)
	for len(room.states) < len(scratches) {
		room.states = append(room.states, &feedbackState{}) // each by itself: large objects begin with pages
	}
	for _, s := range room.states {
		s.data, s.l = nil, l
	}
	var left gemm.Panels
	last := (n - 1) / visitColumns * visitColumns
	for at := last; at >= 0; at -= visitColumns {
		w := min(visitColumns, n-at)
		for i := range w {
			copy(l[i*blockStride:][:w], b.l[(at+i)*n+at:])
		}
		if err := parallel.For(ctx, len(scratches), (rows+feedbackRows-1)/feedbackRows, func(i, worker int) error {
			r, to := i*feedbackRows, min((i+1)*feedbackRows, rows)
			return b.encodeBlock(f, room.states[worker], all[r:to], at, w, add[r*ld+at:], e[r*w:], v[r*n:])
		}); err != nil {
			return err
		}
		if at == 0 {
			break
		}
		left.Pack(e, w, rows, w)
		if err := parallel.For(ctx, len(scratches), (at+tile-1)/tile, func(i, worker int) error {
			s, from := &scratches[worker], i*tile
			count := min(tile, at-from)
			s.right.PackRight(b.l[from*n+at:], n, count, w)
			gemm.MultiplyAdd(&s.scratch, add[from:], ld, &left, &s.right, count)
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// gap keeps lines of matrices from being a power of two apart, by which they would share few places of the cache.
const gap = 16

// blockStride is how far the rows of the factors of a block are apart.
const blockStride = visitColumns + gap

// feedbackRows is the number of rows that go through a block together: their scales are searched at once.
const feedbackRows = vecmath.RoundingSize

// feedbackRoom has buffers for rows whose size does not depend on the model.
type feedbackRoom struct {
	l      []float32        // [visitColumns, blockStride]
	states []*feedbackState // of each worker
}

// feedbackPool has those not in use.
var feedbackPool = sync.Pool{New: func() any { return new(feedbackRoom) }}

// feedbackState has the buffers of a worker for a block.
type feedbackState struct {
	rounding vecmath.Rounding // first: they begin with cache lines
	tries    vecmath.Tries

	l       []float32 // factors of the block, [w, blockStride]
	targets [feedbackRows * 256]float32
	weights [256]float32
	data    []byte
	bits    [nearby]uint32
	search  searcher
	state   state
}

// nearby is the number of places whose errors are fed back one by one; earlier places get them together. It divides
// the columns of sub-blocks.
const nearby = vecmath.RoundingSize

// encodeBlock rounds the columns of places [at, at+w) of rows: add are the corrections for the errors of earlier columns, by
// place, n+gap values for each row; e, w values for each row, is set to the errors.
func (b *feedback) encodeBlock(f *parts.Format, s *feedbackState, all []rowState, at, w int, add, e, v []float32) error {
	codec, size := quants.Lookup(f.Type), int(f.Type.BlockBytes())
	if s.data == nil {
		s.data = make([]byte, feedbackRows*size)
		if b.grid == nil {
			s.rounding.Levels = vecmath.NewLevels(f.Levels)
			s.search.candidates.Levels, s.tries.Levels = s.rounding.Levels, s.rounding.Levels
		}
	}
	for end := w; end > 0; end -= f.Block {
		from := end - f.Block // places of one block
		first := b.order[at+from] / f.Block * f.Block
		for r := range all {
			target, add := s.targets[r*f.Block:], add[r*(b.n+gap):]
			for p := from; p < end; p++ {
				c := b.order[at+p]
				target[c-first] = all[r].w[c] + add[p]
			}
		}
		for p := from; p < end; p++ {
			c := b.order[at+p]
			s.weights[c-first] = b.d[c]
		}
		if err := codec.Quantize(s.data[:len(all)*size], s.targets[:len(all)*f.Block], f.Block,
			s.weights[:f.Block]); err != nil {
			return err
		}
		for r := range all {
			to := &all[r].blocks[first/f.Block]
			f.Unpack(to, s.data[r*size:])
			if !finite(to.D) || !finite(to.Min) {
				to.D, to.Min = 0, 0
			}
			if b.search && f.Grid == nil {
				s.search.search(f, to, s.targets[r*f.Block:][:f.Block], s.weights[:f.Block])
			}
			if b.grid != nil {
				b.roundGroups(f, s, &all[r], to, at, from, end, add[r*(b.n+gap):][:w], e[r*w:][:w], v[r*b.n:][:b.n])
			}
		}
		if b.grid == nil {
			b.round(f, s, all, at, from, end, add, e, v, w)
		}
	}
	return nil
}

// round rounds the columns of places at+from to at+end of rows, which are a block: some places
// of all rows at once, then these meet those before them, row by row.
func (b *feedback) round(f *parts.Format, s *feedbackState, all []rowState, at, from, end int, add, e,
	v []float32, w int) {
	first, x := b.order[at+from]/f.Block*f.Block, &s.rounding
	for group := end - nearby; group >= from; group -= nearby {
		j := (b.order[at+group] - first) / f.Sub
		if sub := group + nearby - f.Sub; b.tries != nil && (sub-from)%f.Sub == 0 {
			b.tryCodes(f, s, all, at, sub, j, first, add)
		}
		for p := range nearby {
			c, near := b.order[at+group+p], s.l[(group+p)*blockStride+group:][:p]
			for i, l := range near {
				x.Near[p][i] = math.Float32bits(l)
			}
			for r := range all {
				x.Weight[p][r], x.Add[p][r] = all[r].w[c], add[r*(b.n+gap)+group+p]
			}
		}
		for r := range all {
			x.Scale[r], x.Min[r] = f.Scale(&all[r].blocks[first/f.Block], j)
		}
		x.Round()
		for r := range all {
			row := &all[r]
			levels := row.blocks[first/f.Block].Levels[:f.Block]
			for p := nearby - 1; p >= 0; p-- {
				c, value := b.order[at+group+p], x.Value[p][r]
				if x.Scale[r] != 0 {
					levels[c-first] = int8(x.Level[p][r])
				}
				v[r*b.n+c] = value
				off := row.w[c] - value
				e[r*w+group+p], s.bits[p] = off, math.Float32bits(off)
				loss := float64(x.Target[p][r]) - float64(value)
				row.error += float64(float64(loss*loss) * float64(b.d[c]))
			}
			vecmath.Combine(add[r*(b.n+gap):][:group], s.l[group*blockStride:], blockStride, s.bits[:])
		}
	}
}

// tryCodes sets the codes of scale and minimum of sub-block j, which has the places from at+sub on, of the block of column
// first: of those near, the ones with the least sum of D_i times squares of what feedback inside the sub-block leaves.
func (b *feedback) tryCodes(f *parts.Format, s *feedbackState, all []rowState, at, sub, j, first int, add []float32) {
	t := &s.tries
	for p := range f.Sub {
		c := b.order[at+sub+p]
		t.Cost[p] = math.Float32bits(b.d[c])
		for i, l := range s.l[(sub+p)*blockStride+sub:][:p] {
			t.Near[p][i] = math.Float32bits(l)
		}
		for r := range all {
			t.Weight[p][r], t.Add[p][r] = all[r].w[c], add[r*(b.n+gap)+sub+p]
		}
	}
	var least [feedbackRows]float32
	var codes [feedbackRows][2]int16
	var tried [vecmath.TriesTogether][feedbackRows][2]int16
	for from := 0; from < len(b.tries); from += vecmath.TriesTogether {
		some := b.tries[from:min(from+vecmath.TriesTogether, len(b.tries))]
		for i, change := range some {
			for r := range all {
				to := &all[r].blocks[first/f.Block]
				sc, m := to.Scales[j]+change[0], to.Mins[j]+change[1]
				if int(sc) < f.Scales[0] || int(sc) > f.Scales[1] || int(m) < f.Mins[0] || int(m) > f.Mins[1] {
					sc, m = to.Scales[j], to.Mins[j]
				}
				tried[i][r] = [2]int16{sc, m}
				t.Scale[i][r], t.Min[i][r] = to.D*f.Factor(sc), to.Min*float32(m)
			}
		}
		t.Measure(f.Sub)
		for i := range some {
			for r := range all {
				if from+i == 0 || t.Loss[i][r] < least[r] {
					least[r], codes[r] = t.Loss[i][r], tried[i][r]
				}
			}
		}
	}
	for r := range all {
		to := &all[r].blocks[first/f.Block]
		to.Scales[j], to.Mins[j] = codes[r][0], codes[r][1]
	}
}

// codesNear returns changes of the codes of a scale and a minimum by at most near, beginning with none; nil if a format
// has no codes, or points of a grid for groups, which grid.choose takes with codes near.
func codesNear(f *parts.Format) [][2]int16 {
	if f.Grid != nil || f.Scales[0] == f.Scales[1] || f.Sub > vecmath.TriesSize {
		return nil
	}
	all := [][2]int16{{}}
	for s := int16(-near); s <= near; s++ {
		for m := int16(-near); m <= near; m++ {
			if (s != 0 || m != 0) && (m == 0 || f.Mins[0] < f.Mins[1]) {
				all = append(all, [2]int16{s, m})
			}
		}
	}
	return all
}

// roundGroups is round for a row and a format with a grid: sub-blocks one after the other.
func (b *feedback) roundGroups(f *parts.Format, s *feedbackState, row *rowState, to *parts.Block, at, from,
	end int, add, e,
	v []float32) {
	for p := end - f.Sub; p >= from; p -= f.Sub {
		c := b.order[at+p] / f.Sub * f.Sub // the first column
		j := c % f.Block / f.Sub
		levels := to.Levels[j*f.Sub:][:f.Sub]
		m := norm{b.conditional[c*f.Sub:][:f.Sub*f.Sub], f.Sub, f.Sub, b.forms[c*(b.grid.Dim+1)/2:]}
		var target [32]float32
		for i := range f.Sub {
			x := b.order[at+p+i]
			target[x-c] = row.w[x] + add[p+i]
		}
		load := func(a *attempt) {
			scale, _ := f.Scale(to, j)
			copy(a.levels[:], levels)
			clear(a.g[:f.Sub])
			var off [32]uint32 // bits
			for k, level := range levels {
				a.v[k] = scale * float32(level)
				off[k] = math.Float32bits(a.v[k] - target[k])
			}
			vecmath.Combine(a.g[:f.Sub], m.h, f.Sub, off[:f.Sub])
		}
		best := &s.state.attempts[0]
		if scale, _ := f.Scale(to, j); scale == 0 {
			load(best)
		} else {
			best = b.grid.choose(&s.state, f, to, j, &m, 1, 2, load)
			to.Scales[j] = best.code
			copy(levels, best.levels[:f.Sub])
		}
		bits := s.state.resizeBits(f.Sub)
		for i := range f.Sub {
			x := b.order[at+p+i]
			k := x - c
			v[x] = best.v[k]
			e[p+i] = row.w[x] - v[x]
			bits[i] = math.Float32bits(e[p+i])
			row.error += float64((float64(v[x]) - float64(target[k])) * float64(best.g[k]))
		}
		vecmath.Combine(add[:p], s.l[p*blockStride:], blockStride, bits)
	}
}
