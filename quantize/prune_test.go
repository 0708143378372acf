package quantize

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
)

func TestRenumber(t *testing.T) {
	var names []string
	for _, p := range []string{"dec.", "enc.", ""} {
		for i := range 12 {
			names = append(names, fmt.Sprintf("%sblk.%d.x", p, i))
		}
	}
	// the reference visits the names of an encoder by their bytes
	byBytes := slices.Sorted(slices.Values(names[:12]))
	for _, c := range []struct {
		names    []string
		drop     []int64
		visiting bool
		name     string
		want     string // "" for none
	}{
		{names, []int64{1}, false, "dec.blk.11.x", "dec.blk.10.x"},
		{names, []int64{3, 1}, false, "blk.2.x", "blk.1.x"},
		{names, []int64{3, 1}, false, "blk.3.x", ""},
		{names, []int64{0}, false, "enc.blk.1.x.blk.7.y", "enc.blk.0.x.blk.7.y"},
		{names, []int64{40}, false, "blk.11.x", "blk.11.x"},
		{names, []int64{1}, false, "output.weight", "output.weight"},
		{byBytes, []int64{1}, false, "dec.blk.10.x", "dec.blk.9.x"},
		{byBytes, []int64{1}, true, "dec.blk.10.x", "dec.blk.1.x"},
		{byBytes, []int64{1}, true, "dec.blk.2.x", "dec.blk.3.x"},
		{[]string{"blk.2.x", "blk.5.x", "blk.7.x"}, []int64{5}, false, "blk.7.x", "blk.3.x"},
		{[]string{"blk.99999999999999999999.x", "blk.1.x"}, []int64{1}, false, "blk.99999999999999999999.x",
			"blk.99999999999999999999.x"},
	} {
		got, ok := renumber(c.names, c.drop, c.visiting).name(c.name)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("without %v: %s becomes %q, want %q", c.drop, c.name, got, c.want)
		}
	}
}

// TestPruneArrays checks that arrays with one element per layer shrink with the
// layers, and others do not.
func TestPruneArrays(t *testing.T) {
	opt := options(t, "COPY")
	opt.PruneLayers = []int64{1}
	m := modelMeta("llama", ".block_count", 4)
	four := func(key string, v gguf.Value) { m.Set(key, v) }
	four("llama.attention.head_count_kv", gguf.Int32s([]int32{1, 2, 3, 4}))
	four("llama.attention.sliding_window_pattern", gguf.Array(gguf.BoolType, gguf.Bool(true), gguf.Bool(false),
		gguf.Bool(false), gguf.Bool(true)))
	four("llama.three", gguf.Int32s([]int32{1, 2, 3}))
	four("llama.rope.dimension_sections", gguf.Int32s([]int32{1, 2, 3, 4}))
	four("llama.labels", gguf.Strings([]string{"a", "b", "c", "d"}))
	four("other.four", gguf.Int32s([]int32{1, 2, 3, 4}))
	var shapes []shape
	for i := range 4 {
		shapes = append(shapes, shape{fmt.Sprintf("blk.%d.a.weight", i), []int64{32, 2}})
	}
	in := filepath.Join(t.TempDir(), "in.gguf")
	if err := os.WriteFile(in, encode(m, tensorsOf(shapes, gguf.TypeF32), 32), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, reference := range []bool{false, true} {
		opt.Reference = reference
		job, err := Prepare(t.Context(), in, opt)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			"llama.block_count": "3", "llama.three": "[1, 2, 3]", "llama.rope.dimension_sections": "[1, 2, 3, 4]",
			"llama.labels": `["a", "b", "c", "d"]`, "other.four": "[1, 2, 3, 4]",
			"llama.attention.head_count_kv":          "[1, 3, 4]",
			"llama.attention.sliding_window_pattern": "[true, false, true]",
		}
		if reference {
			want["llama.attention.head_count_kv"] = "[1, 2, 3, 4]"
			want["llama.attention.sliding_window_pattern"] = "[true, false, false, true]"
		}
		for key, w := range want {
			if v, _ := job.metadata.Get(key); v.String() != w {
				t.Errorf("reference %v: %s is %v, want %s", reference, key, v, w)
			}
		}
		if v, _ := job.Input.Metadata.Get("llama.attention.head_count_kv"); v.Len() != 4 {
			t.Error("input changed")
		}
		job.Close()
	}
}

func TestParseLayers(t *testing.T) {
	got, err := ParseLayers("3, 0,12")
	if err != nil || !slices.Equal(got, []int64{3, 0, 12}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, s := range []string{"", "1,", "x", "-1", "1.5", "1;2"} {
		if _, err := ParseLayers(s); !errors.Is(err, fault.Usage) {
			t.Errorf("%q: %v", s, err)
		}
	}
}
