package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/imatrix/imatrixtest"
	"ggforge/rows"
	"ggforge/writer"
)

// TestQuality says how far a quantized model is from what it was, as text, JSON and a page.
func TestQuality(t *testing.T) {
	dir := t.TempDir() + "/"
	values := make([]float32, 256)
	for i := range values {
		values[i] = float32(i*37%101)/50 - 1
	}
	write := func(name string, typ gguf.Type, tensors ...string) string {
		t.Helper()
		f := &writer.File{Path: dir + name, Metadata: gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")}}}
		for _, name := range tensors {
			f.Tensors = append(f.Tensors, writer.Tensor{Name: name, Type: typ, Source: rows.Float32s(values)})
		}
		if _, err := writer.Write(t.Context(), f, writer.Options{}); err != nil {
			t.Fatal(err)
		}
		return f.Path
	}
	ref, quant := write("ref.gguf", gguf.TypeF32, "a", "<b>", "gone"), write("quant.gguf", gguf.TypeQ8_0, "a", "<b>")
	weights := make([]float32, 256)
	weights[3] = 1 // only that column counts
	matrix := dir + "im.gguf"
	if err := os.WriteFile(matrix, imatrixtest.GGUF([]imatrixtest.Entry{{Name: "a", Sums: weights, Counts: []float32{1}}}, nil, 1), 0o666); err != nil {
		t.Fatal(err)
	}
	run := expect(t, "quality")
	var q qualityReport
	if err := json.Unmarshal([]byte(run(0, "", "--json", "--imatrix", matrix, ref, quant)), &q); err != nil {
		t.Fatal(err)
	}
	if len(q.Tensors) != 2 || len(q.Types) != 1 || len(q.Missing) != 1 || q.Types[0].Tensors != 2 || q.All.BPW != 8.5 || q.All.Elements != 512 {
		t.Fatalf("%+v", q)
	}
	a, b := q.Tensors[0], q.Tensors[1]
	if !(a.RMSE > 0 && a.RMSE < 0.004 && a.Relative == b.Relative && a.Cosine > 0.9999 && a.SQNR > 40) || !(a.Weighted > 0 && a.Weighted != a.Relative) || b.Weighted != 0 {
		t.Errorf("%+v, %+v", a, b)
	}
	out := run(0, "only in "+ref+": gone", ref, quant)
	for _, want := range []string{"Q8_0 (2)", "all (2)", "\na  ", "SQNR dB"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %s", want, out)
		}
	}
	page := dir + "q.html"
	run(0, "", "--html", page, ref, quant)
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "&lt;b&gt;") || strings.Count(string(html), "<svg") < 2 || strings.Contains(string(html), "<script") {
		t.Errorf("%v: %.300s", err, html)
	}
	run(2, "exists", "--html", page, ref, quant)
	run(2, "output equals input", "--html", ref, "--force", ref, quant)
	run(5, "no tensor in common", ref, write("other.gguf", gguf.TypeF32, "c"))
	run(2, "want REF QUANT", ref)
}
