package vecmath

import (
	"math"
	"math/big"
	"testing"
)

// exact returns a*b + c rounded once, by arithmetic of unlimited precision.
func exact(a, b, c float32) float32 {
	wide := func(v float32) *big.Float { return new(big.Float).SetPrec(1000).SetFloat64(float64(v)) }
	s := wide(a)
	s.Mul(s, wide(b))
	s.Add(s, wide(c))
	f, _ := s.Float32()
	return f
}

var edges = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, 1.5, 1 + 1.0/(1<<23), -1 - 1.0/(1<<23), 1 - 1.0/(1<<24), 1.0 / (1 << 24),
	3, 1.0 / 3, 1e-20, -1e-20, 1e-38, 1e20,
	math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 5e-45, 1.1754944e-38,
	1.1754942e-38, 1 << 24, 1<<24 + 2, 4097, 4095,
}

func finite(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

func check(t *testing.T, a, b, c float32) {
	t.Helper()
	got := MulAdd(a, b, c)
	if !finite(a) || !finite(b) || !finite(c) {
		if want := float32(float64(a)*float64(b) + float64(c)); got != want && (got == got || want == want) {
			t.Fatalf("%g*%g + %g = %g, want %g", a, b, c, got, want)
		}
		return
	}
	want := exact(a, b, c)
	if got != want || want != 0 && math.Float32bits(got) != math.Float32bits(want) {
		t.Fatalf("%g*%g + %g = %g, want %g", a, b, c, got, want)
	}
}

func TestMulAdd(t *testing.T) {
	for _, a := range edges {
		for _, b := range edges {
			for _, c := range edges {
				check(t, a, b, c)
			}
		}
	}
	// The exact result is so near the middle of two float32 numbers that float64 rounds it to the middle: rounded
	// twice, it becomes the even one of the two.
	a, c := float32(1+1.0/(1<<12)), float32(math.Ldexp(1, -80))
	if twice := float32(float64(a)*float64(a) + float64(c)); twice == exact(a, a, c) {
		t.Fatal("an example that does not show double rounding")
	}
	check(t, a, a, c)
	check(t, a, a, -c)
}

func FuzzMulAdd(f *testing.F) {
	f.Add(uint32(0x3F800800), uint32(0x3F800800), uint32(0x17800000))
	f.Fuzz(func(t *testing.T, a, b, c uint32) {
		check(t, math.Float32frombits(a), math.Float32frombits(b), math.Float32frombits(c))
	})
}
