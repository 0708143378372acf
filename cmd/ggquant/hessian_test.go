package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"ggforge/internal/cpu"
	"ggforge/internal/hftest"
)

// TestHessian checks that outputs are the same without a file of moments, with one that is
// made in the run, and with nothing but it; and what goes with none.
func TestHessian(t *testing.T) {
	if !cpu.HasVectors || testing.Short() {
		t.Skip("takes long without vector kernels; what it tests is above them")
	}
	in, err := hftest.Lookup("mixtral").Write(t.TempDir(), hftest.Variant{Seed: 1, DType: "BF16"})
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../../quants/quants.go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() + "/"
	text, other, file := dir+"text.txt", dir+"other.txt", dir+"moments"
	for path, from := range map[string]int{text: 0, other: 500} {
		if err := os.WriteFile(path, source[from:from+1000], 0o666); err != nil {
			t.Fatal(err)
		}
	}
	common := []string{"--effort", "high", "--progress", "none", "--tensor-type", "(blk.0|ffn|^output|attn_[qv])=f16"}
	made := append([]string{"--calibrate", text, "-c", "16", "--chunks", "2"}, common...)
	reused := append([]string{"--hessian", file}, common...)
	made, reused = slices.Clip(made), slices.Clip(reused)
	run := func(flags []string, more ...string) (int, error) {
		code, _, err := call(slices.Concat(flags, more)...)
		return code, err
	}
	compare := func(name string) {
		t.Helper()
		want, err := os.ReadFile(dir + "want.gguf")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(dir + name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: other bytes, %v", name, err)
		}
	}
	must := func(flags []string, more ...string) {
		t.Helper()
		if _, err := run(flags, more...); err != nil {
			t.Fatalf("%q %q: %v", flags, more, err)
		}
	}
	must(made, in, dir+"want.gguf", "Q4_0")
	must(made, "--hessian", file, "--dry-run", in, dir+"x.gguf", "Q4_0")
	if _, err := os.Stat(file); err == nil {
		t.Error("--dry-run made a file")
	}
	must(made, "--hessian", file, in, dir+"makes.gguf", "Q4_0")
	compare("makes.gguf")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	must(reused, in, dir+"alone.gguf", "Q4_0")
	compare("alone.gguf")
	must(made, "--hessian", file, "--resume", dir+"state", "--force", in, dir+"both.gguf", "Q4_0")
	compare("both.gguf")
	must(reused, "--dry-run", in, dir+"x.gguf", "Q4_0")
	like := []string{"--like", "Q4_1", "--types", "Q4_0,Q5_0,Q8_0", "--force"}
	must(made, append(like, in, dir+"want.gguf", "Q4_0")...)
	must(made, append(like, "--hessian", file, in, dir+"like.gguf", "Q4_0")...)
	compare("like.gguf")
	must(made, append(like, "--hessian", dir+"more", in, dir+"more.gguf", "Q4_0")...)
	compare("more.gguf")
	if a, err := os.ReadFile(dir + "more"); err != nil || !bytes.Equal(a, before) {
		t.Errorf("other moments with other types: %v", err)
	}

	out := []string{in, dir + "x.gguf", "Q4_0"}
	for _, c := range []struct {
		flags []string
		code  int
		want  string
	}{
		{append(made, "--hessian", file, "--chunks", "1"), 5, "chunks, as many as 2, want 1"},
		{append(made, "--hessian", file, "-c", "32", "--force"), 5, "chunks of tokens, each 16, want 32"},
		{append(made, "--hessian", file, "--calibrate", other), 5, "the text with SHA-256"},
		{append(made, "--hessian", file, "--process-output"), 5, `"output.weight": false, want true`},
		{append(reused, "--via", "f32"), 5, "the model with identity"},
		{append(made, "--hessian", text), 3, text},
		{append(made, "--hessian", dir+"no/file"), 1, "no"},
		{append(made, "--hessian", dir+"x.gguf"), 2, "is the output"},
		{append(made, "--hessian", dir+"s", "--resume", dir+"s"), 2, "the same file"},
		{append(made, "--hessian", file, "--effort", "best"), 2, "--hessian goes with --effort high: with best"},
		{append(made, "--hessian", file, "--effort", "matrix"), 2, "--hessian goes with --effort high"},
		{append(reused, "--chunks", "2"), 2, "--chunks goes with --calibrate"},
		{append(reused, "--like", "Q4_1"), 2, "want --calibrate TEXT"},
		{append(reused, "--hessian", dir+"none"), 2, "there is no such file"},
	} {
		if code, err := run(c.flags, out...); code != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: exit code %d, %v, want %d, %s", c.flags, code, err, c.code, c.want)
		}
	}
	if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, before) {
		t.Errorf("the file was changed, %v", err)
	}
	if _, err := os.Stat(dir + "x.gguf"); err == nil {
		t.Error("there is an output after an error")
	}
}
