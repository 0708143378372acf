package calibrate

import (
	"context"
	"errors"
	"slices"
	"testing"

	"ggforge/gguf"
	"ggforge/quants/parts"
)

// TestTryCodes checks that trying scales and minima inside feedback makes the error under H smaller than leaving them as
// they are, for all formats that have such codes, with the same blocks for any number of workers.
func TestTryCodes(t *testing.T) {
	ctx := context.Background()
	const n, rows = 512, 40
	w := weights(rows * n)
	for typ, most := range map[gguf.Type]float64{gguf.TypeQ2_K: 0.8, gguf.TypeQ3_K: 0.93, gguf.TypeQ4_K: 0.88,
		gguf.TypeQ5_K: 0.87, gguf.TypeQ6_K: 0.9, gguf.TypeIQ4_XS: 0.92, gguf.TypeMXFP4: 0.98, gguf.TypeNVFP4: 0.82} {
		f := parts.Of(typ)
		var first []parts.Block
		for _, workers := range []int{1, 3} {
			scratches := make([]scratch, workers)
			b, err := moments(t, n, 700, workers).feedback(ctx, f, scratches)
			if err != nil {
				t.Fatal(err)
			}
			encode := func(ctx context.Context) (sum float64, blocks []parts.Block, err error) {
				all, per := make([]rowState, rows), n/f.Block
				blocks = make([]parts.Block, rows*per)
				for r := range all {
					all[r] = rowState{w: w[r*n:][:n], blocks: blocks[r*per:][:per]}
				}
				err = b.rows(ctx, f, all, make([]float32, rows*n), scratches)
				for _, r := range all {
					sum += r.error
				}
				return sum, blocks, err
			}
			before, _, err := encode(ctx)
			if err != nil {
				t.Fatal(err)
			}
			b.tries = codesNear(f)
			after, blocks, err := encode(ctx)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%v: %.3f", typ, after/before)
			if !(after < most*before) {
				t.Errorf("%v: error %v, want %v times that without, %v", typ, after, most, before)
			}
			if first == nil {
				first = blocks
			} else if !slices.Equal(blocks, first) {
				t.Errorf("%v: other blocks with %d workers", typ, workers)
			}
			canceled, cancel := context.WithCancel(ctx)
			cancel()
			if _, _, err := encode(canceled); !errors.Is(err, context.Canceled) {
				t.Errorf("canceled: %v", err)
			}
		}
	}
}
