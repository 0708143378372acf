//go:build goexperiment.simd && go1.27

package lanes

import "simd/archsimd"

// fitIQ4Tile with archsimd: see searchAsymNeon. Where load4 leaves a no-op in a loop, its expression is written out.

// fitIQ4Rows is fitIQ4Tile.
func fitIQ4Rows(x, w, middle, below, above, scales []float32) {
	if tilesByNeon {
		fitIQ4Neon(x, w, middle, below, above, scales)
	} else {
		fitIQ4Tile(x, w, middle, below, above, scales)
	}
}

// fitIQ4Neon is fitIQ4Tile.
func fitIQ4Neon(x, w, middle, below, above, scales []float32) {
	var zero f32x4
	c := &iq4Const
	m := largestNeon(x)
	a0, b0 := firstIQ4Neon(load4(c.one[:]).Div(m.Neg().Div(load4(c.lowest[:]))), x, w)
	d := a0.Div(b0).Masked(b0.Greater(zero))
	best := d.Mul(a0)
	last := len(c.numerators) - 1
	s0, s1 := load4(c.numerators[0][:]).Div(m), load4(c.numerators[last][:]).Div(m)
	nearIQ4Neon(s0, s1, x, middle, below, above)
	for k := 0; k <= last; k += 2 {
		// The number of candidates is odd: the last is tried twice. With a*a > best*b
		// once more, it wins over itself and gives the same scale.
		s0, s1 = load4(c.numerators[k][:]).Div(m), load4(c.numerators[min(k+1, last)][:]).Div(m)
		a0, b0, a1, b1 := sumsIQ4Neon(s0, s1, x, w, middle, below, above)

		win := b0.Greater(zero).And(a0.Mul(a0).Greater(best.Mul(b0)))
		d1 := a0.Div(b0)
		d, best = d1.IfElse(win, d), d1.Mul(a0).IfElse(win, best)

		win = b1.Greater(zero).And(a1.Mul(a1).Greater(best.Mul(b1)))
		d1 = a1.Div(b1)
		d, best = d1.IfElse(win, d), d1.Mul(a1).IfElse(win, best)
	}
	flat := m.Abs().Less(load4(c.eps[:]))
	store4(scales, zero.IfElse(flat, d))
}

// firstIQ4Neon is firstIQ4Tile.
//
//go:noinline
func firstIQ4Neon(id f32x4, x, w []float32) (a, b f32x4) {
	w = w[:len(x)]
	const width = 4
	lowest := archsimd.LoadFloat32x4Array((*[4]float32)(iq4Const.lowest[:]))
	for i := 0; i <= len(x)-2*width; i += 2 * width {
		v0, v1 := archsimd.LoadFloat32x4Array((*[4]float32)(x[i:i+width])),
			archsimd.LoadFloat32x4Array((*[4]float32)(x[i+width:i+2*width]))
		t0, t1 := id.Mul(v0), id.Mul(v1)
		q0, q1 := lowest, lowest
		for k := range iq4Steps {
			step := &iq4Steps[k]
			middle, value := archsimd.LoadFloat32x4Array((*[4]float32)(step.middle[:])),
				archsimd.LoadFloat32x4Array((*[4]float32)(step.value[:]))
			q0 = q0.IfElse(t0.Less(middle), value)
			q1 = q1.IfElse(t1.Less(middle), value)
		}
		wq := archsimd.LoadFloat32x4Array((*[4]float32)(w[i : i+width])).Mul(q0)
		a, b = a.Add(wq.Mul(v0)), b.Add(wq.Mul(q0))
		wq = archsimd.LoadFloat32x4Array((*[4]float32)(w[i+width : i+2*width])).Mul(q1)
		a, b = a.Add(wq.Mul(v1)), b.Add(wq.Mul(q1))
	}
	return a, b
}

// nearIQ4Neon is nearIQ4Tile.
//
//go:noinline
func nearIQ4Neon(s0, s1 f32x4, x, middle, below, above []float32) {
	middle, below, above = middle[:len(x)], below[:len(x)], above[:len(x)]
	const width = 4
	lowest := archsimd.LoadFloat32x4Array((*[4]float32)(iq4Const.lowest[:]))
	infinite := archsimd.BroadcastUint32x4(0x7F800000).BitsToFloat32()
	for i := 0; i <= len(x)-2*width; i += 2 * width {
		v0, v1 := archsimd.LoadFloat32x4Array((*[4]float32)(x[i:i+width])),
			archsimd.LoadFloat32x4Array((*[4]float32)(x[i+width:i+2*width]))
		t0, t1 := s0.Mul(v0).Max(s1.Mul(v0)), s0.Mul(v1).Max(s1.Mul(v1))
		m0, lo0, hi0 := infinite, lowest, lowest
		m1, lo1, hi1 := infinite, lowest, lowest
		for k := range iq4Steps {
			step := &iq4Steps[k]
			m, value := archsimd.LoadFloat32x4Array((*[4]float32)(step.middle[:])),
				archsimd.LoadFloat32x4Array((*[4]float32)(step.value[:]))
			less0, less1 := t0.Less(m), t1.Less(m)
			m0, m1 = m0.IfElse(less0, m), m1.IfElse(less1, m)
			lo0, lo1 = lo0.IfElse(less0, hi0), lo1.IfElse(less1, hi1)
			hi0, hi1 = hi0.IfElse(less0, value), hi1.IfElse(less1, value)
		}
		m0.StoreArray((*[4]float32)(middle[i : i+width]))
		m1.StoreArray((*[4]float32)(middle[i+width : i+2*width]))
		lo0.StoreArray((*[4]float32)(below[i : i+width]))
		lo1.StoreArray((*[4]float32)(below[i+width : i+2*width]))
		hi0.StoreArray((*[4]float32)(above[i : i+width]))
		hi1.StoreArray((*[4]float32)(above[i+width : i+2*width]))
	}
}

// sumsIQ4Neon is sumsIQ4Tile.
//
//go:noinline
func sumsIQ4Neon(s0, s1 f32x4, x, w, middle, below, above []float32) (a0, b0, a1, b1 f32x4) {
	n := len(x)
	x, w, middle, below, above = x[:n:n], w[:n:n], middle[:n:n], below[:n:n], above[:n:n]
	const width = 4
	for i := 0; i <= n-width; i += width {
		v := load4(x[i : i+width])
		less0, less1 := s0.Mul(v).Less(load4(middle[i:i+width])), s1.Mul(v).Less(load4(middle[i:i+width]))
		q0, q1 := load4(below[i:i+width]).IfElse(less0, load4(above[i:i+width])),
			load4(below[i:i+width]).IfElse(less1, load4(above[i:i+width]))
		a0, b0, a1, b1 = a0.Add(load4(w[i:i+width]).Mul(q0).Mul(v)), b0.Add(load4(w[i:i+width]).Mul(q0).Mul(q0)),
			a1.Add(load4(w[i:i+width]).Mul(q1).Mul(v)), b1.Add(load4(w[i:i+width]).Mul(q1).Mul(q1))
	}
	return a0, b0, a1, b1
}

// largestNeon is largestTile.
func largestNeon(x []float32) (m f32x4) {
	var a f32x4
	mask := ints4(absBits)
	for i := 0; i <= len(x)-4; i += 4 {
		v := load4(x[i : i+4])
		av := v.ToBits().BitsToInt32().And(mask).ToBits().BitsToFloat32()
		larger := av.Greater(a)
		m, a = v.IfElse(larger, m), av.IfElse(larger, a)
	}
	return m
}
