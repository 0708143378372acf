package eval

import (
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// backStates are the buffers of the backward passes of recurrent mixers.
type backStates struct{ z, u, y, dy, steps, parts []float32 }

func (m *mamba) back(s *stream, dx, dy, x []float32, n int) error {
	p, inner, r, st := s.m.p, m.inner, s.reverse, &s.reverse.states
	ld := m.rank + 2*m.state
	xz, u, steps := buffer.Resize(&s.qkv, n*2*inner), buffer.Resize(&st.u, n*inner), buffer.Resize(&st.steps, n*inner)
	if err := s.linear(xz, 2*inner, x, n, m.in); err != nil {
		return err
	}
	if err := m.conv.run(s, u, xz, 2*inner, n); err != nil {
		return err
	}
	dbc, raw, low := buffer.Resize(&s.temp[1], n*ld), buffer.Resize(&r.raw, n*ld), buffer.Resize(&s.temp[2], n*m.rank)
	if err := s.linear(raw, ld, u, n, m.x); err != nil {
		return err
	}
	parts := func(row []float32, f func(w *norm, from, to int)) {
		f(m.dtNorm, 0, m.rank)
		f(m.bNorm, m.rank, m.rank+m.state)
		f(m.norm, m.rank+m.state, ld)
	}
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			row := dbc[t*ld:][:ld]
			copy(row, raw[t*ld:])
			parts(row, func(w *norm, from, to int) {
				if w != nil {
					p.normalize(w, row[from:to], row[from:to], to-from)
				}
			})
			copy(low[t*m.rank:][:m.rank], row)
		}
	}); err != nil {
		return err
	}
	if err := s.linear(steps, inner, low, n, m.dt); err != nil {
		return err
	}
	dout, out, dxz, du := buffer.Resize(&r.hidden, n*inner), buffer.Resize(&s.a, n*inner),
		buffer.Resize(&r.mid, n*2*inner), buffer.Resize(&st.y, n*inner)
	if err := s.backLinear(dout, dy, p.width, nil, n, false, m.out); err != nil {
		return err
	}
	groups := (inner + channels - 1) / channels
	sums := buffer.Resize(&st.parts, n*groups*2*m.state) // gradients w.r.t. B and C, per group of channels
	if err := parallel.For(s.ctx, len(s.states), n/s.r.Chunk*groups, func(i, worker int) error {
		group := i % groups
		from, first := group*channels, i/groups*s.r.Chunk
		width := min(channels, inner-from)
		size := m.state * width
		buf := buffer.Resize(&s.states[worker], (s.r.Chunk+1)*size+size+6*width)
		states, dstate, work := buf[:(s.r.Chunk+1)*size], buf[(s.r.Chunk+1)*size:][:size], buf[(s.r.Chunk+2)*size:]
		row := func(k int) []float32 { return work[k*width:][:width] }
		step, in, decay, gate, slope, dstep := row(0), row(1), row(2), row(3), row(4), row(5)
		clear(states[:size])
		for k := range s.r.Chunk {
			t := first + k
			u, y, z := u[t*inner+from:][:width], out[t*inner+from:][:width], xz[t*2*inner+inner+from:][:width]
			b, c := dbc[t*ld+m.rank:][:m.state], dbc[t*ld+m.rank+m.state:][:m.state]
			vecmath.SoftplusOf.Apply(step, steps[t*inner+from:][:width])
			copy(in, u)
			vecmath.Mul(in, step)
			clear(y)
			for j := range m.state {
				copy(decay, m.a[j][from:])
				vecmath.Mul(decay, step)
				vecmath.ExpOf.Apply(decay, decay)
				now := states[(k+1)*size+j*width:][:width]
				copy(now, states[k*size+j*width:])
				vecmath.Mul(now, decay)
				vecmath.AddScaled(now, in, b[j])
				vecmath.AddScaled(y, now, c[j])
			}
			vecmath.AddProduct(y, u, m.d[from:][:width])
			// the gate
			do, dz := dout[t*inner+from:][:width], dxz[t*2*inner+inner+from:][:width]
			vecmath.SiLUOf.Apply(gate, z)
			vecmath.SiLUOf.Slope(dz, z)
			vecmath.Mul(dz, y)
			vecmath.Mul(dz, do)
			vecmath.Mul(y, gate)
			vecmath.Mul(do, gate)
		}
		clear(dstate)
		for k := s.r.Chunk - 1; k >= 0; k-- {
			t := first + k
			u, dy, du, raw := u[t*inner+from:][:width], dout[t*inner+from:][:width], du[t*inner+from:][:width],
				steps[t*inner+from:][:width]
			b, c := dbc[t*ld+m.rank:][:m.state], dbc[t*ld+m.rank+m.state:][:m.state]
			sum := sums[(t*groups+group)*2*m.state:][:2*m.state]
			vecmath.SoftplusOf.Apply(step, raw)
			copy(in, u)
			vecmath.Mul(in, step)
			copy(du, m.d[from:])
			vecmath.Mul(du, dy)
			din := gate
			clear(din)
			clear(dstep)
			for j := range m.state {
				d, before := dstate[j*width:][:width], states[k*size+j*width:][:width]
				sum[m.state+j] = float32(vecmath.SumProducts(dy, states[(k+1)*size+j*width:][:width]))
				vecmath.AddScaled(d, dy, c[j])
				sum[j] = float32(vecmath.SumProducts(d, in))
				vecmath.AddScaled(din, d, b[j])
				copy(decay, m.a[j][from:])
				copy(slope, decay)
				vecmath.Mul(decay, step)
				vecmath.ExpOf.Apply(decay, decay)
				vecmath.Mul(d, decay)
				vecmath.Mul(slope, d)
				vecmath.AddProduct(dstep, slope, before)
			}
			vecmath.AddProduct(dstep, din, u)
			vecmath.AddProduct(du, din, step)
			vecmath.SoftplusOf.Slope(slope, raw)
			copy(raw, dstep)
			vecmath.Mul(raw, slope)
		}
		return nil
	}); err != nil {
		return err
	}
	if err := s.report(out, dy, p.width, n, m.out); err != nil {
		return err
	}
	dlow := buffer.Resize(&s.temp[0], n*m.rank)
	if err := s.backLinear(dlow, steps, inner, low, n, false, m.dt); err != nil {
		return err
	}
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			d := dbc[t*ld:][:ld]
			copy(d, dlow[t*m.rank:][:m.rank])
			clear(d[m.rank:])
			for g := range groups {
				vecmath.Add(d[m.rank:], sums[(t*groups+g)*2*m.state:][:2*m.state])
			}
			parts(d, func(w *norm, from, to int) {
				if w != nil {
					s.backNormOf(p, w, d[from:to], raw[t*ld:][from:to], to-from, t)
				}
			})
		}
	}); err != nil {
		return err
	}
	if err := s.backLinear(du, dbc, ld, u, n, true, m.x); err != nil {
		return err
	}
	if err := m.conv.back(s, dxz, 2*inner, du, xz, 2*inner, n); err != nil {
		return err
	}
	return s.backLinear(dx, dxz, 2*inner, x, n, false, m.in)
}

func (m *mamba2) back(s *stream, dx, dy, x []float32, n int) error {
	p, inner, shared, r, st := s.m.p, m.inner, m.groups*m.state, s.reverse, &s.reverse.states
	ld, mixed, size := m.in.w.Rows, inner+2*shared, inner/m.rank
	in, u := buffer.Resize(&s.qkv, n*ld), buffer.Resize(&st.u, n*mixed)
	if err := s.linear(in, ld, x, n, m.in); err != nil {
		return err
	}
	if err := m.conv.run(s, u, in[inner:], ld, n); err != nil {
		return err
	}
	y, out, gates := buffer.Resize(&st.y, n*inner), buffer.Resize(&s.a, n*inner), buffer.Resize(&st.z, n*inner)
	d, du, din := buffer.Resize(&r.hidden, n*inner), buffer.Resize(&st.dy, n*mixed), buffer.Resize(&r.mid, n*ld)
	if err := s.backLinear(d, dy, p.width, nil, n, false, m.out); err != nil {
		return err
	}
	heads := m.rank / m.groups
	one := m.state * size
	return firstError(
		func() error { // outputs of the states
			return parallel.For(s.ctx, len(s.states), n/s.r.Chunk*m.rank, func(i, worker int) error {
				h, first := i%m.rank, i/m.rank*s.r.Chunk
				state := buffer.Resize(&s.states[worker], one)
				clear(state)
				for t := first; t < first+s.r.Chunk; t++ {
					m.step(s, state, y[t*inner+h*size:][:size], u[t*mixed:][:mixed], in[t*ld+inner+mixed+h], h)
				}
				return nil
			})
		},
		func() error { // gates and norms
			return s.eachRows(n, func(a, b int) {
				for t := a; t < b; t++ {
					z, y, gate, out, d, dz := in[t*ld:][:inner], y[t*inner:][:inner], gates[t*inner:][:inner],
						out[t*inner:][:inner], d[t*inner:][:inner], din[t*ld:][:inner]
					vecmath.SiLUOf.Apply(gate, z)
					copy(out, y)
					vecmath.Mul(out, gate)
					s.backHeadNorm(p, m.norm, d, out, t)
					p.headNorm(m.norm, out)
					vecmath.SiLUOf.Slope(dz, z)
					vecmath.Mul(dz, y)
					vecmath.Mul(dz, d)
					vecmath.Mul(d, gate)
				}
			})
		},
		func() error { return s.report(out, dy, p.width, n, m.out) },
		func() error { // the states; heads of a group sequentially, because they add to the gradients of B and C
			return parallel.For(s.ctx, len(s.states), n/s.r.Chunk*m.groups, func(i, worker int) error {
				group, first := i%m.groups, i/m.groups*s.r.Chunk
				for t := first; t < first+s.r.Chunk; t++ {
					clear(du[t*mixed+inner+group*m.state:][:m.state])
					clear(du[t*mixed+inner+shared+group*m.state:][:m.state])
				}
				for h := group * heads; h < (group+1)*heads; h++ {
					m.backHead(s, worker, first, h, u, du, in, din, d)
				}
				return nil
			})
		},
		func() error { return m.conv.back(s, din[inner:], ld, du, in[inner:], ld, n) },
		func() error { return s.backLinear(dx, din, ld, x, n, false, m.in) },
	)
}

// firstError calls functions until one fails and returns its error.
func firstError(parts ...func() error) error {
	for _, f := range parts {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// step updates the state of head h for one token and sets y to its output. row are the token's inputs, raw its time
// step dt before bias and softplus.
func (m *mamba2) step(s *stream, state, y, row []float32, raw float32, h int) {
	size, shared := m.inner/m.rank, m.groups*m.state
	group := h / (m.rank / m.groups) * m.state
	step := vecmath.Softplus(raw + m.dt[h])
	decay := vecmath.Exp(step * m.a[h])
	mine := row[h*size:][:size]
	clear(y)
	for j := range m.state {
		now := state[j*size:][:size]
		vecmath.Scale(now, now, decay)
		vecmath.AddScaled(now, mine, float32(step*row[m.inner+group+j]))
		vecmath.AddScaled(y, now, row[m.inner+shared+group+j])
	}
	vecmath.AddScaled(y, mine, m.d[h])
}

// backHead is the backward pass of head h through a chunk. d is the gradient w.r.t. the state's outputs. du is set to
// the gradient w.r.t. the head's inputs, and the gradients w.r.t. B and C are added to it; din gets the gradient w.r.t.
// dt.
func (m *mamba2) backHead(s *stream, worker, first, h int, u, du, in, din, d []float32) {
	inner, shared, size := m.inner, m.groups*m.state, m.inner/m.rank
	ld, mixed, one := m.in.w.Rows, inner+2*shared, m.state*size
	group := h / (m.rank / m.groups) * m.state
	buf := buffer.Resize(&s.states[worker], (s.r.Chunk+2)*one+2*size)
	states, dstate, y, dstepped := buf[:(s.r.Chunk+1)*one], buf[(s.r.Chunk+1)*one:][:one],
		buf[(s.r.Chunk+2)*one:][:size], buf[(s.r.Chunk+2)*one+size:]
	clear(states[:one])
	for k := range s.r.Chunk {
		now := states[(k+1)*one:][:one]
		copy(now, states[k*one:])
		m.step(s, now, y, u[(first+k)*mixed:][:mixed], in[(first+k)*ld+inner+mixed+h], h)
	}
	clear(dstate)
	for k := s.r.Chunk - 1; k >= 0; k-- {
		t := first + k
		row, drow, dy := u[t*mixed:][:mixed], du[t*mixed:][:mixed], d[t*inner+h*size:][:size]
		mine, dmine := row[h*size:][:size], drow[h*size:][:size]
		raw := in[t*ld+inner+mixed+h] + m.dt[h]
		step := vecmath.Softplus(raw)
		decay := vecmath.Exp(step * m.a[h])
		vecmath.Scale(dmine, dy, m.d[h])
		clear(dstepped)
		var ddecay float64
		for j := range m.state {
			b, c := inner+group+j, inner+shared+group+j
			ds, before := dstate[j*size:][:size], states[k*one+j*size:][:size]
			drow[c] += float32(vecmath.SumProducts(dy, states[(k+1)*one+j*size:][:size]))
			vecmath.AddScaled(ds, dy, row[c])
			drow[b] += float32(step * float32(vecmath.SumProducts(ds, mine)))
			vecmath.AddScaled(dstepped, ds, row[b])
			ddecay += vecmath.SumProducts(ds, before)
			vecmath.Scale(ds, ds, decay)
		}
		dstep := float32(float32(ddecay)*float32(decay*m.a[h])) + float32(vecmath.SumProducts(dstepped, mine))
		vecmath.AddScaled(dmine, dstepped, step)
		din[t*ld+inner+mixed+h] = dstep * vecmath.Sigmoid(raw)
	}
}

func (m parallelMixers) back(s *stream, dx, dy, x []float32, n int) error {
	more, all := buffer.Resize(&s.reverse.both, (len(m)-1)*len(dx)), len(dx)
	for i, part := range m {
		to := dx
		if i+1 < len(m) {
			to = more[i*all:][:all]
		}
		if err := part.(reversible).back(s, to, dy, x, n); err != nil {
			return err
		}
	}
	w := s.m.p.width
	return s.eachRows(n, func(a, b int) {
		for i := range len(m) - 1 {
			vecmath.Add(dx[a*w:b*w], more[i*all:][a*w:b*w])
		}
	})
}
