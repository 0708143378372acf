//go:build goexperiment.simd && go1.27 && !amd64

package lanes

func nearIQ1AVX2(*iq1Lanes, []uint16, []float32, []float32, int) { panic("quants: no AVX2") }

func cutsIQ1_S(l *iq1Lanes) { scanIQ1_S(l) }

func cutsIQ1_M(l *iq1Lanes) { scanIQ1_M(l) }
