package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMessages checks that a message names a file once.
func TestMessages(t *testing.T) {
	empty := t.TempDir()
	damaged := func(name string, data string) string {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(gollama)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for name, c := range map[string]struct {
		dir  string
		file string
	}{
		"no config": {empty, "config.json"},
		"config":    {damaged("config.json", "{"), "config.json"},
		"weights":   {damaged("model.safetensors", "x"), "model.safetensors"},
		"tokenizer": {damaged("tokenizer.model", "\x0a\xff"), "tokenizer.model"},
	} {
		code, _, err := call("--progress", "none", c.dir, filepath.Join(t.TempDir(), "x.gguf"))
		if code != 3 || strings.Count(err.Error(), c.dir) != 1 || strings.Count(err.Error(), c.file) != 1 {
			t.Errorf("%s: exit code %d, %v", name, code, err)
		}
	}
}
