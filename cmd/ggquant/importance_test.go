package main

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/imatrix/imatrixtest"
)

// expertModel writes an F32 model with one dense matrix and a stack of three.
func expertModel(t *testing.T, path string) string {
	t.Helper()
	tensors := []gguf.Tensor{
		{Name: "blk.0.attn_q.weight", NE: []int64{256, 4}, Type: gguf.TypeF32},
		{Name: "blk.0.ffn_down_exps.weight", NE: []int64{256, 4, 3}, Type: gguf.TypeF32},
	}
	m := gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: "llama.block_count", Value: gguf.Uint32(1)}}
	size := gguf.Layout(tensors, 32)
	b := gguf.AppendHeader(nil, m, tensors, 32)
	for i := range size / 4 {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(i%37)/64-0.25))
	}
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBlankImportance checks that weights without importance in the matrix are named in a warning, or with --strict
// in an error.
func TestBlankImportance(t *testing.T) {
	dir := t.TempDir()
	in := expertModel(t, filepath.Join(dir, "in.gguf"))
	ones := func(n, from, to int) []float32 { // ones with zeros in [from, to)
		x := make([]float32, n)
		for i := range x {
			if i < from || i >= to {
				x[i] = 1
			}
		}
		return x
	}
	const q, exps = "blk.0.attn_q.weight", "blk.0.ffn_down_exps.weight"
	for name, c := range map[string]struct {
		file []byte
		want []string
	}{
		"whole": {imatrixtest.Legacy([]imatrixtest.Entry{{Name: q, Calls: 1, Sums: ones(256, 0, 200)},
			{Name: exps, Calls: 1, Sums: ones(768, 256, 500)}}, nil), nil},
		"legacy expert": {imatrixtest.Legacy([]imatrixtest.Entry{{Name: q, Calls: 1, Sums: ones(256, 0, 0)},
			{Name: exps, Calls: 1, Sums: ones(768, 256, 768)}}, nil),
			[]string{"importance is 0 in every column: " + exps + " (2 of 3 matrices)"}},
		"legacy tensor": {imatrixtest.Legacy([]imatrixtest.Entry{{Name: q, Calls: 1, Sums: ones(256, 0, 256)},
			{Name: exps, Calls: 1, Sums: ones(768, 0, 0)}}, nil),
			[]string{"importance is 0 in every column: " + q}},
		"sums": {imatrixtest.GGUF([]imatrixtest.Entry{{Name: q, Counts: []float32{5}, Sums: ones(256, 0, 256)},
			{Name: exps, Counts: []float32{1, 2, 3}, Sums: ones(768, 0, 256)}}, []string{"d"}, 1),
			[]string{"importance is 0 in every column: " + q + ", " + exps + " (1 of 3 matrices)"}},
		"counts": {imatrixtest.GGUF([]imatrixtest.Entry{{Name: q, Counts: []float32{0}, Sums: ones(256, 0, 256)},
			{Name: exps, Counts: []float32{0, 2, 0}, Sums: ones(768, 0, 256)}}, []string{"d"}, 1),
			[]string{"as if every column counted the same: " + q + ", " + exps + " (2 of 3 matrices)"}},
	} {
		t.Run(name, func(t *testing.T) {
			im := filepath.Join(t.TempDir(), "im")
			if err := imatrixtest.Write(im, c.file); err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(t.TempDir(), "out.gguf")
			code, text, err := call("--imatrix", im, in, out, "Q4_K", "--progress", "none")
			if code != 0 {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if n := strings.Count(text, want+"\n"); n != 1 {
					t.Errorf("%d lines with %q in\n%s", n, want, text)
				}
			}
			if c.want == nil && strings.Contains(text, "warning") {
				t.Errorf("warns:\n%s", text)
			}
			strict := filepath.Join(t.TempDir(), "strict.gguf")
			code, _, err = call("--imatrix", im, in, strict, "Q4_K", "--progress", "none", "--strict")
			switch {
			case c.want == nil && code != 0:
				t.Errorf("strict: %v", err)
			case c.want != nil && (code != 5 || !strings.Contains(err.Error(), c.want[0])):
				t.Errorf("strict: exit code %d, %v; want 5 with %q", code, err, c.want[0])
			}
			if _, err := os.Stat(strict); (err == nil) != (c.want == nil) {
				t.Errorf("strict: output %v", err)
			}
			if code, text, _ := call("--imatrix", im, in, out, "F16", "--progress", "none", "--force"); code != 0 ||
				strings.Contains(text, "every column") {
				t.Errorf("F16, which does not look at importance: exit code %d\n%s", code, text)
			}
		})
	}
}

// TestDataset checks that the output does not have the folders of the calibration text, except with --compat
// reference.
func TestDataset(t *testing.T) {
	dir := t.TempDir()
	in := expertModel(t, filepath.Join(dir, "in.gguf"))
	im := filepath.Join(dir, "im.gguf")
	entries := []imatrixtest.Entry{{Name: "blk.0.attn_q.weight", Counts: []float32{1}, Sums: make([]float32, 256)}}
	if err := imatrixtest.Write(im, imatrixtest.GGUF(entries, []string{"/home/me/texts/calibration.txt"},
		1)); err != nil {
		t.Fatal(err)
	}
	for compat, want := range map[string][2]string{"": {"im.gguf", "calibration.txt"},
		"reference": {im, "/home/me/texts/calibration.txt"}} {
		out := filepath.Join(t.TempDir(), "out.gguf")
		if code, _, err := call("--compat="+compat, "--imatrix", im, in, out, "Q4_0", "--progress", "none"); code != 0 {
			t.Fatal(err)
		}
		f, err := gguf.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		file, _ := f.Metadata.Get("quantize.imatrix.file")
		dataset, _ := f.Metadata.Get("quantize.imatrix.dataset")
		if file != gguf.String(want[0]) || dataset != gguf.String(want[1]) {
			t.Errorf("%q: file %v, dataset %v; want %q", compat, file, dataset, want)
		}
	}
}
