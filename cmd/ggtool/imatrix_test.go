package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/imatrix/imatrixtest"
)

// TestImatrix merges, converts, changes and shows matrices.
func TestImatrix(t *testing.T) {
	dir := t.TempDir() + "/"
	run := expect(t, "imatrix")
	write := func(name string, data []byte) string {
		t.Helper()
		if err := os.WriteFile(dir+name, data, 0o666); err != nil {
			t.Fatal(err)
		}
		return dir + name
	}
	values := func(path, name string) []float32 {
		t.Helper()
		m, err := imatrix.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		e := m.Entry(name)
		if e == nil {
			return nil
		}
		v, err := m.Values(e)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	a := write("a.gguf", imatrixtest.GGUF([]imatrixtest.Entry{
		{Name: "blk.0.attn_q.weight", Sums: []float32{2, 4, 0, 6}, Counts: []float32{2}},
		{Name: "blk.0.ffn_gate_exps.weight", Sums: []float32{3, 6, 9, 12, 0, 0, 0, 0, 2, 2, 2, 2},
			Counts: []float32{3, 0, 1}},
		{Name: "blk.1.ffn_gate_exps.weight", Sums: make([]float32, 12), Counts: []float32{0, 0, 0}},
		{Name: "blk.2.ffn_gate_exps.weight", Sums: []float32{5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5},
			Counts: []float32{1, 1, 1}},
	}, []string{"/home/someone/text.txt"}, 1))
	b := write("b.dat", imatrixtest.Legacy([]imatrixtest.Entry{{Name: "blk.0.attn_q.weight",
		Sums: []float32{4, 4, 4, 4}, Calls: 2}}, &imatrixtest.Trailer{Chunks: 2, Dataset: "b.txt"}))

	run(0, "4 tensors", "merge", "--chunk-size", "1", b, a, dir+"ab.gguf")
	if got := values(dir+"ab.gguf", "blk.0.attn_q.weight"); !slices.Equal(got, []float32{1.5, 2, 1, 2.5}) {
		t.Errorf("merged: %v", got)
	}
	run(0, "a.dat", "convert", "--format", "dat", a, dir+"a.dat")
	if m, err := imatrix.Open(dir + "a.dat"); err != nil || !m.Legacy {
		t.Errorf("converted: %v", err)
	} else {
		m.Close()
	}
	run(0, "strip", "strip", a, dir+"strip.gguf")
	if m, err := imatrix.Open(dir + "strip.gguf"); err != nil || !slices.Equal(m.Datasets, []string{"text.txt"}) {
		t.Errorf("stripped: %v", err)
	} else {
		m.Close()
	}

	run(0, "blk.0.ffn_gate_exps.weight: 1 matrices\nblk.1.ffn_gate_exps.weight: 3 matrices\n", "fill", a,
		dir+"mean.gguf")
	if got := values(dir+"mean.gguf", "blk.0.ffn_gate_exps.weight"); !slices.Equal(got,
		[]float32{1, 2, 3, 4, 1.5, 2, 2.5, 3, 2, 2, 2, 2}) {
		t.Errorf("filled: %v", got)
	}
	if got := values(dir+"mean.gguf", "blk.1.ffn_gate_exps.weight"); !slices.Equal(got[:4],
		[]float32{3.25, 3.5, 3.75, 4}) || !slices.Equal(got[:4], got[8:]) {
		t.Errorf("filled from other layers: %v", got)
	}
	run(0, "4 tensors", "fill", "--how", "uniform", a, dir+"uniform.gguf")
	if got := values(dir+"uniform.gguf", "blk.0.ffn_gate_exps.weight"); !slices.Equal(got[:8],
		[]float32{1, 2, 3, 4, 1, 1, 1, 1}) {
		t.Errorf("filled: %v", got)
	}
	if out := run(0, "", "fill", dir+"mean.gguf", dir+"again.gguf"); strings.Contains(out, "matrices") {
		t.Errorf("filled again: %s", out)
	}

	model := func(name string, tensors ...gguf.Tensor) string {
		data := make([]byte, gguf.Layout(tensors, 32))
		return write(name, append(gguf.AppendHeader(nil, nil, tensors, 32), data...))
	}
	f32 := func(name string, ne ...int64) gguf.Tensor { return gguf.Tensor{Name: name, NE: ne, Type: gguf.TypeF32} }
	fused := model("fused.gguf", f32("blk.0.attn_qkv.weight", 4, 9), f32("blk.0.attn_norm.weight", 4),
		f32("blk.0.ffn_gate_up_exps.weight", 4, 2, 3), f32("blk.2.ffn_gate_exps.weight", 4, 1, 3))
	run(0, "+ blk.0.attn_qkv.weight\n+ blk.0.ffn_gate_up_exps.weight\n- blk.0.attn_q.weight\n- "+
		"blk.0.ffn_gate_exps.weight\n- blk.1.ffn_gate_exps.weight\n", "remap", "--model", fused, a, dir+"remap.gguf")
	if got := values(dir+"remap.gguf", "blk.0.attn_qkv.weight"); !slices.Equal(got, []float32{1, 2, 0, 3}) {
		t.Errorf("remapped: %v", got)
	}
	run(0, "right for 3 of 3 tensors", "check", "--model", fused, dir+"remap.gguf")
	run(0, "blk.0.ffn_gate_up_exps.weight: no token has used 1 of 3 matrices", "check", "--model", fused,
		dir+"remap.gguf")
	run(0, "blk.0.attn_q.weight: the model has no such weights", "check", "--model", fused, a)
	run(0, "blk.0.attn_qkv.weight: the matrix has no entry for it", "check", "--model", fused, a)
	wide := model("wide.gguf", f32("blk.0.attn_q.weight", 8, 9), f32("blk.2.ffn_gate_exps.weight", 4, 1, 3))
	run(3, "does not fit the model", "check", "--model", wide, a)
	run(5, "has 4 values", "remap", "--model", wide, a, dir+"x.gguf")

	var report matrixReport
	if err := json.Unmarshal([]byte(run(0, "", "show", "--json", a)), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Tensors) != 4 || len(report.Layers) != 2 || report.Tensors[1].Unseen != 1 ||
		report.Tensors[0].Dead != 1 || report.Tensors[0].Max != 3 ||
		math.Abs(float64(report.Tensors[0].Concentration)-0.5) > 1e-9 {
		t.Errorf("%+v", report)
	}
	run(0, "1 of 3", "show", a)
	run(0, "blk.0.attn_q.weight", "show", b)

	run(2, "exists", "merge", a, b, dir+"ab.gguf")
	run(2, "want FILE OUT", "convert", a)
	run(2, "surplus", "convert", a, b, dir+"x.gguf")
	run(2, "output equals input", "convert", "--force", a, a)
	run(2, "want gguf or dat", "convert", "--format", "csv", a, dir+"x.gguf")
	run(2, "want one of", "fill", "--how", "zero", a, dir+"x.gguf")
	run(2, "chunks of 0", "merge", "--chunk-size", "0", a, dir+"x.gguf")
	run(2, "want a verb")
	run(2, "unknown verb", "frobnicate")
	run(3, "fused.gguf", "show", fused)
	if left, _ := filepath.Glob(dir + "x.gguf*"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
