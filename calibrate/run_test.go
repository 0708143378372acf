package calibrate

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"ggforge/convert"
	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/hftest"
	"ggforge/model"
	"ggforge/quants"
	"ggforge/rows"
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
	m, _, err := convert.Open(context.Background(), "../testdata/gollama", convert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// TestRun checks that tensors that read the same get blocks of their own, at several types,
// with the same bytes for any number of workers, that errors are those of the moments that
// inputs have when they are collected here, and that nothing is left behind.
func TestRun(t *testing.T) {
	ctx := context.Background()
	m := open(t)
	var targets []Target
	for i := range m.Tensors {
		switch m.Tensors[i].Name {
		case "blk.1.attn_k.weight":
			targets = append(targets, Target{i, gguf.TypeQ2_K}, Target{i, gguf.TypeQ4_0}, Target{i, gguf.TypeQ2_K})
		case "blk.1.attn_v.weight", "blk.1.attn_output.weight":
			targets = append(targets, Target{i, gguf.TypeQ4_K})
		case "token_embd.weight": // has no input
			targets = append(targets, Target{i, gguf.TypeQ4_K})
		}
	}
	run := eval.Run{Tokens: text(3 * 128), Chunk: 128}
	dir := t.TempDir()
	var first map[Target][]byte
	for _, workers := range []int{1, 3} {
		run.Workers = workers
		b, err := Run(ctx, m, targets, Options{Run: run, Dir: dir, Passes: 3, Feedback: true})
		if err != nil {
			t.Fatal(err)
		}
		got := map[Target][]byte{}
		for _, target := range targets {
			s := b.Source(target)
			if m.Tensors[target.Tensor].Name == "token_embd.weight" {
				if s != nil {
					t.Error("the embedding has blocks")
				}
				continue
			}
			raw, err := s.Raw(new([]byte), 0, gguf.Rows(s.NE()))
			if err != nil {
				t.Fatal(err)
			}
			got[target] = bytes.Clone(raw)
		}
		if len(got) != 4 || len(b.Losses) != 4 {
			t.Fatalf("%d tensors and %d losses, want 4", len(got), len(b.Losses))
		}
		for target, raw := range got {
			if first != nil && !bytes.Equal(raw, first[target]) {
				t.Errorf("%v of %s: other bytes with %d workers", target.Type, m.Tensors[target.Tensor].Name, workers)
			}
		}
		first = got
		check(t, m, run, b, got)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func check(t *testing.T, m *model.Model, run eval.Run, b *Blocks, got map[Target][]byte) {
	inputs := map[string]*Inputs{}
	run.Inputs = func(in eval.Inputs) error {
		if inputs[in.Name] == nil {
			inputs[in.Name] = NewInputs(in.Columns, 1)
		}
		return inputs[in.Name].Add(context.Background(), in.X)
	}
	e, err := eval.New(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Forward(context.Background(), run); err != nil {
		t.Fatal(err)
	}
	all := map[string]*Moments{}
	for _, l := range b.Losses {
		x := &m.Tensors[l.Tensor]
		if all[l.Name] == nil {
			if all[l.Name], err = inputs[l.Name].Moments(context.Background(), 0.01); err != nil {
				t.Fatal(err)
			}
		}
		moments := all[l.Name]
		n := gguf.Rows(x.NE)
		w := make([]float32, n*x.NE[0])
		if err := rows.Decode(x.Source, w, new([]byte), 0, n); err != nil {
			t.Fatal(err)
		}
		exact := errorOf(t, moments, l.Type, w, got[l.Target])
		if d := l.After - exact; l.Rows != len(run.Tokens) || d > 1e-4*exact || d < -1e-4*exact || !(l.After < 0.6*l.Before) {
			t.Errorf("%s, %v: %+v, want an error of %v", l.Name, l.Type, l, exact)
		}
	}
}

// TestRunErrors checks what cannot be done.
func TestRunErrors(t *testing.T) {
	m := open(t)
	run := eval.Run{Tokens: text(64), Chunk: 64}
	target := Target{-1, gguf.TypeQ4_K}
	for i := range m.Tensors {
		if m.Tensors[i].Name == "blk.0.ffn_down.weight" {
			target.Tensor = i
		}
	}
	if _, err := Run(context.Background(), m, []Target{{target.Tensor, gguf.TypeIQ2_XXS}}, Options{Run: run, Dir: t.TempDir()}); !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "IQ2_XXS") {
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
	for _, l := range b.Losses {
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
	if len(b.Losses) == 0 {
		t.Error("no experts")
	}
}
