package main

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/flagtest"
	"ggforge/convert"
	"ggforge/test/buckettest"
	"ggforge/writer"
)

// result decodes the JSON output.
func result[T any](t *testing.T, out string) (r T) {
	t.Helper()
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return r
}

// TestPerplexity compares the figures of a file and of the checkpoint that it was made from, with any number of
// workers, as text and as JSON.
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
	if want.Chunks < 10 || want.Predicted != 31*want.Chunks || len(want.Running) != want.Chunks ||
		want.Running[want.Chunks-1] != want.PPL || want.Tokens < 64*want.Chunks ||
		!(want.PPL > 1 && want.Error > 0) || math.Abs(float64(want.Loss)-math.Log(float64(want.PPL))) > 1e-12 ||
		want.Speed <= 0 || want.Peak <= 0 || want.Architecture != "llama" {
		t.Fatalf("%+v", want)
	}
	buckettest.Serve(t, filepath.Dir(file), "models/")
	for _, args := range [][]string{{dir, "-t", "3", "--via", "f16"}, {file, "--no-escape"}, {"s3://models/m.gguf"}} {
		_, out, _, err := call(append([]string{"perplexity", "-f", text, "-c", "64", "--json", "--progress", "none"},
			args...)...)
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
	if !strings.Contains(out, "3 chunks of 64, 93 tokens predicted") ||
		!strings.Contains(out, "Final estimate: PPL = ") || !strings.Contains(out, "tokens/s") {
		t.Error(out)
	}
	if !strings.Contains(log, `{"event":"start"}`) || !strings.Contains(log, `"work":1`) ||
		!strings.Contains(log, `"note":"[3]`) || !strings.HasSuffix(log, `{"event":"done"}`+"\n") {
		t.Error(log)
	}
}

// TestReference compares with the output of llama-perplexity, see testdata/README.md.
func TestReference(t *testing.T) {
	for _, c := range []struct {
		flags       string
		tokens      int // of the text, if the output has it
		ppl, margin float64
		chunks      []float64 // running figures
	}{
		{"-c 64 --chunks 2", 889, 41.3856, 14.90482, []float64{41.1090, 41.3856}},
		{"-c 64 --chunks 1 -e", 0, 49.0050, 0, []float64{49.0050}},
		{"-c 65 --chunks 1 --no-escape", 0, 36.8140, 13.80975, []float64{36.8140}},
		{"-c 64 --stride 100 --chunks 1", 889, 94.7308, 0, []float64{94.7308}},
	} {
		_, out, _, err := call(append([]string{"perplexity", gollama, "-f", "testdata/text.txt", "--json", "--progress",
			"none"}, strings.Fields(c.flags)...)...)
		if err != nil {
			t.Fatal(err)
		}
		r := result[perplexityResult](t, out)
		near := func(got number, want float64) bool { return math.Abs(float64(got)-want) <= 5e-5+1e-6*want }
		if !near(r.PPL, c.ppl) || c.margin > 0 && !near(r.Error, c.margin) || c.tokens > 0 && r.Tokens != c.tokens ||
			len(r.Running) != len(c.chunks) {
			t.Fatalf("%s: %v ± %v, %d tokens, want %v ± %v", c.flags, r.PPL, r.Error, r.Tokens, c.ppl, c.margin)
		}
		for i, want := range c.chunks {
			if !near(r.Running[i], want) {
				t.Errorf("%s: %v after chunk %d, want %v", c.flags, r.Running[i], i+1, want)
			}
		}
	}
}

// TestCheckpointFlags checks that flags for checkpoints alone are refused if one of the arguments is a file.
func TestCheckpointFlags(t *testing.T) {
	dir := checkpointOf(t, "llama", 1)
	file := quantized(t, dir, "Q8_0")[0]
	text := textOf(t, source(t, 500))
	for _, f := range tool.Declarations(perplexityCommand()) {
		name := f.Name
		row, ok := flagtest.Checkpoint[name]
		if !ok || f.Inputs == 0 { // --no-lazy and the like have no effect with any input
			continue
		}
		for _, args := range [][]string{{"perplexity", file}, {"compare", file, dir}} {
			code, _, _, err := call(append(append(args, row.Args...), "-f", text, "--progress", "none")...)
			if code != 2 || !strings.Contains(err.Error(), "--"+name+" is for checkpoints") {
				t.Errorf("%s --%s: exit code %d, %v", args[0], name, code, err)
			}
		}
	}
}
