package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tool "ggforge/cmd/internal/cli"
	"ggforge/eval"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/model"
	"ggforge/test/hftest"
	"ggforge/tokenizer/vocab"
)

// TestCalibrate checks that --calibrate gives the same bytes as a matrix made before, for a file and for the
// checkpoint that it was made from, with several types at once.
func TestCalibrate(t *testing.T) {
	dir, err := hftest.Lookup("mixtral").Write(t.TempDir(), hftest.Variant{Seed: 1, DType: "BF16"})
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../../quants/quants.go")
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir() + "/"
	text := out + "text.txt"
	if err := os.WriteFile(text, source[:2500], 0o666); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) {
		t.Helper()
		if _, log, err := call(append(args, "--progress", "none")...); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, log)
		}
	}
	read := func(path string) []byte {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	run(dir, out+"plain.gguf", "COPY")
	m, err := model.Open(out + "plain.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	e, err := eval.New(m)
	if err != nil {
		t.Fatal(err)
	}
	v, err := vocab.New(m.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	chunks, err := eval.Text{Chunk: 64, Chunks: 4}.Run(v, strings.TrimSuffix(string(source[:2500]), "\n"))
	if err != nil {
		t.Fatal(err)
	}
	sums := imatrix.NewSums(64)
	if err := e.Collect(t.Context(), chunks, sums, eval.Importance{Output: true}); err != nil {
		t.Fatal(err)
	}
	sums.Datasets = []string{"text.txt"}
	file, err := sums.Layout(imatrix.FormatGGUF)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := file.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out+"imatrix.gguf", b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--calibrate", text, "-c", "64", "--chunks", "4", "--process-output"}
	types := []string{"Q4_K_M", "IQ2_S"}
	for _, in := range []string{out + "plain.gguf", dir} {
		run(append(flags, "--force", "--out-dir", out+"all", "--name-template", "{FTYPE}.gguf", in, types[0],
			types[1])...)
		for _, typ := range types {
			run("--force", "--imatrix", out+"imatrix.gguf", in, out+"want.gguf", typ)
			if !bytes.Equal(read(out+"want.gguf"), read(out+"all/"+typ+".gguf")) {
				t.Errorf("%s, %s: the file differs from that with a matrix made before", filepath.Base(in), typ)
			}
		}
	}
	run(append(flags, "--force", "--exclude-weights", "ffn_down", dir, out+"some.gguf", "Q4_K_M")...)
	run("--force", "--imatrix", out+"imatrix.gguf", "--exclude-weights", "ffn_down", dir, out+"want.gguf", "Q4_K_M")
	if !bytes.Equal(read(out+"want.gguf"), read(out+"some.gguf")) {
		t.Error("with --exclude-weights: the file differs")
	}
	if bytes.Contains(read(out+"some.gguf"), []byte(out)) {
		t.Error("the output has the folder of the text")
	}
	run("--calibrate", text, "-c", "64", "--chunks", "3", "--effort", "high", "--hessian", out+"moments", dir,
		out+"f16.gguf", "F16")
	moments, err := gguf.Open(out + "moments")
	if err != nil {
		t.Fatal(err)
	}
	defer moments.Close()
	spread, err := eval.Text{Chunk: 64, Chunks: 3, Spread: true}.Run(v, strings.TrimSuffix(string(source[:2500]), "\n"))
	if err != nil || slices.Equal(spread.Tokens, chunks.Tokens[:len(spread.Tokens)]) {
		t.Fatalf("chunks spread over the text are the first ones, %v", err)
	}
	h := sha256.New()
	if err := binary.Write(h, binary.LittleEndian, spread.Tokens); err != nil {
		t.Fatal(err)
	}
	want := hex.EncodeToString(h.Sum(nil))
	if v, _ := moments.Metadata.Get("moments.tokens_sha256"); v.Short() != gguf.String(want).Short() {
		t.Errorf("SHA-256 of the tokens for --effort high is %s, want %s: chunks spread over the text", v.Short(), want)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--chunks 3 IN OUT Q4_K_M", 2, "--chunks goes with --calibrate"},
		{"--calibrate t --imatrix i IN OUT Q4_K_M", 2, "want only one of them"},
		{"--calibrate nowhere " + dir + " " + out + "x.gguf Q4_K_M", 1, "nowhere"},
		{"--calibrate " + text + " " + dir + " " + out + "want.gguf Q4_K_M", 2, "exists"},
		{"--calibrate " + text + " --force " + dir + " " + text + " Q4_K_M", 2, "text.txt"},
		{"--calibrate " + text + " -c 90000 " + dir + " " + out + "x.gguf Q4_K_M", 5, "want at least 90000"},
	} {
		if _, _, err := call(append(strings.Fields(c.args), "--progress", "none")...); tool.Code(err) != c.code ||
			err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: exit code %d, %v, want %d with %q", c.args, tool.Code(err), err, c.code, c.want)
		}
	}
	if _, err := os.Stat(out + "x.gguf"); err == nil {
		t.Error("an output after errors")
	}
}

// TestCalibrateNextN checks that low-bit types of MTP layers need --nextn, and get the importance of ggeval imatrix --nextn.
func TestCalibrateNextN(t *testing.T) {
	dir, err := hftest.Lookup("glm4_moe").Write(t.TempDir(), hftest.Variant{Seed: 1, DType: "BF16",
		Set: `{"hidden_size": 256, "intermediate_size": 256, "moe_intermediate_size": 256, "head_dim": 64}`})
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../../quants/quants.go")
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir() + "/"
	text := out + "text.txt"
	if err := os.WriteFile(text, source[:2500], 0o666); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (int, error) {
		code, _, err := call(append([]string{"--progress", "none", "--force", "--pre", "llama-bpe", "--tensor-type",
			"nextn.embed_tokens=q4_k", "-c", "32", "--chunks", "3", "--calibrate", text}, args...)...)
		return code, err
	}
	if code, err := run(dir, out+"a.gguf", "IQ2_XXS"); code != 5 || !strings.Contains(err.Error(), "blk.2.") {
		t.Errorf("without --nextn: %d, %v", code, err)
	}
	if code, err := run("--nextn", "--effort", "high", dir, out+"a.gguf", "IQ2_XXS"); code != 2 ||
		!strings.Contains(err.Error(), "--nextn goes with --effort matrix") {
		t.Errorf("--effort high: %d, %v", code, err)
	}
	if _, err := run("--nextn", dir, out+"a.gguf", "IQ2_XXS"); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(out + "a.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for i := range m.Tensors {
		if x := &m.Tensors[i]; x.Name == "blk.2.nextn.eh_proj.weight" && x.Type != gguf.TypeIQ2_XXS {
			t.Errorf("%s is %v", x.Name, x.Type)
		}
	}
}
