package eval

import (
	"math"

	"ggforge/internal/gemm"
	"ggforge/internal/vecmath"
)

// apply normalizes rows of n values, from src to dst, which may be the same.
func (p *params) apply(w *norm, dst, src []float32, n int) {
	for ; len(src) > 0; dst, src = dst[n:], src[n:] {
		x, y := src[:n], dst[:n]
		mean := 0.0
		if !p.rms {
			mean = vecmath.Sum(x) / float64(n)
		}
		f := 1 / math.Sqrt(vecmath.SumSquares(x, mean)/float64(n)+p.eps)
		if p.rms {
			vecmath.Scale(y, x, float32(f))
		} else {
			for i, v := range x {
				y[i] = float32((float64(v) - mean) * f)
			}
		}
		if w.weight != nil {
			vecmath.Mul(y, w.weight)
		}
		if w.bias != nil {
			vecmath.Add(y, w.bias)
		}
	}
}

// headNorm normalizes the heads of a token in place; w may be nil.
func (p *params) headNorm(w *headNorm, x []float32) {
	if w == nil {
		return
	}
	if len(w.weight) > w.size { // each head has weights of its own
		p.apply(&norm{}, x, x, w.size)
		vecmath.Mul(x, w.weight)
		if w.bias != nil {
			vecmath.Add(x, w.bias)
		}
		return
	}
	p.apply(&w.norm, x, x, w.size)
}

// clamp limits x to -limit to limit.
func clamp(x []float32, limit float32) {
	for i, v := range x {
		x[i] = max(-limit, min(limit, v))
	}
}

// queries is how many queries are multiplied with keys at once.
const queries = 64

// heads is what attention needs of a worker.
type heads struct {
	gemm           gemm.Scratch
	q, k, p, v     gemm.Panels
	scores, values []float32
}

// attend sets out to what the heads of one group attend to in one chunk of n tokens: q, k,
// v and out begin with the chunk's first token and the group's first head, which is number
// head, and have rows of nq, nk, nv and no values.
func (m *Model) attend(s *heads, l *layer, head int, out, q, k, v []float32, n, nq, nk, nv, no int) {
	p := m.p
	s.k.PackRight(k, nk, n, p.keyLen)
	turned := grow(&s.values, p.valueLen*n)
	for t := range n {
		for d, x := range v[t*nv:][:p.valueLen] {
			turned[d*n+t] = x
		}
	}
	s.v.PackRight(turned, n, p.valueLen, n)
	scores := grow(&s.scores, queries*n)
	for h := range l.heads / l.kv {
		for from := 0; from < n; from += queries {
			rows, columns := min(queries, n-from), min(from+queries, n) // nothing comes from the right
			s.q.Pack(q[from*nq+h*p.keyLen:], nq, rows, p.keyLen)
			gemm.Multiply(&s.gemm, scores, columns, &s.q, &s.k, columns)
			for t := range rows {
				row := scores[t*columns:][:columns]
				first, end := 0, from+t+1
				if l.local {
					first = max(0, end-p.window)
				}
				m.softmax(l, head+h, row[first:end])
				clear(row[:first])
				clear(row[end:])
			}
			s.p.Pack(scores, columns, rows, columns)
			gemm.Multiply(&s.gemm, out[from*no+h*p.valueLen:], no, &s.p, &s.v, p.valueLen)
		}
	}
}

// softmax turns the scores of a head into weights; the last is that of the query's own
// place.
func (m *Model) softmax(l *layer, head int, x []float32) {
	p := m.p
	vecmath.Scale(x, x, float32(p.attnScale))
	if p.attnCap != 0 {
		squash(x, float32(p.attnCap))
	}
	if l.slopes != nil {
		for i := range x {
			x[i] += float32(l.slopes[head] * float32(i-len(x)+1))
		}
	}
	most, _ := vecmath.Max(x)
	if l.sinks != nil {
		most = max(most, l.sinks[head])
	}
	for i := range x {
		x[i] -= most
	}
	vecmath.ExpOf.Apply(x, x)
	sum := vecmath.Sum(x)
	if l.sinks != nil {
		sum += float64(vecmath.Exp(l.sinks[head] - most))
	}
	vecmath.Scale(x, x, float32(1/sum))
}

// squash limits x smoothly: limit * tanh(x/limit).
func squash(x []float32, limit float32) {
	vecmath.Scale(x, x, 1/limit)
	vecmath.TanhOf.Apply(x, x)
	vecmath.Scale(x, x, limit)
}

// grow returns a slice of n values, in memory that is kept.
func grow(b *[]float32, n int) []float32 {
	if cap(*b) < n {
		*b = make([]float32, n)
	}
	return (*b)[:n]
}
