//go:build goexperiment.simd && go1.27

package avx2

import (
	"math"
	"math/rand/v2"
	"simd/archsimd"
	"testing"

	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
)

// TestScalarBranchesAVX2 checks that ties, zeros and scales out of range, and only they, take the branches that leave
// work to scalar code.
func TestScalarBranchesAVX2(t *testing.T) {
	if !archsimd.X86.AVX2() {
		t.Skip("UNTESTED: there is no AVX2")
	}
	r := rand.New(rand.NewPCG(3, 4))
	var x tile32
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	var s scales32
	range32(&s, &x)
	signedLargest(&s, &x)
	for b := range s.first {
		if want := arith.Largest(x[pack.QK*b:][:pack.QK]); s.first[b] != math.Float32bits(want) ||
			s.max[b] == -s.min[b] {
			t.Errorf("block %d: largest %v, want %v", b, math.Float32frombits(s.first[b]), want)
		}
	}
	for _, sign := range []float32{1, -1} { // both signs have the largest magnitude
		x[pack.QK*5+3], x[pack.QK*5+9] = 9*sign, -9*sign
		range32(&s, &x)
		signedLargest(&s, &x)
		if s.max[5] != -s.min[5] || s.first[5] != math.Float32bits(9*sign) {
			t.Errorf("tie: largest is %v, want %v", math.Float32frombits(s.first[5]), 9*sign)
		}
	}
	negZero := math.Float32frombits(1 << 31)
	for i := range pack.QK { // the first of the zeros is negative
		x[i] = arith.Abs(x[i])
	}
	x[7], x[8] = negZero, 0
	scaleAsym(&s, &x, 0x41700000)
	if s.first[0] != 1<<31 || s.m[0] != 0x8000 {
		t.Errorf("minimum has bits %#x, want those of -0", s.first[0])
	}

	var f fp4Scales
	f.max = [8]float32{1, 6, 3e8, 0, 1e-30, 448, 1e9, math.MaxFloat32}
	scalesNVFP4(&f)
	if f.far != 1<<2|1<<6|1<<7 {
		t.Errorf("NVFP4: sub-blocks left to the scalar code: %08b", f.far)
	}
	f = fp4Scales{}
	f.max = [8]float32{1, 0x1p127, math.MaxFloat32, 0, 0x1p-126, 0x1p-125, 1e-40, 1e30}
	scalesMXFP4(&f)
	if f.far != 1<<2|1<<4 { // 2^-126: the exponent wraps to 255
		t.Errorf("MXFP4: blocks left to the scalar code: %08b", f.far)
	}
}
