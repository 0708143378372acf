package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/convert"
	"ggforge/eval"
	"ggforge/eval/logprobs/logprobstest"
	"ggforge/internal/kernel/cpu"
	"ggforge/tokenizer/vocab"
)

// saved writes the probabilities file that llama-perplexity would save for a checkpoint and a text.
func saved(t *testing.T, dir, text string, chunk, chunks int) string {
	t.Helper()
	m, _, err := convert.Open(t.Context(), dir, convert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	e, err := eval.New(m)
	if err != nil {
		t.Fatal(err)
	}
	v, err := vocab.New(m.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	run, err := eval.Text{Chunk: chunk, Chunks: chunks}.Run(v, text)
	if err != nil {
		t.Fatal(err)
	}
	run.First, run.Workers = chunk/2, 1 // one row after the other
	states, err := e.Forward(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]float32
	keep := chunk - chunk/2
	if err := states.Logits(t.Context(), func(row int, logits []float32) error {
		if row%keep < keep-1 {
			all = append(all, slices.Clone(logits))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(run.Tokens); i += chunk { // llama-perplexity saves the text's own token, here 7, not BOS
		run.Tokens[i] = 7
	}
	path := filepath.Join(t.TempDir(), "base.kld")
	if err := os.WriteFile(path, logprobstest.Encode(chunk, run.Tokens, all), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSavedBase compares a model with a base, and with the saved probabilities of that base.
func TestSavedBase(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels, which change no figure")
	}
	words := source(t, 4000)
	text, base, file := textOf(t, words), saved(t, gollama, words, 64, 3), quantized(t, gollama, "Q4_0")[0]
	_, out, _, err := call("compare", gollama, file, "-f", text, "-c", "64", "--chunks", "3", "--json",
		"--progress", "none")
	if err != nil {
		t.Fatal(err)
	}
	want := result[compareResult](t, out)
	_, out, _, err = call("compare", "--kl-divergence-base", base, file, "--json", "--progress", "none", "-t", "1")
	if err != nil {
		t.Fatal(err)
	}
	got := result[compareResult](t, out)
	if got.Base.Model != base || got.File != base || got.Chunk != 64 || got.Chunks != 3 || got.Predicted != 93 ||
		len(got.Models) != 1 || got.Models[0].Layers != nil {
		t.Fatalf("%s", out)
	}
	a, b := want.Models[0], got.Models[0]
	if a.PPL != b.PPL || math.Abs(float64(want.Base.PPL-got.Base.PPL)) > 1e-3*float64(want.Base.PPL) {
		t.Errorf("perplexities %v and %v, want %v and %v", got.Base.PPL, b.PPL, want.Base.PPL, a.PPL)
	}
	for name, v := range map[string][2]number{"mean": {a.Divergence.Mean, b.Divergence.Mean},
		"error": {a.Divergence.Error, b.Divergence.Error}, "max": {a.Divergence.Max, b.Divergence.Max},
		"top": {a.Top.Mean, b.Top.Mean}} {
		if math.Abs(float64(v[0]-v[1])) > 2e-3*float64(v[0]) {
			t.Errorf("%s: %v, with the base itself %v", name, v[1], v[0])
		}
	}
	_, out, _, err = call("compare", "--kl-divergence-base", base, gollama, file, "--recipe", "Q4_0", "--chunks", "2",
		"--progress", "none")
	if err != nil || !strings.Contains(out, "2 chunks of 64") || !strings.Contains(out, "base: "+base+", PPL ") ||
		!strings.Contains(out, "[3] "+gollama+" as Q4_0") {
		t.Errorf("%v: %s", err, out)
	}
	data, err := os.ReadFile(base)
	if err != nil {
		t.Fatal(err)
	}
	short := textOf(t, string(data[:len(data)-1]))
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{base, file, "-f", text, "-c", "64"}, 0, ""},
		{[]string{base, file, "-f", textOf(t, "// "+words)}, 5, "is another text"},
		{[]string{base, file, "-f", textOf(t, "func")}, 5, "want at least 64"},
		{[]string{base, file, "-c", "32"}, 2, "has chunks of 64"},
		{[]string{base, checkpointOf(t, "llama", 1)}, 5, "4096"},
		{[]string{short, file}, 3, "2 of 3 chunks"},
		{[]string{text, file}, 3, "no file of log probabilities"},
		{[]string{base + "x", file}, 1, base + "x: "},
	} {
		code, _, _, err := call(append([]string{"compare", "--progress", "none", "--kl-divergence-base"}, c.args...)...)
		if code != c.code || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: exit code %d, %v, want %d with %q", c.args, code, err, c.code, c.want)
		}
	}
}
