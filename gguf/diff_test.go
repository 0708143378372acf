package gguf

import (
	"encoding/binary"
	"strings"
	"testing"
)

// pair builds a file of two tensors; change may alter the parts before they are
// put together.
func pair(t *testing.T, change func(m *Metadata, tensors []Tensor, data []byte)) *File {
	t.Helper()
	m := Metadata{{"a", Uint32(1)}, {"b", Strings([]string{"x", "y"})}, {"c", String("s")}}
	tensors := []Tensor{{Name: "t", NE: []int64{32, 2}, Type: TypeQ8_0}, {Name: "u", NE: []int64{3}, Type: TypeF32}}
	size := Layout(tensors, DefaultAlignment)
	data := make([]byte, size)
	if change != nil {
		change(&m, tensors, data)
	}
	f, err := Parse("x", append(AppendHeader(nil, m, tensors, DefaultAlignment), data...))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestDiff(t *testing.T) {
	type parts = func(m *Metadata, tensors []Tensor, data []byte)
	for name, c := range map[string]struct {
		change parts
		want   string
	}{
		"same":  {nil, ""},
		"value": {func(m *Metadata, _ []Tensor, _ []byte) { m.Set("a", Uint32(2)) }, `key "a": u32 1, u32 2`},
		"type":  {func(m *Metadata, _ []Tensor, _ []byte) { m.Set("a", Int32(1)) }, `key "a": u32 1, i32 1`},
		"element": {func(m *Metadata, _ []Tensor, _ []byte) { m.Set("b", Strings([]string{"x", "z"})) },
			`key "b": 1 of 2 elements differ, first element 1: "y", "z"`},
		"length": {func(m *Metadata, _ []Tensor, _ []byte) { m.Set("b", Strings([]string{"x"})) },
			`key "b": 2 elements, 1 elements`},
		"gone": {func(m *Metadata, _ []Tensor, _ []byte) { m.Delete("a") }, `key "a": only in the first file`},
		"new": {func(m *Metadata, _ []Tensor, _ []byte) { m.Set("d", Bool(true)) },
			`key "d": only in the second file`},
		"order": {func(m *Metadata, _ []Tensor, _ []byte) { m.Move("a", Uint32(1)) },
			`key order: place 0 among those in both is "a", "b"`},
		"data": {func(_ *Metadata, _ []Tensor, d []byte) { d[37], d[40] = 1, 1 },
			`tensor "t": 2 of 68 bytes differ, first in block 1 of Q8_0, byte 3`},
		"shape": {func(_ *Metadata, x []Tensor, _ []byte) { x[0].NE = []int64{64, 1} },
			`tensor "t": 32 x 2, 64 x 1`},
		"data-type": {func(_ *Metadata, x []Tensor, _ []byte) { x[1].Type = TypeI32 }, `tensor "u": F32, I32`},
		"name": {func(_ *Metadata, x []Tensor, _ []byte) { x[1].Name = "v" },
			"tensor \"u\": only in the first file\ntensor \"v\": only in the second file"},
		"offset": {func(_ *Metadata, x []Tensor, _ []byte) { x[0].Offset, x[1].Offset = 32, 0 },
			`offsets of 2 tensors differ, first of "t": 0, 32`},
		"padding": {func(_ *Metadata, _ []Tensor, d []byte) { d[70] = 1 },
			"only bytes outside metadata and tensors differ: padding, or how the same values are encoded"},
	} {
		t.Run(name, func(t *testing.T) {
			lines, err := Diff(t.Context(), pair(t, nil).Set(), pair(t, c.change).Set())
			if got := strings.Join(lines, "\n"); got != c.want || err != nil {
				t.Errorf("got\n%s, %v\nwant\n%s", got, err, c.want)
			}
		})
	}
}

// TestDiffByteOrder compares the same content in both byte orders.
func TestDiffByteOrder(t *testing.T) {
	a, err := Parse("a", everyValue(3, binary.LittleEndian))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Parse("b", everyValue(3, binary.BigEndian))
	if err != nil {
		t.Fatal(err)
	}
	for i := range b.Tensors {
		b.Tensors[i].Type.SwapBytes(b.data[b.DataStart+b.Tensors[i].Offset:][:b.Tensors[i].Bytes()])
	}
	if d, err := Diff(t.Context(), a.Set(), b.Set()); err != nil || len(d) != 1 ||
		d[0] != "byte order: little-endian, big-endian" {
		t.Errorf("%q %v", d, err)
	}
}
