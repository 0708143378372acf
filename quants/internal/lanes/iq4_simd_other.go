//go:build goexperiment.simd && go1.27 && !arm64

package lanes

// fitIQ4Rows is fitIQ4Tile.
func fitIQ4Rows(x, w, middle, below, above, scales []float32) {
	fitIQ4Tile(x, w, middle, below, above, scales)
}
