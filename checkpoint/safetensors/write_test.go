package safetensors_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
)

// TestLayoutGolden is the worked example of the package comment.
func TestLayoutGolden(t *testing.T) {
	header, size, err := safetensors.Layout([]safetensors.Tensor{{Name: "a", DType: safetensors.F32,
		Shape: []int64{2}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := "\x38\x00\x00\x00\x00\x00\x00\x00" + `{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}` + "  "
	if string(header) != want || size != 72 {
		t.Errorf("%q, %d bytes; want %q, 72", header, size, want)
	}
}

// TestLayout checks the order in the file, which is not that of the tensors, and
// that it reads back.
func TestLayout(t *testing.T) {
	tensors := []safetensors.Tensor{
		{Name: "odd", DType: safetensors.BF16, Shape: []int64{3}},
		{Name: "b", DType: safetensors.F32, Shape: []int64{2, 3}},
		{Name: "<&>\"\n\u00e9", DType: safetensors.I8, Shape: []int64{5}},
		{Name: "a", DType: safetensors.F32},
		{Name: "none", DType: safetensors.F16, Shape: []int64{4, 0}},
		{Name: "wide", DType: safetensors.I64, Shape: []int64{1}},
	}
	header, size, err := safetensors.Layout(tensors, map[string]string{"format": "pt", "a": "<b>"})
	if err != nil {
		t.Fatal(err)
	}
	text := string(header[8:])
	if want := `{"__metadata__":{"a":"<b>","format":"pt"},"wide":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[],"data_offsets":[8,12]},"b":{"dtype":"F32","shape":[2,3],"data_offsets":[12,36]},` +
		`"odd":{"dtype":"BF16","shape":[3],"data_offsets":[36,42]},"none":{"dtype":"F16","shape":[4,0],"data_offsets":[42,42]},"<&>\"\n` + "\u00e9" + `":{"dtype":"I8","shape":[5],"data_offsets":[42,47]}}`; strings.TrimRight(text, " ") != want {
		t.Errorf("header\n%s, want\n%s", text, want)
	}
	if tensors[0].Name != "odd" || size != int64(len(header))+47 {
		t.Errorf("%d bytes, first tensor %q", size, tensors[0].Name)
	}
	f, err := safetensors.Parse("x", append(header, make([]byte, 47)...))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range tensors {
		g, ok := f.Lookup(w.Name)
		if !ok || g.DType != w.DType || !slices.Equal(g.Shape, w.Shape) || g.Offset() != w.Offset() {
			t.Errorf("%q reads back as %+v", w.Name, g)
		}
		if g.Offset()%int64(g.DType.Bits()/8) != 0 {
			t.Errorf("%q begins at byte %d", w.Name, g.Offset())
		}
	}
	if !maps.Equal(f.Metadata, map[string]string{"format": "pt", "a": "<b>"}) {
		t.Errorf("metadata %v", f.Metadata)
	}
}

func TestLayoutRefuses(t *testing.T) {
	f32 := func(name string, shape ...int64) safetensors.Tensor {
		return safetensors.Tensor{Name: name, DType: safetensors.F32, Shape: shape}
	}
	for _, c := range []struct {
		name, text string
		tensors    []safetensors.Tensor
	}{
		{"twice", "twice", []safetensors.Tensor{f32("a", 1), f32("a", 2)}},
		{"reserved", "__metadata__", []safetensors.Tensor{f32("__metadata__", 1)}},
		{"not-utf8", "not UTF-8", []safetensors.Tensor{f32("a\xff", 1)}},
		{"overflow", "overflows", []safetensors.Tensor{f32("a", math.MaxInt64, 4)}},
		{"sum", "2^63", []safetensors.Tensor{f32("a", 1<<58), f32("b", 1<<58), f32("c", 1<<58), f32("d", 1<<58),
			f32("e", 1<<58), f32("f", 1<<58), f32("g", 1<<58), f32("h", 1<<58)}},
		{"negative", "", []safetensors.Tensor{f32("a", -1)}},
		{"no-type", "not a tensor", []safetensors.Tensor{{Name: "a", Shape: []int64{1}}}},
		{"half-a-byte", "whole bytes", []safetensors.Tensor{{Name: "a", DType: safetensors.F4, Shape: []int64{3}}}},
	} {
		if _, _, err := safetensors.Layout(c.tensors, nil); !errors.Is(err, safetensors.ErrUnsupported) ||
			!strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want ErrUnsupported with %q", c.name, err, c.text)
		}
	}
}

func TestSplitAndIndex(t *testing.T) {
	sizes := []int64{3, 3, 4, 20, 1, 9, 1} // in tens of bytes
	var tensors []safetensors.Tensor
	for i, n := range sizes {
		tensors = append(tensors, safetensors.Tensor{Name: fmt.Sprint("t", i), DType: safetensors.I8,
			Shape: []int64{n, 10}})
	}
	for _, c := range []struct {
		max  int64
		want string
	}{
		{100, "[3 1 2 1]"}, {99, "[2 1 1 1 1 1]"}, {1, "[1 1 1 1 1 1 1]"}, {410, "[7]"}, {409, "[6 1]"},
		{math.MaxInt64, "[7]"},
	} {
		var got []int
		for _, s := range safetensors.Split(tensors, c.max) {
			got = append(got, len(s))
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("at most %d bytes: %v, want %s", c.max, got, c.want)
		}
	}
	text, err := safetensors.Index(safetensors.Split(tensors, 100))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(text,
		[]byte("{\n  \"metadata\": {\n    \"total_size\": 410\n  },\n  \"weight_map\": {\n    \"t0\": "+
			"\"model-00001-of-00004.safetensors\",\n")) {
		t.Errorf("index\n%s", text)
	}
	index, err := safetensors.ParseIndex("x", text)
	if err != nil || len(index) != 7 || index["t3"] != "model-00002-of-00004.safetensors" ||
		index["t6"] != safetensors.ShardName(3, 4) {
		t.Errorf("%v %v", index, err)
	}
	if name := safetensors.ShardName(0, 1); name != "model.safetensors" {
		t.Errorf("one shard is %s", name)
	}
}

func TestIsModelFile(t *testing.T) {
	for name, want := range map[string]bool{
		"model.safetensors": true, "model-00001-of-00002.safetensors": true, safetensors.IndexName: true,
		"config.json": false, "adapter_model.safetensors": false, "model.safetensors.partial": false,
	} {
		if safetensors.IsModelFile(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// FuzzLayout lays out what Parse accepts: the same tensors must come back.
func FuzzLayout(f *testing.F) {
	f.Add(safetensorstest.Encode([]safetensorstest.Tensor{
		{Name: "x", DType: safetensors.I8, Shape: []int64{3}, Data: make([]byte, 3)},
		{Name: "y\u2028", DType: safetensors.F64, Shape: []int64{1, 1}, Data: make([]byte, 8)},
	}, map[string]string{"k": "v"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := safetensors.Parse("in", data)
		if err != nil {
			return
		}
		tensors := slices.Clone(in.Tensors())
		header, size, err := safetensors.Layout(tensors, in.Metadata)
		if err != nil {
			t.Fatal(err)
		}
		out, err := safetensors.Parse("out", append(header, make([]byte, size-int64(len(header)))...))
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(in.Metadata, out.Metadata) || len(in.Tensors()) != len(out.Tensors()) {
			t.Fatalf("%d tensors, %v; want %d, %v", len(out.Tensors()), out.Metadata, len(in.Tensors()), in.Metadata)
		}
		for i, w := range in.Tensors() {
			if g := out.Tensors()[i]; g.Name != w.Name || g.DType != w.DType || !slices.Equal(g.Shape, w.Shape) ||
				g.Offset() != tensors[i].Offset() {
				t.Fatalf("%+v became %+v", w, g)
			}
		}
	})
}
