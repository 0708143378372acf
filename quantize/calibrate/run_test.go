package calibrate

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"ggforge/convert"
	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/model"
	"ggforge/quants"
	"ggforge/rows"
	"ggforge/test/hftest"
)

// text is made-up tokens.
func text(n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(300 + i*7919%3000)
	}
	return ids
}

func open(t *testing.T) *model.Model {
	m, _, err := convert.Open(context.Background(), "../../test/testdata/gollama", convert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// TestRun checks that tensors with the same inputs get blocks of their own, for several types, with the same bytes for
// any number of workers, that errors are those by the moments that the test collects, and that no temporary files stay.
func TestRun(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels; it tests no kernel")
	}
	ctx := context.Background()
	m := open(t)
	var targets []Target
	for i := range m.Tensors {
		switch m.Tensors[i].Name {
		case "blk.1.attn_k.weight":
			targets = append(targets, Target{i, gguf.TypeQ2_K}, Target{i, gguf.TypeQ4_0}, Target{i, gguf.TypeQ2_K})
		case "blk.1.attn_v.weight", "blk.1.attn_output.weight":
			targets = append(targets, Target{i, gguf.TypeQ4_K})
		}
	}
	run := eval.Run{Tokens: text(3 * 128), Chunk: 128}
	dir := t.TempDir()
	var first map[Target][]byte
	workerCounts := []int{3, 1}
	if testing.Short() {
		workerCounts = workerCounts[:1]
	}
	for _, workers := range workerCounts {
		run.Workers = workers
		last, calls := 0.0, 0
		b, err := Run(ctx, m, targets, Options{Run: run, Dir: dir, Passes: 3, Feedback: true,
			Progress: func(done float64) {
				if done < last || last == 1 {
					t.Errorf("%v done after %v", done, last)
				}
				last, calls = done, calls+1
			}})
		if err != nil {
			t.Fatal(err)
		}
		if last != 1 || calls < 6+4 { // layers, matrices
			t.Errorf("%v done, %d calls", last, calls)
		}
		got := map[Target][]byte{}
		for _, target := range targets {
			s := b.Source(target)
			raw, err := s.Raw(new([]byte), 0, gguf.Rows(s.NE()))
			if err != nil {
				t.Fatal(err)
			}
			got[target] = bytes.Clone(raw)
		}
		if len(got) != 4 || len(b.Errors) != 4 {
			t.Fatalf("%d tensors and %d losses, want 4", len(got), len(b.Errors))
		}
		for target, raw := range got {
			if first != nil && !bytes.Equal(raw, first[target]) {
				t.Errorf("%v of %s: other bytes with %d workers", target.Type, m.Tensors[target.Tensor].Name, workers)
			}
		}
		first = got
		check(t, m, run, b, got, 0.6)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("leftover files: %v, %v", left, err)
	}
}

// check compares losses with errors by the moments of inputs: with more damping for embedding tensors that are also
// matrices of linear layers, and by the identity for those that are not. Losses have to be below most times those
// before.
func check(t *testing.T, m *model.Model, run eval.Run, b *Blocks, got map[Target][]byte, most float64) {
	inputs := map[string]*MomentSums{}
	run.Inputs = func(in eval.Inputs) error {
		if inputs[in.Name] == nil {
			inputs[in.Name] = NewMomentSums(in.Columns, 1)
		}
		return inputs[in.Name].Add(context.Background(), in.X)
	}
	e, err := eval.New(m)
	if err != nil {
		t.Fatal(err)
	}
	states, err := e.Forward(context.Background(), run)
	if err == nil {
		err = run.Inputs(states.Inputs())
	}
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*Moments{}
	for _, l := range b.Errors {
		x, count := &m.Tensors[l.Tensor], 0
		if in := inputs[l.Name]; in != nil {
			count = in.Rows()
		}
		if all[l.Name] == nil {
			damping := 0.01
			if slices.Contains(e.EmbeddingTensors(), l.Name) {
				damping = 1
			}
			if all[l.Name] = identity(int(x.NE[0])); count > 0 {
				if all[l.Name], err = inputs[l.Name].Moments(context.Background(), damping); err != nil {
					t.Fatal(err)
				}
			}
		}
		n := gguf.Rows(x.NE)
		w := make([]float32, n*x.NE[0])
		if err := rows.Decode(x.Source, w, new([]byte), 0, n); err != nil {
			t.Fatal(err)
		}
		exact := errorOf(t, all[l.Name], l.Type, w, got[l.Target])
		if d := l.After - exact; l.Rows != count || d > 1e-4*exact || d < -1e-4*exact || !(l.After < most*l.Before) {
			t.Errorf("%s, %v: %+v, want an error of %v", l.Name, l.Type, l, exact)
		}
	}
}

// TestLookups checks embedding tensors and others outside layers, for a model whose embedding is its output matrix,
// too: their moments are those of all tokens, however these are split into blocks.
func TestLookups(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels; it tests no kernel")
	}
	ctx := context.Background()
	dir, err := hftest.Lookup("gemma4").Write(t.TempDir(), hftest.Variant{Seed: 1, DType: "BF16"})
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := convert.Open(ctx, dir, convert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var targets []Target
	for i := range m.Tensors {
		switch m.Tensors[i].Name {
		case "token_embd.weight", "per_layer_token_embd.weight", "per_layer_model_proj.weight", "blk.0.inp_gate.weight":
			targets = append(targets, Target{i, gguf.TypeQ4_0})
		}
	}
	run := eval.Run{Tokens: make([]int32, 2*1025), Chunk: 1025, Workers: 2}
	for i := range run.Tokens {
		run.Tokens[i] = int32(i * 7919 % 900)
	}
	b, err := Run(ctx, m, targets, Options{Run: run, Dir: t.TempDir(), Passes: 2, Feedback: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	got := map[Target][]byte{}
	for _, target := range targets {
		raw, err := b.Source(target).Raw(new([]byte), 0, gguf.Rows(m.Tensors[target.Tensor].NE))
		if err != nil {
			t.Fatal(err)
		}
		got[target] = bytes.Clone(raw)
	}
	if len(b.Errors) != 4 {
		t.Fatalf("%d losses, want 4", len(b.Errors))
	}
	check(t, m, run, b, got, 0.97)
}

// TestRunErrors checks invalid arguments.
func TestRunErrors(t *testing.T) {
	m := open(t)
	run := eval.Run{Tokens: text(64), Chunk: 64}
	target := Target{-1, gguf.TypeQ4_K}
	for i := range m.Tensors {
		if m.Tensors[i].Name == "blk.0.ffn_down.weight" {
			target.Tensor = i
		}
	}
	if _, err := Run(context.Background(), m, []Target{{target.Tensor, gguf.TypeQ8_K}},
		Options{Run: run, Dir: t.TempDir()}); !errors.Is(err, fault.Unsupported) ||
		!strings.Contains(err.Error(), "Q8_K") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, m, []Target{target}, Options{Run: run, Dir: t.TempDir()}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if _, err := Run(context.Background(), m, []Target{target}, Options{Run: run, Dir: "no/such/folder"}); err == nil {
		t.Error("a folder that is not there")
	}
}

// TestUnseen checks that experts that no token chose are encoded as without importance.
func TestUnseen(t *testing.T) {
	ctx := context.Background()
	dir, err := hftest.Lookup("mixtral").Write(t.TempDir(), hftest.Variant{Seed: 1, DType: "BF16"})
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := convert.Open(ctx, dir, convert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var targets []Target
	for i := range m.Tensors {
		if strings.HasSuffix(m.Tensors[i].Name, "ffn_down_exps.weight") {
			targets = append(targets, Target{i, gguf.TypeQ4_0})
		}
	}
	b, err := Run(ctx, m, targets, Options{Run: eval.Run{Tokens: []int32{5}, Chunk: 1}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, l := range b.Errors {
		x := &m.Tensors[l.Tensor]
		n, experts := gguf.Rows(x.NE), x.NE[2]
		w, plain := make([]float32, n*x.NE[0]), make([]byte, gguf.DataBytes(l.Type, x.NE))
		if err := rows.Decode(x.Source, w, new([]byte), 0, n); err != nil {
			t.Fatal(err)
		}
		if err := quants.Lookup(l.Type).Quantize(plain, w, int(x.NE[0]), nil); err != nil {
			t.Fatal(err)
		}
		got, err := b.Source(l.Target).Raw(new([]byte), 0, n)
		if err != nil {
			t.Fatal(err)
		}
		same, size := 0, len(plain)/int(experts)
		for e := range int(experts) {
			if bytes.Equal(got[e*size:][:size], plain[e*size:][:size]) {
				same++
			}
		}
		if l.Unseen == 0 || same != l.Unseen {
			t.Errorf("%s: %d of %d experts as without importance, %d unseen", l.Name, same, experts, l.Unseen)
		}
	}
	if len(b.Errors) == 0 {
		t.Error("no experts")
	}
}
