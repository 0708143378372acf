package calibrate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"ggforge/eval"
	"ggforge/gguf"
	"ggforge/quants"
	"ggforge/quants/parts"
)

// TestTwoSided checks that encoding rows from last to first, each with a target that compensates the errors of those
// before it, makes tr(E H Eᵀ G) smaller than encoding them alone, with the same bytes for any number of workers, and
// that w becomes E.
func TestTwoSided(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		typ  gguf.Type
		rows int
		most float64 // share of the error that may be left
	}{{gguf.TypeQ4_0, 70, 0.65}, {gguf.TypeQ4_K, 600, 0.55}, {gguf.TypeQ2_K, 64, 0.7}, {gguf.TypeIQ3_XXS, 64, 0.7}} {
		const n = 256
		w := weights(c.rows * n)
		perRow := int(c.typ.RowBytes(n))
		var first []byte
		for _, workers := range []int{1, 3} {
			h, g := moments(t, n, 500, workers), moments(t, c.rows, 700, workers)
			g.damp(outputDamping)
			d := &CoordinateDescent{Format: parts.Of(c.typ), Moments: h, Passes: 2, Workers: workers, Feedback: true}
			encode := func(w []float32, data []byte, n int) error {
				if err := quants.Lookup(c.typ).Quantize(data, w, n, h.Diagonal()); err != nil {
					return err
				}
				_, err := d.Rows(ctx, w, data)
				return err
			}
			alone, both := make([]byte, c.rows*perRow), make([]byte, c.rows*perRow)
			if err := encode(w, alone, n); err != nil {
				t.Fatal(err)
			}
			x, err := newTwoSided(ctx, g, workers)
			if err != nil {
				t.Fatal(err)
			}
			e := slices.Clone(w)
			if err := x.encode(ctx, c.typ, e, both, n, encode); err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = both
			} else if !bytes.Equal(first, both) {
				t.Errorf("%v: other bytes with %d workers", c.typ, workers)
			}
			v := make([]float32, c.rows*n)
			if err := quants.Lookup(c.typ).Dequantize(v, both); err != nil {
				t.Fatal(err)
			}
			for i := range v {
				if v[i] = w[i] - v[i]; v[i] != e[i] {
					t.Fatalf("%v: error %d is %v, want %v", c.typ, i, e[i], v[i])
				}
			}
			after := form(e, h, g)
			if err := quants.Lookup(c.typ).Dequantize(v, alone); err != nil {
				t.Fatal(err)
			}
			for i := range v {
				v[i] = w[i] - v[i]
			}
			before := form(v, h, g)
			t.Logf("%v, %d rows: %.3f", c.typ, c.rows, after/before)
			if !(after < c.most*before) {
				t.Errorf("%v: error %v, want %v times that of rows alone, %v", c.typ, after, c.most, before)
			}
			canceled, cancel := context.WithCancel(ctx)
			cancel()
			if err := x.encode(canceled, c.typ, e, make([]byte, len(both)), n, encode); !errors.Is(err, context.Canceled) {
				t.Errorf("canceled: %v", err)
			}
		}
	}
}

// form returns tr(E H Eᵀ G).
func form(e []float32, h, g *Moments) (sum float64) {
	n, m := h.n, g.n
	eh := make([]float64, m*n)
	for r := range m {
		for c := range n {
			if x := float64(e[r*n+c]); x != 0 {
				for k, v := range h.h[c*n:][:n] {
					eh[r*n+k] += x * float64(v)
				}
			}
		}
	}
	for r := range m {
		for s := range m {
			dot := 0.0
			for k, v := range eh[r*n:][:n] {
				dot += v * float64(e[s*n+k])
			}
			sum += dot * float64(g.h[r*m+s])
		}
	}
	return sum
}

// TestOutputMoments checks sums of gradients that come in groups of chunks, layer by layer, against sums in one go.
func TestOutputMoments(t *testing.T) {
	ctx := context.Background()
	opt := Options{Dir: t.TempDir(), MaxRows: 20}
	opt.defaults()
	o, err := newOutputMoments(&opt, func(name string) bool { return name != "blk.0.no.weight" })
	if err != nil {
		t.Fatal(err)
	}
	const n, tokens = 50, 30
	all := map[key][]float32{}
	for pass := range 3 {
		for i, in := range []eval.Inputs{{Name: "output.weight"}, {Name: "blk.1.a.weight"}, {Name: "blk.0.a.weight"},
			{Name: "blk.0.e.weight", Matrix: 1, Routed: true}, {Name: "blk.0.e.weight", Matrix: 2, Routed: true},
			{Name: "blk.0.no.weight"}, {Name: "blk.0.a.weight"}} {
			in.Rows = tokens
			g := weights(tokens*n + 13*i + pass)[13*i+pass:]
			if err := o.add(ctx, eval.LinearGradient{Inputs: in, G: g}); err != nil {
				t.Fatal(err)
			}
			k := key{in.Name, in.Matrix}
			all[k] = append(all[k], g...)
		}
	}
	if err := o.flush(ctx); err != nil {
		t.Fatal(err)
	}
	for k, g := range all {
		s := o.of(k, n)
		if (s == nil) != (k.name == "output.weight" || k.name == "blk.0.no.weight") {
			t.Errorf("%v: %v", k, s)
		}
		if s == nil {
			continue
		}
		if o.of(k, n+1) != nil {
			t.Errorf("%v: moments of a matrix of other shape", k)
		}
		for part := range 3 {
			m, err := o.moments(ctx, s, part)
			if err != nil {
				t.Fatal(err)
			}
			at, size := part*20, min(20, n-part*20)
			if m.n != size {
				t.Fatalf("%v: %d rows, want %d", k, m.n, size)
			}
			want := make([]float64, size*size)
			for r := range want {
				for at := at; at < len(g); at += n {
					want[r] += float64(g[at+r/size]) * float64(g[at+r%size]) / float64(len(g)/n)
				}
			}
			mean := 0.0
			for r := range size {
				mean += want[r*size+r] / float64(size)
			}
			for r := range size {
				want[r*size+r] += max(outputDamping, float64(size)/float64(len(g)/n)) * mean
			}
			for i, x := range m.h {
				if !(math.Abs(float64(x)-want[i]) < 1e-5*mean) {
					t.Fatalf("%v: element %d is %v, want %v", k, i, x, want[i])
				}
			}
		}
	}
	if err := o.close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(opt.Dir); err != nil || len(left) > 0 {
		t.Errorf("leftover files: %v, %v", left, err)
	}
}

// TestBestTwoSided checks that bytes with gradients depend neither on the number of workers nor on what other outputs
// share, that matrices of more rows are cut, and that gradients change bytes of tensors in layers.
func TestBestTwoSided(t *testing.T) {
	ctx := context.Background()
	m := made(t, "mixtral", "")
	out := as(m, map[string]gguf.Type{"ffn": gguf.TypeQ4_0, "attn_q.": gguf.TypeQ4_0})
	run := eval.Run{Tokens: text(4 * 64), Chunk: 64}
	for i, id := range run.Tokens {
		run.Tokens[i] = id % 100
	}
	sums, dir := map[string]bool{}, t.TempDir()
	for _, c := range []struct{ gradients, rows int }{{0, 0}, {4, 0}, {4, 24}} {
		shared := new(Shared)
		first := ""
		for workers := 1; workers <= 3; workers++ {
			run.Workers = workers
			opt := Options{Run: run, Dir: dir, Passes: 2, Feedback: true, Gradients: c.gradients, MaxRows: c.rows}
			if workers > 1 {
				opt.Shared = shared
			}
			b, err := Best(ctx, m, out, opt)
			if err != nil {
				t.Fatal(err)
			}
			h := sha256.New()
			for _, l := range b.Errors {
				s := b.Source(l.Target)
				raw, err := s.Raw(new([]byte), 0, gguf.Rows(s.NE()))
				if err != nil {
					t.Fatal(err)
				}
				h.Write(raw)
				if !(l.After <= l.Before) {
					t.Errorf("%+v", l)
				}
			}
			if got := fmt.Sprintf("%x", h.Sum(nil)); first == "" {
				first = got
			} else if got != first {
				t.Errorf("%+v: other bytes with %d workers", c, workers)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := shared.Close(); err != nil {
			t.Fatal(err)
		}
		if sums[first] {
			t.Errorf("%+v: the same bytes as with other options", c)
		}
		sums[first] = true
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("leftover files: %v, %v", left, err)
	}
}
