package eval

import (
	"ggforge/arch/graph"
	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// ssm are the sizes of a state space model.
type ssm struct{ conv, inner, state, rank, groups int }

// ssm reads them.
func (b *builder) ssm() ssm {
	return ssm{conv: b.count("d_conv"), inner: b.count("d_inner"), state: b.count("d_state"), rank: b.count("dt_rank"),
		groups: b.size("n_group")}
}

// mamba is a mixer of a state space model with a step of its own for each channel: channel c
// has state values s, and
//
//	s[i] = s[i]·exp(step·a[i][c]) + B[i]·step·u[c]
//	y[c] = Σ C[i]·s[i] + d[c]·u[c]
//
// where u is a convolution of the input, step = softplus(dt), and dt, B and C are
// functions of u. Source: Gu and Dao, Mamba, 2023.
type mamba struct {
	ssm
	in, x, dt, out      *linear
	conv                *convolution
	a                   [][]float32 // less than 0
	d                   []float32
	dtNorm, bNorm, norm *norm // of dt, B and C, or nil
}

var _ = operation(newMamba)

func newMamba(b *builder, _ graph.Mamba1) mixer {
	t, k := b.t, b.ssm()
	m := &mamba{ssm: k}
	m.in = t.requiredLinear(b.name("ssm_in"), b.p.width, 2*k.inner)
	m.conv = b.convolution(b.name("ssm_conv1d"), true, k.conv, k.inner)
	m.x = t.requiredLinear(b.name("ssm_x"), k.inner, k.rank+2*k.state)
	m.dt = t.requiredLinear(b.name("ssm_dt"), k.rank, k.inner)
	m.out = t.requiredLinear(b.name("ssm_out"), k.inner, b.p.width)
	m.dtNorm, m.bNorm, m.norm = t.norm(b.name("ssm_dt_norm"), k.rank), t.norm(b.name("ssm_b_norm"), k.state),
		t.norm(b.name("ssm_c_norm"), k.state)
	if b.flag("ssm.dt_b_c_rms", false) {
		m.dtNorm, m.bNorm, m.norm = orUnitNorm(m.dtNorm), orUnitNorm(m.bNorm), orUnitNorm(m.norm)
	}
	m.d = t.requiredValues(b.name("ssm_d"), k.inner)
	m.a = transposed(t.requiredValues(b.name("ssm_a"), k.state, k.inner), k.state)
	return m
}

// channels is the number of channels that a worker takes through a chunk at once.
const channels = 128

func (m *mamba) mix(s *stream, y, x []float32, n int, last bool) error {
	p, inner := s.m.p, m.inner
	xz, u, steps := buffer.Resize(&s.qkv, n*2*inner), buffer.Resize(&s.mid, n*inner), buffer.Resize(&s.temp[0], n*inner)
	if err := s.linear(xz, 2*inner, x, n, m.in); err != nil {
		return err
	}
	if err := m.conv.run(s, u, xz, 2*inner, n); err != nil {
		return err
	}
	ld := m.rank + 2*m.state
	dbc, low := buffer.Resize(&s.temp[1], n*ld), buffer.Resize(&s.temp[2], n*m.rank)
	if err := s.linear(dbc, ld, u, n, m.x); err != nil {
		return err
	}
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			row := dbc[t*ld:][:ld]
			for _, part := range []struct {
				w *norm
				x []float32
			}{{m.dtNorm, row[:m.rank]}, {m.bNorm, row[m.rank:][:m.state]}, {m.norm, row[m.rank+m.state:]}} {
				if part.w != nil {
					p.normalize(part.w, part.x, part.x, len(part.x))
				}
			}
			copy(low[t*m.rank:][:m.rank], row)
		}
	}); err != nil {
		return err
	}
	if err := s.linear(steps, inner, low, n, m.dt); err != nil {
		return err
	}
	out := buffer.Resize(&s.a, n*inner)
	groups := (inner + channels - 1) / channels
	if err := parallel.For(s.ctx, len(s.states), n/s.r.Chunk*groups, func(i, worker int) error {
		from := i % groups * channels
		width := min(channels, inner-from)
		buf := buffer.Resize(&s.states[worker], (2*m.state+1)*width)
		state, decay, in := buf[:m.state*width], buf[m.state*width:][:m.state*width], buf[2*m.state*width:]
		clear(state)
		first := i / groups * s.r.Chunk
		for t := first; t < first+s.r.Chunk; t++ {
			step, u, y := steps[t*inner+from:][:width], u[t*inner+from:][:width], out[t*inner+from:][:width]
			vecmath.SoftplusOf.Apply(step, step)
			copy(in, u)
			vecmath.Mul(in, step)
			for j := range m.state {
				d := decay[j*width:][:width]
				copy(d, m.a[j][from:])
				vecmath.Mul(d, step)
			}
			vecmath.ExpOf.Apply(decay, decay)
			vecmath.Mul(state, decay)
			clear(y)
			b, c := dbc[t*ld+m.rank:][:m.state], dbc[t*ld+m.rank+m.state:][:m.state]
			for j := range m.state {
				row := state[j*width:][:width]
				vecmath.AddScaled(row, in, b[j])
				vecmath.AddScaled(y, row, c[j])
			}
			vecmath.AddProduct(y, u, m.d[from:][:width])
			z := xz[t*2*inner+inner+from:][:width]
			vecmath.SiLUOf.Apply(z, z)
			vecmath.Mul(y, z)
		}
		return nil
	}); err != nil {
		return err
	}
	return s.project(y, out, n, last, m.out)
}

// mamba2 is a mixer of a state space model of heads, each with one step and one decay for
// its channels; heads of a group share B and C:
//
//	S = exp(step·a)·S + B ⊗ step·u
//	y = Cᵀ S + d·u
//
// Source: Dao and Gu, Transformers are SSMs, 2024.
type mamba2 struct {
	ssm
	in, out *linear
	conv    *convolution
	dt      []float32 // biases of steps
	a, d    []float32 // by head
	norm    *headNorm // of groups, or nil
}

var _ = operation(newMamba2)

func newMamba2(b *builder, _ graph.Mamba2) mixer {
	t, k := b.t, b.ssm()
	if k.inner%k.rank != 0 || k.groups < 1 || k.rank%k.groups != 0 || k.inner%k.groups != 0 {
		b.fail(fault.Broken, "a state space model of %d channels, %d heads and %d groups", k.inner, k.rank, k.groups)
	}
	m := &mamba2{ssm: k}
	m.in = t.requiredLinear(b.name("ssm_in"), b.p.width, 2*k.inner+2*k.groups*k.state+k.rank)
	m.conv = b.convolution(b.name("ssm_conv1d"), true, k.conv, k.inner+2*k.groups*k.state)
	m.dt, m.a, m.d = t.requiredValues(b.name("ssm_dt.bias"), k.rank),
		t.requiredValues(b.name("ssm_a"), 1, k.rank),
		t.requiredValues(b.name("ssm_d"), 1, k.rank)
	m.norm = t.headNorm(b.name("ssm_norm"), k.groups, k.inner/k.groups)
	m.out = t.requiredLinear(b.name("ssm_out"), k.inner, b.p.width)
	return m
}

func (m *mamba2) mix(s *stream, y, x []float32, n int, last bool) error {
	p, inner, shared := s.m.p, m.inner, m.groups*m.state
	ld, mixed := m.in.w.Rows, inner+2*shared
	in, u := buffer.Resize(&s.qkv, n*ld), buffer.Resize(&s.mid, n*mixed)
	if err := s.linear(in, ld, x, n, m.in); err != nil {
		return err
	}
	if err := m.conv.run(s, u, in[inner:], ld, n); err != nil {
		return err
	}
	out := buffer.Resize(&s.a, n*inner)
	if err := m.scan(s, out, n, m.a, m.d, func(t, h int) (step float32, mine, b, c []float32) {
		row, group := u[t*mixed:][:mixed], h/(m.rank/m.groups)*m.state
		return in[t*ld+inner+mixed+h] + m.dt[h], row[h*(inner/m.rank):], row[inner+group:][:m.state],
			row[inner+shared+group:][:m.state]
	}); err != nil {
		return err
	}
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			y, z := out[t*inner:][:inner], in[t*ld:][:inner]
			vecmath.SiLUOf.Apply(z, z)
			vecmath.Mul(y, z)
			p.headNorm(m.norm, y)
		}
	}); err != nil {
		return err
	}
	return s.project(y, out, n, last, m.out)
}

// scan sets out to the outputs of heads, a and d being the numbers of each: of n tokens, one chunk after the other. at
// returns the step of head h at token t before its softplus, the head's channels, B and C.
func (m ssm) scan(s *stream, out []float32, n int, a, d []float32,
	at func(t, h int) (step float32, mine, b, c []float32)) error {
	size := m.inner / m.rank
	return parallel.For(s.ctx, len(s.states), n/s.r.Chunk*m.rank, func(i, worker int) error {
		h := i % m.rank
		buf := buffer.Resize(&s.states[worker], (m.state+1)*size+m.state)
		state, stepped, decay := buf[:m.state*size], buf[m.state*size:][:size], buf[(m.state+1)*size:]
		clear(state)
		first := i / m.rank * s.r.Chunk
		for t := first; t < first+s.r.Chunk; t++ {
			step, mine, b, c := at(t, h)
			step, mine = vecmath.Softplus(step), mine[:size]
			factor := vecmath.Exp(step * a[h])
			for j := range decay {
				decay[j] = factor
			}
			y := out[t*m.inner+h*size:][:size]
			vecmath.Scale(stepped, mine, step)
			clear(y)
			vecmath.Recur(y, state, stepped, decay, b, c)
			vecmath.AddScaled(y, mine, d[h])
		}
		return nil
	})
}

// projectedMamba2 is mamba2 with B, C and the low-rank input of steps projected from the convolution's output and
// normalized; all heads share B and C. Source: the graph of llama.cpp for PLaMo 2.
type projectedMamba2 struct {
	ssm                 // rank is the number of heads
	low                 int
	in, x, dt, out      *linear
	conv                *convolution
	a, d                []float32 // by head
	bNorm, norm, dtNorm *norm     // of B, C and the input of steps
}

var _ = operation(newProjectedMamba2)

func newProjectedMamba2(b *builder, of graph.ProjectedMamba2) mixer {
	t, k := b.t, b.ssm()
	if k.inner%k.rank != 0 {
		b.fail(fault.Broken, "a state space model of %d channels and %d heads", k.inner, k.rank)
	}
	m := &projectedMamba2{ssm: k, low: b.count(of.StepsRank())}
	m.in = t.requiredLinear(b.name("ssm_in"), b.p.width, 2*k.inner)
	m.conv = b.convolution(b.name("ssm_conv1d"), true, k.conv, k.inner)
	m.x = t.requiredLinear(b.name("ssm_x"), k.inner, m.low+2*k.state)
	m.dt = t.requiredLinear(b.name("ssm_dt"), m.low, k.rank)
	if m.dt.bias == nil {
		t.required(b.name("ssm_dt.bias"))
	}
	m.a, m.d = t.requiredValues(b.name("ssm_a"), k.rank), t.requiredValues(b.name("ssm_d"), k.rank)
	m.dtNorm, m.bNorm, m.norm = b.weightedNorm("ssm_dt_norm", m.low), b.weightedNorm("ssm_b_norm", k.state),
		b.weightedNorm("ssm_c_norm", k.state)
	m.out = t.requiredLinear(b.name("ssm_out"), k.inner, b.p.width)
	return m
}

// weightedNorm returns the norm of n values whose weights are a required tensor of the layer, named in full.
func (b *builder) weightedNorm(tensor string, n int) *norm {
	return &norm{weight: b.t.requiredValues(b.name(tensor), n), tensor: b.name(tensor)}
}

func (m *projectedMamba2) mix(s *stream, y, x []float32, n int, last bool) error {
	p, inner, size := s.m.p, m.inner, m.inner/m.rank
	zx, mixed, u := buffer.Resize(&s.qkv, n*2*inner), buffer.Resize(&s.temp[0], n*inner), buffer.Resize(&s.mid, n*inner)
	if err := s.linear(zx, 2*inner, x, n, m.in); err != nil {
		return err
	}
	if err := s.eachRows(n, func(a, b int) {
		for i := a * m.rank; i < b*m.rank; i++ { // heads of all tokens
			copy(mixed[i*size:][:size], zx[(2*i+1)*size:])
		}
	}); err != nil {
		return err
	}
	if err := m.conv.run(s, u, mixed, inner, n); err != nil {
		return err
	}
	ld := m.low + 2*m.state
	bcd, low, steps := buffer.Resize(&s.temp[1], n*ld), buffer.Resize(&s.temp[2], n*m.low),
		buffer.Resize(&s.routerLogits, n*m.rank)
	defer func() { s.routerLogits = s.routerLogits[:0] }()
	if err := s.linear(bcd, ld, u, n, m.x); err != nil {
		return err
	}
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			row := bcd[t*ld:][:ld]
			p.normalize(m.bNorm, row[:m.state], row[:m.state], m.state)
			p.normalize(m.norm, row[m.state:][:m.state], row[m.state:][:m.state], m.state)
			p.normalize(m.dtNorm, low[t*m.low:][:m.low], row[2*m.state:], m.low)
		}
	}); err != nil {
		return err
	}
	if err := s.linear(steps, m.rank, low, n, m.dt); err != nil {
		return err
	}
	out := buffer.Resize(&s.a, n*inner)
	if err := m.scan(s, out, n, m.a, m.d, func(t, h int) (step float32, mine, b, c []float32) {
		row := bcd[t*ld:]
		return steps[t*m.rank+h], u[t*inner+h*size:], row[:m.state], row[m.state:][:m.state]
	}); err != nil {
		return err
	}
	if err := s.eachRows(n, func(a, b int) {
		for i := a * m.rank; i < b*m.rank; i++ {
			z := zx[2*i*size:][:size]
			vecmath.SiLUOf.Apply(z, z)
			vecmath.Mul(out[i*size:][:size], z)
		}
	}); err != nil {
		return err
	}
	return s.project(y, out, n, last, m.out)
}

// parallelMixers is parts that read the same and whose outputs are added.
type parallelMixers []mixer

var _ = operation(func(b *builder, of graph.Sum) mixer {
	sum := make(parallelMixers, len(of))
	for i := range of {
		sum[i] = b.part(of[i])
	}
	return sum
})

func (m parallelMixers) mix(s *stream, y, x []float32, n int, last bool) error {
	for i, part := range m {
		to := y
		if i+1 < len(m) {
			to = buffer.Resize(&s.sum, len(m)*len(y))[i*len(y):][:len(y)]
		}
		if err := part.mix(s, to, x, n, last && reachOf(part) == anyToken); err != nil {
			return err
		}
		if last && reachOf(part) == ownToken {
			s.keepPredicting(to, s.m.p.width, n)
		}
	}
	if last {
		n = s.predicting(n)
	}
	w, all := s.m.p.width, len(y)
	return s.eachRows(n, func(a, b int) {
		for i := range m[1:] {
			vecmath.Add(y[a*w:b*w], s.sum[i*all:][a*w:b*w])
		}
	})
}
