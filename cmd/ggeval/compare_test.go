package main

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/convert"
	"ggforge/internal/kernel/cpu"
	"ggforge/quantize"
	"ggforge/writer"
)

// quantized writes a checkpoint as a file of each recipe.
func quantized(t *testing.T, dir string, recipes ...string) []string {
	t.Helper()
	m, _, err := convert.Open(t.Context(), dir, convert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	var list []*quantize.Recipe
	var paths []string
	for _, name := range recipes {
		r, _ := quantize.LookupRecipe(name)
		list, paths = append(list, r), append(paths, filepath.Join(folder, name+".gguf"))
	}
	batch, err := quantize.PrepareBatch(t.Context(), m, list, quantize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	defer batch.Close()
	if _, err := batch.Write(t.Context(), paths, writer.Options{}); err != nil {
		t.Fatal(err)
	}
	return paths
}

// TestCompare compares files with the checkpoint that they were made from, as text and as JSON.
func TestCompare(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels; it tests no kernel")
	}
	files := quantized(t, gollama, "Q8_0", "Q4_K_M")
	text := textOf(t, source(t, 4000))
	args := append([]string{"compare", "-f", text, "-c", "32", "--chunks", "2", "--progress", "none", gollama},
		files...)
	_, out, _, err := call(append(args, "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	r := result[compareResult](t, out)
	if len(r.Models) != 2 || r.Chunks != 2 || r.Predicted != 2*15 || r.Base.Architecture != "llama" {
		t.Fatalf("%s", out)
	}
	if p := r.Pairs; len(p) != 1 || p[0].A != files[0] || p[0].B != files[1] || p[0].Closer != "" ||
		math.Abs(float64(p[0].Difference.Mean-r.Models[0].Divergence.Mean+r.Models[1].Divergence.Mean)) > 1e-9 {
		t.Errorf("pairs %+v", p)
	}
	_, alone, _, err := call("perplexity", "-f", text, "-c", "32", "--chunks", "2", "--progress", "none",
		"--json", files[1])
	if err != nil {
		t.Fatal(err)
	}
	if p := result[perplexityResult](t, alone); p.PPL != r.Models[1].PPL || p.Error != r.Models[1].Error {
		t.Errorf("perplexity %v ± %v alone, %v ± %v in the comparison", p.PPL, p.Error, r.Models[1].PPL,
			r.Models[1].Error)
	}
	for i, most := range []float64{1e-3, 0.1} { // upper limits
		m := r.Models[i]
		d := m.Divergence
		if p := m.Right; !(p.Min <= p.P01 && p.P01 <= p.P1 && p.P1 <= p.P5 && p.P5 <= p.P10 && p.P10 <= p.P25 &&
			p.P25 <= p.Median && p.Median <= p.P75 && p.P75 <= p.P90 && p.P90 <= p.P95 && p.P95 <= p.P99 &&
			p.P99 <= p.P999 && p.P999 <= p.Max && p.Min < 0 && p.Max > 0) || !(m.Correlation > 0.9 && m.Correlation <= 1) {
			t.Errorf("%s: Δp %+v, correlation %v", m.Model, p, m.Correlation)
		}
		if !(float64(d.Mean) < most && d.Mean >= 0) ||
			!(d.Min <= d.P1 && d.P1 <= d.P5 && d.P5 <= d.P10 && d.P10 <= d.Median && d.Median <= d.P90 && d.P90 <= d.P95 && d.P95 <= d.P99 && d.P99 <= d.P999 && d.P999 <= d.Max) {
			t.Errorf("%s: divergence %+v", m.Model, d)
		}
		if i > 0 && (d.Mean < 5*r.Models[i-1].Divergence.Mean || m.Layers[6].RMS < 5*r.Models[i-1].Layers[6].RMS ||
			m.BPW >= r.Models[i-1].BPW) {
			t.Errorf("%s is not worse than %s", m.Model, r.Models[i-1].Model)
		}
		var mean number
		for _, p := range m.ByPosition {
			mean += p / 15
		}
		if len(m.ByPosition) != 15 || math.Abs(float64(mean-d.Mean)) > 1e-12 {
			t.Errorf("%s: divergence by position %v, mean %v", m.Model, m.ByPosition, d.Mean)
		}
		mean = 0
		for _, c := range m.ByChunk {
			mean += c / number(r.Chunks)
		}
		if len(m.ByChunk) != r.Chunks || math.Abs(float64(mean-d.Mean)) > 1e-12 {
			t.Errorf("%s: divergence by chunk %v, mean %v", m.Model, m.ByChunk, d.Mean)
		}
		if len(m.Layers) != 7 || math.Abs(float64(m.Ratio.Mean-m.PPL/r.Base.PPL)) > 1e-9 || m.Top.Mean > 1 ||
			m.Top5.Mean < 0.8 {
			t.Errorf("%s: %+v", m.Model, m)
		}
	}
	_, out, _, err = call(args...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 chunks of 32, 30 tokens predicted", "base: " + gollama + ", llama",
		"[2] " + files[1], "layer 5", "embedding", "same top 5", "tokens/s"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// TestRanking checks the order of models, what is called chance, and that figures have the digits that errors leave.
func TestRanking(t *testing.T) {
	model := func(divergence number) modelResult {
		return modelResult{Divergence: divergenceResult{figureResult: figureResult{Mean: divergence}}}
	}
	r := compareResult{Models: []modelResult{model(0.003), model(0.001), model(0.002)},
		Pairs: []pairResult{{Difference: figureResult{0.002, 0.00012345}, Closer: "b"},
			{Difference: figureResult{0.001, 0.01}}, {Difference: figureResult{-0.001, 0.0001}, Closer: "a"}}}
	r.Chunks = 20
	var b strings.Builder
	r.ranking(&b)
	want := "[2] than [3] by 0.00100 ± 0.00010\n[3] than [1] by 0.001 ± 0.010: may be chance\n"
	if !strings.HasSuffix(b.String(), want) {
		t.Errorf("%s\nwant at its end\n%s", b.String(), want)
	}
	for want, v := range map[string][2]float64{"12 ± 34": {12.3, 34.4}, "0.0120 ± 0.0034": {0.012, 0.0034},
		"0.5": {0.5, math.NaN()}} {
		if got := rounded(v[0], v[1]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
