package calibrate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ggforge/gguf"
	"ggforge/quants"
	"ggforge/quants/parts"
)

// correlated returns rows of inputs whose columns depend on each other.
func correlated(r *rand.Rand, rows, n int) []float32 {
	hidden := make([]float64, max(1, n/8))
	mix := make([]float64, n*len(hidden))
	for i := range mix {
		mix[i] = r.NormFloat64() / math.Sqrt(float64(len(hidden)))
	}
	x := make([]float32, rows*n)
	for t := range rows {
		for i := range hidden {
			hidden[i] = r.NormFloat64()
		}
		for c := range n {
			v := 0.7 * r.NormFloat64()
			for i, h := range hidden {
				v += float64(h * mix[c*len(hidden)+i])
			}
			x[t*n+c] = float32(v)
		}
	}
	return x
}

// moments returns the second moments of made-up inputs.
func moments(t testing.TB, n, rows, workers int) *Moments {
	in := NewMomentSums(n, workers)
	x := correlated(rand.New(rand.NewPCG(5, 6)), rows, n)
	for cut := 100; len(x) > 0; cut += 77 { // in runs of different lengths
		k := min(cut*n, len(x))
		if err := in.Add(context.Background(), x[:k]); err != nil {
			t.Fatal(err)
		}
		x = x[k:]
	}
	m, err := in.Moments(context.Background(), 0.01)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// weights returns made-up weights.
func weights(n int) []float32 {
	r := rand.New(rand.NewPCG(7, 8))
	w := make([]float32, n)
	for i := range w {
		w[i] = float32(r.NormFloat64()) * 0.02
	}
	return w
}

// TestMoments compares the moments with sums in float64.
func TestMoments(t *testing.T) {
	const n, rows = 130, 1100
	x := correlated(rand.New(rand.NewPCG(5, 6)), rows, n)
	m := moments(t, n, rows, 2)
	mean := 0.0
	at := func(i, k int) (s float64) {
		for r := range rows {
			s += float64(x[r*n+i]) * float64(x[r*n+k]) / rows
		}
		return s
	}
	for i := range n {
		mean += at(i, i) / n
	}
	for i := range n {
		for k := range n {
			want := at(i, k)
			if i == k {
				want += 0.01 * mean
			}
			if got := float64(m.h[i*n+k]); math.Abs(got-want) > 1e-5*mean {
				t.Fatalf("columns %d and %d: %v, want %v", i, k, got, want)
			}
		}
	}
}

// errorOf returns the error of encoded rows, summed in float64.
func errorOf(t *testing.T, m *Moments, typ gguf.Type, w []float32, data []byte) (sum float64) {
	v := make([]float32, len(w))
	if err := quants.Lookup(typ).Dequantize(v, data); err != nil {
		t.Fatal(err)
	}
	for r := 0; r < len(w); r += m.n {
		for i := range m.n {
			for k := range m.n {
				sum += (float64(v[r+i]) - float64(w[r+i])) * float64(m.h[i*m.n+k]) * (float64(v[r+k]) - float64(w[r+k]))
			}
		}
	}
	return sum
}

// TestRows checks that the reported errors are right, that they are well below the errors of the
// reference's blocks, and that blocks have the same bytes in every build and with any number
// of workers.
func TestRows(t *testing.T) {
	ctx := context.Background()
	const n, rows = 512, 2
	m, w := moments(t, n, 700, 2), weights(n*rows)
	for _, c := range []struct {
		typ             gguf.Type
		descent, fed    float64 // the largest share of the initial error that may remain, without and with feedback
		descends, feeds string
	}{
		{gguf.TypeQ2_K, 0.40, 0.38, "d87aaa215826", "ae7d21531128"},
		{gguf.TypeQ3_K, 0.42, 0.36, "368ec57cb8a9", "ca82ad75f7d1"},
		{gguf.TypeQ4_K, 0.46, 0.40, "ac6bc307c5ec", "f3b0ddf8d67d"},
		{gguf.TypeQ5_K, 0.47, 0.42, "269d56595e9b", "3304779a834a"},
		{gguf.TypeQ6_K, 0.43, 0.40, "8341da5cbf26", "18904f2e14ae"},
		{gguf.TypeQ4_0, 0.41, 0.34, "a8983c483410", "f14533bf4519"},
		{gguf.TypeQ4_1, 0.48, 0.38, "b78547051775", "9c394d942f79"},
		{gguf.TypeQ5_0, 0.41, 0.34, "d23598a01748", "a795f6f27c56"},
		{gguf.TypeQ5_1, 0.51, 0.38, "18fdccec3032", "710dcd873ab3"},
		{gguf.TypeQ8_0, 0.39, 0.31, "0b121ccf7e67", "0aaabfb2da38"},
		{gguf.TypeIQ4_XS, 0.48, 0.42, "8554226c8b88", "9685d8a2b663"},
		{gguf.TypeIQ4_NL, 0.42, 0.34, "1609f206c599", "2f84fe90fc32"},
		{gguf.TypeNVFP4, 0.36, 0.31, "4d8d51b5e82a", "1f4cd04f3a20"},
		{gguf.TypeQ1_0, 0.44, 0.44, "a520ccb4706d", "7605a805e985"},
		{gguf.TypeQ2_0, 0.29, 0.32, "d0915369dcab", "b215a84fc4e6"},
		{gguf.TypeTQ1_0, 0.23, 0.24, "1a41824ecf9b", "82e10ad200ec"},
		{gguf.TypeTQ2_0, 0.23, 0.24, "559fc30fe441", "e0173ea4fd29"},
		{gguf.TypeIQ1_S, 0.32, 0.28, "91bf2af78049", "dc414ab02ef9"},
		{gguf.TypeIQ1_M, 0.34, 0.28, "57800392d0c2", "8da11b3ed8ab"},
		{gguf.TypeIQ2_XXS, 0.46, 0.42, "667e19b76bc7", "b9b9355061c5"},
		{gguf.TypeIQ2_XS, 0.44, 0.38, "90f655cc9402", "e13cdfbd77e9"},
		{gguf.TypeIQ2_S, 0.41, 0.33, "11cc6e0a1809", "b7ce4644817a"},
		{gguf.TypeIQ3_XXS, 0.44, 0.36, "1d0d33d14c27", "aa41b939d664"},
		{gguf.TypeIQ3_S, 0.39, 0.35, "b6e6a5e88f1c", "029529042d3f"},
		{gguf.TypeMXFP4, 0.31, 0.26, "e93598493969", "4d7310562c3f"},
	} {
		start := make([]byte, gguf.DataBytes(c.typ, []int64{n, rows}))
		if err := quants.Lookup(c.typ).Quantize(start, w, n, m.Diagonal()); err != nil {
			t.Fatal(err)
		}
		for _, feedback := range []bool{false, true} {
			var first []byte
			for _, workers := range []int{1, 3} {
				data := bytes.Clone(start)
				d := &CoordinateDescent{Format: parts.Of(c.typ), Moments: m, Passes: 6, Workers: workers,
					Feedback: feedback}
				res, err := d.Rows(ctx, w, data)
				if err != nil {
					t.Fatal(err)
				}
				if first == nil {
					first = data
				}
				if !bytes.Equal(data, first) {
					t.Errorf("%v, %d workers: other bytes", c.typ, workers)
				}
				most, want := c.descent, c.descends
				if feedback {
					most, want = c.fed, c.feeds
				}
				if res.After > most*res.Before {
					t.Errorf("%v: %.4f of the error, want %v", c.typ, res.After/res.Before, most)
				}
				for at, e := range map[*[]byte]float64{&start: res.Before, &data: res.After} {
					if exact := errorOf(t, m, c.typ, w, *at); math.Abs(exact-e) > 1e-4*exact {
						t.Errorf("%v: error %v, want %v", c.typ, e, exact)
					}
				}
				if got := fmt.Sprintf("%x", sha256.Sum256(data))[:12]; got != want {
					t.Errorf("%v, feedback %v: blocks %s, want %s (%.4f)", c.typ, feedback, got, want,
						res.After/res.Before)
				}
			}
		}
	}
}

// TestNeverWorse checks that the error does not grow where it can hardly get smaller: zeros, weights
// that the type represents exactly, a single weight, very small and very large ones.
func TestNeverWorse(t *testing.T) {
	ctx := context.Background()
	const n = 256
	m := moments(t, n, 600, 1)
	for _, typ := range []gguf.Type{gguf.TypeQ2_K, gguf.TypeQ4_K, gguf.TypeQ6_K, gguf.TypeQ4_0, gguf.TypeIQ4_XS,
		gguf.TypeMXFP4, gguf.TypeNVFP4, gguf.TypeTQ1_0,
		gguf.TypeIQ1_S, gguf.TypeIQ1_M, gguf.TypeIQ2_XXS, gguf.TypeIQ2_S, gguf.TypeIQ3_XXS, gguf.TypeIQ3_S} {
		for name, fill := range map[string]func(w []float32){
			"zeros": func(w []float32) { clear(w) },
			"steps": func(w []float32) { copy(w, weights(n)) },
			"tiny":  func(w []float32) { w[3] = 1e-40 },
			"one":   func(w []float32) { w[7] = 3 },
			"equal": func(w []float32) {
				for i := range w {
					w[i] = 0.5
				}
			},
			"largest": func(w []float32) { w[0], w[100] = 6e4, -6e4 },
		} {
			w := make([]float32, n)
			fill(w)
			data := make([]byte, gguf.DataBytes(typ, []int64{n}))
			encode := func() {
				if err := quants.Lookup(typ).Quantize(data, w, n, m.Diagonal()); err != nil {
					t.Fatal(err)
				}
			}
			if encode(); name == "steps" { // values that the type represents exactly
				if err := quants.Lookup(typ).Dequantize(w, data); err != nil {
					t.Fatal(err)
				}
				encode()
			}
			before := errorOf(t, m, typ, w, data)
			d := &CoordinateDescent{Format: parts.Of(typ), Moments: m, Passes: 4, Workers: 1, Feedback: true}
			if _, err := d.Rows(ctx, w, data); err != nil {
				t.Fatal(err)
			}
			if after := errorOf(t, m, typ, w, data); !(after <= before*(1+1e-6)) {
				t.Errorf("%v, %s: error %v, was %v", typ, name, after, before)
			}
		}
	}
}

// TestTraces checks tr(D) of moments whose factors are known: all columns share one term of variance 1,
// so the variance of a column given k others is own + own/(own+k).
func TestTraces(t *testing.T) {
	const n, own = 64, 0.25
	m := identity(n)
	for i := range m.h {
		m.h[i] = 1
	}
	want := 0.0
	for i := range n {
		m.h[i*n+i] = 1 + own
		want += own + own/(own+float64(i))
	}
	d := &CoordinateDescent{Format: parts.Of(gguf.TypeQ4_0), Moments: m, Passes: 1}
	w := make([]float32, n)
	data := make([]byte, d.Format.Type.RowBytes(n))
	for _, feedback := range []bool{false, true} {
		d.Feedback = feedback
		if _, err := d.Rows(context.Background(), w, data); err != nil {
			t.Fatal(err)
		}
		got := d.traces()
		if ok := math.Abs(got.d-want) < 1e-3 && got.h == n*(1+own); feedback && !ok || !feedback && got != (traces{}) {
			t.Errorf("feedback %v: %+v, want %v and %v", feedback, got, want, n*(1+own))
		}
	}
}
