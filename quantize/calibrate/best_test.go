package calibrate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"ggforge/convert"
	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
	"ggforge/test/hftest"
	"ggforge/writer"
)

// TestTargetCorrection checks that the outputs of corrected rows for the quantized model's inputs are those of the
// original rows for the base's inputs, by float64 arithmetic, with the same bits in every build and with any number of
// workers.
func TestTargetCorrection(t *testing.T) {
	ctx := context.Background()
	const n, tokens, rows, columns = 300, 400, 3, 310
	x, y := make([]float32, tokens*columns), weights(tokens*columns)
	for i := range x {
		x[i] = y[i] + float32(0.1*y[(i+columns)%len(y)]) + float32(0.05*y[i/columns*columns])
	}
	for _, share := range []float64{1, 0.5} {
		var first []float32
		for _, workers := range []int{1, 3} {
			in, shift := NewMomentSums(n, workers), NewCrossMoments(n, workers)
			for at := 0; at < tokens; at += 150 {
				end := min(at+150, tokens)
				if err := in.AddColumns(ctx, y[at*columns:end*columns], columns, 7); err != nil {
					t.Fatal(err)
				}
				if err := shift.AddColumns(ctx, x[at*columns:end*columns], y[at*columns:end*columns], columns,
					7); err != nil {
					t.Fatal(err)
				}
			}
			m, err := in.Moments(ctx, 0.01)
			if err != nil {
				t.Fatal(err)
			}
			correction, err := NewTargetCorrection(ctx, m, shift, share)
			if err != nil {
				t.Fatal(err)
			}
			w := weights(rows * columns)
			if err := correction.CorrectTarget(ctx, w, columns, 7); err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = w
			} else if !slices.Equal(w, first) {
				t.Errorf("other weights with %d workers", workers)
			}
			// (w'-w) (H+λ) = share w C
			for r := range rows {
				from := weights(rows * columns)[r*columns:][:columns]
				to := w[r*columns:][:columns]
				off, size := 0.0, 0.0
				outputs := make([]float64, tokens)
				for tok := range tokens {
					for i := range n {
						outputs[tok] += float64(from[7+i]) * (float64(x[tok*columns+7+i]) - float64(y[tok*columns+7+i]))
					}
				}
				for k := range n {
					var have, want float64
					for i := range n {
						have += (float64(to[7+i]) - float64(from[7+i])) * float64(m.h[i*n+k])
					}
					for tok := range tokens {
						want += share * outputs[tok] * float64(y[tok*columns+7+k]) / tokens
					}
					off, size = off+(have-want)*(have-want), size+want*want
				}
				if !(off < 1e-8*size) {
					t.Errorf("row %d: %v from %v", r, math.Sqrt(off), math.Sqrt(size))
				}
				if !slices.Equal(to[:7], from[:7]) || !slices.Equal(to[7+n:], from[7+n:]) {
					t.Errorf("row %d: columns outside the range are changed", r)
				}
			}
		}
		want := map[float64]string{1: "57784cb28213", 0.5: "d99bb8a34c01"}[share]
		if got := sumOf(first); got != want {
			t.Errorf("share %v: weights %s, want %s", share, got, want)
		}
	}
}

// sumOf returns a hash of the bits of values.
func sumOf(v []float32) string {
	h := sha256.New()
	for _, x := range v {
		fmt.Fprintf(h, "%08x", math.Float32bits(x))
	}
	return fmt.Sprintf("%x", h.Sum(nil))[:12]
}

// made returns a small model with made-up weights.
func made(t *testing.T, name, set string) *model.Model {
	dir, err := hftest.Lookup(name).Write(t.TempDir(), hftest.Variant{Seed: 1, DType: "BF16", Set: set})
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

// as returns a copy of a model whose tensors have other types, given by parts of their names.
func as(m *model.Model, types map[string]gguf.Type) *model.Model {
	c := *m
	c.Tensors = slices.Clone(m.Tensors)
	for i := range c.Tensors {
		for part, typ := range types {
			if x := &c.Tensors[i]; strings.Contains(x.Name, part) {
				*x = model.New(x.Name, writer.Encoded(writer.Tensor{Name: x.Name, Type: typ,
					Source: m.Tensors[i].Source}))
			}
		}
	}
	return &c
}

// TestBest checks that later blocks correct the errors of earlier ones (the inputs of layer 1 are closer to the base's
// than without correction), and that the bytes do not depend on the number of workers.
func TestBest(t *testing.T) {
	ctx := context.Background()
	m := made(t, "llama", "")
	types := map[string]gguf.Type{}
	for _, name := range []string{"q", "k", "v", "output"} {
		types["blk.0.attn_"+name+".weight"] = gguf.TypeQ4_0
	}
	types["blk.0.ffn_down.weight"] = gguf.TypeQ4_0
	out := as(m, types)
	run := eval.Run{Tokens: text(6 * 128), Chunk: 128}
	for i, id := range run.Tokens {
		run.Tokens[i] = id % 100
	}
	dir := t.TempDir()
	distance, sums := map[float64]float64{}, map[float64]string{}
	for _, c := range []struct {
		workers int
		share   float64
	}{{1, 1}, {3, 1}, {3, 1e-9}} {
		run.Workers = c.workers
		b, err := Best(ctx, m, out, Options{Run: run, Dir: dir, Passes: 2, Feedback: true, Share: c.share})
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		chosen := *out
		chosen.Tensors = slices.Clone(out.Tensors)
		for _, l := range b.Errors {
			if !(l.After < 0.7*l.Before) || l.Rows != len(run.Tokens) {
				t.Errorf("%+v", l)
			}
			s := b.Source(l.Target)
			raw, err := s.Raw(new([]byte), 0, gguf.Rows(s.NE()))
			if err != nil {
				t.Fatal(err)
			}
			h.Write(raw)
			for i := range chosen.Tensors {
				if chosen.Tensors[i].Name == l.Name {
					chosen.Tensors[i].Source = s
				}
			}
		}
		if len(b.Errors) != 5 {
			t.Errorf("%d errors, want 5", len(b.Errors))
		}
		got := fmt.Sprintf("%x", h.Sum(nil))
		if first, ok := sums[c.share]; ok && got != first {
			t.Errorf("other bytes with %d workers", c.workers)
		}
		sums[c.share] = got
		distance[c.share] = apart(t, m, &chosen, run, "blk.1.attn_q.weight")
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !(distance[1] < 0.8*distance[1e-9]) {
		t.Errorf("inputs of layer 1 are %v from the base's, without correction %v", distance[1], distance[1e-9])
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("leftover files: %v, %v", left, err)
	}
}

// apart returns the sum of the squares of the differences between the inputs of a tensor in two models.
func apart(t *testing.T, base, m *model.Model, run eval.Run, tensor string) (sum float64) {
	var x [2][]float32
	for i, m := range []*model.Model{base, m} {
		e, err := eval.New(m)
		if err != nil {
			t.Fatal(err)
		}
		run.Inputs = func(in eval.Inputs) error {
			if in.Name == tensor {
				x[i] = append(x[i], in.X...)
			}
			return nil
		}
		if _, err := e.Forward(context.Background(), run); err != nil {
			t.Fatal(err)
		}
	}
	for i, v := range x[0] {
		sum += float64(v-x[1][i]) * float64(v-x[1][i])
	}
	return sum
}

// TestBestKinds checks models with experts, of which some are never chosen, with an embedding
// that is the output matrix, and with layers that have a state; with any number of workers,
// resuming with a part of an earlier run's state, and with results of the base that another
// output has shared.
func TestBestKinds(t *testing.T) {
	ctx := context.Background()
	for name, set := range map[string]string{"mixtral": "", "gemma": "", "mamba-codestral": ""} {
		m := made(t, name, set)
		types := map[string]gguf.Type{}
		for i := range m.Tensors {
			if x := &m.Tensors[i]; len(x.NE) > 1 && x.NE[0]%32 == 0 && !strings.Contains(x.Name, "norm") &&
				!strings.Contains(x.Name, "gate_inp") && !strings.Contains(x.Name, "ssm_conv") {
				types[x.Name] = gguf.TypeQ4_0
			}
		}
		var first []byte
		var found []TensorError
		state, shared := t.TempDir()+"/state", new(Shared)
		for workers, kept := range []float64{1: 0, 2: 0.15, 3: 0.6, 4: 0.05} { // share of the bytes of the state
			if workers == 0 {
				continue
			}
			opt := Options{Run: eval.Run{Tokens: []int32{5, 9}, Chunk: 2, Workers: workers}, Dir: t.TempDir(),
				Passes: 2, State: state}
			if workers > 1 {
				opt.Shared = shared
			}
			if kept > 0 {
				whole, err := os.ReadFile(state)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(state, whole[:int(kept*float64(len(whole)))], 0o666); err != nil {
					t.Fatal(err)
				}
			}
			b, err := Best(ctx, m, as(m, types), opt)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			defer b.Close()
			if found != nil && !slices.Equal(b.Errors, found) {
				t.Errorf("%s: other errors, resumed: %+v, want %+v", name, b.Errors, found)
			}
			found = b.Errors
			if len(b.Errors) != len(types) {
				t.Errorf("%s: %d tensors, want %d", name, len(b.Errors), len(types))
			}
			var all []byte
			unseen := 0
			for _, l := range b.Errors {
				if !(l.After <= l.Before) {
					t.Errorf("%s: %+v", name, l)
				}
				unseen += l.Unseen
				raw, err := b.Source(l.Target).Raw(new([]byte), 0, gguf.Rows(m.Tensors[l.Tensor].NE))
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, raw...)
			}
			if first != nil && !bytes.Equal(all, first) {
				t.Errorf("%s: other bytes with %d workers", name, workers)
			}
			first = all
			if (unseen > 0) != (name == "mixtral") {
				t.Errorf("%s: %d matrices without inputs", name, unseen)
			}
		}
		if (shared.moments != nil) != (name == "gemma") {
			t.Errorf("%s: moments of the output matrix: %v", name, shared.moments != nil)
		}
	}
}

// TestBestErrors checks invalid arguments.
func TestBestErrors(t *testing.T) {
	ctx := context.Background()
	m := open(t)
	opt := Options{Run: eval.Run{Tokens: text(64), Chunk: 64}, Dir: t.TempDir()}
	other := *m
	other.Tensors = slices.Clone(m.Tensors)
	other.Tensors[3].Name = "other"
	if _, err := Best(ctx, m, &other, opt); !errors.Is(err, fault.Unsupported) ||
		!strings.Contains(err.Error(), `"other"`) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Best(ctx, m, as(m, map[string]gguf.Type{"blk.0.attn_q": gguf.TypeQ4_0}), opt); !errors.Is(err,
		context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if left, err := os.ReadDir(opt.Dir); err != nil || len(left) > 0 {
		t.Errorf("leftover files: %v, %v", left, err)
	}
}

// TestReliable checks the share of a target correction on inputs whose errors are known functions of the inputs, chance,
// and the sum of both: the corrected rows have errors on other tokens that are close to the least that any share gives.
func TestReliable(t *testing.T) {
	ctx := context.Background()
	const n, runs, rows = 64, 4, 40
	for _, c := range []struct {
		name          string
		known, chance float32
		from, to      float32
	}{
		{"a function of the inputs", 0.1, 0, 0.98, 1},
		{"chance", 0, 0.1, 0, 0.3},
		{"both", 0.01, 0.1, 0.2, 0.7},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		y := make([]float32, (runs*runRows-100)*n)
		for i := range y {
			y[i] = float32(r.NormFloat64())
		}
		x := make([]float32, len(y))
		for i := range x {
			x[i] = y[i] + float32(c.known*y[i/n*n+(i+1)%n]) + float32(c.chance*float32(r.NormFloat64()))
		}
		in, shift := NewMomentSums(n, 1), NewCrossMoments(n, 1)
		if err := in.AddColumns(ctx, y, n, 0); err != nil {
			t.Fatal(err)
		}
		if err := shift.AddColumns(ctx, x, y, n, 0); err != nil {
			t.Fatal(err)
		}
		m, err := in.Moments(ctx, 0.01)
		if err != nil {
			t.Fatal(err)
		}
		correction, err := NewTargetCorrection(ctx, m, shift, 1)
		if err != nil {
			t.Fatal(err)
		}
		w := weights(rows * n)
		z := make([]float32, rows*n)
		if err := correction.shift(ctx, z, correction.d, w, n, rows); err != nil {
			t.Fatal(err)
		}
		share, err := correction.reliable(ctx, z, w, n, rows)
		if err != nil {
			t.Fatal(err)
		}
		if !(share >= c.from && share <= c.to) {
			t.Errorf("%s: share %v, want %v to %v", c.name, share, c.from, c.to)
		}
	}
}
