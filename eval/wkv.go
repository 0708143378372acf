package eval

import (
	"fmt"

	"ggforge/arch/graph"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// tokenShift sets dst to the interpolation of row t of x with the row before it: x[t] + share·(x[t-1] - x[t]),
// elementwise. The row before the first of a chunk is zero.
func (s *stream) tokenShift(dst, x, share []float32, width, t int) {
	now := x[t*width:][:width]
	if t%s.r.Chunk == 0 {
		clear(dst)
	} else {
		copy(dst, x[(t-1)*width:][:width])
	}
	vecmath.AddScaled(dst, now, -1)
	vecmath.Mul(dst, share)
	vecmath.Add(dst, now)
}

// linearOf sets the n rows of dst (stride ld) to the outputs of a linear layer. fill writes the input row of token t.
// after, if not nil, is applied to each row of dst.
func (s *stream) linearOf(dst []float32, ld, n int, l *linear, fill func(x []float32, t int),
	after func(y []float32)) error {
	k := l.w.K
	in := buffer.Resize(&s.temp[0], n*k)
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			fill(in[t*k:][:k], t)
		}
	}); err != nil {
		return err
	}
	if err := s.linear(dst, ld, in, n, l); err != nil || after == nil {
		return err
	}
	return s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			after(dst[t*ld:][:l.w.Rows])
		}
	})
}

// lowRank is a LoRA-style MLP: out(f(in(x))).
type lowRank struct {
	in, out *linear
	f       func(x []float32)
}

// lowRank returns the low-rank MLP of the tensors one and two of the layer, nil if there are none.
func (b *builder) lowRank(one, two string, f vecmath.Function) *lowRank {
	w := b.t.all[b.name(one)+".weight"]
	if w == nil || len(w.NE) != 2 {
		return nil
	}
	l := &lowRank{in: b.t.requiredLinear(b.name(one), b.p.width, int(w.NE[1])),
		out: b.t.requiredLinear(b.name(two), int(w.NE[1]), b.p.width)}
	if f.Known() {
		l.f = func(x []float32) { f.Apply(x, x) }
	}
	return l
}

// lowRank sets the n rows of dst (stride ld) to the outputs of l; fill writes the input row of token t.
func (s *stream) lowRank(dst []float32, ld, n int, l *lowRank, fill func(x []float32, t int)) error {
	rank := l.in.w.Rows
	mid := buffer.Resize(&s.temp[1], n*rank)
	if err := s.linearOf(mid, rank, n, l.in, fill, l.f); err != nil {
		return err
	}
	return s.linear(dst, ld, mid, n, l.out)
}

// timeMix is the common part of the time mixing of RWKV 6 and 7.
type timeMix struct {
	width, size, heads int // size is the head size
	r, k, v, out       *linear
	norm               *norm // group norm, one group per head, weights of length width; or nil
}

// headEps is the epsilon of the group norm.
const headEps = 64e-5

func (b *builder) timeMix(keys int) timeMix {
	w, size := b.p.width, b.count("@wkv.head_size")
	m := timeMix{width: w, size: size, heads: w / size}
	if w%size != 0 {
		b.fail(errBroken, "embedding_length %d, want a multiple of wkv.head_size %d", w, size)
	}
	if keys == 0 {
		keys = m.heads
	}
	if m.heads%keys != 0 {
		b.fail(errBroken, "layer %d has %d heads, want a multiple of %d KV heads", b.Layer(), m.heads, keys)
	}
	m.r, m.out = b.t.requiredLinear(b.name("time_mix_receptance"), w, w),
		b.t.requiredLinear(b.name("time_mix_output"), w, w)
	m.k, m.v = b.t.requiredLinear(b.name("time_mix_key"), w, keys*size),
		b.t.requiredLinear(b.name("time_mix_value"), w, keys*size)
	m.norm = b.t.norm(b.name("time_mix_ln"), w)
	return m
}

// normalize applies the group norm to a token's heads, in place.
func (m *timeMix) normalize(y []float32) {
	if m.norm == nil {
		return
	}
	plain := params{eps: headEps} // a layer norm
	plain.normalize(&norm{}, y, y, m.size)
	vecmath.Mul(y, m.norm.weight)
	if m.norm.bias != nil {
		vecmath.Add(y, m.norm.bias)
	}
}

// The inputs of RWKV 6 with a token shift of their own, in the order of the file.
const (
	shiftW = iota
	shiftK
	shiftV
	shiftR
	shiftG
	shifts
)

// wkv6 is the time mixing of RWKV 6. Each head has a state matrix S, whose rows decay by factors that depend on the
// token:
//
//	y = rᵀ(S + first·k ⊗ v)
//	S = decay·S + k ⊗ v
//
// Models converted from attention models (RWKV6-Qwen2) have no first: keys are (1 - decay)·k and y reads the new S.
// Source: Peng et al., Eagle and Finch, 2024.
type wkv6 struct {
	timeMix
	keys     int // number of KV heads
	shareX   []float32
	shares   [shifts][]float32
	w1       *linear   // of all token shifts
	w2       []*linear // per token shift
	decay    []float32
	decayLow *lowRank
	g        *linear
	first    []float32
}

var (
	_ = operation(func(b *builder, _ graph.RWKV6) mixer { return newWKV6(b, true) })
	_ = operation(func(b *builder, _ graph.QRWKV6) mixer { return newWKV6(b, false) })
)

// newWKV6 returns the mixer of the layer, with first or without.
func newWKV6(b *builder, first bool) mixer {
	w, t := b.p.width, b.t
	m := &wkv6{keys: b.size("@attention.head_count_kv or 0")}
	m.timeMix = b.timeMix(m.keys)
	if m.keys == 0 {
		m.keys = m.heads
	}
	m.shareX = t.requiredValues(b.name("time_mix_lerp_x.weight"), w)
	if all := t.all[b.name("time_mix_lerp_fused.weight")]; all != nil {
		if v := t.requiredValues(all.Name, w, 1, 1, shifts); v != nil {
			for j := range m.shares {
				m.shares[j] = v[j*w:][:w]
			}
		}
	} else {
		for j, letter := range "wkvrg" {
			m.shares[j] = t.requiredValues(b.name(fmt.Sprintf("time_mix_lerp_%c.weight", letter)), w)
		}
	}
	extra := b.count("@time_mix_extra_dim")
	m.w1, m.w2 = t.requiredLinear(b.name("time_mix_w1"), w, shifts*extra),
		t.stack(b.name("time_mix_w2"), extra, w, shifts)
	for _, l := range m.w2 {
		l.single = true
	}
	m.decay = t.requiredValues(b.name("time_mix_decay.weight"), w)
	if m.decayLow = b.lowRank("time_mix_decay_w1", "time_mix_decay_w2", vecmath.TanhOf); m.decayLow == nil {
		t.required(b.name("time_mix_decay_w1.weight"))
	}
	m.g = t.requiredLinear(b.name("time_mix_gate"), w, w)
	if first {
		m.first = t.requiredValues(b.name("time_mix_first.weight"), m.size, m.heads)
		if m.norm == nil {
			t.required(b.name("time_mix_ln.weight"))
		}
	}
	return m
}

func (m *wkv6) mix(s *stream, y, x []float32, n int, last bool) error {
	w, ranks := m.width, m.w1.w.Rows
	extra, kv := ranks/shifts, m.keys*m.size
	// a row of all: receptance, key, value, decay, gate
	ld := 3*w + 2*kv
	all, lows := buffer.Resize(&s.qkv, n*ld), buffer.Resize(&s.temp[2], n*ranks)
	toK, toV, toW, toG := w, w+kv, w+2*kv, 2*w+2*kv
	if err := s.linearOf(lows, ranks, n, m.w1, func(dst []float32, t int) { s.tokenShift(dst, x, m.shareX, w, t) },
		func(y []float32) { vecmath.TanhOf.Apply(y, y) }); err != nil {
		return err
	}
	share := buffer.Resize(&s.mid, n*w)
	for j, to := range []struct {
		l  *linear
		at int
	}{shiftW: {nil, toW}, shiftK: {m.k, toK}, shiftV: {m.v, toV}, shiftR: {m.r, 0}, shiftG: {m.g, toG}} {
		if err := s.linearOf(share, w, n, m.w2[j], func(dst []float32, t int) { copy(dst, lows[t*ranks+j*extra:]) },
			func(y []float32) { vecmath.Add(y, m.shares[j]) }); err != nil {
			return err
		}
		shifted := func(dst []float32, t int) { s.tokenShift(dst, x, share[t*w:][:w], w, t) }
		var err error
		if to.l == nil {
			err = s.lowRank(all[to.at:], ld, n, m.decayLow, shifted)
		} else {
			err = s.linearOf(all[to.at:], ld, n, to.l, shifted, nil)
		}
		if err != nil {
			return err
		}
	}
	gate := vecmath.SigmoidOf
	if m.first != nil {
		gate = vecmath.SiLUOf
	}
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			row := all[t*ld:][:ld]
			d, g := row[toW:][:w], row[toG:][:w]
			vecmath.Add(d, m.decay)
			vecmath.ExpOf.Apply(d, d)
			vecmath.Scale(d, d, -1)
			vecmath.ExpOf.Apply(d, d)
			gate.Apply(g, g)
			if m.first == nil {
				vecmath.Scale(row[:w], row[:w], float32(vecmath.Pow(float64(m.size), -0.5)))
			}
		}
	}); err != nil {
		return err
	}
	out := buffer.Resize(&s.a, n*w)
	if err := parallel.For(s.ctx, len(s.states), n/s.r.Chunk*m.heads, func(i, worker int) error {
		h, size := i%m.heads, m.size
		key, mine := h/(m.heads/m.keys)*size, h*size
		buf := buffer.Resize(&s.states[worker], size*size+2*size)
		state, k, nothing := buf[:size*size], buf[size*size:][:size], buf[size*size+size:]
		clear(state)
		clear(nothing)
		first := i / m.heads * s.r.Chunk
		clear(out[first*w+mine:][:size])
		for t := first; t < first+s.r.Chunk; t++ {
			row, y := all[t*ld:][:ld], out[t*w+mine:][:size]
			r, v, d := row[mine:][:size], row[toV+key:][:size], row[toW+mine:][:size]
			copy(k, row[toK+key:])
			if m.first == nil {
				for j := range k {
					k[j] -= float32(k[j] * d[j])
				}
				clear(y)
				vecmath.Recur(y, state, v, d, k, r)
				continue
			}
			// the state's update also computes the output of the next token
			if t+1 < first+s.r.Chunk {
				next := out[(t+1)*w+mine:][:size]
				clear(next)
				vecmath.Recur(next, state, v, d, k, all[(t+1)*ld+mine:][:size])
			}
			vecmath.Mul(k, r)
			vecmath.Mul(k, m.first[mine:][:size])
			vecmath.AddScaled(y, v, float32(vecmath.Sum(k)))
		}
		return nil
	}); err != nil {
		return err
	}
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			y := out[t*w:][:w]
			m.normalize(y)
			vecmath.Mul(y, all[t*ld+toG:][:w])
		}
	}); err != nil {
		return err
	}
	return s.project(y, out, n, last, m.out)
}

// wkv7 is the time mixing of RWKV 7. Each head has a state matrix S, updated by a generalized delta rule with
// the in-context learning rate a:
//
//	S = decay·S + k ⊗ v - κ·a ⊗ (Sᵀκ)
//	y = Sᵀr + (r·bonus·k)·v
//
// where κ is the normalized removal key. Layers after the first mix their values with the first layer's (value
// residual). Source: Peng et al., RWKV-7 Goose, 2025.
type wkv7 struct {
	timeMix
	shares                   [][]float32 // of r, decay, k, v, a and the gate, if there is one
	w0, v0, a0               []float32
	w, val, a, g             *lowRank // val nil in the first layer, g nil for no gate
	keyScale, keyRate, bonus []float32
}

var _ = operation(newWKV7)

func newWKV7(b *builder, _ graph.RWKV7) mixer {
	w, t := b.p.width, b.t
	m := &wkv7{timeMix: b.timeMix(0)}
	m.w, m.val, m.a, m.g = b.lowRank("time_mix_w1", "time_mix_w2", vecmath.TanhOf),
		b.lowRank("time_mix_v1", "time_mix_v2", vecmath.Function{}),
		b.lowRank("time_mix_a1", "time_mix_a2", vecmath.Function{}),
		b.lowRank("time_mix_g1", "time_mix_g2", vecmath.SigmoidOf)
	m.w0, m.a0 = t.requiredValues(b.name("time_mix_w0.weight"), w),
		t.requiredValues(b.name("time_mix_a0.weight"), w)
	if m.v0 = t.vector(b.name("time_mix_v0.weight"), w); b.Layer() == 0 {
		m.val, m.v0 = nil, nil // present in files, but not used
	} else if m.val == nil || m.v0 == nil {
		t.fail(errBroken, "no tensor %q or %q", b.name("time_mix_v0.weight"), b.name("time_mix_v1.weight"))
	}
	if m.w == nil || m.a == nil {
		t.fail(errBroken, "no tensor %q or %q", b.name("time_mix_w1.weight"), b.name("time_mix_a1.weight"))
	}
	if all := t.all[b.name("time_mix_lerp_fused.weight")]; all != nil {
		// there may be a token shift of the gate without its matrices
		n := 6
		if m.g == nil && len(all.NE) == 4 && all.NE[3] == 5 {
			n = 5
		}
		if v := t.requiredValues(all.Name, w, 1, 1, n); v != nil {
			for j := range n {
				m.shares = append(m.shares, v[j*w:][:w])
			}
		}
	} else {
		t.required(b.name("time_mix_lerp_fused.weight"))
	}
	m.keyScale, m.keyRate, m.bonus = t.requiredValues(b.name("time_mix_k_k.weight"), w),
		t.requiredValues(b.name("time_mix_k_a.weight"), w), t.requiredValues(b.name("time_mix_r_k.weight"), w)
	return m
}

// valuesOfFirstLayer returns the values of the first layer of n tokens.
func (s *stream) valuesOfFirstLayer(n int) []float32 {
	if s.firstLayerValues == nil {
		s.firstLayerValues = make([]float32, len(s.h))
	}
	return s.firstLayerValues[(s.firstLayerStart+s.firstToken)*s.m.p.width:][:n*s.m.p.width]
}

// keepsFirstValues reports whether later layers read the first layer's values (RWKV 7).
func (m *Model) keepsFirstValues() bool {
	for part := range m.layers[0].parts() {
		if _, ok := part.(*wkv7); ok {
			return true
		}
	}
	return false
}

// wkv7Decay is the logarithm of the smallest decay factor, -e^(-1/2).
const wkv7Decay = -0.606531

func (m *wkv7) mix(s *stream, y, x []float32, n int, last bool) error {
	w := m.width
	const parts = 6 // of a token: receptance, decay, key, value, rate and gate
	ld := parts * w
	all := buffer.Resize(&s.qkv, n*ld)
	shifted := func(j int) func(dst []float32, t int) {
		return func(dst []float32, t int) { s.tokenShift(dst, x, m.shares[j], w, t) }
	}
	mixed := buffer.Resize(&s.mid, n*w)
	for j, part := range []struct {
		l   *linear
		low *lowRank
	}{{m.r, nil}, {nil, m.w}, {m.k, nil}, {m.v, nil}, {nil, m.a}, {nil, m.g}} {
		var err error
		switch {
		case part.l != nil:
			err = s.linearOf(all[j*w:], ld, n, part.l, shifted(j), nil)
		case part.low != nil:
			err = s.lowRank(all[j*w:], ld, n, part.low, shifted(j))
		}
		if err != nil {
			return err
		}
	}
	if m.val != nil {
		if err := s.lowRank(mixed, w, n, m.val, shifted(3)); err != nil {
			return err
		}
	}
	early := s.valuesOfFirstLayer(n)
	if err := s.eachRows(n, func(from, to int) {
		for t := from; t < to; t++ {
			row, share := all[t*ld:][:ld], mixed[t*w:][:w]
			d, k, v, a := row[w:][:w], row[2*w:][:w], row[3*w:][:w], row[4*w:][:w]
			vecmath.Add(d, m.w0)
			vecmath.SigmoidOf.Apply(d, d)
			vecmath.Scale(d, d, wkv7Decay)
			vecmath.ExpOf.Apply(d, d)
			vecmath.Add(a, m.a0)
			vecmath.SigmoidOf.Apply(a, a)
			if m.val == nil {
				copy(early[t*w:][:w], v)
			} else {
				vecmath.Add(share, m.v0)
				vecmath.SigmoidOf.Apply(share, share)
				for i, f := range share {
					v[i] += float32((early[t*w+i] - v[i]) * f)
				}
			}
			copy(share, k) // becomes κ
			vecmath.Mul(share, m.keyScale)
			for h := 0; h < w; h += m.size {
				unitLength(share[h:][:m.size], 1e-12)
			}
			for i, rate := range m.keyRate {
				scaled := float32(k[i] * rate)
				k[i] += float32(a[i]*scaled) - scaled
			}
		}
	}); err != nil {
		return err
	}
	out := buffer.Resize(&s.a, n*w)
	if err := parallel.For(s.ctx, len(s.states), n/s.r.Chunk*m.heads, func(i, worker int) error {
		size, h := m.size, i%m.heads*m.size
		buf := buffer.Resize(&s.states[worker], size*size+5*size)
		state, buf := buf[:size*size], buf[size*size:]
		found, nothing, whole, replaced, bonus := buf[:size], buf[size:][:size], buf[2*size:][:size],
			buf[3*size:][:size], buf[4*size:][:size]
		clear(state)
		clear(nothing)
		for j := range whole {
			whole[j] = 1
		}
		first := i / m.heads * s.r.Chunk
		for t := first; t < first+s.r.Chunk; t++ {
			row, y, kappa := all[t*ld+h:], out[t*w+h:][:size], mixed[t*w+h:][:size]
			r, d, k, v, a := row[:size], row[w:][:size], row[2*w:][:size], row[3*w:][:size], row[4*w:][:size]
			clear(found)
			vecmath.Recur(found, state, v, whole, nothing, kappa)
			vecmath.Scale(found, found, -1)
			clear(y)
			vecmath.Recur(y, state, v, d, k, nothing)
			copy(replaced, kappa)
			vecmath.Mul(replaced, a)
			clear(y)
			vecmath.Recur(y, state, found, whole, replaced, r)
			copy(bonus, k)
			vecmath.Mul(bonus, r)
			vecmath.Mul(bonus, m.bonus[h:][:size])
			// added after the group norm; the decay is no longer needed
			vecmath.Scale(d, v, float32(vecmath.Sum(bonus)))
		}
		return nil
	}); err != nil {
		return err
	}
	if err := s.eachRows(n, func(from, to int) {
		for t := from; t < to; t++ {
			y, row := out[t*w:][:w], all[t*ld:][:ld]
			m.normalize(y)
			vecmath.Add(y, row[w:][:w])
			if m.g != nil {
				vecmath.Mul(y, row[5*w:])
			}
		}
	}); err != nil {
		return err
	}
	return s.project(y, out, n, last, m.out)
}

// channelMix is the FFN of RWKV 6 and 7, with a token shift of its input, and in RWKV 6 a receptance gate.
type channelMix struct {
	shareK, shareR         []float32
	key, value, receptance *linear // receptance nil for none
}

var (
	_ = operation(func(b *builder, _ graph.ChannelMix6) mixer { return newChannelMix(b, true) })
	_ = operation(func(b *builder, _ graph.ChannelMix7) mixer { return newChannelMix(b, false) })
)

// newChannelMix returns the channel mix of the layer, with receptance or without.
func newChannelMix(b *builder, receptance bool) mixer {
	w, t, ff := b.p.width, b.t, b.count("n_ff")
	c := &channelMix{shareK: t.requiredValues(b.name("channel_mix_lerp_k.weight"), w)}
	c.key, c.value = t.requiredLinear(b.name("channel_mix_key"), w, ff),
		t.requiredLinear(b.name("channel_mix_value"), ff, w)
	if receptance {
		c.receptance, c.shareR = t.requiredLinear(b.name("channel_mix_receptance"), w, w),
			t.requiredValues(b.name("channel_mix_lerp_r.weight"), w)
	}
	return c
}

func (c *channelMix) mix(s *stream, y, x []float32, n int, _ bool) error {
	w, ff := c.key.w.K, c.key.w.Rows
	hidden := buffer.Resize(&s.mid, n*ff)
	if err := s.linearOf(hidden, ff, n, c.key, func(dst []float32, t int) { s.tokenShift(dst, x, c.shareK, w, t) },
		func(y []float32) { vecmath.ReLUSquaredOf.Apply(y, y) }); err != nil {
		return err
	}
	if err := s.linear(y, w, hidden, n, c.value); err != nil || c.receptance == nil {
		return err
	}
	gate := buffer.Resize(&s.a, n*w)
	if err := s.linearOf(gate, w, n, c.receptance, func(dst []float32, t int) { s.tokenShift(dst, x, c.shareR, w, t) },
		func(y []float32) { vecmath.SigmoidOf.Apply(y, y) }); err != nil {
		return err
	}
	return s.eachRows(n, func(a, b int) { vecmath.Mul(y[a*w:b*w], gate[a*w:b*w]) })
}
