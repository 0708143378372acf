//go:build goexperiment.simd && go1.27 && !amd64

package quants

// searchAsymPair is searchAsymTiles.
func searchAsymPair(t *asymTable, x, w, pairs []float32, fit *asymFit) {
	searchAsymTiles(t, x, w, pairs, fit)
}
