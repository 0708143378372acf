package torchmath

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestLinear compares Linear with sums in the order of the inputs, one product after the
// other, for numbers of rows and outputs around those that are done at once.
func TestLinear(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, in := range []int{1, 3, 48} {
		for _, out := range []int{1, 15, 16, 17, 40} {
			for _, n := range []int{1, 7, 8, 9, 17} {
				w, bias, x := random(r, out*in), random(r, out), random(r, n*in)
				l := NewLinear(in, out)
				for o := range out {
					l.SetRow(o, w[o*in:][:in])
				}
				l.SetBias(bias)
				got := make([]float32, n*out)
				l.Apply(got, x)
				for i := range n {
					for o := range out {
						var want float32
						for k := range in {
							want = float32(x[i*in+k]*w[o*in+k]) + want
						}
						want += bias[o]
						if got[i*out+o] != want {
							t.Fatalf("%d rows, %d to %d: row %d, output %d: %v, want %v", n, in, out, i, o,
								got[i*out+o], want)
						}
					}
				}
			}
		}
	}
}

// TestSumPanel compares the function in use with the scalar code.
func TestSumPanel(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for rows := 1; rows <= rowsAtOnce; rows++ {
		for _, in := range []int{1, 2, 31} {
			x, panel := random(r, rows*in), random(r, in*panelLen)
			var got, want [rowsAtOnce * panelLen]float32
			sumPanel(&got, x, panel)
			sumPanelScalar(&want, x, panel)
			if got != want {
				t.Errorf("%d rows of %d: differs from the scalar code", rows, in)
			}
		}
	}
}

func random(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func BenchmarkLinear(b *testing.B) {
	const in, out, n = 2048, 2048, 16
	r := rand.New(rand.NewPCG(5, 6))
	l, x, y := NewLinear(in, out), random(r, n*in), make([]float32, n*out)
	for o := range out {
		l.SetRow(o, random(r, in))
	}
	for name, f := range map[string]func(*[rowsAtOnce * panelLen]float32, []float32,
		[]float32){"scalar": sumPanelScalar, "chosen": sumPanel} {
		b.Run(fmt.Sprintf("%s/%dx%d", name, in, out), func(b *testing.B) {
			old := sumPanel
			sumPanel = f
			defer func() { sumPanel = old }()
			for b.Loop() {
				l.Apply(y, x)
			}
			b.ReportMetric(float64(in*out*n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
		})
	}
}
