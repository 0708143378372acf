package quantize

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"ggforge/gguf"
	"ggforge/writer"
)

// file writes a GGUF file in the given byte order: string and u32 pairs, and F16
// or F32 tensors of 64 x 2 elements.
func file(t *testing.T, path string, order binary.AppendByteOrder, kvs []gguf.KV, tensors []gguf.Tensor) string {
	t.Helper()
	b := []byte("GGUF")
	str := func(s string) {
		b = order.AppendUint64(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = order.AppendUint32(b, 3)
	b = order.AppendUint64(b, uint64(len(tensors)))
	b = order.AppendUint64(b, uint64(len(kvs)))
	for _, kv := range kvs {
		str(kv.Key)
		b = order.AppendUint32(b, uint32(kv.Value.Type()))
		if s, ok := kv.Value.Str(); ok {
			str(s)
		} else {
			n, _ := kv.Value.Int()
			b = order.AppendUint32(b, uint32(n))
		}
	}
	for i := range tensors {
		tensors[i].NE = []int64{64, 2}
	}
	gguf.Layout(tensors, 32)
	for _, x := range tensors {
		str(x.Name)
		b = order.AppendUint32(b, 2)
		b = order.AppendUint64(b, 64)
		b = order.AppendUint64(b, 2)
		b = order.AppendUint32(b, uint32(x.Type))
		b = order.AppendUint64(b, uint64(x.Offset))
	}
	b = append(b, make([]byte, -len(b)&31)...)
	for _, x := range tensors {
		for i := range 128 {
			if x.Type == gguf.TypeF16 {
				b = order.AppendUint16(b, uint16(0x3000+37*i))
			} else {
				b = order.AppendUint32(b, math.Float32bits(float32(i-50)/16))
			}
		}
	}
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// run quantizes in by the recipe and returns the output's bytes.
func run(t *testing.T, in, recipe string) []byte {
	t.Helper()
	r, ok := LookupRecipe(recipe)
	if !ok {
		t.Fatal(recipe)
	}
	job, err := Prepare(t.Context(), in, Options{PlanOptions: PlanOptions{Recipe: r}})
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	out := filepath.Join(t.TempDir(), "out.gguf")
	if _, err := job.Write(context.Background(), out, writer.Options{}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestByteOrder(t *testing.T) {
	kvs := []gguf.KV{{Key: gguf.KeyArchitecture, Value: gguf.String("any")},
		{Key: "any.number", Value: gguf.Uint32(77)}}
	dir := t.TempDir()
	var out [2][]byte
	for i, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		in := file(t, filepath.Join(dir, "in.gguf"), order, kvs, []gguf.Tensor{{Name: "x.weight", Type: gguf.TypeF16},
			{Name: "y.weight", Type: gguf.TypeF32}, {Name: "y.bias", Type: gguf.TypeF16}})
		out[i] = append(run(t, in, "Q4_0"), run(t, in, "COPY")...)
	}
	if !bytes.Equal(out[0], out[1]) {
		t.Error("big-endian input gives another output")
	}
}

func TestMetadata(t *testing.T) {
	kvs := []gguf.KV{
		{Key: gguf.KeyArchitecture, Value: gguf.String("any")},
		{Key: gguf.KeyFileType, Value: gguf.Uint32(1)},
		{Key: gguf.KeySplitCount, Value: gguf.Uint32(1)},
		{Key: "last", Value: gguf.String("x")},
	}
	in := file(t, filepath.Join(t.TempDir(), "in.gguf"), binary.LittleEndian, kvs,
		[]gguf.Tensor{{Name: "x.weight", Type: gguf.TypeF32}})
	f, err := gguf.Parse("out", run(t, in, "Q8_0"))
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, kv := range f.Metadata {
		got += kv.Key + "=" + kv.Value.String() + " "
	}
	if want := `general.architecture="any" last="x" general.quantization_version=2 general.file_type=7 `; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestCopyFileType checks the file type of a copy of a file without one: the most frequent tensor type, marked as a
// guess.
func TestCopyFileType(t *testing.T) {
	for _, c := range []struct {
		types []gguf.Type
		want  int64
	}{
		{[]gguf.Type{gguf.TypeF32}, 1024},
		{[]gguf.Type{gguf.TypeF16}, 1025},
		{[]gguf.Type{gguf.TypeF16, gguf.TypeF32, gguf.TypeF16}, 1025},
	} {
		var tensors []gguf.Tensor
		for i, typ := range c.types {
			tensors = append(tensors, gguf.Tensor{Name: string(rune('a'+i)) + ".weight", Type: typ})
		}
		in := file(t, filepath.Join(t.TempDir(), "in.gguf"), binary.LittleEndian, nil, tensors)
		f, err := gguf.Parse("out", run(t, in, "COPY"))
		if err != nil {
			t.Fatal(err)
		}
		v, _ := f.Metadata.Get(gguf.KeyFileType)
		if got, _ := v.Int(); got != c.want {
			t.Errorf("%v: file type %d, want %d", c.types, got, c.want)
		}
	}
}

func TestDefaultOutput(t *testing.T) {
	r, _ := LookupRecipe("q4_k")
	if got := DefaultOutput(filepath.Join("a", "b.gguf"), r); got != filepath.Join("a", "ggml-model-Q4_K_M.gguf") {
		t.Error(got)
	}
}
