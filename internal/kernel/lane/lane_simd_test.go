//go:build goexperiment.simd && go1.27

package lane

import "testing"

// Load and Store are checked for all widths, whatever the CPU has.
func TestTiles(t *testing.T) {
	if w := Width(); w < 4 || w > MaxWidth || w%4 != 0 {
		t.Fatalf("Width() = %d", w)
	}
	for _, width := range []int{4, 8, 16} {
		for _, n := range []int{4, 8, 16, 32} {
			for k := range width + 1 {
				src := make([]uint32, k*n)
				for i := range src {
					src[i] = uint32(i + 1)
				}
				tile := make([]uint32, n*width+1)
				for i := range tile {
					tile[i] = 0xFFFFFFFF
				}
				Load(tile[:n*width], src, n, width)
				for i, got := range tile[:n*width] {
					want := uint32(0)
					if l := i % width; l < k {
						want = src[l*n+i/width]
					}
					if got != want {
						t.Fatalf("width %d, %d of %d: row %d, lane %d holds %d, want %d", width, k, n, i/width,
							i%width, got, want)
					}
				}
				dst := make([]uint32, k*n+1)
				Store(dst[:k*n], tile, n, width)
				for i, v := range src {
					if dst[i] != v {
						t.Fatalf("width %d, %d of %d: element %d came back as %d, want %d", width, k, n, i, dst[i], v)
					}
				}
				if tile[n*width] != 0xFFFFFFFF || dst[k*n] != 0 {
					t.Fatalf("width %d, %d of %d: wrote outside", width, k, n)
				}
			}
		}
	}
}
