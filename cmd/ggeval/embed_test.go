package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/convert"
	"ggforge/writer"
)

// encoderOf writes an encoder as a file of a type.
func encoderOf(t *testing.T, dir string, as convert.OutType) string {
	t.Helper()
	job, err := convert.Prepare(t.Context(), dir, convert.Options{Type: as})
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	file := filepath.Join(t.TempDir(), "encoder.gguf")
	if _, err := job.Write(t.Context(), file, writer.Options{}); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestEmbed makes vectors of lines and of arguments, as text, JSON and floats in a file, and
// compares the vectors of a file with those of the checkpoint it was converted from.
func TestEmbed(t *testing.T) {
	dir := checkpointOf(t, "bge-reranker", 1)
	file := encoderOf(t, dir, convert.Q8_0)
	texts := textOf(t, "a river\nthe sea\n\na river\n")
	_, out, _, err := call("embed", dir, "-f", texts, "--pooling", "mean", "--json", "--progress", "none")
	if err != nil {
		t.Fatal(err)
	}
	r := result[embedResult](t, out)
	if r.Texts != 4 || len(r.Vectors) != 4 || r.Width != 64 || r.Pooling != "mean" || r.Norm != 2 ||
		r.Architecture != "bert" || r.Tokens < 8 || r.Speed <= 0 {
		t.Fatalf("%s", out)
	}
	list := func(r embedResult, i int) (v []float64) {
		for _, x := range r.Vectors[i].([]any) {
			v = append(v, x.(float64))
		}
		return v
	}
	sum := 0.0
	for _, x := range list(r, 0) {
		sum += x * x
	}
	if math.Abs(sum-1) > 1e-5 || fmt.Sprint(list(r, 0)) != fmt.Sprint(list(r, 3)) ||
		fmt.Sprint(list(r, 0)) == fmt.Sprint(list(r, 1)) {
		t.Errorf("%v", r.Vectors)
	}
	_, out, _, err = call("embed", dir, "--text", `a ri\x76er`, "--text", "the sea", "-e", "--pooling", "mean",
		"--normalize", "-1", "--json", "-t", "1", "--progress", "json")
	if err != nil {
		t.Fatal(err)
	}
	plain := result[embedResult](t, out)
	for i, x := range list(plain, 1) {
		if y := list(r, 1)[i] * list(plain, 1)[0] / list(r, 1)[0]; math.Abs(x-y) > 1e-5*math.Abs(y) {
			t.Fatalf("value %d of the second text is %v, %v of a unit vector", i, x, y)
		}
	}
	vectors := filepath.Join(t.TempDir(), "v.f32")
	args := []string{"embed", file, "-f", texts, "--pooling", "cls", "--base", dir, "-o", vectors, "--progress", "none"}
	_, out, _, err = call(append(args, "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	d := result[embedResult](t, out)
	if d.Vectors != nil || d.Base == nil || len(d.Base.Cosines) != 4 || d.Base.Model != dir || d.BPW >= d.Base.BPW {
		t.Fatalf("%s", out)
	}
	c := d.Base.Cosine
	if !(c.Min > 0.99 && c.Mean < 1 && c.Min <= c.P1 && c.P10 <= c.Median && c.Median <= c.Max) ||
		!(d.Base.Distance.Min > 0 && d.Base.Distance.Max < 0.1) {
		t.Errorf("%+v", d.Base)
	}
	data, err := os.ReadFile(vectors)
	if err != nil || len(data) != 4*4*64 {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	sum = 0
	for i := range 64 {
		x := float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
		sum += x * x
	}
	if math.Abs(sum-1) > 1e-5 {
		t.Errorf("the first vector has a length of √%v", sum)
	}
	if code, _, _, err := call(args...); code != 2 || !strings.Contains(err.Error(), "--force") {
		t.Errorf("a file that exists: exit code %d, %v", code, err)
	}
	_, out, _, err = call(append(args, "--force")...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"4 texts of ", "pooling cls, 64 values each", vectors + ": vectors", "base: " + dir,
		"median", "tokens/s"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	_, out, _, err = call("embed", dir, "--text", "a", "--pooling", "rank", "--progress", "none")
	if err != nil || !strings.Contains(out, "pooling rank, 1 values each\n[1] [") {
		t.Errorf("%v\n%s", err, out)
	}
	_, out, _, err = call("embed", dir, "--text", "a river", "--text", "a", "--json", "--base", dir,
		"--progress", "none")
	if err != nil {
		t.Fatal(err)
	}
	if r := result[embedResult](t, out); r.Pooling != "none" || len(r.Vectors) != 2 || len(r.Vectors[0].([]any)) < 2 ||
		r.Base.Cosine.Min != 1 || len(r.Base.Cosines) != r.Tokens {
		t.Errorf("%s", out)
	}
}

// TestEmbedRefused checks the errors of embed, and those of encoders in verbs that predict tokens.
func TestEmbedRefused(t *testing.T) {
	dir, text := checkpointOf(t, "xlm-roberta", 1), textOf(t, strings.Repeat("a river and the sea ", 40))
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"embed", 2, "want MODEL"},
		{"embed " + dir, 2, "want texts"},
		{"embed " + dir + " --text a --pooling max", 2, `--pooling: pooling "max"`},
		{"embed " + dir + " --text a --normalize=-2", 2, "--normalize: norm -2"},
		{"embed " + dir + " --text a --pooling rank", 4, "no classification"},
		{"embed " + dir + " -f " + text, 5, "want at most 64"},
		{"embed " + dir + " --text a --pooling mean --base " + gollama, 5, "cannot be compared"},
		{"embed " + dir + " --text a -o " + text, 2, "--force"},
		{"embed " + dir + " -f " + text + " -o " + text + " --force", 2, "equals input"},
		{"perplexity " + dir + " -f " + text + " -c 16", 4, "predicts no tokens"},
		{"compare " + gollama + " " + dir + " -f " + text + " -c 16", 5, "tokens"},
	} {
		if code, _, _, err := call(append(strings.Fields(c.args), "--progress", "none")...); code != c.code ||
			!strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%q: exit code %d, %v, want %d with %q", c.args, code, err, c.code, c.want)
		}
	}
}
