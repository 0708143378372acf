package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSwapped swaps input and output: a quantized file is the input and its source the output.
func TestSwapped(t *testing.T) {
	dir := t.TempDir() + "/"
	original := ggufModel(t, dir+"f32.gguf", 256, nil)
	must(t, original, dir+"q4.gguf", "Q4_0")
	must(t, original, dir+"f16.gguf", "F16")
	read := func(path string) []byte {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	before := read(original)
	for _, c := range []struct {
		args string // file names are relative to dir
		code int
		text string
	}{
		// swapped: nothing to quantize, and the output is larger
		{"--force q4.gguf f32.gguf Q4_0", 5, "nothing to quantize"},
		{"--force q4.gguf f32.gguf Q4_0", 5, filepath.Join(dir, "f32.gguf") + " would be replaced"},
		{"--force q4.gguf f32.gguf Q4_0", 5, "--allow-requantize"},
		{"--force --part 1/2 q4.gguf f32.gguf Q4_0", 5, "nothing to quantize"},
		{"--force q4.gguf f32.gguf Q8_0", 5, "already quantized"},
		// swapped, and something to do
		{"--force f16.gguf f32.gguf Q4_0", 5, "are input and output swapped?"},
		{"--dry-run f16.gguf f32.gguf Q4_0", 0, "are input and output swapped?"},
		{"--dry-run --force f16.gguf f32.gguf Q4_0", 5, "are input and output swapped?"},
		{"f16.gguf f32.gguf Q4_0", 2, "exists already"},
		{"--force --out-dir . --name-template f32.gguf f16.gguf Q4_0", 5, "are input and output swapped?"},
		// nothing is lost
		{"q4.gguf other.gguf Q4_0", 0, "nothing to quantize"},
		{"--force f32.gguf other.gguf Q4_0", 0, ""},
		{"--force q4.gguf other.gguf Q4_0", 5, "nothing to quantize"},
		{"--force --allow-requantize q4.gguf other.gguf Q4_0", 0, ""},
		{"--force q4.gguf other.gguf COPY", 0, ""},
		{"--force --allow-requantize f16.gguf f32.gguf Q4_0", 0, ""},
	} {
		args := strings.Fields(c.args)
		for i, arg := range args {
			if strings.HasSuffix(arg, ".gguf") && args[max(i-1, 0)] != "--name-template" || arg == "." {
				args[i] = filepath.Join(dir, arg)
			}
		}
		code, out, err := call(append(args, "--progress", "none")...)
		if err != nil {
			out += err.Error()
		}
		if code != c.code || !strings.Contains(out, c.text) ||
			c.text == "" && strings.Contains(out, "nothing to quantize") {
			t.Errorf("%s: exit code %d, %s; want %d, %q", c.args, code, out, c.code, c.text)
		}
		if c.code != 0 && !bytes.Equal(read(original), before) {
			t.Fatalf("%s: replaced the original", c.args)
		}
	}
}

// TestConvertedAgain writes the output for a checkpoint twice: with --force the second run is not taken for swapped
// arguments.
func TestConvertedAgain(t *testing.T) {
	out := filepath.Join(t.TempDir(), "f16.gguf")
	for range 2 {
		code, text, err := call("--force", "../../test/testdata/gollama", out, "F16", "--progress", "none")
		if code != 0 || strings.Contains(text, "nothing to quantize") {
			t.Fatalf("exit code %d, %v, %s", code, err, text)
		}
	}
}
