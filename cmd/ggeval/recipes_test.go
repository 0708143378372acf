package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ggforge/convert"
	"ggforge/imatrix/imatrixtest"
	"ggforge/internal/kernel/cpu"
	"ggforge/quantize"
	"ggforge/writer"
)

// matrixOf writes an importance matrix for the layers of a checkpoint, except tensors whose names contain an element
// of without.
func matrixOf(t *testing.T, dir string, without ...string) string {
	t.Helper()
	m, _, err := convert.Open(t.Context(), dir, convert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var entries []imatrixtest.Entry
	for _, x := range m.Tensors {
		skip := len(x.NE) < 2 || !strings.HasPrefix(x.Name, "blk.")
		for _, part := range without {
			skip = skip || strings.Contains(x.Name, part)
		}
		if skip {
			continue
		}
		e := imatrixtest.Entry{Name: x.Name, Calls: 1}
		matrices := int64(1)
		if len(x.NE) > 2 {
			matrices = x.NE[2]
		}
		for range matrices {
			e.Counts = append(e.Counts, 1)
		}
		for k := range matrices * x.NE[0] {
			e.Sums = append(e.Sums, 1+float32(k*7%11))
		}
		entries = append(entries, e)
	}
	path := filepath.Join(t.TempDir(), "imatrix.gguf")
	if err := os.WriteFile(path, imatrixtest.GGUF(entries, []string{"x"}, 1), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRecipes compares quantization in memory with files quantized by the same recipes: every figure has to be the
// same.
func TestRecipes(t *testing.T) {
	for _, c := range []struct {
		name    string
		dir     string
		recipes []string
		matrix  bool
		chunks  string
		args    []string
		change  func(*quantize.Options)
	}{
		{name: "types", dir: gollama, recipes: []string{"Q2_K", "Q8_0", "MXFP4_MOE", "TQ2_0"}, chunks: "1"},
		{name: "blocks of tokens", dir: checkpointOf(t, "llama", 3), recipes: []string{"IQ4_NL"}, chunks: "34"},
		{name: "importance", dir: gollama, recipes: []string{"IQ4_XS", "IQ2_XS"}, matrix: true, chunks: "1"},
		{name: "experts", dir: checkpointOf(t, "mixtral", 3), recipes: []string{"MXFP4_MOE", "Q5_0"}, matrix: true,
			chunks: "2"},
		{name: "fallback", dir: checkpointOf(t, "llama", 3), recipes: []string{"Q4_K_M", "COPY"}, chunks: "2"},
		{name: "flags", dir: gollama, recipes: []string{"Q4_0"}, chunks: "1",
			args: []string{"--pure", "--output-tensor-type", "q6_k", "--tensor-type", "attn_v=q5_1"},
			change: func(o *quantize.Options) {
				rule, err := quantize.CompileTensorRule("attn_v=q5_1")
				if err != nil {
					t.Fatal(err)
				}
				typ := rule.Type
				for _, r := range quantize.Recipes() {
					if r.Name == "Q6_K" {
						typ = r.Type
					}
				}
				o.Pure, o.TensorTypes, o.OutputTensorType = true, []quantize.TensorTypeRule{rule}, &typ
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.dir == gollama && !cpu.HasVectors {
				t.Skip("takes long without vector kernels, which change no figure")
			}
			opt, args := quantize.Options{}, append([]string{"compare", c.dir, "-f", textOf(t, source(t, 12000)), "-c",
				"64", "--chunks", c.chunks, "--json", "--progress", "none"}, c.args...)
			if c.matrix {
				opt.Matrix = matrixOf(t, c.dir)
				args = append(args, "--imatrix", opt.Matrix)
			}
			if c.change != nil {
				c.change(&opt)
			}
			m, _, err := convert.Open(t.Context(), c.dir, convert.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var list []*quantize.Recipe
			var paths []string
			for _, name := range c.recipes {
				r, ok := quantize.LookupRecipe(name)
				if !ok {
					t.Fatal(name)
				}
				list, paths = append(list, r), append(paths, filepath.Join(t.TempDir(), name+".gguf"))
				args = append(args, "--recipe", name)
			}
			batch, err := quantize.PrepareBatch(t.Context(), m, list, opt)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			defer batch.Close()
			results, err := batch.Write(t.Context(), paths, writer.Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, out, log, err := call(append(args, paths...)...)
			if err != nil {
				t.Fatal(err, log)
			}
			r := result[compareResult](t, out)
			if len(r.Models) != 2*len(list) {
				t.Fatalf("%d models", len(r.Models))
			}
			for i := range list {
				file, memory := r.Models[i], r.Models[len(list)+i]
				if memory.Recipe != list[i].Name || memory.Model != c.dir+" as "+list[i].Name ||
					memory.Bytes != results[i].Bytes || file.Recipe != "" {
					t.Errorf("%s of %d bytes, recipe %q; the file has %d", memory.Model, memory.Bytes, memory.Recipe,
						results[i].Bytes)
				}
				memory.Model, memory.Recipe = file.Model, ""
				if !reflect.DeepEqual(file, memory) {
					t.Errorf("%s: %+v in memory, %+v of the file", c.recipes[i], memory, file)
				}
				if !(memory.Divergence.Mean > 0) && c.recipes[i] != "COPY" {
					t.Errorf("%s: divergence %v", c.recipes[i], memory.Divergence)
				}
			}
		})
	}
}

// TestRecipeErrors checks that compare refuses recipes as ggquant does, and warns of tensors without importance.
func TestRecipeErrors(t *testing.T) {
	text := textOf(t, source(t, 3000))
	q8 := quantized(t, gollama, "Q8_0")[0]
	base := []string{"compare", "-f", text, "-c", "64", "--chunks", "2", "--progress", "none"}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{gollama, "--recipe", "IQ2_XS"}, 5, "needs an importance matrix"},
		{[]string{gollama, "--recipe", "IQ2_XS", "--imatrix", matrixOf(t, gollama, "ffn_down")}, 5,
			"no entry for this tensor"},
		{[]string{gollama, "--recipe", "Q4_0", "--imatrix", matrixOf(t, checkpointOf(t, "mixtral", 1))}, 5,
			"has 64 values, the tensor needs 256"},
		{[]string{gollama, "--recipe", "Q4_0", "--imatrix", text}, 3, text},
		{[]string{q8, "--recipe", "Q4_0"}, 5, "already quantized"},
		{[]string{q8, "--recipe", "Q4_0", "--allow-requantize"}, 0, ""},
		{[]string{gollama, "--recipe", "Q4_0", "--tensor-type", "a"}, 2, "pattern=type"},
	} {
		code, _, log, err := call(append(base, c.args...)...)
		if code != c.code || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: exit code %d, %v, want %d with %q; %s", c.args, code, err, c.code, c.want, log)
		}
	}
	code, out, log, err := call(append(base, gollama, "--recipe", "Q4_0", "--imatrix",
		matrixOf(t, gollama, "ffn_down"))...)
	if code != 0 || !strings.Contains(log,
		"Q4_0: tensors without an entry in the importance matrix: blk.0.ffn_down.weight") ||
		!strings.Contains(out, "gollama as Q4_0") {
		t.Errorf("exit code %d, %v: %s%s", code, err, log, out)
	}
}
