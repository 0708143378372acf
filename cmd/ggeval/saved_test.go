package main

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ggforge/internal/kernel/cpu"
)

// saved writes the probabilities of a checkpoint over a text with --save-logits, and returns the file.
func saved(t *testing.T, dir, text string, chunk, chunks int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "base.kld")
	_, out, _, err := call("perplexity", dir, "-f", textOf(t, text), "-c", strconv.Itoa(chunk), "--chunks",
		strconv.Itoa(chunks), "--save-logits", path, "--json", "--progress", "none")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if r := result[perplexityResult](t, out); err != nil || r.Logits != path || r.LogitsBytes != info.Size() ||
		r.Chunks != chunks {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// TestSaveLogits checks what --save-logits refuses, and that it leaves the files of others.
func TestSaveLogits(t *testing.T) {
	dir, dest := checkpointOf(t, "llama", 1), filepath.Join(t.TempDir(), "base.kld")
	text := textOf(t, source(t, 400))
	args := []string{"perplexity", dir, "-f", text, "-c", "16", "--progress", "none", "--save-logits"}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{dest, "--stride", "8"}, 2, "--save-logits and --stride"},
		{[]string{dest, "--source", text}, 2, "--s"},
		{[]string{dest, "--finish", "--part-files", "x"}, 2, "--save-logits and --finish"},
		{[]string{dest, "--html", dest}, 2, "both are"},
		{[]string{text, "--force"}, 2, "output equals input"},
		{[]string{dest}, 0, ""},
		{[]string{dest}, 2, "exists"},
		{[]string{dest, "--force"}, 0, ""},
	} {
		code, _, _, err := call(append(args, c.args...)...)
		if code != c.code || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: exit code %d, %v, want %d with %q", c.args, code, err, c.code, c.want)
		}
	}
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
