package calibrate

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
	"ggforge/rows"
	"ggforge/writer"
)

// coarse returns a model with its matrices at a type, and with every other weight of norms a fifth too large, which is
// more to correct than such errors of matrices.
func coarse(t *testing.T, m *model.Model, typ gguf.Type) *model.Model {
	t.Helper()
	out := *m
	out.Tensors = slices.Clone(m.Tensors)
	for i := range out.Tensors {
		x := &out.Tensors[i]
		if len(x.NE) == 1 && strings.HasSuffix(x.Name, "norm.weight") {
			w := &normWeights{NE: x.NE, First: make([]float32, x.Elements())}
			if err := rows.Decode(x.Source, w.First, new([]byte), 0, 1); err != nil {
				t.Fatal(err)
			}
			off := make([]float64, len(w.First))
			for i := range off {
				off[i] = 0.2 * float64(i%2)
			}
			x.Source = w.source(off)
		}
		if len(x.NE) == 2 && x.NE[0]%typ.BlockLen() == 0 && !strings.Contains(x.Name, "gate_inp") {
			x.Type, x.Source = typ, writer.Encoded(writer.Tensor{Name: x.Name, Type: typ, Source: x.Source})
		}
	}
	return &out
}

// normsOf returns the tuned weights of a model, by tensor.
func normsOf(t *testing.T, n *Norms) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, name := range n.Tensors() {
		s := n.Source(name)
		raw, err := s.Raw(new([]byte), 0, gguf.Rows(s.NE()))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = slices.Clone(raw)
	}
	return all
}

// TestTuneNorms checks that the divergence falls on chunks that no step has seen, by the weights of norms alone; that
// the result depends neither on workers nor on an interruption; and that it is what an evaluation of the model finds.
func TestTuneNorms(t *testing.T) {
	ctx := context.Background()
	m := write(t, "mixtral")
	out := coarse(t, m, gguf.TypeQ4_0)
	run := eval.Run{Tokens: text(16 * 32), Chunk: 32, Workers: 1}
	for i := range run.Tokens {
		run.Tokens[i] %= 500
	}
	opt := NormOptions{Run: run, Steps: 20, StepTokens: 128, Rate: 0.02}
	found, err := TuneNorms(ctx, m, out, opt)
	if err != nil {
		t.Fatal(err)
	}
	if found.Step == 0 || !(found.After < found.Before) || found.Steps != 20 || found.Tokens != 2*32 {
		t.Fatalf("%+v", found)
	}
	norms := normsOf(t, found)
	tuned := *out
	tuned.Tensors = slices.Clone(out.Tensors)
	for i := range tuned.Tensors {
		x := &tuned.Tensors[i]
		if (len(x.NE) == 1 && strings.HasSuffix(x.Name, "norm.weight")) != (norms[x.Name] != nil) {
			t.Errorf("%s: tuned: %v", x.Name, norms[x.Name] != nil)
		}
		if s := found.Source(x.Name); s != nil {
			x.Source = s
		}
	}
	held := opt.Run
	held.Tokens, _ = holdApart(&held)
	b, err := eval.New(m)
	if err != nil {
		t.Fatal(err)
	}
	e, err := eval.New(&tuned)
	if err != nil {
		t.Fatal(err)
	}
	if err := eval.Compare(ctx, b, []*eval.Model{e}, held, func(_ int, c *eval.Comparison) error {
		if c.Divergence.Mean != found.After {
			t.Errorf("divergence %v, want %v", c.Divergence.Mean, found.After)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}

	same := func(what string, opt NormOptions) {
		t.Helper()
		again, err := TuneNorms(ctx, m, out, opt)
		if err != nil {
			t.Fatal(err)
		}
		if again.After != found.After || again.Error != found.Error || again.Step != found.Step {
			t.Errorf("%s: %+v, want %+v", what, again, found)
		}
		for name, data := range normsOf(t, again) {
			if !bytes.Equal(data, norms[name]) {
				t.Errorf("%s: %s has other weights", what, name)
			}
		}
	}
	opt.Run.Workers = 3
	same("3 workers", opt)

	// interrupted after the first steps that are kept in the state file
	opt.State = filepath.Join(t.TempDir(), "x.partial.norms")
	stopped, stop := context.WithCancel(ctx)
	opt.Progress = func(float64) {
		if _, err := os.Stat(opt.State); err == nil {
			stop()
		}
	}
	if _, err := TuneNorms(stopped, m, out, opt); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: %v", err)
	}
	steps := 0
	opt.Progress = func(float64) { steps++ }
	same("resumed", opt)
	if steps != 2+12+2+1 { // measured twice at first, then twelve steps, measured twice, the end
		t.Errorf("resumed with %d calls of Progress", steps)
	}
	if normsKind.Magic() != writer.NormsMagic {
		t.Errorf("state files begin with %q, want %q", normsKind.Magic(), writer.NormsMagic)
	}
	opt.Rate = 0.01
	if _, err := TuneNorms(ctx, m, out, opt); !errors.Is(err, fault.Refused) {
		t.Errorf("state of another run: %v", err)
	}
	if err := RemoveNormsState(opt.State); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(opt.State)); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestTuneNormsKeepsNone checks that norms stay as they are where no step helps, and errors.
func TestTuneNormsKeepsNone(t *testing.T) {
	ctx := context.Background()
	m := write(t, "llama")
	run := eval.Run{Tokens: text(3 * 32), Chunk: 32}
	for i := range run.Tokens {
		run.Tokens[i] %= 500
	}
	found, err := TuneNorms(ctx, m, m, NormOptions{Run: run, Steps: 2})
	if err != nil {
		t.Fatal(err)
	}
	if found.Step != 0 || found.After != found.Before || len(found.Tensors()) > 0 ||
		found.Source("output_norm.weight") != nil {
		t.Errorf("the base itself: %+v", found)
	}
	run.Tokens = run.Tokens[:32]
	if _, err := TuneNorms(ctx, m, m, NormOptions{Run: run}); !errors.Is(err, fault.Refused) {
		t.Errorf("one chunk: %v", err)
	}
	out := *m
	out.Tensors = slices.Clone(m.Tensors)
	for i := range out.Tensors {
		if x := &out.Tensors[i]; x.Name == "output_norm.weight" {
			v := make([]byte, 4*x.Elements())
			for i := 2; i < len(v); i += 4 {
				v[i], v[i+1] = 0x80, 0xff // NaN
			}
			x.Source = rows.Stored(x.NE, gguf.TypeF32, v, nil)
		}
	}
	run.Tokens = text(2 * 32)
	for i := range run.Tokens {
		run.Tokens[i] %= 500
	}
	if _, err := TuneNorms(ctx, m, &out, NormOptions{Run: run}); err == nil {
		t.Error("weights that are not finite")
	}
}

// TestHoldApart checks which chunks are held apart.
func TestHoldApart(t *testing.T) {
	for _, c := range []struct {
		chunks, chunk int
		want          []int
	}{{1, 4, []int{0}}, {2, 4, []int{1}}, {7, 4, []int{3}}, {16, 4, []int{4, 12}}, {40, 4096, []int{10, 30}}} {
		r := eval.Run{Chunk: c.chunk}
		for i := range c.chunks {
			r.Tokens = append(r.Tokens, slices.Repeat([]int32{int32(i)}, c.chunk)...)
		}
		held, rest := holdApart(&r)
		var got []int
		for i := 0; i < len(held); i += c.chunk {
			got = append(got, int(held[i]))
		}
		if !slices.Equal(got, c.want) || len(held)+len(rest) != len(r.Tokens) {
			t.Errorf("%d chunks of %d: held apart are %v, want %v", c.chunks, c.chunk, got, c.want)
		}
	}
}
