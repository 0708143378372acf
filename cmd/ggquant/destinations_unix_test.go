//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"ggforge/internal/kernel/cpu"
	"ggforge/test/clitest"
)

// TestDestinations gives pipes, devices, folders and links as names of each file that ggquant writes.
func TestDestinations(t *testing.T) {
	in := ggufModel(t, filepath.Join(t.TempDir(), "in.gguf"), 256, nil)
	model := "../../test/testdata/gollama"
	run := func(args ...string) (int, string) {
		code, out, err := call(append(args, "--force", "--progress", "none")...)
		if err != nil {
			out += err.Error()
		}
		return code, out
	}
	out := func() string { return filepath.Join(t.TempDir(), "x.gguf") }
	outputs := map[string]clitest.Output{
		"model": {Name: "out.gguf", Run: func(path string) (int, string) { return run(in, path, "Q4_0") }},
		"shards": {Name: "out-00001-of-00003.gguf", Run: func(path string) (int, string) {
			return run(in, strings.TrimSuffix(path, "-00001-of-00003.gguf"), "Q4_0", "--split-max-tensors", "2")
		}},
		"folder": {Name: "x-q4_0.gguf", Makes: true, Run: func(path string) (int, string) {
			return run("--out-dir", filepath.Dir(path), "--name-template", "x-{ftype}.gguf", in, "Q8_0", "Q4_0")
		}},
		"part": {Name: "out.gguf", Run: func(path string) (int, string) {
			if code, text := run(in, path, "Q4_0", "--part", "1/1"); code != 0 {
				return code, text
			}
			return run(in, path, "Q4_0", "--finish")
		}},
		"part in a file of its own": {Name: "out.gguf", Run: func(path string) (int, string) {
			parts := t.TempDir()
			if code, text := run(in, path, "Q4_0", "--part", "1/1", "--part-files", parts); code != 0 {
				return code, text
			}
			return run(in, path, "Q4_0", "--finish", "--part-files", parts)
		}},
		"manifest": {Name: "m.json", Run: func(path string) (int, string) {
			return run(in, out(), "Q4_0", "--manifest", path)
		}},
		"recipe": {Name: "recipe.txt", Run: func(path string) (int, string) {
			return run(in, out(), "Q4_0", "--save-recipe", path)
		}},
		"calibrated": {Name: "out.gguf", Run: func(path string) (int, string) {
			return run(model, path, "Q4_0", "--calibrate", "../ggeval/testdata/text.txt", "-c", "16", "--chunks", "1")
		}},
	}
	if cpu.HasVectors { // these run the model forward and backward
		outputs["moments"] = clitest.Output{Name: "moments", Kept: true, Run: func(path string) (int, string) {
			return run(model, out(), "Q4_0", "--calibrate", "../ggeval/testdata/text.txt", "-c", "16", "--chunks", "1",
				"--effort", "high", "--hessian", path)
		}}
		outputs["recipe of a target"] = clitest.Output{Name: "recipe.txt", Run: func(path string) (int, string) {
			return run(model, out(), "Q4_0", "--calibrate", "../ggeval/testdata/text.txt", "-c", "16", "--chunks", "2",
				"--target-bpw", "5", "--save-recipe", path)
		}}
	}
	clitest.Destinations(t, outputs)
}
