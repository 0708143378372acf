package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPublishedTypes checks that for type names of publishers the error names the type to use, and that such an
// argument is not taken for an output.
func TestPublishedTypes(t *testing.T) {
	dir := t.TempDir()
	in := ggufModel(t, filepath.Join(dir, "in.gguf"), 256, nil)
	out := filepath.Join(dir, "out.gguf")
	t.Chdir(dir)
	for name, want := range map[string]string{
		"Q4_K_L":  "Q4_K_M with --output-tensor-type Q8_0 --token-embedding-type Q8_0",
		"q6_k_l":  "Q6_K with --output-tensor-type Q8_0",
		"Q3_K_XL": "Q3_K_L with", "Q4_K_XL": "Q4_K_M with", "UD-Q4_K_XL": "--like Q4_K_M", "UD-IQ2_M": "--like IQ2_M",
		"ud-q8_k_xl": "--like Q8_0",
		"int4":       "Q4_K_M", "4bit": "Q4_K_M", "4-bit": "Q4_K_M", "q4": "Q4_K_M", "int8": "Q8_0", "q8": "Q8_0",
		"w4a16": "Q4_K_M", "q2": "Q2_K", "fp8": "Q8_0", "FP8_E4M3": "Q8_0",
		"fp16": "F16", "bfloat16": "BF16", "float32": "F32", "fp4": "NVFP4", "nf4": "Q4_K_M",
	} {
		for _, args := range [][]string{{in, name}, {in, name, "4"}, {in, out, name}, {"--out-dir", dir, in, name},
			{"-o", out, in, name}, {"--calibrate", in, "--like", name, in, out, "Q4_0"}} {
			code, _, err := call(args...)
			if code != 2 || !strings.Contains(err.Error(), want) ||
				!strings.Contains(err.Error(), "no type of ggquant") {
				t.Errorf("%q: exit code %d, %v; want %q", args, code, err, want)
			}
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("%d files, %v", len(files), err)
	}
	if code, _, err := call("--quiet", in, "./q4", "Q4_0"); code != 0 {
		t.Errorf("a file of that name: %v", err)
	}
}

// TestQuietResult checks that --quiet leaves out the report of the written file, but no requested results and no
// warnings.
func TestQuietResult(t *testing.T) {
	dir := t.TempDir()
	in := ggufModel(t, filepath.Join(dir, "in.gguf"), 256, nil)
	odd := ggufModel(t, filepath.Join(dir, "odd.gguf"), 96, nil)
	for _, c := range []struct {
		args []string
		want string // "" for nothing
	}{
		{[]string{"--quiet", in, filepath.Join(dir, "a.gguf"), "Q8_0"}, ""},
		{[]string{"-q", "--out-dir", filepath.Join(dir, "d"), in, "Q8_0", "Q4_0"}, ""},
		{[]string{"-q", odd, filepath.Join(dir, "o.gguf"), "Q4_K_M"}, "warning: "},
		{[]string{"-q", "--dry-run", in, "Q8_0"}, "token_embd.weight"},
		{[]string{"-q", "--json", in, filepath.Join(dir, "j.gguf"), "Q8_0"}, `"tensors"`},
	} {
		code, text, err := call(c.args...)
		if code != 0 || (c.want == "") != (text == "") || !strings.Contains(text, c.want) ||
			strings.Contains(text, "peak memory") {
			t.Errorf("%q: exit code %d, %v: %q", c.args, code, err, text)
		}
	}
}
