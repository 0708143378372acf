package quants

import (
	"bytes"
	"cmp"
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
)

var (
	subBlocks = flag.Int("parity.subblocks", 2000,
		"how many sub-blocks of each type TestRandomParity compares; make parity-long has 100 million")
	parityTypes = flag.String("parity.types", "",
		"types that TestRandomParity compares, separated by commas; by default those whose searches leave out most")
	paritySeed = flag.Uint64("parity.seed", 1, "another seed makes TestRandomParity compare other sub-blocks")
)

// TestRandomParity compares encoders that leave out candidates which cannot win, by a bound or a look ahead, with
// encoders that try all candidates. The sub-blocks are random: normal, with heavy tails, of elements with 8 significant
// bits, of small integers or repeated elements, so that many are equal, and pieces of parityRow.
func TestRandomParity(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("compares vector kernels")
	}
	subs := map[gguf.Type]int{ // elements of a sub-block
		gguf.TypeIQ1_M: 16, gguf.TypeIQ2_XS: 16, gguf.TypeIQ2_S: 16, gguf.TypeQ2_K: 16, gguf.TypeQ3_K: 16,
		gguf.TypeQ6_K: 16,
	}
	types := []gguf.Type{gguf.TypeIQ1_S, gguf.TypeIQ1_M, gguf.TypeIQ2_XXS, gguf.TypeIQ2_XS, gguf.TypeIQ2_S,
		gguf.TypeIQ3_XXS, gguf.TypeIQ3_S, gguf.TypeQ3_K}
	if *parityTypes != "" {
		types = nil
		for name := range strings.SplitSeq(*parityTypes, ",") {
			typ, ok := gguf.ParseType(name)
			if !ok || !slices.Contains(codecTypes(), typ) {
				t.Fatalf("-parity.types: %q is no type that can be encoded", name)
			}
			types = append(types, typ)
		}
	}
	for _, typ := range types {
		sub := cmp.Or(subs[typ], 32)
		sets := fasterCodecs(typ)
		if len(sets) == 0 {
			t.Errorf("%v: no kernel but the scalar one is in use here", typ)
		}
		for _, set := range sets {
			start, fast, scalar := time.Now(), set.lookup(typ), scalarCodec(typ)
			r := rand.New(rand.NewPCG(*paritySeed, uint64(typ)))
			const n = 4 * 256
			x := make([]float32, n)
			got, want := make([]byte, fast.Type().RowBytes(n)), make([]byte, fast.Type().RowBytes(n))
			compared, tenth := 0, max(*subBlocks/10, 1_000_000) // log progress, for long runs that are stopped
			for ; compared < *subBlocks; compared += n / sub {
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
					t.Fatalf("%v %s, after %d sub-blocks: %s\nx %v\nimportance %v", typ, fast.Implementation(w != nil),
						compared, explainDiff(typ, got, want), x, w)
				}
				if done := compared + n/sub; done/tenth != compared/tenth && done < *subBlocks {
					t.Logf("%v %s: %d of %d sub-blocks so far", typ, set.name, done, *subBlocks)
				}
			}
			t.Logf("%v %s: %d sub-blocks, none differs, seed %d, %.0f s", typ, set.name, compared, *paritySeed,
				time.Since(start).Seconds())
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

// randomRow fills x with values of a random kind.
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
