package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"ggforge/gguf"
	"ggforge/writer"
	"ggforge/writer/edit"
)

// TestReserved checks that reserved room in the header of an input changes no output.
func TestReserved(t *testing.T) {
	dir := t.TempDir() + "/"
	must(t, "../../test/testdata/gollama", dir+"a.gguf", "F16")
	f, err := gguf.Open(dir + "a.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	file, err := edit.WithMetadata(f, dir+"b.gguf", f.Metadata, 4096)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Write(context.Background(), file, writer.Options{}); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"quantized":  {"Q8_0"},
		"copied":     {"COPY"},
		"calibrated": {"Q4_0", "--calibrate", "../ggeval/testdata/text.txt", "-c", "16", "--chunks", "1"},
	} {
		var files [2][]byte
		for i, in := range []string{"a", "b"} {
			out := filepath.Join(t.TempDir(), "x.gguf")
			must(t, append([]string{dir + in + ".gguf", out}, args...)...)
			if files[i], err = os.ReadFile(out); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(files[0], files[1]) {
			t.Errorf("%s: %d bytes without reserved room, %d different ones with it", name, len(files[0]),
				len(files[1]))
		}
	}
}
