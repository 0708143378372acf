package memory

import "ggforge/arch/graph"

// state adds the copy of n values of each sequence's state.
func (b *batch) state(n int64) *result {
	if b.copies == nil {
		b.copies = b.addInput(4 * b.sequences)
	}
	r := b.op(b.product("states", 4, b.sequences, n), b.copies)
	b.expand(r)
	return b.view(r)
}

// convolution adds a convolution over x and the last size-1 inputs of earlier tokens, which it updates.
func (b *batch) convolution(kept *result, x *result, n, size int64) *result {
	all := b.op(b.floats(n)+b.product("states", 4, b.sequences, n, max(0, size-1)), kept, b.partView(x, x.bytes))
	b.store(b.partView(all, kept.bytes))
	return all
}

// scan adds an operation that returns n values for each token, and the next state.
func (b *batch) scan(n int64, state int64, sources ...*result) *result {
	r := b.op(b.floats(n)+b.product("states", 4, b.sequences, state), sources...)
	b.store(b.partView(r, 0))
	return b.partView(r, b.floats(n))
}

// scanStates is scan with the states in the cache as a source; those of all sequences but one are copied after it.
func (b *batch) scanStates(n, state int64, sources ...*result) *result {
	r := b.op(b.floats(n)+b.product("states", 4, b.sequences, state), append(sources, b.copies)...)
	b.expand(r)
	b.store(b.op(b.product("states", 4, b.sequences-1, state), b.copies))
	b.store(b.partView(r, 0))
	return b.partView(r, b.floats(n))
}

// mamba1 adds Mamba 1.
func (b *batch) mamba1(x *result) *result {
	inner, state, rank, size := b.number("d_inner"), b.number("d_state"), b.number("dt_rank"), b.number("d_conv")
	kept := b.state(inner * max(0, size-1))
	all := b.linear(x, "ssm_in", 2*inner)
	conv := b.convolution(kept, all, inner, size)
	bytes := b.floats(inner)
	c := b.inPlace(bytes, b.inPlace(bytes, b.op(bytes, conv)))
	b.expand(c)
	three := b.op(b.floats(rank+2*state), c)
	var parts []*result
	for i, t := range []string{"ssm_dt", "ssm_b", "ssm_c"} {
		p := b.partView(three, b.floats([]int64{rank, state, state}[i]))
		if b.ne(t+"_norm") != nil || b.number("@ssm.dt_b_c_rms") != 0 {
			p = b.bareNorm(p)
		}
		if i == 0 {
			p = b.linear(p, "ssm_dt", inner)
		}
		b.expand(p)
		parts = append(parts, p)
	}
	y := b.scanStates(inner, inner*state, b.view(c), parts[0], parts[1], parts[2])
	z := b.op(bytes, b.partView(all, bytes))
	y = b.inPlace(bytes, y, b.inPlace(bytes, c))
	return b.linear(b.op(bytes, z, y), "ssm_out", b.width())
}

// mamba2 adds Mamba 2.
func (b *batch) mamba2(x *result) *result {
	inner, state, heads := b.number("d_inner"), b.number("d_state"), b.number("dt_rank")
	mixed, size := inner+2*b.number("n_group")*state, b.number("d_conv")
	kept := b.state(mixed * max(0, size-1))
	all := b.linear(x, "ssm_in", inner+mixed+heads)
	conv := b.convolution(kept, all, mixed, size)
	bytes := b.floats(mixed)
	c := b.inPlace(bytes, b.inPlace(bytes, b.op(bytes, conv)))
	dt := b.inPlace(b.floats(heads), b.op(b.floats(heads), b.partView(all, b.floats(heads))))
	bytes = b.floats(inner)
	part := b.partView(c, bytes)
	y := b.scanStates(inner, inner*state, part, dt)
	z := b.op(bytes, b.partView(all, bytes))
	y = b.inPlace(bytes, y, b.op(bytes, part))
	y = b.op(bytes, z, y)
	if b.ne("ssm_norm") != nil {
		y = b.inPlace(bytes, b.inPlace(bytes, b.view(y)))
	}
	return b.linear(b.view(y), "ssm_out", b.width())
}

// projectedMamba2 adds Mamba 2 with projected B, C and steps.
func (b *batch) projectedMamba2(of graph.ProjectedMamba2, x *result) *result {
	inner, state, heads := b.number("d_inner"), b.number("d_state"), b.number("dt_rank")
	rank, size := b.number(of.StepsRank()), b.number("d_conv")
	bytes := b.floats(inner)
	kept := b.state(inner * max(0, size-1))
	all := b.op(2*bytes, b.linear(x, "ssm_in", 2*inner))
	conv := b.convolution(kept, b.op(bytes, b.partView(all, bytes)), inner, size)
	c := b.inPlace(bytes, b.op(bytes, conv))
	three := b.op(b.floats(rank+2*state), c)
	keys := b.bareNorm(b.partView(three, b.floats(state)))
	values := b.bareNorm(b.partView(three, b.floats(state)))
	dt := b.linear(b.bareNorm(b.partView(three, b.floats(rank))), "ssm_dt", heads)
	y := b.scanStates(inner, inner*state, b.view(c), dt, keys, values)
	y = b.inPlace(bytes, y, b.op(bytes, b.view(c)))
	z := b.op(bytes, b.partView(all, bytes))
	return b.linear(b.op(bytes, z, y), "ssm_out", b.width())
}

// deltaNet adds the gated delta rule.
func (b *batch) deltaNet(x *result) *result {
	inner, state, heads := b.number("d_inner"), b.number("d_state"), b.number("dt_rank")
	keys := b.number("n_group") * state
	mixed, size := inner+2*keys, b.number("d_conv")
	b.expand(x)
	kept := b.state(mixed * max(0, size-1))
	conv := b.convolution(kept, b.linear(x, "attn_qkv", mixed), mixed, size)
	states := b.state(inner * state)
	bytes := b.floats(mixed)
	c := b.inPlace(bytes, b.op(bytes, conv))
	b.expand(c)
	var sources []*result
	for range 2 { // queries and keys are normalized
		k := b.op(b.floats(keys), b.partView(c, b.floats(keys)))
		k = b.inPlace(k.bytes, k)
		b.expand(k)
		sources = append(sources, k)
	}
	sources = append(sources, b.partView(c, b.floats(inner)))
	for range 2 { // decay, beta
		g := b.op(b.floats(heads), x)
		sources = append(sources, b.inPlace(g.bytes, g))
	}
	y := b.scan(inner, inner*state, append(sources, states)...)
	bytes = b.floats(inner)
	y = b.inPlace(bytes, b.op(bytes, y))
	z := b.inPlace(bytes, b.linear(x, "attn_gate", inner))
	return b.linear(b.view(b.inPlace(bytes, y, z)), "ssm_out", b.width())
}

// kda adds Kimi's delta attention.
func (b *batch) kda(x *result) *result {
	heads, dim, size := b.number("n_head"), b.number("@kda.head_dim"), b.number("d_conv")
	all := heads * dim
	bytes, kept := b.floats(all), all*max(0, size-1)
	b.expand(x)
	states := b.state(3 * kept)
	var convs []*result
	for _, name := range []string{"attn_q", "attn_k", "attn_v"} {
		convs = append(convs, b.convolution(b.partView(states, 4*b.sequences*kept), b.linear(x, name, all), all, size))
	}
	state := b.state(all * dim)
	var sources []*result
	for i, c := range convs {
		y := b.inPlace(bytes, b.view(b.op(bytes, c)))
		if i < 2 { // queries and keys are normalized
			y = b.inPlace(bytes, b.inPlace(bytes, b.view(y)))
		}
		b.expand(y)
		sources = append(sources, b.view(y))
	}
	low := func(name string) *result {
		if b.ne(name+"_b") == nil { // one matrix
			return b.op(bytes, x)
		}
		return b.op(bytes, b.op(b.floats(b.rows(name+"_a", 0)), x))
	}
	decay := b.inPlace(bytes, b.view(b.inPlace(bytes, low("ssm_f"))))
	beta := b.inPlace(b.floats(heads), b.op(b.floats(heads), x))
	y := b.scan(all, all*dim, append(sources, decay, beta, state)...)
	y = b.view(b.op(bytes, y))
	y = b.inPlace(bytes, b.inPlace(bytes, y))
	y = b.inPlace(bytes, y, b.inPlace(bytes, low("ssm_g")))
	return b.linear(b.op(bytes, y), "attn_output", b.width())
}

// lightning adds lightning attention over the tokens of the batch and the state of those before.
func (b *batch) lightning(x *result) *result {
	heads, size := b.number("n_head"), b.number("n_embd_head_k")
	n := heads * size
	bytes, scores := b.floats(n), b.product("scores", 4, heads, b.tokens, b.tokens/b.sequences)
	if b.decays == nil {
		b.decays = b.addInput(b.floats(heads))
		b.diagonal = b.addInput(scores)
		b.addInput(b.floats(heads)) // of keys
	}
	state := b.state(n * size)
	all := b.inPlace(b.floats(3*n), b.linear(x, "attn_qkv", 3*n))
	part := b.partView(all, bytes)
	q := b.op(bytes, part, b.op(b.floats(heads), b.decays))
	old := b.op(bytes, state, b.partView(q, bytes))
	v := b.op(bytes, part)
	now := b.op(bytes, v, b.inPlace(scores, b.op(scores, part, part), b.inPlace(scores, b.op(scores, b.diagonal))))
	y := b.inPlace(bytes, old, now)
	b.expand(y)
	keys := b.op(bytes, b.partView(b.op(bytes, part, b.op(b.floats(heads), b.decays)), bytes))
	next := b.product("states", 4, b.sequences, n, size)
	b.store(b.inPlace(next, b.op(next, state), b.op(next, keys, v)))
	y = b.norm(b.view(b.op(bytes, b.partView(y, bytes))), graph.Norm{Name: "attn_norm_2"})
	gate := b.inPlace(bytes, b.op(bytes, x))
	return b.linear(b.inPlace(bytes, gate, y), "attn_output", b.width())
}

// shortConv adds the gated convolution.
func (b *batch) shortConv(x *result) *result {
	n, size := b.width(), b.number("@shortconv.l_cache")
	bytes := b.floats(n)
	kept := b.state(n * max(0, size-1))
	all := b.linear(x, "shortconv.in_proj", 3*n)
	conv := b.convolution(kept, b.op(bytes, b.partView(all, bytes), b.partView(all, bytes)), n, size)
	if v, ok := b.scope.Value("@attention.causal"); ok && v.Float() == 0 { // centered
		conv = b.op(conv.bytes, conv)
	}
	y := b.inPlace(bytes, b.partView(all, bytes), b.op(bytes, conv))
	return b.linear(y, "shortconv.out_proj", n)
}

// wkv adds the copies of RWKV's states: the last inputs, and the state.
func (b *batch) wkv() (last, state *result) {
	n := b.width()
	last = b.state(n * b.number("@token_shift_count or 2"))
	return last, b.state(n * b.number("@wkv.head_size"))
}

// shifted adds the differences of tokens and those before them.
func (b *batch) shifted(x, last *result) *result {
	b.expand(x)
	return b.inPlace(x.bytes, b.op(x.bytes, last, b.partView(x, x.bytes)), x)
}

// keepLast stores the last inputs of time mixing and channel mixing.
func (b *batch) keepLast(x *result) { b.store(b.partView(x, 0)) }

// rwkv6 adds the time mixing of RWKV 6, or that of models converted from attention.
func (b *batch) rwkv6(x *result, first bool) *result {
	n := b.width()
	last, state := b.wkv()
	bytes := b.floats(n)
	diff := b.shifted(x, last)
	mix := b.inPlace(bytes, b.op(bytes, b.view(diff)), b.view(x))
	extra := b.op(b.floats(5*b.number("@time_mix_extra_dim")), mix)
	extra = b.op(extra.bytes, b.partView(b.inPlace(extra.bytes, extra), extra.bytes))
	five := b.op(5*bytes, extra)
	five = b.inPlace(5*bytes, five)
	five = b.inPlace(5*bytes, five, b.view(diff))
	five = b.inPlace(5*bytes, five, b.view(x))
	one := func() *result { return b.partView(five, bytes) }
	kv := b.rows("time_mix_key", n)
	project := func(name string) *result {
		r := b.linear(one(), name, kv)
		if kv != n {
			r = b.op(bytes, b.view(r))
		}
		return b.view(r)
	}
	decay := func() *result {
		d := b.op(b.floats(b.rows("time_mix_decay_w1", n)), one())
		return b.inPlace(bytes, b.op(bytes, b.inPlace(d.bytes, d)))
	}
	var sources []*result
	if first {
		k, v, r := project("time_mix_key"), project("time_mix_value"), b.view(b.linear(one(), "time_mix_receptance", n))
		sources = []*result{k, v, r, b.view(decay())}
	} else {
		k, d := project("time_mix_key"), decay()
		b.expand(k)
		b.expand(d)
		k = b.inPlace(bytes, k, b.op(bytes, k, b.view(d)))
		v, r := project("time_mix_value"), b.view(b.linear(one(), "time_mix_receptance", n))
		sources = []*result{k, v, r, b.view(d)}
	}
	y := b.scan(n, n*b.number("@wkv.head_size"), append(sources, state)...)
	if b.ne("time_mix_ln") != nil {
		y = b.inPlace(bytes, b.op(bytes, y))
	}
	if !first || b.ne("channel_mix_key") == nil {
		b.keepLast(x)
	}
	gate := b.op(bytes, one())
	y = b.inPlace(bytes, b.view(y), b.inPlace(bytes, gate))
	b.before = x
	return b.op(bytes, y)
}

// rwkv7 adds the time mixing of RWKV 7.
func (b *batch) rwkv7(x *result) *result {
	n := b.width()
	last, state := b.wkv()
	bytes := b.floats(n)
	count := int64(6)
	if ne := b.ne("time_mix_lerp_fused"); len(ne) > 3 && ne[3] > 0 {
		count = ne[3]
	}
	diff := b.shifted(x, last)
	all := b.op(count*bytes, diff)
	all = b.inPlace(all.bytes, b.inPlace(all.bytes, all), x)
	one := func() *result { return b.partView(all, bytes) }
	low := func(letter string) *result {
		r := b.op(b.floats(b.rows("time_mix_"+letter+"1", n)), one())
		return b.inPlace(bytes, b.inPlace(bytes, b.op(bytes, b.inPlace(r.bytes, r))))
	}
	r := b.op(bytes, one())
	b.expand(r)
	decay := low("w")
	b.expand(decay)
	k := b.op(bytes, one())
	b.expand(k)
	rate := low("a")
	b.expand(rate)
	scaled := b.op(bytes, k)
	mixed := b.inPlace(bytes, k, b.inPlace(bytes, b.inPlace(bytes, rate, scaled), scaled))
	b.expand(mixed)
	v := b.op(bytes, one())
	if b.values == nil {
		b.values = v
	} else {
		v = b.inPlace(bytes, v, b.inPlace(bytes, b.inPlace(bytes, b.values, v), low("v")))
	}
	b.expand(v)
	unit := b.op(bytes, b.view(b.inPlace(bytes, k)))
	b.expand(unit)
	size := b.number("@wkv.head_size")
	y := b.scan(n, n*size, b.view(r), b.view(decay), b.view(mixed), b.view(v), b.inPlace(bytes, unit),
		b.inPlace(bytes, unit, b.view(rate)), state)
	if b.ne("time_mix_ln") != nil {
		y = b.inPlace(bytes, b.op(bytes, y))
	}
	dots := b.op(b.floats(n/max(1, size)), b.inPlace(bytes, b.inPlace(bytes, b.view(mixed), b.view(r))))
	y = b.inPlace(bytes, b.view(y), b.view(b.op(bytes, b.view(v), dots)))
	if b.ne("time_mix_g1") != nil {
		y = b.inPlace(bytes, y, low("g"))
	}
	if b.ne("channel_mix_key") == nil {
		b.keepLast(x)
	}
	b.before = x
	return b.op(bytes, y)
}

// channelMix adds the feed-forward network of RWKV, with a gate in RWKV 6.
func (b *batch) channelMix(x *result, gated bool) *result {
	b.expand(x)
	if b.before != nil {
		b.store(b.op(b.product("states", 8, b.sequences, b.width()), b.partView(b.before, 0), b.partView(x, 0)))
	}
	diff := b.inPlace(x.bytes, b.op(x.bytes, b.partView(x, x.bytes)), x)
	mix := func() *result { return b.inPlace(x.bytes, b.inPlace(x.bytes, diff), x) }
	ff := b.floats(b.scope.Size("n_ff"))
	value := func() *result {
		return b.op(x.bytes, b.inPlace(ff, b.op(ff, mix())))
	}
	if !gated {
		return value()
	}
	gate := b.inPlace(x.bytes, b.op(x.bytes, mix()))
	return b.inPlace(x.bytes, gate, value())
}
