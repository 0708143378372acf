package quants

import (
	"testing"
	"time"

	"ggforge/gguf"
	"ggforge/test/gen"
)

// BenchmarkCodebookBest measures the implementations of the codebook types side
// by side: of many short runs that take turns, the fastest. It is steadier than
// BenchmarkQuantize on a machine with other work.
func BenchmarkCodebookBest(b *testing.B) {
	x, n := gen.Input("normal/1x4096")
	for _, typ := range []gguf.Type{gguf.TypeIQ1_S, gguf.TypeIQ1_M, gguf.TypeIQ2_XXS, gguf.TypeIQ2_XS, gguf.TypeIQ2_S,
		gguf.TypeIQ3_XXS, gguf.TypeIQ3_S} {
		for _, variant := range variantsOf(Lookup(typ), "none", "uni") {
			b.Run(typ.String()+"/"+variant, func(b *testing.B) {
				w := gen.Importance(variant, n)
				q := make([]byte, typ.RowBytes(int64(len(x))))
				best := make([]time.Duration, len(codecSets))
				for round := 0; b.Loop(); round++ {
					for i, set := range codecSets {
						start := time.Now()
						if err := set.lookup(typ).Quantize(q, x, n, w); err != nil {
							b.Fatal(err)
						}
						if d := time.Since(start); round == 0 || d < best[i] {
							best[i] = d
						}
					}
				}
				for i, set := range codecSets {
					b.ReportMetric(float64(4*len(x))/best[i].Seconds()/1e6, set.name+"-MB/s")
				}
				b.ReportMetric(float64(best[len(best)-1])/float64(best[0]), "ratio")
			})
		}
	}
}
