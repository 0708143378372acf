package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestHostileSizes quantizes a checkpoint whose config.json does not fit its
// tensors.
func TestHostileSizes(t *testing.T) {
	for key, want := range map[string]string{
		"hidden_size":         `"llama.embedding_length" is 7 (from "hidden_size")`,
		"intermediate_size":   `"llama.feed_forward_length" is 7 (from "intermediate_size")`,
		"num_key_value_heads": "for 7 heads",
	} {
		t.Run(key, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "model")
			if err := os.CopyFS(dir, os.DirFS(gollama)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "config.json")
			config, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			number := regexp.MustCompile(`("` + key + `": *)\d+`)
			if !number.Match(config) {
				t.Fatalf("config.json without %q", key)
			}
			if err := os.WriteFile(path, number.ReplaceAll(config, []byte("${1}7")), 0o666); err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(t.TempDir(), "out.gguf")
			code, _, err := call(dir, out, "Q8_0")
			if code != 3 || err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("exit %d, %v; want 3 and %q", code, err, want)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(out), "*")); len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}
