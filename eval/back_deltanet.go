package eval

import (
	"math"

	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// backUnitLength turns d from the gradient w.r.t. the output of unitLength(x) into the gradient w.r.t. x.
func backUnitLength(d, x []float32, eps float64) {
	f := 1 / math.Sqrt(vecmath.SumSquares(x, 0)+eps)
	along := vecmath.SumProducts(d, x) * f * f
	for i, v := range x {
		d[i] = float32(f * (float64(d[i]) - float64(float64(v)*along)))
	}
}

func (d *deltaNet) back(s *stream, dx, dy, x []float32, n int) error {
	p, r, st := s.m.p, s.reverse, &s.reverse.states
	values, keys := d.heads*d.valueLen, d.keys*d.keyLen
	mixed, ldab := values+2*keys, 2*d.heads
	in, u, raw := buffer.Resize(&s.qkv, n*mixed), buffer.Resize(&st.u, n*mixed), buffer.Resize(&r.raw, n*2*keys)
	z, ab, dz, dab := buffer.Resize(&s.temp[0], n*values), buffer.Resize(&s.temp[1], n*ldab),
		buffer.Resize(&st.z, n*values),
		buffer.Resize(&st.steps, n*ldab)
	if err := s.linear(in, mixed, x, n, d.qkv); err != nil {
		return err
	}
	if err := s.linear(z, values, x, n, d.gate); err != nil {
		return err
	}
	rates := []*linear{d.betaAlpha}
	if d.betaAlpha == nil {
		rates = []*linear{d.beta, d.alpha}
	}
	if err := s.linear(ab, ldab, x, n, rates...); err != nil {
		return err
	}
	if err := d.conv.run(s, u, in, mixed, n); err != nil {
		return err
	}
	scale := float32(1 / math.Sqrt(float64(d.keyLen)))
	each := func(f func(t int)) func() error {
		return func() error {
			return s.eachRows(n, func(a, b int) {
				for t := a; t < b; t++ {
					f(t)
				}
			})
		}
	}
	y, out, do, du, din := buffer.Resize(&st.y, n*values), buffer.Resize(&s.a, n*values),
		buffer.Resize(&r.hidden, n*values),
		buffer.Resize(&st.dy, n*mixed), buffer.Resize(&r.mid, n*mixed)
	return firstError(
		each(func(t int) {
			qk := u[t*mixed:][:2*keys]
			copy(raw[t*2*keys:], qk)
			for h := 0; h < 2*keys; h += d.keyLen {
				unitLength(qk[h:][:d.keyLen], p.eps)
			}
			vecmath.Scale(qk[:keys], qk[:keys], scale)
		}),
		func() error { return s.backLinear(do, dy, p.width, nil, n, false, d.out) },
		func() error { // reads and writes of the state
			return parallel.For(s.ctx, len(s.states), n/s.r.Chunk*d.heads, func(i, worker int) error {
				h, first := i%d.heads, i/d.heads*s.r.Chunk
				delta := newDeltaState(&s.states[worker], d.keyLen, d.valueLen)
				for t := first; t < first+s.r.Chunk; t++ {
					d.step(delta, y[t*values+h*d.valueLen:][:d.valueLen], u[t*mixed:][:mixed], ab[t*ldab:][:ldab], h)
				}
				return nil
			})
		},
		each(func(t int) {
			gate := make([]float32, d.valueLen)
			for h := 0; h < values; h += d.valueLen {
				at, end := t*values+h, t*values+h+d.valueLen
				d.gateFunction.Apply(gate, z[at:end])
				p.normalize(d.norm, out[at:end], y[at:end], d.valueLen)
				d.gateFunction.Slope(dz[at:end], z[at:end])
				vecmath.Mul(dz[at:end], out[at:end])
				vecmath.Mul(dz[at:end], do[at:end])
				vecmath.Mul(out[at:end], gate)
				vecmath.Mul(do[at:end], gate)
				s.backNormOf(p, d.norm, do[at:end], y[at:end], d.valueLen, t)
			}
		}),
		func() error { return s.report(out, dy, p.width, n, d.out) },
		func() error { // value heads of a key head sequentially, because they add to the same gradient
			return parallel.For(s.ctx, len(s.states), n/s.r.Chunk*d.keys, func(i, worker int) error {
				key, first := i%d.keys, i/d.keys*s.r.Chunk
				for t := first; t < first+s.r.Chunk; t++ {
					clear(du[t*mixed+key*d.keyLen:][:d.keyLen])
					clear(du[t*mixed+keys+key*d.keyLen:][:d.keyLen])
				}
				for h := range d.heads {
					if of, _, _ := d.indices(h); of == key {
						d.backHead(s, worker, first, h, u, du, ab, dab, do)
					}
				}
				return nil
			})
		},
		each(func(t int) {
			qk := du[t*mixed:][:2*keys]
			vecmath.Scale(qk[:keys], qk[:keys], scale)
			for h := 0; h < 2*keys; h += d.keyLen {
				backUnitLength(qk[h:][:d.keyLen], raw[t*2*keys+h:][:d.keyLen], p.eps)
			}
		}),
		func() error { return d.conv.back(s, din, mixed, du, in, mixed, n) },
		func() error { return s.backLinear(dx, din, mixed, x, n, false, d.qkv) },
		func() error { return s.backLinear(dx, dz, values, x, n, true, d.gate) },
		func() error { return s.backLinear(dx, dab, ldab, x, n, true, rates...) },
	)
}

// backHead is the backward pass of head h through a chunk. do is the gradient w.r.t. its outputs. du is the gradient
// w.r.t. queries, keys and values, where it adds to those of queries and keys; dab is set to the gradient w.r.t. betas
// and alphas.
func (d *deltaNet) backHead(s *stream, worker, first, h int, u, du, ab, dab, do []float32) {
	keys, one := d.keys*d.keyLen, d.keyLen*d.valueLen
	values := d.heads * d.valueLen
	mixed, ldab := values+2*keys, 2*d.heads
	key, b, a := d.indices(h)
	buf := buffer.Resize(&s.reverse.heads[worker], (s.r.Chunk+1)*one+one+one+4*d.valueLen)
	states, dstate, decayed, work := buf[:(s.r.Chunk+1)*one], buf[(s.r.Chunk+1)*one:][:one],
		buf[(s.r.Chunk+2)*one:][:one], buf[(s.r.Chunk+3)*one:]
	y, found, change, dchange := work[:d.valueLen], work[d.valueLen:][:d.valueLen], work[2*d.valueLen:][:d.valueLen],
		work[3*d.valueLen:]
	delta := newDeltaState(&s.states[worker], d.keyLen, d.valueLen)
	clear(states[:one])
	for k := range s.r.Chunk {
		t := first + k
		d.step(delta, y, u[t*mixed:][:mixed], ab[t*ldab:][:ldab], h)
		copy(states[(k+1)*one:], delta.state)
	}
	clear(dstate)
	for k := s.r.Chunk - 1; k >= 0; k-- {
		t := first + k
		row, drow, rates := u[t*mixed:][:mixed], du[t*mixed:][:mixed], ab[t*ldab:][:ldab]
		q, kk, v := row[key*d.keyLen:][:d.keyLen], row[keys+key*d.keyLen:][:d.keyLen],
			row[2*keys+h*d.valueLen:][:d.valueLen]
		dq, dk, dv := drow[key*d.keyLen:][:d.keyLen], drow[keys+key*d.keyLen:][:d.keyLen],
			drow[2*keys+h*d.valueLen:][:d.valueLen]
		dy, before, after := do[t*values+h*d.valueLen:][:d.valueLen], states[k*one:][:one], states[(k+1)*one:][:one]
		raw := rates[a] + d.bias[h]
		decay, beta := vecmath.Exp(vecmath.Softplus(raw)*d.a[h]), vecmath.Sigmoid(rates[b])
		vecmath.Scale(decayed, before, decay)
		clear(found)
		for j := range d.keyLen {
			vecmath.AddScaled(found, decayed[j*d.valueLen:][:d.valueLen], kk[j])
		}
		for i, x := range v {
			found[i] = x - found[i] // the delta rule's error
		}
		vecmath.Scale(change, found, beta)
		clear(dchange)
		for j := range d.keyLen {
			ds := dstate[j*d.valueLen:][:d.valueLen]
			dq[j] += float32(vecmath.SumProducts(dy, after[j*d.valueLen:][:d.valueLen]))
			vecmath.AddScaled(ds, dy, q[j])
			dk[j] += float32(vecmath.SumProducts(ds, change))
			vecmath.AddScaled(dchange, ds, kk[j])
		}
		dab[t*ldab+b] = float32(vecmath.SumProducts(dchange, found)) * float32(beta*(1-beta))
		vecmath.Scale(dv, dchange, beta)
		var ddecay float64
		for j := range d.keyLen {
			ds := dstate[j*d.valueLen:][:d.valueLen]
			dk[j] -= float32(vecmath.SumProducts(decayed[j*d.valueLen:][:d.valueLen], dv))
			vecmath.AddScaled(ds, dv, -kk[j])
			ddecay += vecmath.SumProducts(ds, before[j*d.valueLen:][:d.valueLen])
			vecmath.Scale(ds, ds, decay)
		}
		dab[t*ldab+a] = float32(ddecay) * float32(decay*d.a[h]) * vecmath.Sigmoid(raw)
	}
}
