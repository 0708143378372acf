package calibrate

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"ggforge/convert"
	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
	"ggforge/rows"
	"ggforge/test/hftest"
)

// TestSampleGradient checks that sampled gradients have the covariance of the Fisher information.
func TestSampleGradient(t *testing.T) {
	const n, times = 70, 8000 // more than a word of bits
	logits, p := make([]float32, n), make([]float64, n)
	sum := 0.0
	for i := range logits {
		logits[i] = float32(i%7) / 2
		p[i] = math.Exp(float64(logits[i]))
		sum += p[i]
	}
	got, d := make([]float64, n*n), make([]float32, n)
	for at := range times {
		if _, err := SampleGradient(at, logits, d); err != nil {
			t.Fatal(err)
		}
		for i, x := range d {
			for k, y := range d {
				got[i*n+k] += float64(x) * float64(y) / times
			}
		}
	}
	for i := range n {
		for k := range n {
			want := -p[i] * p[k] / sum / sum
			if i == k {
				want += p[i] / sum
			}
			if e := math.Abs(got[i*n+k] - want); e > 5*math.Sqrt(p[i]*p[k]/times)/sum {
				t.Errorf("places %d and %d: %v, want %v", i, k, got[i*n+k], want)
			}
		}
	}
	if _, err := SampleGradient(0, []float32{0, float32(math.NaN())}, d); err == nil {
		t.Error("logits that are not finite")
	}
}

// write makes a small model.
func write(t *testing.T, spec string) *model.Model {
	dir, err := hftest.Lookup(spec).Write(t.TempDir(), hftest.Variant{Seed: 1, DType: "BF16"})
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := convert.Open(context.Background(), dir, convert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// TestFisher compares Fisher with sums of the gradients that eval.Model.Backward reports, and checks the order of
// calls, and that bits depend neither on workers nor on how many chunks are processed at once.
func TestFisher(t *testing.T) {
	ctx := context.Background()
	m := write(t, "mixtral")
	run := eval.Run{Tokens: text(2 * 32), Chunk: 32}
	for i := range run.Tokens {
		run.Tokens[i] %= 500
	}
	type found struct {
		f, w []float32
	}
	all := func(workers, chunks int) (map[key]found, []string) {
		got, order := map[key]found{}, []string{}
		opt := FisherOptions{Run: run, Chunks: chunks, MaxColumns: 48}
		opt.Run.Workers = workers
		keep := func(name string, c *Curvature) {
			x := found{w: c.Weights}
			for _, f := range c.F {
				x.f = append(x.f, f.h...)
			}
			got[key{name, c.Matrix}] = x
			order = append(order, name)
		}
		opt.Linear = func(c *Curvature) error { keep(m.Tensors[c.Tensor].Name, c); return nil }
		rows, err := Fisher(ctx, m, opt)
		if err != nil {
			t.Fatal(err)
		}
		if !rows.Embedding {
			t.Errorf("%+v", rows)
		}
		keep("rows", rows)
		return got, order
	}
	first, order := all(1, 0)
	if layerOf(order[0]) != "" || order[len(order)-1] != "rows" ||
		!slices.IsSortedFunc(order, func(a, b string) int { return -compareLayers(a, b) }) {
		t.Errorf("order %v", order)
	}
	other, _ := all(3, 1)
	for k, x := range first {
		if y := other[k]; !slices.Equal(x.f, y.f) || !slices.Equal(x.w, y.w) {
			t.Errorf("%v: other bits", k)
		}
	}

	e, err := eval.New(m)
	if err != nil {
		t.Fatal(err)
	}
	want, weights := map[key][]float64{}, map[key][]float64{}
	n := float64(len(run.Tokens))
	_, err = e.Backward(ctx, eval.Gradients{Run: run, Loss: SampleGradient,
		Linear: func(in eval.LinearGradient) error {
			k, c, r := key{in.Name, in.Matrix}, in.Columns, len(in.G)/max(1, in.Rows)
			if want[k] == nil {
				want[k], weights[k] = make([]float64, c*c), make([]float64, r)
			}
			for t := range in.Rows {
				mean := 0.0
				for i, g := range in.G[t*r:][:r] {
					weights[k][i] += float64(g) * float64(g)
					mean += float64(g) * float64(g) / float64(r)
				}
				for i, x := range in.X[t*c:][:c] {
					for j, y := range in.X[t*c:][:c] {
						want[k][i*c+j] += mean * float64(x) * float64(y) / n
					}
				}
			}
			return nil
		},
		Embeddings: func(_ int, g []float32) error {
			k, c := key{"rows", 0}, len(g)/len(run.Tokens)
			want[k], weights[k] = make([]float64, c*c), make([]float64, e.Vocab())
			for t, id := range run.Tokens {
				weights[k][id] += float64(e.Vocab()) / n
				for i, x := range g[t*c:][:c] {
					for j, y := range g[t*c:][:c] {
						want[k][i*c+j] += float64(x) * float64(y) / n
					}
				}
			}
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for k, sums := range want {
		x, ok := first[k]
		if !ok {
			t.Fatalf("no curvature of %v", k)
		}
		seen++
		c := int(math.Sqrt(float64(len(sums))))
		if len(x.f) == len(sums) { // in one range
			trace := 0.0
			for i := range c {
				trace += sums[i*c+i]
			}
			for i, v := range sums {
				if math.Abs(v-float64(x.f[i])) > 1e-5*trace {
					t.Fatalf("%v: %v at %d, want %v", k, x.f[i], i, v)
				}
			}
		}
		mean := 0.0
		for _, v := range weights[k] {
			mean += v / float64(len(weights[k]))
		}
		if k.name == "rows" {
			mean = float64(e.Vocab())
		}
		for i, v := range weights[k] {
			if mean > 0 && math.Abs(v/mean-float64(x.w[i])) > 1e-5*(1+v/mean) {
				t.Fatalf("%v: weight %d is %v, want %v", k, i, x.w[i], v/mean)
			}
		}
	}
	if seen != len(first) {
		t.Errorf("%d matrices, want %d", len(first), seen)
	}

	if _, err := Fisher(ctx, write(t, "gemma4"),
		FisherOptions{Run: eval.Run{Tokens: text(32)[:32], Chunk: 32}}); !errors.Is(err, fault.Unsupported) {
		t.Errorf("a model without a backward pass: %v", err)
	}
}

// compareLayers compares the layers of names; tensors outside layers come after all of them,
// rows before.
func compareLayers(a, b string) int {
	number := func(s string) int {
		if s == "rows" {
			return -1
		}
		if layerOf(s) == "" {
			return 1000
		}
		return int(layerOf(s)[len("blk.")] - '0')
	}
	return number(a) - number(b)
}

// TestGradients checks that the blocks of an embedding are chosen by the loss that errors of its rows cause, also as
// an output matrix where the embeddings are tied, with the same bytes for any number of workers; and that a model
// without a backward pass has the blocks of Gradients 0, and reports that.
func TestGradients(t *testing.T) {
	ctx := context.Background()
	for spec, c := range map[string]struct{ tied, back bool }{"mixtral": {false, true}, "gemma": {true, true},
		"gemma4": {true, false}} {
		m := write(t, spec)
		run := eval.Run{Tokens: text(4 * 32), Chunk: 32, Workers: 1}
		for i := range run.Tokens {
			run.Tokens[i] %= 500
		}
		embed := slices.IndexFunc(m.Tensors, func(x model.Tensor) bool { return x.Name == "token_embd.weight" })
		tied := !slices.ContainsFunc(m.Tensors, func(x model.Tensor) bool { return x.Name == "output.weight" })
		target := Target{embed, gguf.TypeQ4_0}
		blocks := func(workers, gradients int) (TensorError, []byte, error) {
			opt := Options{Run: run, Dir: t.TempDir(), Feedback: true, Gradients: gradients}
			opt.Run.Workers = workers
			b, err := Run(ctx, m, []Target{target}, opt)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			raw, err := b.Source(target).Raw(new([]byte), 0, gguf.Rows(m.Tensors[embed].NE))
			if err != nil {
				t.Fatal(err)
			}
			return b.Errors[0], slices.Clone(raw), b.NoGradients
		}
		l, got, none := blocks(1, 2)
		if _, other, _ := blocks(3, 2); !slices.Equal(got, other) {
			t.Errorf("%s: other bytes with more workers", spec)
		}
		if l.Gradients != c.back || (none == nil) != c.back || tied != c.tied {
			t.Fatalf("%s: %+v, %v", spec, l, none)
		}
		if !c.back {
			if _, other, none := blocks(1, 0); none != nil || !slices.Equal(got, other) {
				t.Errorf("%s: %v, other bytes than without gradients", spec, none)
			}
			continue
		}
		part := run
		part.Tokens = slices.Concat(run.Tokens[:32], run.Tokens[2*32:3*32]) // 2 of 4 chunks
		var cost []float32
		found, err := Fisher(ctx, m, FisherOptions{Run: part, Clip: gradientClip, Linear: func(x *Curvature) error {
			if x.Tensor == embed {
				cost = x.F[0].h
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		f := found.F[0]
		if (cost != nil) != c.tied {
			t.Errorf("%s: the embedding as the output matrix: %v", spec, cost != nil)
		}
		for i := range cost {
			f.h[i] = f.h[i]/float32(gguf.Rows(m.Tensors[embed].NE)) + cost[i]
		}
		f.damp(rowDamping)
		w := make([]float32, m.Tensors[embed].NE[0]*gguf.Rows(m.Tensors[embed].NE))
		if err := rows.Decode(m.Tensors[embed].Source, w, new([]byte), 0, gguf.Rows(m.Tensors[embed].NE)); err != nil {
			t.Fatal(err)
		}
		if exact := errorOf(t, f, gguf.TypeQ4_0, w, got); math.Abs(exact-l.After) > 1e-3*exact ||
			!(l.After < 0.9*l.Before) {
			t.Errorf("%s: %+v, want an error of %v", spec, l, exact)
		}
	}
}

// TestClip checks that long rows get the length of the median, and that short ones, and those of rows most of which are
// 0, stay as they are.
func TestClip(t *testing.T) {
	for _, c := range []struct{ g, want []float32 }{
		{[]float32{3, 4, 30, -40, 0, 1, 6, 8, 0, 0}, []float32{3, 4, 3, -4, 0, 1, 3, 4, 0, 0}},
		{[]float32{0, 0, 0, 0, 3, 4}, []float32{0, 0, 0, 0, 3, 4}},
	} {
		g := slices.Clone(c.g)
		clip(g, 2, 1)
		for i, v := range g {
			if math.Abs(float64(v-c.want[i])) > 1e-6 {
				t.Errorf("%v: %v, want %v", c.g, g, c.want)
				break
			}
		}
	}
}

// TestGradientRun checks which tokens gradients are computed for.
func TestGradientRun(t *testing.T) {
	for _, c := range []struct{ chunk, chunks, n, wantChunk, wantChunks int }{
		{512, 20, 16, 64, 16}, {512, 4, 16, 256, 4}, {512, 1, 16, 512, 1}, {32, 4, 2, 32, 2}, {100, 7, 8, 74, 7},
	} {
		r := eval.Run{Chunk: c.chunk, Tokens: make([]int32, c.chunk*c.chunks)}
		for i := range r.Tokens {
			r.Tokens[i] = int32(i)
		}
		got := gradientRun(&r, c.n)
		if got.Chunk != c.wantChunk || got.Chunks() != c.wantChunks || len(got.Tokens) != c.wantChunk*c.wantChunks {
			t.Errorf("%+v: %d chunks of %d, %d tokens", c, got.Chunks(), got.Chunk, len(got.Tokens))
			continue
		}
		for i, id := range got.Tokens {
			if at := i / got.Chunk * c.chunks / got.Chunks() * c.chunk; int(id) != at+i%got.Chunk {
				t.Fatalf("%+v: token %d is %d", c, i, id)
			}
		}
	}
}
