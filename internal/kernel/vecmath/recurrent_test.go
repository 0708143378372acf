package vecmath

import (
	"fmt"
	"math"
	"testing"
)

// made returns n made-up numbers from -1 to 1.
func made(seed, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		seed = seed*1664525 + 1013904223
		x[i] = float32(int32(seed)) / (1 << 31)
	}
	return x
}

// TestRecur compares Recur with the definition, number by number, around the lengths of
// vectors, and with float64.
func TestRecur(t *testing.T) {
	for n := range 150 {
		for _, rows := range []int{0, 1, 5, 16} {
			y, state, x := made(n, n), made(n+1, n*rows), made(n+2, n)
			decay, in, out := made(n+3, rows), made(n+4, rows), made(n+5, rows)
			wantY, wantState, exact := append([]float32{}, y...), append([]float32{}, state...), make([]float64, n)
			for i := range n {
				exact[i] = float64(y[i])
				for r := range rows {
					v := &wantState[r*n+i]
					exact[i] += float64(out[r]) * (float64(decay[r])*float64(*v) + float64(in[r])*float64(x[i]))
					*v = MulAdd(in[r], x[i], float32(decay[r]**v))
					wantY[i] = MulAdd(out[r], *v, wantY[i])
				}
			}
			Recur(y, state, x, decay, in, out)
			for i := range y {
				if !sameBits(y[i], wantY[i]) || math.Abs(float64(y[i])-exact[i]) > 1e-5 {
					t.Fatalf("%d rows of %d: sum %d is %v, want %v, about %v", rows, n, i, y[i], wantY[i], exact[i])
				}
			}
			for i := range state {
				if !sameBits(state[i], wantState[i]) {
					t.Fatalf("%d rows of %d: %d of the state is %v, want %v", rows, n, i, state[i], wantState[i])
				}
			}
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a state of another size was accepted")
		}
	}()
	Recur(make([]float32, 3), make([]float32, 5), make([]float32, 3), make([]float32, 2), make([]float32, 2),
		make([]float32, 2))
}

// TestAddProduct compares AddProduct with products of single numbers.
func TestAddProduct(t *testing.T) {
	for n := range 70 {
		a, b, dst := made(n, n+1), made(n+1, n+2), made(n+2, n)
		want := append([]float32{}, dst...)
		for i := range want {
			want[i] = MulAdd(a[i], b[i], want[i])
		}
		AddProduct(dst, a, b)
		for i := range want {
			if dst[i] != want[i] {
				t.Fatalf("%d of %d: %v, want %v", i, n, dst[i], want[i])
			}
		}
	}
}

func BenchmarkRecur(b *testing.B) {
	for _, n := range []int{64, 128} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			y, state, x := made(1, n), made(2, 128*n), made(3, n)
			decay, in, out := made(4, 128), made(5, 128), made(6, 128)
			b.SetBytes(int64(4 * len(state)))
			for b.Loop() {
				Recur(y, state, x, decay, in, out)
			}
		})
	}
}
