package eval

import (
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/gemm"
	"ggforge/internal/kernel/vecmath"
)

func (l *attention) back(s *stream, dx, dy, x []float32, n int) error {
	r, ld, no, width := s.reverse, l.qkvLen(), l.n*l.valueLen, s.m.p.width
	qkv, err := l.project(s, x, n)
	if err != nil {
		return err
	}
	raw := qkv // as prepare gets them
	for _, step := range l.steps {
		if step.needsInput() {
			raw = buffer.Resize(&r.raw, n*ld)
			copy(raw, qkv)
			break
		}
	}
	each := func(f func(t int)) error {
		return s.eachRows(n, func(a, b int) {
			for t := a; t < b; t++ {
				f(t)
			}
		})
	}
	if err := each(func(t int) { l.prepare(s, qkv[t*ld:][:ld], nil, t, nil) }); err != nil {
		return err
	}
	da := buffer.Resize(&r.hidden, n*no)
	if err := s.backLinear(da, dy, width, nil, n, false, l.out); err != nil {
		return err
	}
	// da becomes the gradient w.r.t. the outputs of heads before their gates
	switch {
	case l.gated:
		buffer.Resize(&r.dqueries, n*2*no)
		err = each(func(t int) { l.backQueryGates(r.dqueries, da, s.queries, t) })
	case l.gate != nil:
		if err = l.computeGates(s, &r.gate, x, n); err == nil {
			err = s.eachRows(n, func(a, b int) { l.applyGates(da, r.gate, a, b) })
		}
	}
	if err != nil {
		return err
	}
	d, out := buffer.Resize(&r.mid, n*ld), buffer.Resize(&s.a, n*no)
	if err := l.eachGroup(s, n, func(worker *attentionScratch, chunk span, head, q, k, v, o int) {
		l.attendBack(worker, head, d[q:], d[k:], d[v:], da[o:], out[o:], qkv[q:], qkv[k:], qkv[v:], chunk.n,
			strides{ld, ld, ld, no}, strides{ld, ld, ld, no})
	}); err != nil {
		return err
	}
	switch { // out becomes the outputs after their gates
	case l.gated:
		err = each(func(t int) {
			for i := t * l.n; i < (t+1)*l.n; i++ {
				_, gate := l.gatedQuery(s.queries, i)
				_, dgate := l.gatedQuery(r.dqueries, i)
				own := out[i*l.keyLen:][:l.keyLen]
				vecmath.Mul(dgate, own)
				vecmath.Mul(own, gate)
			}
		})
	case l.gate != nil:
		buffer.Resize(&r.dgate, n*l.gate.w.Rows)
		err = s.eachRows(n, func(a, b int) { l.backGates(r.dgate, da, out, r.gate, a, b) })
	}
	if err != nil {
		return err
	}
	if err := s.report(out, dy, width, n, l.out); err != nil {
		return err
	}
	if err := s.eachRows(n, func(a, b int) {
		inputs := make([][]float32, len(l.steps))
		for t := a; t < b; t++ {
			l.prepareBack(s, d[t*ld:][:ld], raw[t*ld:][:ld], inputs, t)
		}
	}); err != nil {
		return err
	}
	if l.gated {
		nq := l.n * l.keyLen
		if err := each(func(t int) {
			for i := t * l.n; i < (t+1)*l.n; i++ {
				dquery, _ := l.gatedQuery(r.dqueries, i)
				copy(dquery, d[t*ld+i%l.n*l.keyLen:])
			}
		}); err != nil {
			return err
		}
		if err := s.backLinear(dx, r.dqueries, 2*nq, x, n, false, l.q); err != nil {
			return err
		}
		return s.backLinear(dx, d[nq:], ld, x, n, true, l.k, l.v)
	}
	if err := s.backLinear(dx, d, ld, x, n, false, l.projections()...); err != nil || l.gate == nil {
		return err
	}
	return s.backLinear(dx, r.dgate, l.gate.w.Rows, x, n, true, l.gate)
}

// prepareBack is the backward pass of prepare for token t: it turns d from the gradient w.r.t. the prepared queries,
// keys and values into the gradient w.r.t. the projections' outputs. raw are these outputs, as far as steps need them.
// inputs is memory for the rows before each step.
func (l *attention) prepareBack(s *stream, d, raw []float32, inputs [][]float32, t int) {
	nq, nk := l.n*l.keyLen, l.kv*l.keyLen
	last := -1 // the last step that needs its input
	for i, step := range l.steps {
		if step.needsInput() {
			last = i
		}
	}
	for i := range last + 1 {
		row := buffer.Resize(&inputs[i], len(d))
		if i == 0 {
			if copy(row, raw); l.keysAreValues() {
				copy(row[nq+nk:], row[nq:][:nk])
			}
			continue
		}
		copy(row, inputs[i-1])
		l.steps[i-1].apply(s, l.parts(row), t)
	}
	for i := len(l.steps) - 1; i >= 0; i-- {
		var x headRow
		if i <= last {
			x = l.parts(inputs[i])
		}
		l.steps[i].back(s, l.parts(d), x, t)
	}
	if l.keysAreValues() {
		vecmath.Add(d[nq:][:nk], d[nq+nk:])
	}
}

// backQueryGates sets the gates' part of d, for token t, to the gradient w.r.t. the gates, before it is multiplied by
// the outputs of heads, from da, the gradient w.r.t. their gated outputs. It multiplies da by the gates, and replaces
// gates by their sigmoids.
func (l *attention) backQueryGates(d, da, queries []float32, t int) {
	slope := make([]float32, l.keyLen)
	for i := t * l.n; i < (t+1)*l.n; i++ {
		_, gate := l.gatedQuery(queries, i)
		_, dgate := l.gatedQuery(d, i)
		own := da[i*l.keyLen:][:l.keyLen]
		copy(dgate, own)
		vecmath.SigmoidOf.Slope(slope, gate)
		vecmath.Mul(dgate, slope)
		vecmath.SigmoidOf.Apply(gate, gate)
		vecmath.Mul(own, gate)
	}
}

// backGates sets rows [a, b) of d to the gradient w.r.t. the gate matrix's outputs from dx, the gradient w.r.t. out,
// the heads' outputs, and multiplies out by its gates.
func (l *attention) backGates(d, dx, out, gates []float32, a, b int) {
	row, n := l.n*l.valueLen, l.gate.w.Rows
	size := row / n
	for i := a * n; i < b*n; i++ {
		d[i] = float32(vecmath.SumProducts(dx[i*size:][:size], out[i*size:][:size])) * (1 - gates[i])
	}
	l.applyGates(out, gates, a, b)
}

// strides are row strides in elements: of queries, keys, values and attention outputs.
type strides struct{ q, k, v, out int }

// attendBack is the backward pass of attend: it sets dq, dk and dv to the gradients w.r.t. q, k and v from do, the
// gradient w.r.t. out. It also sets out. ld are the strides of the gradients, of the strides of the others.
func (l *heads) attendBack(s *attentionScratch, head int, dq, dk, dv, do, out, q, k, v []float32, n int, of,
	ld strides) {
	r, nq, nk, nv, no := &s.back, of.q, of.k, of.v, of.out
	s.k.PackRight(k, nk, n, l.keyLen)
	r.v.PackRight(v, nv, n, l.valueLen)
	s.v.PackRight(transpose(&s.values, v, nv, n, l.valueLen), n, l.valueLen, n)
	r.k.PackRight(transpose(&s.values, k, nk, n, l.keyLen), n, l.keyLen, n)
	for t := range n {
		clear(dk[t*ld.k:][:l.keyLen])
		clear(dv[t*ld.v:][:l.valueLen])
	}
	scores, dscores, slopes := buffer.Resize(&s.scores, queryBlock*n), buffer.Resize(&r.scores, queryBlock*n),
		buffer.Resize(&r.slopes, n)
	for h := range l.n / l.kv {
		for from := 0; from < n; from += queryBlock {
			rows, columns := min(queryBlock, n-from), min(from+queryBlock, n)
			q, dq, do := q[from*nq+h*l.keyLen:], dq[from*ld.q+h*l.keyLen:], do[from*ld.out+h*l.valueLen:]
			s.q.Pack(q, nq, rows, l.keyLen)
			gemm.Multiply(&s.gemm, scores, columns, &s.q, &s.k, columns)
			s.p.Pack(do, ld.out, rows, l.valueLen)
			gemm.Multiply(&s.gemm, dscores, columns, &s.p, &r.v, columns)
			for t := range rows {
				row, d := scores[t*columns:][:columns], dscores[t*columns:][:columns]
				first, end := l.visible(from+t, n)
				l.softmaxBack(head+h, d[first:end], row[first:end], slopes, from+t-first)
				for _, x := range [][]float32{row, d} {
					clear(x[:first])
					clear(x[end:])
				}
			}
			s.p.Pack(scores, columns, rows, columns)
			gemm.Multiply(&s.gemm, out[from*no+h*l.valueLen:], no, &s.p, &s.v, l.valueLen)
			s.p.Pack(dscores, columns, rows, columns)
			gemm.Multiply(&s.gemm, dq, ld.q, &s.p, &r.k, l.keyLen)
			s.addTransposedProduct(dv, ld.v, scores, do, ld.out, rows, columns, l.valueLen)
			s.addTransposedProduct(dk, ld.k, dscores, q, nq, rows, columns, l.keyLen)
		}
	}
}

// addTransposedProduct adds pᵀx to c (stride ldc) for p [rows, columns] and x [rows, size] (stride ldx).
func (s *attentionScratch) addTransposedProduct(c []float32, ldc int, p, x []float32, ldx, rows, columns, size int) {
	r := &s.back
	s.p.Pack(transpose(&s.values, p, columns, rows, columns), rows, columns, rows)
	r.x.PackRight(transpose(&s.values, x, ldx, rows, size), rows, size, rows)
	sum := buffer.Resize(&r.sum, columns*size)
	gemm.Multiply(&s.gemm, sum, size, &s.p, &r.x, size)
	for i := range columns {
		vecmath.Add(c[i*ldc:][:size], sum[i*size:][:size])
	}
}

// softmaxBack turns scores x into weights as softmax does, and d from the gradient w.r.t. the weights into the gradient
// w.r.t. the scores. slopes is scratch of at least len(x).
func (l *heads) softmaxBack(head int, d, x, slopes []float32, own int) {
	slopes = slopes[:len(x)]
	if l.softCap != 0 {
		vecmath.Scale(slopes, x, l.scale)
		vecmath.Scale(slopes, slopes, 1/l.softCap)
		vecmath.TanhOf.Apply(slopes, slopes)
		for i, t := range slopes {
			slopes[i] = (1 - t) * (1 + t)
		}
	}
	l.softmax(head, x, own)
	mean := float32(vecmath.SumProducts(x, d))
	for i, p := range x {
		d[i] = p * (d[i] - mean)
	}
	if l.softCap != 0 {
		vecmath.Mul(d, slopes)
	}
	vecmath.Scale(d, d, l.scale)
}
