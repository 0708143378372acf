package torchmath

import "math"

// Linear is the matrix and the bias of a linear layer, arranged for Apply. Outputs are
// in panels of panelLen, so that a vector holds the same element of several rows:
//
//	row 0:  w00 w01 w02 …        panel 0:  w00 w10 w20 … w15,0   w01 w11 w21 …
//	row 1:  w10 w11 w12 …
//
// The sum of an output has float32 terms that are rounded one by one, in the order of the inputs, and the bias at the
// end, as in the BLAS of netlib, and PyTorch with it. A BLAS that keeps several sums for one output, as MKL and
// OpenBLAS do, rounds otherwise in the last bits.
type Linear struct {
	in, out int
	panels  []float32 // ceil(out/panelLen) of in*panelLen
	bias    []float32 // ceil(out/panelLen)*panelLen, zeros at the end
}

// panelLen is a multiple of the length of every vector.
const panelLen = 16

// NewLinear returns a layer of zeros.
func NewLinear(in, out int) *Linear {
	n := (out + panelLen - 1) / panelLen
	return &Linear{in, out, make([]float32, n*in*panelLen), make([]float32, n*panelLen)}
}

// SetRow sets the weights of an output: len(w) is the number of inputs.
func (l *Linear) SetRow(o int, w []float32) {
	panel := l.panels[o/panelLen*l.in*panelLen+o%panelLen:]
	for i, v := range w {
		panel[i*panelLen] = v
	}
}

// SetBias sets the bias: len(b) is the number of outputs.
func (l *Linear) SetBias(b []float32) { copy(l.bias, b) }

// Apply puts the outputs for each row of x into the rows of dst: len(x) is n times the
// number of inputs, len(dst) n times the number of outputs.
func (l *Linear) Apply(dst, x []float32) {
	var sums [rowsAtOnce * panelLen]float32
	n := len(dst) / l.out
	for p := 0; p*panelLen < l.out; p++ {
		panel, bias := l.panels[p*l.in*panelLen:][:l.in*panelLen], l.bias[p*panelLen:][:panelLen]
		for from := 0; from < n; from += rowsAtOnce {
			count := min(rowsAtOnce, n-from)
			sumPanel(&sums, x[from*l.in:][:count*l.in], panel)
			for r := range count {
				to := dst[(from+r)*l.out:][p*panelLen : min((p+1)*panelLen, l.out)]
				for i, s := range sums[r*panelLen:][:len(to)] {
					to[i] = s + bias[i]
				}
			}
		}
	}
}

// rowsAtOnce is the number of rows of inputs that share a read of the weights: their sums fill the
// registers of AVX2, and hide that an addition waits for the one before it.
const rowsAtOnce = 8

// sumPanel puts into sums, row after row, the products of up to rowsAtOnce rows of x and
// a panel: len(panel) = inputs*panelLen.
var sumPanel = sumPanelScalar

func sumPanelScalar(sums *[rowsAtOnce * panelLen]float32, x, panel []float32) {
	in := len(panel) / panelLen
	for r := 0; len(x) > 0; r++ {
		row := x[:in]
		x = x[in:]
		for lane := 0; lane < panelLen; lane += 4 { // sums that do not wait for each other
			var a, b, c, d float32
			w := panel[lane:]
			for _, v := range row {
				four := (*[4]float32)(w)
				a = float32(v*four[0]) + a
				b = float32(v*four[1]) + b
				c = float32(v*four[2]) + c
				d = float32(v*four[3]) + d
				w = w[min(panelLen, len(w)):]
			}
			*(*[4]float32)(sums[r*panelLen+lane:]) = [4]float32{a, b, c, d}
		}
	}
}

// SiLU replaces each element of x by its product with its logistic function, as PyTorch
// does: by SLEEF, but for the last rest elements, where x is the end of a tensor and
// these come after its last full vectors; there by the C library.
func SiLU(x []float32, rest int) {
	vectors := len(x) - rest
	for i, v := range x {
		var e float32
		if i < vectors {
			e = expSingle(-v)
		} else {
			e = float32(math.Exp(float64(-v)))
		}
		x[i] = v / (1 + e)
	}
}

// SiLURest returns how many elements of a tensor come after its last full vectors:
// vectors of float16 are as long as two of float32.
func SiLURest(elements int64, float16 bool) int {
	step := int64(vectorStep)
	if float16 {
		step *= 2
	}
	return int(elements % step)
}
