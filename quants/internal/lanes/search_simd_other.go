//go:build goexperiment.simd && go1.27 && !amd64 && !arm64

package lanes

// searchSymRows is searchSymTile.
func searchSymRows(t *symTable, x, w, rows, scales, step, shift []float32) {
	searchSymTile(t, x, w, rows, scales, step, shift)
}

// asymTiles is how many tiles searchAsym takes.
func asymTiles() int { return 2 }

// searchAsym is searchAsymTiles.
func searchAsym(t *asymTable, n int, x, w, pairs []float32, fit *asymFit) {
	searchAsymTiles(t, x, w, pairs[:3*len(x)+1], fit)
}
