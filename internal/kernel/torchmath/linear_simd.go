//go:build goexperiment.simd && go1.27

package torchmath

import "simd"

// Sums of a panel in vectors: lane i is output i of the panel, so that every lane adds
// in the order of sumPanelScalar.

func init() {
	if !simd.Emulated() {
		sumPanel = sumPanelSIMD
	}
}

func sumPanelSIMD(sums *[rowsAtOnce * panelLen]float32, x, panel []float32) {
	in := len(panel) / panelLen
	if len(x) < rowsAtOnce*in {
		for r := 0; len(x) > 0; r++ {
			sumRowSIMD(sums[r*panelLen:][:panelLen], x[:in], panel)
			x = x[in:]
		}
		return
	}
	x0, x1, x2, x3 := x[:in], x[in:][:in], x[2*in:][:in], x[3*in:][:in]
	x4, x5, x6, x7 := x[4*in:][:in], x[5*in:][:in], x[6*in:][:in], x[7*in:][:in]
	width := simd.BroadcastFloat32s(0).Len()
	for lane := 0; lane < panelLen; lane += width {
		s0 := simd.BroadcastFloat32s(0)
		s1, s2, s3, s4, s5, s6, s7 := s0, s0, s0, s0, s0, s0, s0
		p := panel[lane:]
		for i := range x0 {
			w := simd.LoadFloat32s(p)
			s0 = simd.BroadcastFloat32s(x0[i]).Mul(w).Add(s0)
			s1 = simd.BroadcastFloat32s(x1[i]).Mul(w).Add(s1)
			s2 = simd.BroadcastFloat32s(x2[i]).Mul(w).Add(s2)
			s3 = simd.BroadcastFloat32s(x3[i]).Mul(w).Add(s3)
			s4 = simd.BroadcastFloat32s(x4[i]).Mul(w).Add(s4)
			s5 = simd.BroadcastFloat32s(x5[i]).Mul(w).Add(s5)
			s6 = simd.BroadcastFloat32s(x6[i]).Mul(w).Add(s6)
			s7 = simd.BroadcastFloat32s(x7[i]).Mul(w).Add(s7)
			p = p[min(panelLen, len(p)):]
		}
		s0.Store(sums[lane:])
		s1.Store(sums[panelLen+lane:])
		s2.Store(sums[2*panelLen+lane:])
		s3.Store(sums[3*panelLen+lane:])
		s4.Store(sums[4*panelLen+lane:])
		s5.Store(sums[5*panelLen+lane:])
		s6.Store(sums[6*panelLen+lane:])
		s7.Store(sums[7*panelLen+lane:])
	}
}

// sumRowSIMD is sumPanelSIMD for one row.
func sumRowSIMD(sums, x, panel []float32) {
	width := simd.BroadcastFloat32s(0).Len()
	for lane := 0; lane < panelLen; lane += width {
		s := simd.BroadcastFloat32s(0)
		p := panel[lane:]
		for _, v := range x {
			s = simd.BroadcastFloat32s(v).Mul(simd.LoadFloat32s(p)).Add(s)
			p = p[min(panelLen, len(p)):]
		}
		s.Store(sums[lane:])
	}
}
