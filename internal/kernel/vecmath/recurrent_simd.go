//go:build goexperiment.simd && go1.27

package vecmath

import (
	"simd"
)

func softplusOf(x f32s) f32s {
	e := expOf(x.Abs().Neg())
	t := e.Div(get(&consts.two).Add(e))
	s := t.Mul(t)
	p := get(&consts.softplus[0]).MulAdd(s, get(&consts.softplus[1]))
	p = p.MulAdd(s, get(&consts.softplus[2]))
	p = p.MulAdd(s, get(&consts.softplus[3]))
	p = p.MulAdd(s, get(&consts.softplus[4]))
	p = p.MulAdd(s, get(&consts.softplus[5]))
	p = p.MulAdd(s, get(&consts.softplus[6]))
	p = p.Mul(s).MulAdd(t, t)
	return reluOf(x).Add(p.Add(p))
}

func softplusVectors(dst, src []float32) (n int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() {
		return 0
	}
	for ; n+width <= len(src) && n+width <= len(dst); n += width {
		softplusOf(simd.LoadFloat32s(src[n:])).Store(dst[n:])
	}
	clearUpper()
	return n
}

func addProductVectors(dst, a, b []float32) (n int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() {
		return 0
	}
	for ; n+width <= len(dst) && n+width <= len(a) && n+width <= len(b); n += width {
		simd.LoadFloat32s(a[n:]).MulAdd(simd.LoadFloat32s(b[n:]), simd.LoadFloat32s(dst[n:])).Store(dst[n:])
	}
	clearUpper()
	return n
}

func all(bits uint32) f32s { return simd.BroadcastUint32s(bits).BitsToFloat32() }

// recurVectors keeps one vector of x and of y through all rows, or four.
func recurVectors(y, state, x []float32, factors [][3]uint32) (n int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() {
		return 0
	}
	for ; n+4*width <= len(x); n += 4 * width {
		xs, ys := x[n:][:4*width], y[n:][:4*width]
		x0, x1, x2, x3 := simd.LoadFloat32s(xs), simd.LoadFloat32s(xs[width:]), simd.LoadFloat32s(xs[2*width:]),
			simd.LoadFloat32s(xs[3*width:])
		y0, y1, y2, y3 := simd.LoadFloat32s(ys), simd.LoadFloat32s(ys[width:]), simd.LoadFloat32s(ys[2*width:]),
			simd.LoadFloat32s(ys[3*width:])
		for r := range factors {
			d, f, g := all(factors[r][0]), all(factors[r][1]), all(factors[r][2])
			row := state[r*len(x)+n:][:4*width]
			s0 := f.MulAdd(x0, d.Mul(simd.LoadFloat32s(row)))
			s1 := f.MulAdd(x1, d.Mul(simd.LoadFloat32s(row[width:])))
			s2 := f.MulAdd(x2, d.Mul(simd.LoadFloat32s(row[2*width:])))
			s3 := f.MulAdd(x3, d.Mul(simd.LoadFloat32s(row[3*width:])))
			s0.Store(row)
			s1.Store(row[width:])
			s2.Store(row[2*width:])
			s3.Store(row[3*width:])
			y0, y1, y2, y3 = s0.MulAdd(g, y0), s1.MulAdd(g, y1), s2.MulAdd(g, y2), s3.MulAdd(g, y3)
		}
		y0.Store(ys)
		y1.Store(ys[width:])
		y2.Store(ys[2*width:])
		y3.Store(ys[3*width:])
	}
	for ; n+width <= len(x); n += width {
		x0, y0 := simd.LoadFloat32s(x[n:]), simd.LoadFloat32s(y[n:])
		for r := range factors {
			row := state[r*len(x)+n:][:width]
			s := all(factors[r][1]).MulAdd(x0, all(factors[r][0]).Mul(simd.LoadFloat32s(row)))
			s.Store(row)
			y0 = s.MulAdd(all(factors[r][2]), y0)
		}
		y0.Store(y[n:])
	}
	clearUpper()
	return n
}
