package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/test/hftest"
)

// TestHessian checks that outputs are the same without --hessian, with a file that the run makes, and with such a
// file instead of a text; and that files and flags that do not fit are refused.
func TestHessian(t *testing.T) {
	if !cpu.HasVectors || testing.Short() {
		t.Skip("takes long without vector kernels; it tests no kernel")
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
			t.Errorf("%s differs from want.gguf, %v", name, err)
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
	must(made, "--hessian", file, "--resume", "--force", in, dir+"both.gguf", "Q4_0")
	compare("both.gguf")
	must(reused, "--dry-run", in, dir+"x.gguf", "Q4_0")
	like := []string{"--like", "Q4_1", "--types", "Q4_0,Q5_0,Q8_0", "--force"}
	must(made, append(like, in, dir+"want.gguf", "Q4_0")...)
	must(made, append(like, "--hessian", file, in, dir+"like.gguf", "Q4_0")...)
	compare("like.gguf")
	must(made, append(like, "--hessian", dir+"more", in, dir+"more.gguf", "Q4_0")...)
	compare("more.gguf")
	if a, err := os.ReadFile(dir + "more"); err != nil || !bytes.Equal(a, before) {
		t.Errorf("the second moments depend on the types: %v", err)
	}

	out := []string{in, dir + "x.gguf", "Q4_0"}
	for _, c := range []struct {
		flags []string
		code  int
		want  string
	}{
		{append(made, "--hessian", file, "--chunks", "1"), 5, "number of chunks 2, want 1"},
		{append(made, "--hessian", file, "-c", "32", "--force"), 5, "chunk size 16, want 32"},
		{append(made, "--hessian", file, "--calibrate", other), 5, "text SHA-256"},
		{append(made, "--hessian", file, "--process-output"), 5, `"output.weight": false, want true`},
		{append(reused, "--via", "f32"), 5, "model identity"},
		{append(made, "--hessian", text), 3, text},
		{append(made, "--hessian", dir+"no/file"), 2, "no: no such directory"},
		{append(made, "--hessian", dir+"x.gguf"), 2, "named both as output"},
		{append(made, "--hessian", file, "--effort", "best"), 2, "--hessian goes with --effort high: with best"},
		{append(made, "--hessian", file, "--effort", "matrix"), 2, "--hessian goes with --effort high"},
		{append(reused, "--chunks", "2"), 2, "--chunks goes with --calibrate"},
		{append(reused, "--like", "Q4_1"), 2, "want --calibrate TEXT"},
		{append(reused, "--hessian", dir+"none"), 2, "no such file"},
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

// TestHessianParts collects second moments in a run whose type needs none, and uses the file for an output written in
// parts: the bytes are those of one process.
func TestHessianParts(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels, which change no byte")
	}
	in, err := hftest.Lookup("llama").Write(t.TempDir(), hftest.Variant{Seed: 1, DType: "BF16"})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() + "/"
	source, err := os.ReadFile("../../quants/quants.go")
	if err == nil {
		err = os.WriteFile(dir+"text.txt", source[:2000], 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	must := func(args ...string) {
		t.Helper()
		if code, _, err := call(append([]string{"--effort", "high", "--hessian", dir + "moments", "--progress", "none"},
			args...)...); code != 0 {
			t.Fatalf("%q: %v", args, err)
		}
	}
	must("--calibrate", dir+"text.txt", "-c", "16", "--chunks", "2", in, dir+"plain.gguf", "F16")
	must(in, dir+"want.gguf", "Q4_0")
	must("--calibrate", dir+"text.txt", "-c", "16", "--chunks", "1", "--hessian", dir+"others", in, dir+"plain.gguf",
		"F16", "--force")
	for k := 3; k > 0; k-- {
		must("--part", fmt.Sprintf("%d/3", k), "--threads", fmt.Sprint(k), in, dir+"got.gguf", "Q4_0")
	}
	if code, _, err := call("--effort", "high", "--hessian", dir+"others", "--finish", in, dir+"got.gguf",
		"Q4_0"); code != 5 || !strings.Contains(err.Error(), "moments") {
		t.Errorf("with other second moments: %d, %v", code, err)
	}
	must("--finish", in, dir+"got.gguf", "Q4_0")
	want, err := os.ReadFile(dir + "want.gguf")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(dir + "got.gguf"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("other bytes, %v", err)
	}
	for _, effort := range []string{"matrix", "high", "best"} {
		code, _, err := call("--effort", effort, "--calibrate", dir+"text.txt", "-c", "16", "--part", "1/2", in,
			dir+"x.gguf", "Q4_0")
		if code != 2 || !strings.Contains(err.Error(), "--imatrix") {
			t.Errorf("--effort %s in parts: %d, %v", effort, code, err)
		}
	}
}

// TestHessianDamaged checks that a file of moments with a changed byte, or with more or fewer bytes, is refused.
func TestHessianDamaged(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels, which change no byte")
	}
	in, err := hftest.Lookup("llama").Write(t.TempDir(), hftest.Variant{Seed: 1, DType: "BF16"})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() + "/"
	source, err := os.ReadFile("../../quants/quants.go")
	if err == nil {
		err = os.WriteFile(dir+"text.txt", source[:1000], 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	moments := dir + "moments"
	run := func(args ...string) (int, error) {
		code, _, err := call(append([]string{"--effort", "high", "--hessian", moments, "--progress", "none", "--force"},
			args...)...)
		return code, err
	}
	if code, err := run("--calibrate", dir+"text.txt", "-c", "16", "--chunks", "1", in, dir+"plain.gguf",
		"F16"); code != 0 {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(moments)
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(moments, whole)
	if err != nil {
		t.Fatal(err)
	}
	damaged := map[string][]byte{"a byte more": append(bytes.Clone(whole), 0),
		"a kilobyte more": append(bytes.Clone(whole), make([]byte, 1000)...), "without its end": whole[:len(whole)-1]}
	for what, at := range map[string]int{
		"of the model's identity": bytes.Index(whole, []byte("moments.model")) + 40,
		"of a sum":                bytes.Index(whole, []byte("moments.sums")) + 40,
		"of the first tensor":     int(f.DataStart+f.Tensors[0].Offset) + 1,
		"of the importance":       int(f.DataStart+f.Tensor("importance").Offset) + 1000,
		"of the end":              len(whole) - 1,
	} {
		data := bytes.Clone(whole)
		data[at] ^= 1
		damaged["another byte "+what] = data
	}
	for what, data := range damaged {
		if err := os.WriteFile(moments, data, 0o666); err != nil {
			t.Fatal(err)
		}
		if code, err := run(in, dir+"o.gguf", "Q4_0"); code != 3 || !strings.Contains(err.Error(), moments) {
			t.Errorf("%s: %d, %v", what, code, err)
		}
		if _, err := os.Stat(dir + "o.gguf"); err == nil {
			t.Fatalf("%s: there is an output", what)
		}
	}
	if err := os.WriteFile(moments, whole, 0o666); err != nil {
		t.Fatal(err)
	}
	if code, err := run(in, dir+"o.gguf", "Q4_0"); code != 0 {
		t.Error(err)
	}
}
