//go:build goexperiment.simd && go1.27 && !amd64 && !arm64

package lanes

// searchSymRows is searchSymTile.
func searchSymRows(t *symTable, x, w, rows, scales, step, shift []float32) {
	searchSymTile(t, x, w, rows, scales, step, shift)
}

// asymTiles is the number of tiles that searchAsym takes.
func asymTiles() int { return 2 }

// searchAsym is searchAsymTiles.
func searchAsym(t *asymTable, n int, x, w, pairs []float32, fit *asymFit) {
	searchAsymTiles(t, x, w, pairs[:3*len(x)+1], fit)
}

// relevelTile is relevelSymTile.
func relevelTile(levels int32, x, d []float32, words []uint32) { relevelSymTile(levels, x, d, words) }

// packQ3_K packs the levels s.kept of nb superblocks.
func (s *kScratch) packQ3_K(dst []byte, nb, width int) { s.storeQ3_K(dst, nb, width) }

// relevelMin is relevelMinTile.
func relevelMin(levels int32, x, d, m, step, base []float32, words []uint32) {
	relevelMinTile(levels, x, d, m, step, base, words)
}
