//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"ggforge/test/clitest"
)

// TestDestinations gives pipes, devices, folders and links as names of each file that ggeval writes.
func TestDestinations(t *testing.T) {
	model, text := checkpointOf(t, "llama", 1), textOf(t, source(t, 1000))
	run := func(args ...string) (int, string) {
		code, out, log, err := call(append(args, "--force", "--progress", "none")...)
		if err != nil {
			log += err.Error()
		}
		return code, out + log
	}
	over := func(verb string, args ...string) (int, string) {
		return run(append([]string{verb, model, "-f", text, "-c", "16", "--chunks", "2"}, args...)...)
	}
	matrix := filepath.Join(t.TempDir(), "im.gguf")
	if code, log := over("imatrix", "-o", matrix); code != 0 {
		t.Fatal(log)
	}
	clitest.Destinations(t, map[string]clitest.Output{
		"imatrix": {Name: "im.gguf", Run: func(path string) (int, string) {
			return over("imatrix", "-o", path)
		}},
		"imatrix merged": {Name: "im.gguf", Run: func(path string) (int, string) {
			return run("imatrix", "--in-file", matrix, "-o", path)
		}},
		"imatrix state": {Name: "im.gguf.state", Kept: true, Run: func(path string) (int, string) {
			return over("imatrix", "--save-every", "1", "-o", strings.TrimSuffix(path, ".state"))
		}},
		"perplexity part": {Name: "x.part-1-of-1", Run: func(path string) (int, string) {
			return over("perplexity", "--parts", strings.TrimSuffix(path, ".part-1-of-1"), "--part", "1/1")
		}},
		"perplexity page": {Name: "x.html", Run: func(path string) (int, string) {
			return over("perplexity", "--html", path)
		}},
		"compare page": {Name: "x.html", Run: func(path string) (int, string) {
			return run("compare", model, model, "-f", text, "-c", "16", "--chunks", "1", "--html", path)
		}},
		"embed": {Name: "x.bin", Run: func(path string) (int, string) {
			return run("embed", model, "--text", "a", "-o", path)
		}},
		"sensitivity": {Name: "x.json", Run: func(path string) (int, string) {
			return over("sensitivity", "--types", "Q8_0", "-o", path)
		}},
	})
}
