package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/convert"
	"ggforge/gguf"
	"ggforge/imatrix/imatrixtest"
	"ggforge/quantize"
	"ggforge/rows"
	"ggforge/test/clitest"
	"ggforge/test/hftest"
	"ggforge/test/hubtest"
	"ggforge/writer"
)

// TestQuality measures the weight error of a quantized model, as text, JSON and a page.
func TestQuality(t *testing.T) {
	dir := t.TempDir() + "/"
	values := make([]float32, 256)
	for i := range values {
		values[i] = float32(i*37%101)/50 - 1
	}
	write := func(name string, typ gguf.Type, tensors ...string) string {
		t.Helper()
		f := &writer.File{Path: dir + name, Metadata: gguf.Metadata{{Key: gguf.KeyArchitecture,
			Value: gguf.String("llama")}}}
		for _, name := range tensors {
			own := typ
			if name == "kept" {
				own = gguf.TypeF32
			}
			f.Tensors = append(f.Tensors, writer.Tensor{Name: name, Type: own, Source: rows.Float32s(values)})
		}
		if _, err := writer.Write(t.Context(), f, writer.Options{}); err != nil {
			t.Fatal(err)
		}
		return f.Path
	}
	ref, quant := write("ref.gguf", gguf.TypeF32, "a", "<b>", "gone", "kept"),
		write("quant.gguf", gguf.TypeQ8_0, "a", "<b>")
	mixed := write("mixed.gguf", gguf.TypeQ8_0, "a", "kept")
	weights := make([]float32, 256)
	weights[3] = 1 // only that column counts
	matrix := dir + "im.gguf"
	if err := os.WriteFile(matrix,
		imatrixtest.GGUF([]imatrixtest.Entry{{Name: "a", Sums: weights, Counts: []float32{1}}}, nil, 1),
		0o666); err != nil {
		t.Fatal(err)
	}
	run := expect(t, "quality")
	var q qualityReport
	if err := json.Unmarshal([]byte(run(0, "", "--json", "--imatrix", matrix, ref, quant)), &q); err != nil {
		t.Fatal(err)
	}
	if len(q.Tensors) != 2 || len(q.Types) != 1 || len(q.Missing) != 2 || q.Types[0].Tensors != 2 || q.All.BPW != 8.5 ||
		q.All.Elements != 512 {
		t.Fatalf("%+v", q)
	}
	a, b := q.Tensors[0], q.Tensors[1]
	if !(a.RMSE > 0 && a.RMSE < 0.004 && a.Relative == b.Relative && a.Cosine > 0.9999 && a.SQNR > 40) ||
		!(a.Weighted > 0 && a.Weighted != a.Relative) || b.Weighted != 0 {
		t.Errorf("%+v, %+v", a, b)
	}
	out := run(0, "only in "+ref+": gone, kept", ref, quant)
	for _, want := range []string{"Q8_0 (2)", "all (2)", "\na  ", "SQNR dB"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %s", want, out)
		}
	}
	page := dir + "q.html"
	run(0, "", "--html", page, ref, quant)
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "&lt;b&gt;") ||
		strings.Count(string(html), "<svg") < 2 || strings.Contains(string(html), "<script") {
		t.Errorf("%v: %.300s", err, html)
	}
	run(0, "", "--html", page, "--force", ref, mixed)
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	parts := clitest.Sections(t, string(html))
	for _, title := range []string{"Relative error by bits per weight", "Relative error by tensor"} {
		// tensors that are not quantized have no point
		if legend := parts[title].Legend; !slices.Equal(legend, []string{"Q8_0"}) {
			t.Errorf("%s: legend %q", title, legend)
		}
	}
	if types := parts["Types"]; types.Scrolls || len(types.Rows) != 3 || types.Head[1] != "bits/weight" ||
		slices.Contains(types.Head, "weighted") || len(types.Rows[0]) != len(types.Head) {
		t.Errorf("%+v", types)
	}
	if strings.Contains(string(html), dir) {
		t.Error("the page has a folder")
	}
	run(2, "exists", "--html", page, ref, quant)
	run(2, "output equals input", "--html", ref, "--force", ref, quant)
	run(5, "no tensor in common", ref, write("other.gguf", gguf.TypeF32, "c"))
	run(2, "want BASE [MODEL...]", ref)
	run(2, "--include-weights goes with --type", "--imatrix", matrix, "--include-weights", "a", ref, quant)
}

// TestQualityOfSeveral compares several models with one base: checkpoints, shards, files on a server, and recipes in
// memory. The figures must equal those of the local files.
func TestQualityOfSeveral(t *testing.T) {
	dir, err := hftest.Lookup("llama").Write(t.TempDir(), hftest.Variant{Seed: 3, DType: "BF16"})
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := convert.Open(t.Context(), dir, convert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var recipes []*quantize.Recipe
	var files []string
	for _, name := range []string{"BF16", "Q8_0", "Q4_0"} {
		r, _ := quantize.LookupRecipe(name)
		recipes, files = append(recipes, r), append(files, filepath.Join(dir, name+".gguf"))
	}
	batch, err := quantize.PrepareBatch(t.Context(), m, recipes, quantize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	defer batch.Close()
	if _, err := batch.Write(t.Context(), files, writer.Options{}); err != nil {
		t.Fatal(err)
	}
	bf16, q8, q4 := files[0], files[1], files[2]
	cut := filepath.Join(dir, "cut")
	expect(t, "split")(0, "", "--max-tensors", "10", q4, cut)
	shards, err := filepath.Glob(cut + "-00001-of-*.gguf")
	if err != nil || len(shards) != 1 {
		t.Fatal(shards, err)
	}
	hub := hubtest.Serve(t, "org/model", dir)
	t.Setenv("HF_ENDPOINT", hub.URL)
	t.Setenv("HF_TOKEN", "")

	run := expect(t, "quality")
	decode := func(into any, args []string) {
		t.Helper()
		out := run(0, "{", append(args, "--json")...)
		// warnings come before the JSON
		if err := json.Unmarshal([]byte(out[strings.IndexByte(out, '{'):]), into); err != nil {
			t.Fatalf("%q: %v: %.600s", args, err, out)
		}
	}
	one := func(args ...string) (q qualityReport) {
		t.Helper()
		decode(&q, args)
		return q
	}
	several := func(args ...string) []*qualityReport {
		t.Helper()
		var all qualityReports
		decode(&all, args)
		return all.Models
	}
	like := func(got qualityReport, want qualityReport, ref, quant, recipe string) {
		t.Helper()
		want.Ref, want.Quant, want.Recipe = ref, quant, recipe
		if a, b := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); a != b { // NaN != NaN
			t.Errorf("%s of %s:\n%.600s\nwant\n%.600s", quant, ref, a, b)
		}
	}
	of8, of4 := one(bf16, q8), one(bf16, q4)
	if !(of8.All.RMSE > 0) || !(of4.All.RMSE > 4*of8.All.RMSE) || of8.All.BPW < of4.All.BPW {
		t.Fatalf("%+v, %+v", of8.All, of4.All)
	}
	all := several(dir, q8, shards[0], "hf://org/model/Q4_0.gguf", hub.Host+"/Q4_0.gguf", "--type", "q8_0",
		"--recipe", "Q4_0")
	if len(all) != 6 {
		t.Fatalf("%d models", len(all))
	}
	for i, want := range []struct {
		q             qualityReport
		quant, recipe string
	}{{of8, q8, ""}, {of4, shards[0], ""}, {of4, "hf://org/model/Q4_0.gguf", ""}, {of4, hub.Host + "/Q4_0.gguf", ""},
		{of8, dir + " as Q8_0", "Q8_0"}, {of4, dir + " as Q4_0", "Q4_0"}} {
		like(*all[i], want.q, dir, want.quant, want.recipe)
	}
	like(one("--type", "Q4_0", "hf://org/model"), of4, "hf://org/model", "hf://org/model as Q4_0", "Q4_0")
	like(one("--remote", "org/model", "hf://org/model/Q4_0.gguf"), of4, "hf://org/model",
		"hf://org/model/Q4_0.gguf", "")
	if same := one("--via", "bf16", dir, dir); same.All.RMSE != 0 || same.All.Cosine != 1 || len(same.Missing) != 0 {
		t.Errorf("a checkpoint with itself: %+v", same.All)
	}
	if pure := one(dir, "--type", "Q4_0", "--pure"); !(pure.All.BPW < of4.All.BPW) {
		t.Errorf("--pure: %+v", pure.All)
	}
	weights := make([]float32, 64)
	for i := range weights {
		weights[i] = float32(i * i)
	}
	matrix := filepath.Join(dir, "im.gguf")
	if err := os.WriteFile(matrix, imatrixtest.GGUF([]imatrixtest.Entry{{Name: "blk.0.attn_q.weight", Sums: weights,
		Counts: []float32{1}}}, nil, 1), 0o666); err != nil {
		t.Fatal(err)
	}
	// the matrix weighs errors of both, and only the recipe's blocks are chosen by it
	both := several("--imatrix", matrix, "--type", "Q4_0", dir, q4)
	if file, memory := both[0].All, both[1].All; !(memory.Weighted > 0 && memory.Weighted < file.Weighted) {
		t.Errorf("with importance: %+v, without %+v", memory, file)
	}

	page := filepath.Join(t.TempDir(), "q.html")
	out := run(0, "models quantized from "+bf16+"\n\nmodel ", "--html", page, bf16, q8, q4)
	for _, want := range []string{"\n" + q8 + " (", "\n\n" + q8 + ", quantized from " + bf16,
		"\n\n" + q4 + ", quantized from " + bf16} {
		if strings.Count(out, want) != 1 {
			t.Errorf("%q is not once in %s", want, out)
		}
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	parts := clitest.Sections(t, string(html))
	if rows := parts["Models"].Rows; len(rows) != 2 || rows[0][0] != fmt.Sprintf("Q8_0.gguf (%d)", len(of8.Tensors)) ||
		rows[0][1] != fmt.Sprintf("%.4f", of8.All.BPW) || slices.Contains(parts["Models"].Head, "weighted") {
		t.Errorf("%+v", parts["Models"])
	}
	if legend := parts["Relative error by tensor"].Legend; !slices.Equal(legend, []string{"Q8_0.gguf", "Q4_0.gguf"}) {
		t.Errorf("legend %q", legend)
	}
	for _, name := range []string{"Q8_0.gguf", "Q4_0.gguf"} {
		if len(parts["Types of "+name].Rows) < 2 || len(parts["Tensors of "+name].Rows) != len(of8.Tensors) {
			t.Errorf("%s: %+v", name, parts["Types of "+name])
		}
	}
	run(5, "needs an importance matrix", "../../test/testdata/gollama", "--type", "IQ2_XS")
	run(5, "already quantized", q8, "--type", "Q4_0")
	run(2, "--pure goes with --type", "--pure", dir, q8)
	run(2, "--via is for checkpoints", "--via", "f32", bf16, q8)
	run(2, "output equals input", "--force", "--html", q4, dir, q8, q4)
	run(2, "want BASE [MODEL...]", dir)
	run(2, "is no type of ggquant", dir, "--type", "Q4_K_L")
}
