package eval

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ggforge/eval/logprobs"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
	"ggforge/rows"
)

// save returns the file of a model's probabilities.
func save(t *testing.T, m *Model, r Run) *logprobs.File {
	t.Helper()
	var b bytes.Buffer
	p, err := m.SaveLogits(t.Context(), r, r.Tokens, &b)
	if err != nil {
		t.Fatal(err)
	}
	want, err := m.Perplexity(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.Losses, want.Losses) {
		t.Error("other losses with a file")
	}
	f, err := logprobs.New("base", bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestSavedSame checks that the file has the same bytes with any number of workers, and what has no file.
func TestSavedSame(t *testing.T) {
	m, err := New(made("llama", shape{}))
	if err != nil {
		t.Fatal(err)
	}
	var files [3]bytes.Buffer
	for i := range files { // more rows than are computed at once
		run := Run{Tokens: text(9 * 50), Chunk: 50, Workers: i + 1}
		if _, err := m.SaveLogits(t.Context(), run, run.Tokens, &files[i]); err != nil {
			t.Fatal(err)
		}
		layout, err := m.SavedLayout(run)
		if err != nil || layout.Size() != int64(files[i].Len()) || !bytes.Equal(files[i].Bytes(), files[0].Bytes()) {
			t.Errorf("%d workers: %d bytes, want %d: %v", i+1, files[i].Len(), layout.Size(), err)
		}
	}
	run := Run{Tokens: text(100), Chunk: 50}
	for name, r := range map[string]Run{
		"overlapping": {Tokens: run.Tokens, Chunk: 50, First: 10},
		"a rest":      {Tokens: text(101), Chunk: 50},
		"targets":     {Tokens: run.Tokens, Chunk: 50, Sources: [][]int32{{1}}, Lengths: []int{100}},
	} {
		if _, err := m.SaveLogits(t.Context(), r, r.Tokens, new(bytes.Buffer)); !errors.Is(err, fault.Usage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := m.SaveLogits(t.Context(), run, run.Tokens[1:], new(bytes.Buffer)); !errors.Is(err, fault.Usage) {
		t.Errorf("another text: %v", err)
	}
}

// TestCompareSaved compares models with a base and with its saved probabilities, which are as exact as 16 bits allow.
func TestCompareSaved(t *testing.T) {
	ctx := context.Background()
	run := Run{Tokens: text(4 * 50), Chunk: 50, Workers: 2}
	open := func(sh shape) *Model {
		m, err := New(made("llama", sh))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	base, near := open(shape{}), open(shape{change: func(m *model.Model) {
		for i := range m.Tensors {
			x := &m.Tensors[i]
			if x.Name != "blk.1.attn_v.weight" {
				continue
			}
			v := make([]float32, x.Elements())
			if err := rows.Decode(x.Source, v, new([]byte), 0, gguf.Rows(x.NE)); err != nil {
				t.Fatal(err)
			}
			for k := range v {
				v[k] *= 1.5
			}
			*x = model.New(x.Name, encoded(v, x.NE, gguf.TypeF32))
		}
	}})
	file := save(t, base, run)
	var want, got []*Comparison
	models := []*Model{near, base}
	if err := Compare(ctx, base, models, run,
		func(_ int, c *Comparison) error { want = append(want, c); return nil }); err != nil {
		t.Fatal(err)
	}
	file.Tokens[50]++ // where a chunk begins, the models see BOS
	if err := CompareSaved(ctx, file, models, run,
		func(_ int, c *Comparison) error { got = append(got, c); return nil }); err != nil {
		t.Fatal(err)
	}
	for i := range models {
		a, b := want[i], got[i]
		for name, v := range map[string][2]float64{"divergence": {a.Divergence.Mean, b.Divergence.Mean},
			"standard error": {a.Divergence.Error, b.Divergence.Error}, "ratio": {a.LogRatio.Mean, b.LogRatio.Mean},
			"base": {a.Base.Value, b.Base.Value}, "delta p": {a.DeltaP.Mean, b.DeltaP.Mean},
			"largest": {a.Quantiles[9], b.Quantiles[9]}, "top": {a.Top.Mean, b.Top.Mean}} {
			if math.Abs(v[0]-v[1]) > 2e-5*max(1, math.Abs(v[0])) {
				t.Errorf("model %d, %s: %v, from the file %v", i, name, v[0], v[1])
			}
		}
		if sum(&a.Model) != sum(&b.Model) {
			t.Errorf("model %d: other losses of its own", i)
		}
	}
	if !(want[0].Divergence.Mean > 1e-4) || want[1].Divergence.Mean != 0 {
		t.Errorf("divergences %v, %v", want[0].Divergence, want[1].Divergence)
	}
	for name, change := range map[string]func(r *Run){
		"chunk": func(r *Run) { r.Chunk = 25 },
		"more":  func(r *Run) { r.Tokens = append(r.Tokens, r.Tokens...) },
		"token": func(r *Run) { r.Tokens[60]++ },
	} {
		bad := run
		bad.Tokens = append([]int32(nil), run.Tokens...)
		change(&bad)
		if err := CompareSaved(ctx, file, models, bad, nil); err == nil || !strings.Contains(err.Error(), "base") {
			t.Errorf("%s: %v", name, err)
		}
	}
	file.Vocab = 299
	if err := CompareSaved(ctx, file, models, run, nil); !errors.Is(err, fault.Refused) ||
		!strings.Contains(err.Error(), "300 tokens and base 299") {
		t.Errorf("other tokens: %v", err)
	}
}

func TestQuantile(t *testing.T) {
	for q, want := range map[float64]float64{0: 1, 0.5: 2.5, 0.9: 6.5, 1: 8} {
		if got := quantile([]float64{1, 2, 3, 8}, q); got < want-1e-12 || got > want+1e-12 {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
}
