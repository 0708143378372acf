//go:build goexperiment.simd && go1.27 && !amd64

package lanes

// searchSymRows is searchSymTile.
func searchSymRows(t *symTable, x, w, rows, scales, step, shift []float32) {
	searchSymTile(t, x, w, rows, scales, step, shift)
}

// searchAsymPair is searchAsymTiles.
func searchAsymPair(t *asymTable, x, w, pairs []float32, fit *asymFit) {
	searchAsymTiles(t, x, w, pairs, fit)
}
