package quants

import (
	"bytes"
	"flag"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"ggforge/gguf"
	"ggforge/internal/cpu"
)

var (
	subBlocks   = flag.Int("parity.subblocks", 2000, "how many sub-blocks of each type TestRandomParity compares; make parity-long has 100 million")
	parityTypes = flag.String("parity.types", "", "types that TestRandomParity is about, separated by commas; all of its list if empty")
	paritySeed  = flag.Uint64("parity.seed", 1, "another seed makes TestRandomParity compare other sub-blocks")
)

// TestRandomParity compares encoders whose searches leave out what a bound or a look ahead says cannot win with
// those that try everything, on random sub-blocks: normal ones, heavy tails, ones whose elements have 8 significant bits, are
// small integers or repeated, so that many are equal, and pieces of parityRow.
func TestRandomParity(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("compares vector kernels")
	}
	for _, c := range []struct {
		typ gguf.Type
		sub int // elements of a sub-block
	}{
		{gguf.TypeIQ1_S, 32}, {gguf.TypeIQ1_M, 16}, {gguf.TypeIQ2_XXS, 32}, {gguf.TypeIQ2_XS, 16}, {gguf.TypeIQ2_S, 16},
		{gguf.TypeIQ3_XXS, 32}, {gguf.TypeIQ3_S, 32}, {gguf.TypeQ3_K, 16},
	} {
		if *parityTypes != "" && !strings.Contains(","+*parityTypes+",", ","+c.typ.String()+",") {
			continue
		}
		for _, set := range fasterCodecs(c.typ) {
			start, fast, scalar := time.Now(), set.lookup(c.typ), scalarCodec(c.typ)
			r := rand.New(rand.NewPCG(*paritySeed, uint64(c.typ)))
			const n = 4 * 256
			x := make([]float32, n)
			got, want := make([]byte, fast.Type().RowBytes(n)), make([]byte, fast.Type().RowBytes(n))
			compared, tenth := 0, max(*subBlocks/10, 1_000_000) // an hour's run that is stopped has said how far it got
			for ; compared < *subBlocks; compared += n / c.sub {
				randomRow(r, x)
				w := parityImportance(r, n, []string{"uniform", "uniform", "none", "sparse", "edges"}[r.IntN(5)])
				if w == nil && fast.NeedsImportance() {
					w = onesOf(n)
				}
				if err := scalar.Quantize(want, x, n, w); err != nil {
					t.Fatal(err)
				}
				if err := fast.Quantize(got, x, n, w); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("%v %s, after %d sub-blocks: %s\nx %v\nimportance %v", c.typ, fast.Implementation(w != nil), compared, explainDiff(c.typ, got, want), x, w)
				}
				if done := compared + n/c.sub; done/tenth != compared/tenth && done < *subBlocks {
					t.Logf("%v %s: %d of %d sub-blocks so far", c.typ, set.name, done, *subBlocks)
				}
			}
			t.Logf("%v %s: %d sub-blocks, none differs, seed %d, %.0f s", c.typ, set.name, compared, *paritySeed, time.Since(start).Seconds())
		}
	}
}

func onesOf(n int) []float32 {
	w := make([]float32, n)
	for i := range w {
		w[i] = 1
	}
	return w
}

// randomRow fills x.
func randomRow(r *rand.Rand, x []float32) {
	scale := float32(0.02)
	switch r.IntN(8) {
	case 0:
		copy(x, parityRow(r, len(x), -1))
		return
	case 1:
		scale = float32(math.Exp(10 * r.NormFloat64()))
	}
	for i := range x {
		x[i] = float32(r.NormFloat64()) * scale
	}
	switch r.IntN(6) {
	case 4: // small integers, which tie, and are between levels at some scales
		if scale < 1e6 {
			for i := range x {
				x[i] = float32(r.IntN(31)-15) * scale
			}
		}
	case 5: // runs of equal values
		for i := range x {
			if r.IntN(3) > 0 && i > 0 {
				x[i] = x[i-1]
			}
		}
	case 0: // BF16
		for i := range x {
			x[i] = math.Float32frombits(math.Float32bits(x[i]) &^ 0xFFFF)
		}
	case 1: // values that differ by the last bits only, next to others
		for i := range x {
			if r.IntN(4) == 0 {
				x[i] = math.Float32frombits(math.Float32bits(x[i&^7]) ^ r.Uint32()&31)
			}
		}
	case 2: // heavy tails
		if scale < 1e6 {
			for i := range x {
				x[i] *= x[i] * x[i]
			}
		}
	}
}
