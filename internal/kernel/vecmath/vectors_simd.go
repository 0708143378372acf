//go:build goexperiment.simd && go1.27

package vecmath

import (
	"math"
	"simd"
)

// Vectors repeat the scalar code lane by lane: in place of a branch both results are computed and one is chosen by a
// mask. Emulated vectors do not fuse, so they are not used. Constants are loaded where they are needed: a function with
// vectors has no scalar float32 (golang/go#80835).

type f32s = simd.Float32s

func get(c *constant) f32s { return simd.LoadFloat32s(c[:]) }

// constants are vectors of one value each, in memory of their own: the allocator gives objects of this size whole cache
// lines, while the linker aligns variables to half of one, so that a load of 64 bytes could take two.
type constants struct {
	most, least, inf, log2e, toEven, ln2Hi, ln2Lo constant
	exp                                           [6]constant
	tanh                                          [5]constant
	erf                                           [6]constant
	erfc                                          [7]constant
	softplus                                      [7]constant
	tanhSmall, erfSmall, erfMost                  constant
	one, two, half                                constant
	root2ByPi, rootHalf, geluCube, geluQuick      constant
}

var consts = newConstants()

// newConstants is not inlined: the compiler would put the object among the variables.
//
//go:noinline
func newConstants() *constants {
	return &constants{
		most: each(expMost), least: each(expLeast), inf: each(float32(math.Inf(1))), log2e: each(log2e),
		toEven: each(toEven), ln2Hi: each(-ln2Hi), ln2Lo: each(-ln2Lo),
		exp:  [...]constant{each(expP0), each(expP1), each(expP2), each(expP3), each(expP4), each(expP5)},
		tanh: [...]constant{each(tanhP0), each(tanhP1), each(tanhP2), each(tanhP3), each(tanhP4)},
		erf:  [...]constant{each(erfP0), each(erfP1), each(erfP2), each(erfP3), each(erfP4), each(erfP5)},
		erfc: [...]constant{each(erfQ0), each(erfQ1), each(erfQ2), each(erfQ3), each(erfQ4), each(erfQ5), each(erfQ6)},
		softplus: [...]constant{each(softplus15), each(softplus13), each(softplus11), each(softplus9), each(softplus7),
			each(softplus5), each(softplus3)},
		tanhSmall: each(tanhSmall), erfSmall: each(erfSmall), erfMost: each(erfMost),
		one: each(1), two: each(2), half: each(0.5),
		root2ByPi: each(root2ByPi), rootHalf: each(rootHalf), geluCube: each(geluCube), geluQuick: each(geluQuick),
	}
}

func expOf(x f32s) f32s {
	t := x.MulAdd(get(&consts.log2e), get(&consts.toEven))
	n := t.Sub(get(&consts.toEven))
	r := n.MulAdd(get(&consts.ln2Hi), x)
	r = n.MulAdd(get(&consts.ln2Lo), r)
	p := get(&consts.exp[0]).MulAdd(r, get(&consts.exp[1]))
	p = p.MulAdd(r, get(&consts.exp[2]))
	p = p.MulAdd(r, get(&consts.exp[3]))
	p = p.MulAdd(r, get(&consts.exp[4]))
	p = p.MulAdd(r, get(&consts.exp[5]))
	p = p.MulAdd(r.Mul(r), r).Add(get(&consts.one))
	e := p.ToBits().Add(t.ToBits().ShiftAllLeft(23)).BitsToFloat32()
	var zero f32s
	e = zero.IfElse(x.Less(get(&consts.least)), e)
	e = get(&consts.inf).IfElse(x.Greater(get(&consts.most)), e)
	return x.IfElse(x.NotEqual(x), e)
}

// signed returns a >= 0 with the sign of x.
func signed(a, x f32s) f32s {
	sign := x.ToBits().ShiftAllRight(31).ShiftAllLeft(31)
	return a.ToBits().Or(sign).BitsToFloat32()
}

func tanhOf(x f32s) f32s {
	a := x.Abs()
	s := a.Mul(a)
	p := get(&consts.tanh[0]).MulAdd(s, get(&consts.tanh[1]))
	p = p.MulAdd(s, get(&consts.tanh[2]))
	p = p.MulAdd(s, get(&consts.tanh[3]))
	p = p.MulAdd(s, get(&consts.tanh[4]))
	p = p.Mul(s).MulAdd(a, a)
	q := get(&consts.one).Sub(get(&consts.two).Div(expOf(a.Add(a)).Add(get(&consts.one))))
	return signed(q.IfElse(a.GreaterEqual(get(&consts.tanhSmall)), p), x)
}

func erfOf(x f32s) f32s {
	a := x.Abs()
	a = get(&consts.erfMost).IfElse(a.Greater(get(&consts.erfMost)), a)
	s := a.Mul(a)
	p := get(&consts.erf[0]).MulAdd(s, get(&consts.erf[1]))
	p = p.MulAdd(s, get(&consts.erf[2]))
	p = p.MulAdd(s, get(&consts.erf[3]))
	p = p.MulAdd(s, get(&consts.erf[4]))
	p = p.MulAdd(s, get(&consts.erf[5]))
	p = p.MulAdd(a, a)
	q := get(&consts.erfc[0]).MulAdd(a, get(&consts.erfc[1]))
	u := get(&consts.erfc[2]).MulAdd(a, get(&consts.erfc[3]))
	q = q.MulAdd(s, u)
	q = q.MulAdd(a, get(&consts.erfc[4]))
	q = q.MulAdd(a, get(&consts.erfc[5]))
	q = q.MulAdd(a, get(&consts.erfc[6]))
	q = q.MulAdd(a, a.Neg())
	e := get(&consts.one).Sub(expOf(q))
	return signed(e.IfElse(a.Greater(get(&consts.erfSmall)), p), x)
}

func sigmoidOf(x f32s) f32s { return get(&consts.one).Div(get(&consts.one).Add(expOf(x.Neg()))) }
func siluOf(x f32s) f32s    { return x.Div(get(&consts.one).Add(expOf(x.Neg()))) }

func geluOf(x f32s) f32s {
	in := get(&consts.root2ByPi).Mul(x).Mul(get(&consts.geluCube).Mul(x).MulAdd(x, get(&consts.one)))
	return get(&consts.half).Mul(x).Mul(get(&consts.one).Add(tanhOf(in)))
}

func geluErfOf(x f32s) f32s {
	return get(&consts.half).Mul(x).Mul(get(&consts.one).Add(erfOf(get(&consts.rootHalf).Mul(x))))
}

func geluQuickOf(x f32s) f32s {
	return x.Mul(get(&consts.one).Div(get(&consts.one).Add(expOf(get(&consts.geluQuick).Mul(x)))))
}

func expVectors(dst, src []float32) (n int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() {
		return 0
	}
	for ; n+width <= len(src) && n+width <= len(dst); n += width {
		expOf(simd.LoadFloat32s(src[n:])).Store(dst[n:])
	}
	clearUpper()
	return n
}

func tanhVectors(dst, src []float32) (n int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() {
		return 0
	}
	for ; n+width <= len(src) && n+width <= len(dst); n += width {
		tanhOf(simd.LoadFloat32s(src[n:])).Store(dst[n:])
	}
	clearUpper()
	return n
}

func erfVectors(dst, src []float32) (n int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() {
		return 0
	}
	for ; n+width <= len(src) && n+width <= len(dst); n += width {
		erfOf(simd.LoadFloat32s(src[n:])).Store(dst[n:])
	}
	clearUpper()
	return n
}

func sigmoidVectors(dst, src []float32) (n int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() {
		return 0
	}
	for ; n+width <= len(src) && n+width <= len(dst); n += width {
		sigmoidOf(simd.LoadFloat32s(src[n:])).Store(dst[n:])
	}
	clearUpper()
	return n
}

func siluVectors(dst, src []float32) (n int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() {
		return 0
	}
	for ; n+width <= len(src) && n+width <= len(dst); n += width {
		siluOf(simd.LoadFloat32s(src[n:])).Store(dst[n:])
	}
	clearUpper()
	return n
}

func geluVectors(dst, src []float32) (n int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() {
		return 0
	}
	for ; n+width <= len(src) && n+width <= len(dst); n += width {
		geluOf(simd.LoadFloat32s(src[n:])).Store(dst[n:])
	}
	clearUpper()
	return n
}

func geluErfVectors(dst, src []float32) (n int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() {
		return 0
	}
	for ; n+width <= len(src) && n+width <= len(dst); n += width {
		geluErfOf(simd.LoadFloat32s(src[n:])).Store(dst[n:])
	}
	clearUpper()
	return n
}

func geluQuickVectors(dst, src []float32) (n int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() {
		return 0
	}
	for ; n+width <= len(src) && n+width <= len(dst); n += width {
		geluQuickOf(simd.LoadFloat32s(src[n:])).Store(dst[n:])
	}
	clearUpper()
	return n
}

func reluOf(x f32s) f32s { var zero f32s; return zero.IfElse(x.Less(zero), x) }

func reluVectors(dst, src []float32) (n int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() {
		return 0
	}
	for ; n+width <= len(src) && n+width <= len(dst); n += width {
		reluOf(simd.LoadFloat32s(src[n:])).Store(dst[n:])
	}
	clearUpper()
	return n
}

func addVectors(dst, src []float32) (n int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() {
		return 0
	}
	for ; n+width <= len(src) && n+width <= len(dst); n += width {
		simd.LoadFloat32s(dst[n:]).Add(simd.LoadFloat32s(src[n:])).Store(dst[n:])
	}
	clearUpper()
	return n
}

func mulVectors(dst, src []float32) (n int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() {
		return 0
	}
	for ; n+width <= len(src) && n+width <= len(dst); n += width {
		simd.LoadFloat32s(dst[n:]).Mul(simd.LoadFloat32s(src[n:])).Store(dst[n:])
	}
	clearUpper()
	return n
}

// scaleVectors is Scale for as many numbers as it returns; f is the bits of the factor.
func scaleVectors(dst, src []float32, f uint32) (n int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() {
		return 0
	}
	by := simd.BroadcastUint32s(f).BitsToFloat32()
	for ; n+width <= len(src) && n+width <= len(dst); n += width {
		simd.LoadFloat32s(src[n:]).Mul(by).Store(dst[n:])
	}
	clearUpper()
	return n
}

// addScaledVectors is AddScaled for as many numbers as it returns; f is the bits of the factor.
func addScaledVectors(dst, src []float32, f uint32) (n int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() {
		return 0
	}
	by := simd.BroadcastUint32s(f).BitsToFloat32()
	for ; n+width <= len(src) && n+width <= len(dst); n += width {
		simd.LoadFloat32s(src[n:]).MulAdd(by, simd.LoadFloat32s(dst[n:])).Store(dst[n:])
	}
	clearUpper()
	return n
}

// combineVectors is Combine for as many columns as it returns: eight vectors at a time stay in
// registers for all rows, then four. Four wait for each other's sums half of the time.
func combineVectors(dst, m []float32, ld int, f []uint32) (n int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() {
		return 0
	}
	for ; n+8*width <= len(dst); n += 8 * width {
		d := dst[n:][:8*width]
		a0, a1, a2, a3 := simd.LoadFloat32s(d), simd.LoadFloat32s(d[width:]), simd.LoadFloat32s(d[2*width:]),
			simd.LoadFloat32s(d[3*width:])
		a4, a5, a6, a7 := simd.LoadFloat32s(d[4*width:]), simd.LoadFloat32s(d[5*width:]),
			simd.LoadFloat32s(d[6*width:]), simd.LoadFloat32s(d[7*width:])
		for i, bits := range f {
			x, row := simd.BroadcastUint32s(bits).BitsToFloat32(), m[i*ld+n:][:8*width]
			a0 = simd.LoadFloat32s(row).MulAdd(x, a0)
			a1 = simd.LoadFloat32s(row[width:]).MulAdd(x, a1)
			a2 = simd.LoadFloat32s(row[2*width:]).MulAdd(x, a2)
			a3 = simd.LoadFloat32s(row[3*width:]).MulAdd(x, a3)
			a4 = simd.LoadFloat32s(row[4*width:]).MulAdd(x, a4)
			a5 = simd.LoadFloat32s(row[5*width:]).MulAdd(x, a5)
			a6 = simd.LoadFloat32s(row[6*width:]).MulAdd(x, a6)
			a7 = simd.LoadFloat32s(row[7*width:]).MulAdd(x, a7)
		}
		a0.Store(d)
		a1.Store(d[width:])
		a2.Store(d[2*width:])
		a3.Store(d[3*width:])
		a4.Store(d[4*width:])
		a5.Store(d[5*width:])
		a6.Store(d[6*width:])
		a7.Store(d[7*width:])
	}
	for ; n+4*width <= len(dst); n += 4 * width {
		d := dst[n:][:4*width]
		a, b := simd.LoadFloat32s(d), simd.LoadFloat32s(d[width:])
		c, e := simd.LoadFloat32s(d[2*width:]), simd.LoadFloat32s(d[3*width:])
		for i, bits := range f {
			x, row := simd.BroadcastUint32s(bits).BitsToFloat32(), m[i*ld+n:][:4*width]
			a = simd.LoadFloat32s(row).MulAdd(x, a)
			b = simd.LoadFloat32s(row[width:]).MulAdd(x, b)
			c = simd.LoadFloat32s(row[2*width:]).MulAdd(x, c)
			e = simd.LoadFloat32s(row[3*width:]).MulAdd(x, e)
		}
		a.Store(d)
		b.Store(d[width:])
		c.Store(d[2*width:])
		e.Store(d[3*width:])
	}
	for ; n+2*width <= len(dst); n += 2 * width {
		d := dst[n:][:2*width]
		a, b := simd.LoadFloat32s(d), simd.LoadFloat32s(d[width:])
		for i, bits := range f {
			x, row := simd.BroadcastUint32s(bits).BitsToFloat32(), m[i*ld+n:][:2*width]
			a = simd.LoadFloat32s(row).MulAdd(x, a)
			b = simd.LoadFloat32s(row[width:]).MulAdd(x, b)
		}
		a.Store(d)
		b.Store(d[width:])
	}
	for ; n+width <= len(dst); n += width {
		a := simd.LoadFloat32s(dst[n:])
		for i, bits := range f {
			a = simd.LoadFloat32s(m[i*ld+n:]).MulAdd(simd.BroadcastUint32s(bits).BitsToFloat32(), a)
		}
		a.Store(dst[n:])
	}
	clearUpper()
	return n
}

// combineAtVectors is combineVectors for rows that are listed, eight vectors at a time.
func combineAtVectors(dst, m []float32, ld int, at []int32, f []uint32) (n int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() {
		return 0
	}
	f = f[:len(at)]
	for ; n+8*width <= len(dst); n += 8 * width {
		d := dst[n:][:8*width]
		a0, a1, a2, a3 := simd.LoadFloat32s(d), simd.LoadFloat32s(d[width:]), simd.LoadFloat32s(d[2*width:]),
			simd.LoadFloat32s(d[3*width:])
		a4, a5, a6, a7 := simd.LoadFloat32s(d[4*width:]), simd.LoadFloat32s(d[5*width:]),
			simd.LoadFloat32s(d[6*width:]), simd.LoadFloat32s(d[7*width:])
		for i, r := range at {
			x, row := simd.BroadcastUint32s(f[i]).BitsToFloat32(), m[int(r)*ld+n:][:8*width]
			a0 = simd.LoadFloat32s(row).MulAdd(x, a0)
			a1 = simd.LoadFloat32s(row[width:]).MulAdd(x, a1)
			a2 = simd.LoadFloat32s(row[2*width:]).MulAdd(x, a2)
			a3 = simd.LoadFloat32s(row[3*width:]).MulAdd(x, a3)
			a4 = simd.LoadFloat32s(row[4*width:]).MulAdd(x, a4)
			a5 = simd.LoadFloat32s(row[5*width:]).MulAdd(x, a5)
			a6 = simd.LoadFloat32s(row[6*width:]).MulAdd(x, a6)
			a7 = simd.LoadFloat32s(row[7*width:]).MulAdd(x, a7)
		}
		a0.Store(d)
		a1.Store(d[width:])
		a2.Store(d[2*width:])
		a3.Store(d[3*width:])
		a4.Store(d[4*width:])
		a5.Store(d[5*width:])
		a6.Store(d[6*width:])
		a7.Store(d[7*width:])
	}
	for ; n+width <= len(dst); n += width {
		a := simd.LoadFloat32s(dst[n:])
		for i, r := range at {
			a = simd.LoadFloat32s(m[int(r)*ld+n:]).MulAdd(simd.BroadcastUint32s(f[i]).BitsToFloat32(), a)
		}
		a.Store(dst[n:])
	}
	clearUpper()
	return n
}

func addSquaresVectors(dst, src []float32) (n int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() {
		return 0
	}
	for ; n+width <= len(src) && n+width <= len(dst); n += width {
		x := simd.LoadFloat32s(src[n:])
		simd.LoadFloat32s(dst[n:]).Add(x.Mul(x)).Store(dst[n:])
	}
	clearUpper()
	return n
}
