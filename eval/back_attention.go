package eval

import (
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/gemm"
	"ggforge/internal/kernel/vecmath"
)

func (l *attention) back(s *stream, dx, dy, x []float32, n int) error {
	return l.backGated(s, dx, dy, x, n, nil)
}

// backGated is back for attention with an output gate, sigmoid(gate(x)); gate may be nil.
func (l *attention) backGated(s *stream, dx, dy, x []float32, n int, gate *outputGate) error {
	r, ld, no, width := s.reverse, l.qkvLen(), l.n*l.valueLen, s.m.p.width
	qkv, err := l.project(s, x, n)
	if err != nil {
		return err
	}
	raw := qkv // as prepare gets them
	if l.qNorm != nil || l.kNorm != nil || s.m.p.clamp != 0 {
		raw = buffer.Resize(&r.raw, n*ld)
		copy(raw, qkv)
	}
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			l.prepare(s, qkv[t*ld:], t)
		}
	}); err != nil {
		return err
	}
	da := buffer.Resize(&r.hidden, n*no)
	if err := s.backLinear(da, dy, width, nil, n, false, l.out); err != nil {
		return err
	}
	if gate != nil {
		if err := gate.computeGates(s, &r.gate, x, n); err != nil {
			return err
		}
		if err := s.eachRows(n, func(a, b int) { gate.applyGates(da, r.gate, a, b) }); err != nil {
			return err
		}
	}
	d, out := buffer.Resize(&r.mid, n*ld), buffer.Resize(&s.a, n*no)
	if err := l.eachGroup(s, n, func(worker *attentionScratch, head, q, k, v, o int) {
		l.attendBack(worker, head, d[q:], d[k:], d[v:], da[o:], out[o:], qkv[q:], qkv[k:], qkv[v:], s.r.Chunk,
			strides{ld, ld, ld, no}, strides{ld, ld, ld, no})
	}); err != nil {
		return err
	}
	if gate != nil {
		r.dgate = buffer.Resize(&r.dgate, n*gate.gate.w.Rows)
		if err := s.eachRows(n, func(a, b int) { gate.backGates(r.dgate, da, out, r.gate, a, b) }); err != nil {
			return err
		}
	}
	if err := s.report(out, dy, width, n, l.out); err != nil {
		return err
	}
	if err := s.eachRows(n, func(a, b int) {
		work := make([]float32, ld)
		for t := a; t < b; t++ {
			l.prepareBack(s, d[t*ld:][:ld], raw[t*ld:][:ld], work, t)
		}
	}); err != nil {
		return err
	}
	if err := s.backLinear(dx, d, ld, x, n, false, l.projections()...); err != nil || gate == nil {
		return err
	}
	return s.backLinear(dx, r.dgate, gate.gate.w.Rows, x, n, true, gate.gate)
}

// prepareBack is the backward pass of prepare for token t: it turns d from the gradient w.r.t. the prepared queries,
// keys and values into the gradient w.r.t. the projections' outputs. raw are these outputs, needed with a QK norm or
// clamp. len(work) = len(d).
func (l *attention) prepareBack(s *stream, d, raw, work []float32, t int) {
	p := s.m.p
	nq, nk := l.n*l.keyLen, l.kv*l.keyLen
	l.temperature.apply(d[:nq], t%s.r.Chunk)
	normed := l.qNorm != nil || l.kNorm != nil
	if normed {
		if copy(work, raw); p.clamp != 0 {
			clamp(work, float32(p.clamp))
		}
	}
	norms := func() {
		p.backHeadNorm(l.qNorm, d[:nq], work[:nq])
		p.backHeadNorm(l.kNorm, d[nq:][:nk], work[nq:][:nk])
	}
	if l.usesRoPE {
		rotations := l.rotations(s, t)
		if s.m.graph.QKNormAfterRoPE && normed {
			p.applyRoPE(work[:nq], l.keyLen, rotations)
			p.applyRoPE(work[nq:][:nk], l.keyLen, rotations)
			norms()
		}
		p.backRoPE(d[:nq], l.keyLen, rotations)
		p.backRoPE(d[nq:][:nk], l.keyLen, rotations)
	}
	if !l.usesRoPE || !s.m.graph.QKNormAfterRoPE {
		norms()
	}
	if limit := float32(p.clamp); limit != 0 {
		for i, v := range raw {
			if v > limit || v < -limit {
				d[i] = 0
			}
		}
	}
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
