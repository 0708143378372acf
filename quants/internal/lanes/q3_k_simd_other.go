//go:build goexperiment.simd && go1.27 && !arm64

package lanes

func sym3First(t *symTable, x []float32, s *sym3, scales []float32) { sym3Each(t, x, s, scales) }

func sym3Chains(t *symTable, s *sym3, tiles int) { sym3ChainsTiles(t, s, tiles) }

func sym3LookAgain(t *symTable, x []float32, s *sym3, i int) {
	sym3Look(t, x, s, i)
	clearUpper()
}
