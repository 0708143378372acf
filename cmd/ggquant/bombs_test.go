package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/imatrix/imatrixtest"
	"ggforge/test/clitest"
)

// TestStringArrays quantizes a file with a large vocabulary to one type and to several: the outputs share the
// vocabulary, and memory for each output is a small multiple of its size.
func TestStringArrays(t *testing.T) {
	dir := t.TempDir()
	tokens := make([]string, 300_000)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("token %07d", i)
	}
	m := gguf.Metadata{
		{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: "llama.block_count", Value: gguf.Uint32(1)},
		{Key: "llama.attention.head_count", Value: gguf.Uint32(4)},
		{Key: "tokenizer.ggml.tokens", Value: gguf.Strings(tokens)},
		{Key: "tokenizer.ggml.scores", Value: gguf.Float32s(make([]float32, len(tokens)))},
	}
	tensors := []gguf.Tensor{{Name: "output.weight", NE: []int64{256, 4}, Type: gguf.TypeF32}}
	size := gguf.Layout(tensors, 32)
	b := gguf.AppendHeader(nil, m, tensors, 32)
	header := uint64(len(b))
	in := filepath.Join(dir, "in.gguf")
	if err := os.WriteFile(in, append(b, make([]byte, size)...), 0o666); err != nil {
		t.Fatal(err)
	}
	cost := func(types ...string) float64 {
		args := append([]string{"--out-dir", filepath.Join(dir, types[0]), "--threads", "1", "--progress", "none", in},
			types...)
		got := clitest.Alone(t, args...)
		if got.Code != 0 {
			t.Fatal(got.Text)
		}
		return float64(got.Allocated) / float64(header)
	}
	one := cost("Q8_0")
	each := (cost("Q4_0", "Q5_0", "Q5_1", "Q8_0", "F16") - one) / 4
	t.Logf("%.1f times the header for one output, %.1f for each further one", one, each)
	if one > 8 || each > 3.5 {
		t.Error("want at most 8 and 3.5")
	}
}

// TestManyEntries refuses an importance matrix of more entries than a model has
// tensors, and shows the name of an entry on one line.
func TestManyEntries(t *testing.T) {
	in := ggufFile(t, nil, 32, gguf.Tensor{Name: "t.weight", NE: []int64{32}, Type: gguf.TypeF32})
	write := func(n int, name string) string {
		entries := make([]imatrixtest.Entry, n)
		for i := range entries {
			entries[i] = imatrixtest.Entry{Name: fmt.Sprint(name, i), Calls: 1, Sums: []float32{1}}
		}
		path := filepath.Join(t.TempDir(), "im.dat")
		if err := imatrixtest.Write(path, imatrixtest.Legacy(entries, nil)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		matrix string
		code   int
		want   string
	}{
		{write(gguf.MaxTensors+1, "e"), 4, "131073 entries, want at most 131072"},
		{write(1, "a\nb"), 5, `a\nb0`},
	} {
		code, _, err := call("--imatrix", c.matrix, in, filepath.Join(t.TempDir(), "out.gguf"), "Q8_0")
		if code != c.code || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("exit %d, %.300v; want %d and %q", code, err, c.code, c.want)
		}
	}
}
