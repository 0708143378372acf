package eval

import (
	"fmt"
	"math"

	"ggforge/arch/graph"
	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// deltaNet is a mixer of heads with a state matrix each. A token lets the state decay and then corrects the value that
// is stored under its key:
//
//	S = decay·S
//	S = S + k ⊗ beta·(v - Sᵀk)
//	y = Sᵀq
//
// Queries, keys and values are convolutions of the input; the former two have unit length.
// Source: Yang et al., Gated Delta Networks, 2024.
type deltaNet struct {
	heads, keys      int // numbers of heads, and of heads of queries and keys
	keyLen, valueLen int
	interleavedKeys  bool // head h uses queries and keys h mod keys, else h / (heads/keys)
	gateFunction     vecmath.Function
	qkv, gate, out   *linear
	alpha, beta      *linear // of decay and beta; or
	betaAlpha        *linear // both, beta first, for each head of keys
	conv             *convolution
	bias, a          []float32 // of decay, by head
	norm             *norm     // of each head
}

var _ = operation(newDeltaNet)

func newDeltaNet(b *builder, of graph.GatedDeltaNet) mixer {
	t, k := b.t, b.ssm()
	if k.inner%k.rank != 0 || k.groups < 1 || k.rank%k.groups != 0 {
		b.fail(fault.Broken, "layer %d has %d values of %d heads, %d of them of keys, want multiples", b.Layer(),
			k.inner, k.rank, k.groups)
	}
	d := &deltaNet{heads: k.rank, keys: k.groups, keyLen: k.state, valueLen: k.inner / k.rank,
		interleavedKeys: of.KeysTakeTurns, gateFunction: vecmath.SiLUOf}
	if of.SigmoidGate {
		d.gateFunction = vecmath.SigmoidOf
	}
	mixed := k.inner + 2*k.groups*k.state
	d.qkv, d.gate, d.out = t.requiredLinear(b.name("attn_qkv"), b.p.width, mixed),
		t.requiredLinear(b.name("attn_gate"), b.p.width, k.inner),
		t.requiredLinear(b.name("ssm_out"), k.inner, b.p.width)
	if d.betaAlpha = t.linear(b.name("ssm_ba"), b.p.width, 2*k.rank); d.betaAlpha == nil {
		d.alpha, d.beta = t.requiredLinear(b.name("ssm_alpha"), b.p.width, k.rank),
			t.requiredLinear(b.name("ssm_beta"), b.p.width, k.rank)
	}
	d.conv = b.convolution(b.name("ssm_conv1d"), true, k.conv, mixed)
	d.bias, d.a = t.requiredValues(b.name("ssm_dt.bias"), k.rank), t.requiredValues(b.name("ssm_a"), k.rank)
	d.norm = b.weightedNorm("ssm_norm.weight", d.valueLen)
	return d
}

// unitLength divides x by √(|x|² + eps).
func unitLength(x []float32, eps float64) {
	vecmath.Scale(x, x, float32(1/math.Sqrt(vecmath.SumSquares(x, 0)+eps)))
}

func (d *deltaNet) mix(s *stream, y, x []float32, n int, last bool) error {
	p, values, keys := s.m.p, d.heads*d.valueLen, d.keys*d.keyLen
	mixed := values + 2*keys
	in, u, z, ab := buffer.Resize(&s.qkv, n*mixed), buffer.Resize(&s.mid, n*mixed), buffer.Resize(&s.temp[0], n*values),
		buffer.Resize(&s.temp[1], n*2*d.heads)
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
	if err := s.linear(ab, 2*d.heads, x, n, rates...); err != nil {
		return err
	}
	if err := d.conv.run(s, u, in, mixed, n); err != nil {
		return err
	}
	scale := float32(1 / math.Sqrt(float64(d.keyLen)))
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			q, k := u[t*mixed:][:keys], u[t*mixed+keys:][:keys]
			for h := 0; h < keys; h += d.keyLen {
				unitLength(q[h:][:d.keyLen], p.eps)
				unitLength(k[h:][:d.keyLen], p.eps)
			}
			vecmath.Scale(q, q, scale)
		}
	}); err != nil {
		return err
	}
	out := buffer.Resize(&s.a, n*values)
	if err := parallel.For(s.ctx, len(s.states), n/s.r.Chunk*d.heads, func(i, worker int) error {
		h := i % d.heads
		delta := newDeltaState(&s.states[worker], d.keyLen, d.valueLen)
		first := i / d.heads * s.r.Chunk
		for t := first; t < first+s.r.Chunk; t++ {
			y := out[t*values+h*d.valueLen:][:d.valueLen]
			d.step(delta, y, u[t*mixed:][:mixed], ab[t*2*d.heads:][:2*d.heads], h)
			gate := z[t*values+h*d.valueLen:][:d.valueLen]
			d.gateFunction.Apply(gate, gate)
			p.normalize(d.norm, y, y, d.valueLen)
			vecmath.Mul(y, gate)
		}
		return nil
	}); err != nil {
		return err
	}
	return s.project(y, out, n, last, d.out)
}

// indices returns the key head of head h, and the indices of its beta and alpha.
func (d *deltaNet) indices(h int) (key, beta, alpha int) {
	key, beta, alpha = h/(d.heads/d.keys), h, d.heads+h
	if d.interleavedKeys {
		key = h % d.keys
	}
	if d.betaAlpha != nil { // betas and alphas of the heads of a key are next to each other
		per := d.heads / d.keys
		beta = h/per*2*per + h%per
		alpha = beta + per
	}
	return key, beta, alpha
}

// step advances head h by one token: row is its queries, keys and values, rates are its betas
// and alphas.
func (d *deltaNet) step(state *deltaState, y, row, rates []float32, h int) {
	keys := d.keys * d.keyLen
	key, b, a := d.indices(h)
	decay := vecmath.Exp(vecmath.Softplus(rates[a]+d.bias[h]) * d.a[h])
	for j := range state.decay {
		state.decay[j] = decay
	}
	state.step(y, row[key*d.keyLen:][:d.keyLen], row[keys+key*d.keyLen:][:d.keyLen],
		row[2*keys+h*d.valueLen:][:d.valueLen], vecmath.Sigmoid(rates[b]))
}

// deltaState is the state of a head.
type deltaState struct {
	state, stored []float32 // [key][value]; the value stored under the key
	decay         []float32 // of each element of a key
	zeros, ones   []float32
}

// newDeltaState returns the first state, in memory that is kept.
func newDeltaState(buf *[]float32, keyLen, valueLen int) *deltaState {
	x := buffer.Resize(buf, keyLen*valueLen+valueLen+3*keyLen)
	d := &deltaState{}
	for _, part := range []struct {
		to *[]float32
		n  int
	}{{&d.state, keyLen * valueLen}, {&d.stored, valueLen}, {&d.decay, keyLen}, {&d.zeros, keyLen},
		{&d.ones, keyLen}} {
		*part.to, x = x[:part.n], x[part.n:]
	}
	clear(d.state)
	clear(d.zeros)
	for i := range d.ones {
		d.ones[i] = 1
	}
	return d
}

// step advances the state by one token and sets y to the value stored under q. The factors of decay have been set.
func (d *deltaState) step(y, q, k, v []float32, beta float32) {
	clear(d.stored)
	vecmath.Recur(d.stored, d.state, v, d.decay, d.zeros, k)
	for i, x := range v {
		d.stored[i] = (x - d.stored[i]) * beta
	}
	clear(y)
	vecmath.Recur(y, d.state, d.stored, d.ones, k, q)
}

// kimiDeltaNet is a mixer like deltaNet, in which each element of a key has a decay of its
// own. Source: Kimi Team, Kimi Linear, 2025.
type kimiDeltaNet struct {
	heads, size  int // size is that of keys and values
	q, k, v, out *linear
	convs        [3]*convolution // of q, k and v
	decay, gate  *lowRank
	beta         *linear
	bias, a      []float32 // of decay, by element and by head
	norm         *norm     // of each head
	bound        float32   // the least logarithm of a decay, if it is a sigmoid; or 0
	unitEps      float64   // of the lengths of queries and keys
}

var _ = operation(newKimiDeltaNet)

func newKimiDeltaNet(b *builder, of graph.KDA) mixer {
	p, t := b.p, b.t
	d := &kimiDeltaNet{heads: b.count("n_head"), size: b.count("@kda.head_dim"), unitEps: b.floatOr(of.UnitEps, p.eps)}
	size, all := b.count("d_conv"), d.heads*d.size
	d.q, d.k, d.v = t.requiredLinear(b.name("attn_q"), p.width, all),
		t.requiredLinear(b.name("attn_k"), p.width, all),
		t.requiredLinear(b.name("attn_v"), p.width, all)
	for j, letter := range "qkv" {
		d.convs[j] = b.convolution(b.name(fmt.Sprintf("ssm_conv1d_%c", letter)), true, size, 1, all)
	}
	product := func(name string) *lowRank { // of two matrices, or one
		if of.FullGate && name == "ssm_g" {
			return &lowRank{in: t.requiredLinear(b.name(name), p.width, all)}
		}
		if t.all[b.name(name+"_b.weight")] == nil {
			return &lowRank{in: t.requiredLinear(b.name(name+"_a"), p.width, all)}
		}
		return &lowRank{in: t.requiredLinear(b.name(name+"_a"), p.width, d.size),
			out: t.requiredLinear(b.name(name+"_b"), d.size, all)}
	}
	d.decay, d.gate = product("ssm_f"), product("ssm_g")
	if of.Bounded {
		d.bound = float32(b.float("@kda.gate_lower_bound"))
		if v, ok := b.Value("@kda.safe_gate"); ok && v.Float() == 0 {
			t.fail(fault.Unsupported, "%q is false, want true", b.p.arch+".kda.safe_gate")
		}
	}
	d.beta, d.out = t.requiredLinear(b.name("ssm_beta"), p.width, d.heads),
		t.requiredLinear(b.name("attn_output"), all, p.width)
	d.bias = t.requiredValues(b.name("ssm_dt.bias"), all)
	if of.Negative {
		d.a = t.requiredValues(b.name("ssm_a"), d.heads)
	} else {
		d.a = t.requiredValues(b.name("ssm_a"), 1, d.heads)
	}
	if of.Negative && of.Bounded {
		for i := range d.a {
			d.a[i] = -d.a[i]
		}
	}
	d.norm = b.weightedNorm("ssm_norm.weight", d.size)
	return d
}

func (d *kimiDeltaNet) mix(s *stream, y, x []float32, n int, last bool) error {
	p, all := s.m.p, d.heads*d.size
	in, u, rates, gates := buffer.Resize(&s.qkv, n*3*all), buffer.Resize(&s.mid, 3*n*all),
		buffer.Resize(&s.temp[2], n*all), buffer.Resize(&s.a, n*all)
	if err := s.linear(in, 3*all, x, n, d.q, d.k, d.v); err != nil {
		return err
	}
	for j, c := range d.convs { // queries, keys and values become matrices of their own
		if err := c.run(s, u[j*n*all:], in[j*all:], 3*all, n); err != nil {
			return err
		}
	}
	q, k, v := u[:n*all], u[n*all:][:n*all], u[2*n*all:]
	product := func(dst []float32, l *lowRank) error {
		if l.out == nil {
			return s.linear(dst, all, x, n, l.in)
		}
		return s.lowRank(dst, all, n, l, func(dst []float32, t int) { copy(dst, x[t*p.width:]) })
	}
	if err := product(rates, d.decay); err != nil {
		return err
	}
	beta := in[:n*d.heads] // the inputs of the convolutions are not needed any more
	if err := s.linear(beta, d.heads, x, n, d.beta); err != nil {
		return err
	}
	scale := float32(1 / math.Sqrt(float64(d.size)))
	if err := s.eachRows(n, func(from, to int) {
		for t := from; t < to; t++ {
			for h := t * all; h < (t+1)*all; h += d.size {
				unitLength(q[h:][:d.size], d.unitEps)
				unitLength(k[h:][:d.size], d.unitEps)
			}
			vecmath.Scale(q[t*all:][:all], q[t*all:][:all], scale)
			rate := rates[t*all:][:all]
			vecmath.Add(rate, d.bias)
			if d.bound == 0 {
				vecmath.SoftplusOf.Apply(rate, rate)
			}
			for h, a := range d.a {
				vecmath.Scale(rate[h*d.size:][:d.size], rate[h*d.size:][:d.size], a)
			}
			if d.bound != 0 {
				vecmath.SigmoidOf.Apply(rate, rate)
				vecmath.Scale(rate, rate, d.bound)
			}
			vecmath.ExpOf.Apply(rate, rate)
		}
	}); err != nil {
		return err
	}
	if err := product(gates, d.gate); err != nil {
		return err
	}
	out := v // a head's values are read before they are written
	if err := parallel.For(s.ctx, len(s.states), n/s.r.Chunk*d.heads, func(i, worker int) error {
		h := i % d.heads
		delta := newDeltaState(&s.states[worker], d.size, d.size)
		first := i / d.heads * s.r.Chunk
		for t := first; t < first+s.r.Chunk; t++ {
			at := t*all + h*d.size
			copy(delta.decay, rates[at:])
			y, gate := out[at:][:d.size], gates[at:][:d.size]
			delta.step(y, q[at:][:d.size], k[at:][:d.size], v[at:][:d.size], vecmath.Sigmoid(beta[t*d.heads+h]))
			p.normalize(d.norm, y, y, d.size)
			vecmath.SigmoidOf.Apply(gate, gate)
			vecmath.Mul(y, gate)
		}
		return nil
	}); err != nil {
		return err
	}
	return s.project(y, out, n, last, d.out)
}
