//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/imatrix/imatrixtest"
	"ggforge/publish/card"
	"ggforge/test/clitest"
)

// TestDestinations gives paths that are not regular files as the output of each verb that writes a file.
func TestDestinations(t *testing.T) {
	run := func(args ...string) (int, string) {
		code, out, err := call(args...)
		if err != nil {
			out += err.Error()
		}
		return code, out
	}
	to := func(verb ...string) func(path string) (int, string) {
		return func(path string) (int, string) { return run(append(verb[:len(verb):len(verb)], path, "--force")...) }
	}
	model, shard := write(t, t.TempDir(), "model.gguf", 1), filepath.Join(t.TempDir(), "x")
	if code, text := run("split", model, shard); code != 0 {
		t.Fatal(text)
	}
	first := "-00001-of-00001.gguf"
	matrix := filepath.Join(t.TempDir(), "im.gguf")
	entries := []imatrixtest.Entry{{Name: "t.weight", Sums: make([]float32, 32), Counts: []float32{1}}}
	if err := imatrixtest.Write(matrix, imatrixtest.GGUF(entries, nil, 1)); err != nil {
		t.Fatal(err)
	}
	clitest.Destinations(t, map[string]clitest.Output{
		"meta":            {Name: "x.gguf", Run: to("meta", "--set", "general.name=str:x", model, "-o")},
		"endian":          {Name: "x.gguf", Run: to("endian", model)},
		"merge":           {Name: "x.gguf", Run: to("merge", shard+first)},
		"pad-vocab":       {Name: "x.gguf", Run: to("pad-vocab", "--multiple", "8", vocabulary(t, t.TempDir()))},
		"imatrix merge":   {Name: "x.gguf", Run: to("imatrix", "merge", matrix, matrix)},
		"imatrix convert": {Name: "x.dat", Run: to("imatrix", "convert", "--format", "dat", matrix)},
		"imatrix strip":   {Name: "x.gguf", Run: to("imatrix", "strip", matrix)},
		"imatrix fill":    {Name: "x.gguf", Run: to("imatrix", "fill", matrix)},
		"imatrix remap":   {Name: "x.gguf", Run: to("imatrix", "remap", "--model", model, matrix)},
		"release": {Name: "model-F16.gguf", Makes: true, Run: func(path string) (int, string) {
			return run("release", "--source", "../../test/testdata/gollama", "--type", "F16", "--progress", "none",
				"--name-template", "model-{FTYPE}.gguf", "-o", filepath.Dir(path), "--force")
		}},
		"page":            {Name: "x.html", Run: to("inspect", model, "--html")},
		"page of quality": {Name: "x.html", Run: to("quality", model, model, "--html")},
		"split": {Name: "x" + first, Run: func(path string) (int, string) {
			return run("split", model, strings.TrimSuffix(path, first), "--force")
		}},
		"export": {Name: "model.safetensors", Makes: true, Run: func(path string) (int, string) {
			return run("export", model, filepath.Dir(path), "--force")
		}},
	})
	// a card is updated: the present one is read, and has to be a regular file
	folder := t.TempDir()
	write(t, folder, "x.gguf", 1)
	readme := filepath.Join(folder, card.FileName)
	if err := os.Symlink(os.DevNull, readme); err != nil {
		t.Fatal(err)
	}
	if code, text := run("card", folder, "--force"); code != 2 || !strings.Contains(text, readme+": want a file") {
		t.Errorf("card: exit code %d, %s", code, text)
	}
	if to, err := os.Readlink(readme); to != os.DevNull {
		t.Errorf("card: %q, %v", to, err)
	}
}
