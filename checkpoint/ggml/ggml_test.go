package ggml_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/checkpoint/ggml"
	"ggforge/checkpoint/ggml/ggmltest"
	"ggforge/gguf"
)

func TestRead(t *testing.T) {
	for _, c := range []struct {
		magic   string
		version uint32
		typ     gguf.Type
		wide    bool
		want    string
	}{
		{"lmgg", 0, gguf.TypeF16, false, "GGMLv1"}, {"fmgg", 1, gguf.TypeF32, false, "GGMFv1"},
		{"tjgg", 1, gguf.TypeF16, false, "GGJTv1"},
		{"tjgg", 2, gguf.TypeQ5_1, false, "GGJTv2"}, {"tjgg", 3, gguf.TypeQ4_0, false, "GGJTv3"},
		{"tjgg", 3, gguf.TypeQ4_K, true, "GGJTv3"},
	} {
		m := ggmltest.Llama(c.magic, c.version, 1, c.typ, c.wide)
		path := filepath.Join(t.TempDir(), "x.bin")
		if err := os.WriteFile(path, ggmltest.Encode(m), 0o666); err != nil {
			t.Fatal(err)
		}
		if !ggml.Is(path) {
			t.Errorf("%s: not known as such a file", c.want)
		}
		f, err := ggml.Open(path)
		if err != nil {
			t.Errorf("%s: %v", c.want, err)
			continue
		}
		if f.Format.String() != c.want || f.Sizes != m.Sizes || len(f.Tokens) != len(m.Tokens) ||
			len(f.Tensors) != len(m.Tensors) {
			t.Errorf("%s: %v, %+v, %d tokens, %d tensors", c.want, f.Format, f.Sizes, len(f.Tokens), len(f.Tensors))
		}
		for i, want := range m.Tokens {
			if c.magic == "lmgg" {
				want.Score = 0
			}
			if f.Tokens[i] != want {
				t.Errorf("%s: token %d is %+v, want %+v", c.want, i, f.Tokens[i], want)
			}
		}
		for i, want := range m.Tensors {
			got := f.Tensors[i]
			data, err := io.ReadAll(io.NewSectionReader(got.Reader(), 0, int64(len(want.Data))+1))
			if got.Name != want.Name || got.Type != want.Type || !bytes.Equal(got.Data(), want.Data) ||
				!bytes.Equal(data, want.Data) || err != nil {
				t.Errorf("%s: tensor %d is %s %v, %v", c.want, i, got.Name, got.Type, err)
			}
		}
		if err := errors.Join(f.Unchanged(), f.Close()); err != nil {
			t.Error(err)
		}
	}
	if ggml.Is(t.TempDir()) || ggml.Is("/none") {
		t.Error("a directory or a missing file is taken for such a file")
	}
}

// TestDefects checks that broken files are refused.
func TestDefects(t *testing.T) {
	model := func(change func(m *ggmltest.Model)) []byte {
		m := ggmltest.Llama("tjgg", 3, 1, gguf.TypeF16, false)
		change(&m)
		return ggmltest.Encode(m)
	}
	first := func(change func(t *ggmltest.Tensor)) []byte {
		return model(func(m *ggmltest.Model) { change(&m.Tensors[0]) })
	}
	whole := model(func(*ggmltest.Model) {})
	for _, c := range []struct {
		name string
		data []byte
		kind error
		text string
	}{
		{"empty", nil, ggml.ErrBroken, "cut off"},
		{"GGUF", []byte("GGUF\x03\x00\x00\x00"), ggml.ErrBroken, `begins with "GGUF"`},
		{"version 0", model(func(m *ggmltest.Model) { m.Version = 0 }), ggml.ErrUnsupported, "version 0 of GGJT"},
		{"version 4", model(func(m *ggmltest.Model) { m.Version = 4 }), ggml.ErrUnsupported, "version 4 of GGJT"},
		{"version 2 of GGMF", model(func(m *ggmltest.Model) { m.Magic, m.Version = "fmgg", 2 }), ggml.ErrUnsupported,
			"version 2 of GGMF"},
		{"cut off in the header", whole[:20], ggml.ErrBroken, "header (byte 8): 12 bytes follow"},
		{"cut off in the vocabulary", whole[:100], ggml.ErrBroken, "vocabulary"},
		{"cut off in a tensor", whole[:len(whole)-1], ggml.ErrBroken, `tensor "layers.1.ffn_norm.weight"`},
		{"bytes after the last tensor", append(bytes.Clone(whole), 1), ggml.ErrBroken, "tensor 21"},
		{"an unknown file type", model(func(m *ggmltest.Model) { m.Sizes.FileType = 5 }), ggml.ErrUnsupported,
			"file type 5"},
		{"a huge vocabulary", model(func(m *ggmltest.Model) { m.Sizes.Vocab = 1 << 31 }), ggml.ErrUnsupported,
			"tokens, want at most"},
		{"no heads", model(func(m *ggmltest.Model) { m.Sizes.Head = 0 }), ggml.ErrBroken, "0 heads"},
		{"many layers", model(func(m *ggmltest.Model) { m.Sizes.Layer = 1 << 31 }), ggml.ErrBroken,
			"2147483648 layers"},
		{"a long token", model(func(m *ggmltest.Model) { m.Tokens[9].Text = strings.Repeat("x", 5000) }),
			ggml.ErrBroken, "a text of 5000 bytes"},
		{"a long name", first(func(t *ggmltest.Tensor) { t.Name = strings.Repeat("x", 5000) }), ggml.ErrBroken,
			"a text of 5000 bytes"},
		{"no dimensions", first(func(t *ggmltest.Tensor) { t.NE = nil }), ggml.ErrBroken, "0 dimensions"},
		{"three dimensions", first(func(t *ggmltest.Tensor) { t.NE = []int64{64, 30, 10} }), ggml.ErrBroken,
			"3 dimensions"},
		{"a dimension of 0", first(func(t *ggmltest.Tensor) { t.NE = []int64{64, 0} }), ggml.ErrBroken,
			"a dimension of 0"},
		{"a dimension of 2^32-1", first(func(t *ggmltest.Tensor) { t.NE = []int64{1<<32 - 1, 1<<32 - 1} }),
			ggml.ErrBroken, "a dimension of 4294967295"},
		{"a tensor larger than the file", first(func(t *ggmltest.Tensor) { t.NE = []int64{1 << 20, 1 << 20} }),
			ggml.ErrBroken, "want 2199023255552"},
		{"a type that was withdrawn", first(func(t *ggmltest.Tensor) { t.Type = 4 }), ggml.ErrUnsupported,
			"type 4 is not known"},
		{"a type of GGUF only", first(func(t *ggmltest.Tensor) { t.Type = gguf.TypeBF16 }), ggml.ErrUnsupported,
			"type 30 is not known"},
		{"rows that are no blocks", first(func(t *ggmltest.Tensor) { t.Type = gguf.TypeQ6_K }), ggml.ErrBroken,
			"are not whole blocks of Q6_K"},
		{"a name twice", first(func(t *ggmltest.Tensor) { t.Name = "norm.weight" }), ggml.ErrBroken,
			`"norm.weight" is in the file twice`},
		{"Q4_0 of GGJT 2", ggmltest.Encode(ggmltest.Llama("tjgg", 2, 2, gguf.TypeQ4_0, false)), ggml.ErrUnsupported,
			"Q4_0 was another type before GGJTv3, and this is GGJTv2"},
		{"Q5_0 of GGJT 1", ggmltest.Encode(ggmltest.Llama("tjgg", 1, 8, gguf.TypeQ5_0, false)), ggml.ErrUnsupported,
			"Q5_0 was another type before GGJTv2"},
		{"Q8_0 of GGML", ggmltest.Encode(ggmltest.Llama("lmgg", 0, 7, gguf.TypeQ8_0, false)), ggml.ErrUnsupported,
			"this is GGMLv1"},
	} {
		_, err := ggml.Parse("x", c.data)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v with %q", c.name, err, c.kind, c.text)
		}
	}
}

// FuzzParse reads any bytes. The tensors of an accepted file have their data in it.
func FuzzParse(f *testing.F) {
	f.Add(ggmltest.Encode(ggmltest.Llama("lmgg", 0, 1, gguf.TypeF16, false))[:3000])
	small := ggmltest.Llama("tjgg", 3, 2, gguf.TypeQ4_0, false)
	small.Sizes.Vocab, small.Tokens, small.Tensors = 2, small.Tokens[:2], small.Tensors[1:2]
	f.Add(ggmltest.Encode(small))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := ggml.Parse("x", data)
		if err != nil {
			return
		}
		for i := range file.Tensors {
			s := &file.Tensors[i]
			if int64(len(s.Data())) != gguf.Rows(s.NE)*s.Type.RowBytes(s.NE[0]) {
				t.Fatalf("%s: %d bytes for %v of %v", s.Name, len(s.Data()), s.Type, s.NE)
			}
		}
	})
}
