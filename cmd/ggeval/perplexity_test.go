package main

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/convert"
	"ggforge/writer"
)

// result returns what --json printed.
func result[T any](t *testing.T, out string) (r T) {
	t.Helper()
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return r
}

// TestPerplexity compares the figures of a file and of the checkpoint that it was made of,
// with any number of workers, as text and as JSON.
func TestPerplexity(t *testing.T) {
	dir := checkpointOf(t, "llama", 1)
	file := filepath.Join(t.TempDir(), "m.gguf")
	job, err := convert.Prepare(t.Context(), dir, convert.Options{Type: convert.F16})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := job.Write(t.Context(), file, writer.Options{}); err != nil {
		t.Fatal(err)
	}
	job.Close()
	text := textOf(t, source(t, 6000))
	_, out, _, err := call("perplexity", file, "-f", text, "-c", "64", "-t", "1", "--json", "--progress", "none")
	if err != nil {
		t.Fatal(err)
	}
	want := result[perplexityResult](t, out)
	if want.Chunks < 10 || want.Predicted != 31*want.Chunks || len(want.Running) != want.Chunks || want.Running[want.Chunks-1] != want.PPL || want.Tokens < 64*want.Chunks ||
		!(want.PPL > 1 && want.Error > 0) || math.Abs(float64(want.Loss)-math.Log(float64(want.PPL))) > 1e-12 || want.Speed <= 0 || want.Peak <= 0 || want.Architecture != "llama" {
		t.Fatalf("%+v", want)
	}
	for _, args := range [][]string{{dir, "-t", "3", "--via", "f16"}, {file, "--no-escape"}} {
		_, out, _, err := call(append([]string{"perplexity", "-f", text, "-c", "64", "--json", "--progress", "none"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		if got := result[perplexityResult](t, out); got.PPL != want.PPL || got.Error != want.Error {
			t.Errorf("%q: %v ± %v, want %v ± %v", args, got.PPL, got.Error, want.PPL, want.Error)
		}
	}
	_, out, log, err := call("perplexity", file, "-f", text, "-c", "64", "--chunks", "3", "--progress", "json")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "3 chunks of 64, 93 tokens predicted") || !strings.Contains(out, "Final estimate: PPL = ") || !strings.Contains(out, "tokens/s") {
		t.Error(out)
	}
	if !strings.Contains(log, `{"event":"start"}`) || !strings.Contains(log, `"work":1`) || !strings.Contains(log, `"note":"[3]`) || !strings.HasSuffix(log, `{"event":"done"}`+"\n") {
		t.Error(log)
	}
}
