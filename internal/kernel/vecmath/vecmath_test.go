package vecmath

import (
	"math"
	"slices"
	"testing"
)

// functions has every function, its exact counterpart, the range in which they are compared, and the largest error in
// units of the last place.
var functions = []struct {
	name     string
	f        Function
	exact    func(float64) float64
	from, to float32
	units    float64
}{
	{"exp", ExpOf, math.Exp, -87.3, 88.7, 1.0},
	{"tanh", TanhOf, math.Tanh, -12, 12, 1.5},
	{"erf", ErfOf, math.Erf, -5, 5, 1.5},
	{"sigmoid", SigmoidOf, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, -87, 87, 2.5},
	{"silu", SiLUOf, func(x float64) float64 { return x / (1 + math.Exp(-x)) }, -80, 80, 2.5},
	// near their zeros the relative error is without bound
	{"gelu", GELUOf, func(x float64) float64 {
		return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+geluCube*x*x*x)))
	}, -1, 10, 8},
	{"gelu_erf", GELUErfOf, func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) }, -1, 10, 8},
	{"gelu_quick", GELUQuickOf, func(x float64) float64 { return x / (1 + math.Exp(geluQuick*x)) }, -8, 8, 16},
	{"softplus", SoftplusOf, func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) },
		-87, 1e6, 3},
	{"relu", ReLUOf, func(x float64) float64 { return max(x, 0) }, -3, 3, 0},
}

// unit returns the distance of neighbours near x.
func unit(x float64) float64 {
	f := float32(math.Abs(x))
	return max(float64(math.Nextafter32(f, 2*f+1)-f), 0x1p-149)
}

// TestErrors measures errors over an even sample of all bit patterns.
func TestErrors(t *testing.T) {
	step := uint32(4093)
	if testing.Short() {
		step = 40009
	}
	for _, c := range functions {
		worst, at := 0.0, float32(0)
		for b := uint64(0); b < 1<<32; b += uint64(step) {
			x := math.Float32frombits(uint32(b))
			if !(x >= c.from && x <= c.to) {
				continue
			}
			want := c.exact(float64(x))
			if e := math.Abs(float64(c.f.one(x))-want) / unit(want); e > worst && math.Abs(want) > 1.2e-38 {
				worst, at = e, x
			}
		}
		t.Logf("%s: %.3f units at %v", c.name, worst, at)
		if worst > c.units {
			t.Errorf("%s(%v) is off by %.3f units, want at most %v", c.name, at, worst, c.units)
		}
	}
}

var special = []float32{0, float32(math.Copysign(0, -1)), 1, -1, 88.7, 88.73, 89, 1000, -87.32, -87.34, -1000,
	0.6249999, 0.625, 0.9277343, 0.92773443, 3.9999, 4, 5,
	1e-20, 1e-40, -1e-40, math.MaxFloat32, -math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)),
	float32(math.NaN()), float32(math.Log(2)), 12, -12}

// TestSpecial checks zeros, infinities and NaNs.
func TestSpecial(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		f       func(float32) float32
		x, want float32
	}{
		{Exp, inf, inf}, {Exp, -inf, 0}, {Exp, 0, 1}, {Exp, 89, inf}, {Exp, -88, 0}, {Tanh, inf, 1}, {Tanh, -inf, -1},
		{Tanh, 0, 0}, {Erf, inf, 1}, {Erf, -inf, -1}, {Erf, 0, 0},
		{Sigmoid, inf, 1}, {Sigmoid, -inf, 0}, {SiLU, 100, 100}, {SiLU, 0, 0}, {GELU, 0, 0}, {GELU, 50, 50},
		{GELUErf, 50, 50}, {ReLU, -1, 0},
		{Exp, nan, nan}, {Tanh, nan, nan}, {Erf, nan, nan}, {SiLU, nan, nan}, {GELU, nan, nan},
	} {
		if got := c.f(c.x); got != c.want && (got == got || c.want == c.want) {
			t.Errorf("%v: %v, want %v", c.x, got, c.want)
		}
	}
}

func sameBits(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

// TestVectors compares slices of all lengths around those of vectors with single
// numbers.
func TestVectors(t *testing.T) {
	for _, c := range functions {
		for n := range 70 {
			src, dst := make([]float32, n), make([]float32, n+1)
			for i := range src {
				if src[i] = special[(i+n)%len(special)]; i%3 == 1 {
					src[i] = float32(i*n) / 50
				}
			}
			dst[n] = 7
			c.f.Apply(dst[:n], src)
			for i, x := range src {
				if want := c.f.one(x); !sameBits(dst[i], want) {
					t.Fatalf("%s(%v) of %d: %v, want %v", c.name, x, n, dst[i], want)
				}
			}
			if dst[n] != 7 {
				t.Fatalf("%s: written beyond the end", c.name)
			}
		}
	}
}

func FuzzVectors(f *testing.F) {
	f.Add(uint32(0x3F800000), uint32(0x12345))
	f.Fuzz(func(t *testing.T, first, step uint32) {
		src, dst := make([]float32, 64), make([]float32, 64)
		for i := range src {
			src[i] = math.Float32frombits(first + uint32(i)*step)
		}
		for _, c := range functions {
			c.f.Apply(dst, src)
			for i, x := range src {
				if want := c.f.one(x); !sameBits(dst[i], want) {
					t.Fatalf("%s(%v): %v, want %v", c.name, x, dst[i], want)
				}
			}
		}
	})
}

func BenchmarkApply(b *testing.B) {
	src, dst := make([]float32, 4096), make([]float32, 4096)
	for i := range src {
		src[i] = float32(i-2048) / 200
	}
	for _, c := range functions {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(4 * len(src)))
			for b.Loop() {
				c.f.Apply(dst, src)
			}
		})
	}
}

// TestDouble compares functions of float64 with the standard library.
func TestDouble(t *testing.T) {
	near := func(name string, x, got, want, units float64) {
		t.Helper()
		if d := math.Abs(got - want); d > units*math.Max(math.Abs(want)*0x1p-52, 0x1p-1074) {
			t.Errorf("%s(%v) = %v, want %v", name, x, got, want)
		}
	}
	for i := range 100_000 {
		x := float64(i)*0.01407 + 1e-9
		near("log", x, Log(x), math.Log(x), 1.5)
		near("log", 1/x, Log(1/x), math.Log(1/x), 1.5)
		y := x/2 - 700
		if y < 709 {
			near("exp", y, Exp64(y), math.Exp(y), 1.5)
		}
		s, c := SinCos(x * 10)
		// the argument loses bits in reduction where the result is near 0
		if d := math.Abs(s - math.Sin(x*10)); d > 0x1p-52 {
			t.Errorf("sin(%v) = %v, want %v", x*10, s, math.Sin(x*10))
		}
		if d := math.Abs(c - math.Cos(x*10)); d > 0x1p-52 {
			t.Errorf("cos(%v) = %v, want %v", x*10, c, math.Cos(x*10))
		}
	}
	if got := Pow(10000, -2.0/128); math.Abs(got-math.Pow(10000, -2.0/128)) > 1e-15 {
		t.Errorf("pow: %v", got)
	}
	if Log(0) != math.Inf(-1) || Log(-1) == Log(-1) || Exp64(-800) != 0 || Exp64(800) != math.Inf(1) || Exp64(0) != 1 ||
		Log(1) != 0 {
		t.Error("limits")
	}
}

// TestSums checks sums against those in order, and the elementwise operations around
// the lengths of vectors.
func TestSums(t *testing.T) {
	for n := range 70 {
		x, y := make([]float32, n), make([]float32, n)
		var sum, squares float64
		for i := range x {
			x[i], y[i] = float32(i*i)/7-3, float32(i)-20
			sum += float64(x[i])
			squares += (float64(x[i]) - 2) * (float64(x[i]) - 2)
		}
		if got := Sum(x); math.Abs(got-sum) > 1e-9 {
			t.Errorf("%d: sum %v, want %v", n, got, sum)
		}
		if got := SumSquares(x, 2); math.Abs(got-squares) > 1e-6 {
			t.Errorf("%d: squares %v, want %v", n, got, squares)
		}
		add, mul, scaled, more := append([]float32{}, x...), append([]float32{}, x...), make([]float32, n),
			append([]float32{}, x...)
		Add(add, y)
		Mul(mul, y)
		Scale(scaled, x, 1.3)
		AddScaled(more, y, 0.7)
		squared := append([]float32{}, x...)
		AddSquares(squared, y)
		for i := range x {
			if squared[i] != x[i]+float32(y[i]*y[i]) {
				t.Errorf("%d: element %d: %v", n, i, squared[i])
			}
			if add[i] != x[i]+y[i] || mul[i] != x[i]*y[i] || scaled[i] != x[i]*1.3 ||
				more[i] != float32(float64(y[i])*float64(float32(0.7))+float64(x[i])) {
				t.Errorf("%d: element %d: %v %v %v %v", n, i, add[i], mul[i], scaled[i], more[i])
			}
		}
	}
	if m, ok := Max([]float32{-3, 2, 1}); m != 2 || !ok {
		t.Error("max", m, ok)
	}
	if _, ok := Max([]float32{1, float32(math.NaN()), 2}); ok {
		t.Error("max of NaNs")
	}
}

// TestSumsOrder compares sums with eight partial sums, by index mod 8, that a tree adds up.
func TestSumsOrder(t *testing.T) {
	for n := range 70 {
		x, y := make([]float32, n), make([]float32, n)
		var s, squares, products [8]float64
		for i := range x {
			x[i], y[i] = float32(math.Exp(float64(i%9))), float32(math.Sin(float64(i)))*1e5
			d := float64(x[i]) - 1.7
			s[i%8] += float64(x[i])
			squares[i%8] += float64(d * d)
			products[i%8] += float64(x[i]) * float64(y[i])
		}
		if Sum(x) != tree(&s) || SumSquares(x, 1.7) != tree(&squares) || SumProducts(x, y) != tree(&products) {
			t.Errorf("%d: %v %v %v, want %v %v %v", n, Sum(x), SumSquares(x, 1.7), SumProducts(x, y), tree(&s),
				tree(&squares), tree(&products))
		}
	}
}

func TestFinite(t *testing.T) {
	for n := range 20 {
		x := make([]float32, n)
		for i := range x {
			x[i] = math.MaxFloat32 * float32(1-2*(i%2))
		}
		if !Finite(x) {
			t.Errorf("%d finite values: not finite", n)
		}
		for i := range x {
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				was := x[i]
				if x[i] = float32(bad); Finite(x) {
					t.Errorf("%v at %d of %d: finite", bad, i, n)
				}
				x[i] = was
			}
		}
	}
}

// TestCombine compares Combine with rows that are added one by one, without vectors.
func TestCombine(t *testing.T) {
	for _, n := range []int{1, 15, 16, 33, 64, 100, 256, 290} {
		const rows, ld = 19, 300
		m := make([]float32, rows*ld)
		for i := range m {
			m[i] = float32(math.Sin(float64(i)))
		}
		factors, got, want := make([]uint32, rows), make([]float32, n), make([]float32, n)
		for r := range factors {
			factors[r] = math.Float32bits(float32(math.Cos(float64(3 * r))))
		}
		for i := range want {
			got[i], want[i] = float32(i), float32(i)
			for r, f := range factors {
				want[i] = MulAdd(m[r*ld+i], math.Float32frombits(f), want[i])
			}
		}
		Combine(got, m, ld, factors)
		if !slices.Equal(got, want) {
			t.Errorf("%d columns: %v, want %v", n, got, want)
		}
		some := []int32{3, 0, 17}
		for i := range want {
			got[i], want[i] = float32(i), float32(i)
			for k, r := range some {
				want[i] = MulAdd(m[int(r)*ld+i], math.Float32frombits(factors[k]), want[i])
			}
		}
		if CombineAt(got, m, ld, some, factors[:3]); !slices.Equal(got, want) {
			t.Errorf("%d columns of some rows: %v, want %v", n, got, want)
		}
	}
}
