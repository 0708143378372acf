package vecmath

import "math"

// Functions of float64 for values that are computed once per token, position or model. The
// algorithms are those of FreeBSD's msun, with every product rounded on its own, so that
// no compiler fuses. Errors are below 1 unit of float64.

// Log returns the natural logarithm of x > 0, 0 or infinity included.
func Log(x float64) float64 {
	const (
		hi = 6.93147180369123816490e-01
		lo = 1.90821492927058770002e-10
		l1 = 6.666666666666735130e-01
		l2 = 3.999999999940941908e-01
		l3 = 2.857142874366239149e-01
		l4 = 2.222219843214978396e-01
		l5 = 1.818357216161805012e-01
		l6 = 1.531383769920937332e-01
		l7 = 1.479819860511658591e-01
	)
	switch {
	case x != x || x > math.MaxFloat64:
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	f, e := math.Frexp(x)
	if f < math.Sqrt2/2 {
		f *= 2
		e--
	}
	f--
	k := float64(e)
	s := f / (2 + f)
	z := float64(s * s)
	w := float64(z * z)
	t1 := float64(w * (l2 + float64(w*(l4+float64(w*l6)))))
	t2 := float64(z * (l1 + float64(w*(l3+float64(w*(l5+float64(w*l7)))))))
	r := t1 + t2
	h := float64(0.5 * float64(f*f))
	return float64(k*hi) - ((h - (float64(s*(h+r)) + float64(k*lo))) - f)
}

// Exp64 returns e^x.
func Exp64(x float64) float64 {
	const (
		hi = 6.93147180369123816490e-01
		lo = 1.90821492927058770002e-10
		p1 = 1.66666666666666657415e-01
		p2 = -2.77777777770155933842e-03
		p3 = 6.61375632143793436117e-05
		p4 = -1.65339022054652515390e-06
		p5 = 4.13813679705723846039e-08
	)
	switch {
	case x != x || x > math.MaxFloat64:
		return x
	case x > 709.782712893384:
		return math.Inf(1)
	case x < -745.2:
		return 0
	}
	k := math.Floor(float64(x*math.Log2E) + 0.5)
	h, l := x-float64(k*hi), float64(k*lo)
	r := h - l
	t := float64(r * r)
	c := r - float64(t*(p1+float64(t*(p2+float64(t*(p3+float64(t*(p4+float64(t*p5)))))))))
	y := 1 - ((l - float64(r*c)/(2-c)) - h)
	return math.Ldexp(y, int(k))
}

// Pow returns x to the power y, for x > 0, to about 1e-14.
func Pow(x, y float64) float64 { return Exp64(y * Log(x)) }

// SinCos returns the sine and cosine of x, |x| < 2^20.
func SinCos(x float64) (sin, cos float64) {
	const ( // π/2 in three parts, the first two with zeros at their end
		a  = 1.57079632673412561417e+00
		b  = 6.07710050630396597660e-11
		c  = 2.02226624879595063154e-21
		s1 = -1.66666666666666324348e-01
		s2 = 8.33333333332248946124e-03
		s3 = -1.98412698298579493134e-04
		s4 = 2.75573137070700676789e-06
		s5 = -2.50507602534068634195e-08
		s6 = 1.58969099521155010221e-10
		c1 = 4.16666666666666019037e-02
		c2 = -1.38888888888741095749e-03
		c3 = 2.48015872894767294178e-05
		c4 = -2.75573143513906633035e-07
		c5 = 2.08757232129817482790e-09
		c6 = -1.13596475577881948265e-11
	)
	n := math.Floor(float64(x*(2/math.Pi)) + 0.5)
	r := ((x - float64(n*a)) - float64(n*b)) - float64(n*c)
	z := float64(r * r)
	sin = r + float64(float64(r*z)*(s1+float64(z*(s2+float64(z*(s3+float64(z*(s4+float64(z*(s5+float64(z*s6)))))))))))
	cos = 1 - (float64(0.5*z) -
		float64(float64(z*z)*(c1+float64(z*(c2+float64(z*(c3+float64(z*(c4+float64(z*(c5+float64(z*c6))))))))))))
	switch int64(n) & 3 {
	case 1:
		sin, cos = cos, -sin
	case 2:
		sin, cos = -sin, -cos
	case 3:
		sin, cos = -cos, sin
	}
	return sin, cos
}
