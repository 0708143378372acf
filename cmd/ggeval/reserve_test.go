package main

import (
	"context"
	"path/filepath"
	"testing"

	"ggforge/convert"
	"ggforge/gguf"
	"ggforge/writer"
	"ggforge/writer/edit"
)

// TestReserved evaluates a file with reserved room in its header.
func TestReserved(t *testing.T) {
	dir := t.TempDir()
	job, err := convert.Prepare(t.Context(), gollama, convert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	plain, roomy := filepath.Join(dir, "a.gguf"), filepath.Join(dir, "b.gguf")
	if _, err := job.Write(t.Context(), plain, writer.Options{}); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(plain)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	file, err := edit.WithMetadata(f, roomy, f.Metadata, 4096)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Write(context.Background(), file, writer.Options{}); err != nil {
		t.Fatal(err)
	}
	var ppl [2]perplexityResult
	for i, path := range []string{plain, roomy} {
		code, out, _, err := call("perplexity", path, "-f", textOf(t, source(t, 500)), "-c", "16", "--chunks", "2",
			"--json", "--progress", "none")
		if code != 0 {
			t.Fatal(err)
		}
		ppl[i] = result[perplexityResult](t, out)
	}
	if ppl[0].PPL != ppl[1].PPL {
		t.Errorf("%v, and with the room %v", ppl[0].PPL, ppl[1].PPL)
	}
}
