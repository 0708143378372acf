package writer

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ggforge/gguf"
)

// BenchmarkJournal writes files with a journal and without, in turns: a conversion that only copies, which
// the disk bounds, and some that encode. journal/plain is the ratio of the median times.
func BenchmarkJournal(b *testing.B) {
	const rowLen, nRows = 4096, 8192
	m := newMatrix(make([]float32, rowLen*nRows), rowLen, nRows)
	for _, typ := range []gguf.Type{gguf.TypeF32, gguf.TypeF16, gguf.TypeQ4_K} {
		b.Run(typ.String(), func(b *testing.B) {
			dir := b.TempDir()
			var took [2][]time.Duration
			for i := range 2 * b.N {
				f := &File{Path: filepath.Join(dir, "o"), Tensors: []Tensor{{"t", typ, m, nil, nil}}}
				opt := Options{}
				if i%2 == 1 {
					opt.Journal = &Journal{}
				}
				begin := time.Now()
				if _, err := Write(context.Background(), f, opt); err != nil {
					b.Fatal(err)
				}
				took[i%2] = append(took[i%2], time.Since(begin))
				if err := os.Remove(f.Path); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(4 * rowLen * nRows)
			for _, t := range took {
				slices.Sort(t)
			}
			b.ReportMetric(float64(took[1][b.N/2])/float64(took[0][b.N/2]), "journal/plain")
		})
	}
}
