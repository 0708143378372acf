//go:build unix

package main

import (
	"path/filepath"
	"testing"

	"ggforge/checkpoint/ggml/ggmltest"
	"ggforge/gguf"
	"ggforge/test/clitest"
	"ggforge/test/hftest"
)

// TestDestinations gives paths that are not regular files as the output of each flag that writes a file.
func TestDestinations(t *testing.T) {
	dir, err := hftest.Lookup("llama").Write(t.TempDir(), hftest.Variant{Seed: 1, DType: "BF16"})
	must(t, err)
	adapter := writeAdapter(t, "adapter", pair("model.layers.0.self_attn.q_proj", 256, 256, 4), nil)
	old := writeOld(t, "old.bin", ggmltest.Llama("tjgg", 1, 1, gguf.TypeF16, false))
	run := func(args ...string) (int, string) {
		code, out, err := call(append(args, "--force", "--progress", "none")...)
		if err != nil {
			out += err.Error()
		}
		return code, out
	}
	shard := "out-00001-of-00002.gguf"
	clitest.Destinations(t, map[string]clitest.Output{
		"model": {Name: "out.gguf", Folder: true, Run: func(path string) (int, string) { return run(dir, path) }},
		"shards": {Name: shard, Run: func(path string) (int, string) {
			return run(dir, filepath.Join(filepath.Dir(path), "out.gguf"), "--split-max-tensors", "20")
		}},
		"adapter": {Name: "out.gguf", Folder: true,
			Run: func(path string) (int, string) { return run(adapter, path, "--base", gollama) }},
		"old": {Name: "out.gguf", Folder: true, Run: func(path string) (int, string) { return run(old, path) }},
		"manifest": {Name: "m.json", Run: func(path string) (int, string) {
			return run(dir, filepath.Join(t.TempDir(), "x.gguf"), "--manifest", path)
		}},
	})
}
