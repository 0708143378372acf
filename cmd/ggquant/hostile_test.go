package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/gguf"
)

// ggufFile writes a GGUF file with the given metadata and tensors, and repeating data.
func ggufFile(t *testing.T, m gguf.Metadata, alignment int64, tensors ...gguf.Tensor) string {
	t.Helper()
	data := make([]byte, gguf.Layout(tensors, alignment))
	for i := range data {
		data[i] = byte(i % 61)
	}
	path := filepath.Join(t.TempDir(), "in.gguf")
	if err := os.WriteFile(path, append(gguf.AppendHeader(nil, m, tensors, alignment), data...), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAlignmentBound checks that a few bytes of metadata do not make gigabytes of padding.
func TestAlignmentBound(t *testing.T) {
	tensor := gguf.Tensor{Name: "t.weight", NE: []int64{32}, Type: gguf.TypeF32}
	dir := t.TempDir()
	huge := ggufFile(t, gguf.Metadata{{Key: gguf.KeyAlignment, Value: gguf.Uint32(1 << 31)}}, 32, tensor)
	plain := ggufFile(t, nil, 32, tensor)
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{huge}, 3},
		{[]string{plain, "--override-kv", "general.alignment=int:2147483648"}, 2},
		{[]string{plain, "--override-kv", "general.alignment=int:131072"}, 2},
		{[]string{plain, "--override-kv", "general.alignment=int:48"}, 2},
		{[]string{plain, "--override-kv", "general.alignment=int:65536"}, 0},
	} {
		out := filepath.Join(dir, "out.gguf")
		code, _, err := call(append([]string{"--progress", "none"}, append(c.args, out, "COPY")...)...)
		if code != c.code || err != nil && !strings.Contains(err.Error(), "want a power of two up to 65536 as u32") {
			t.Errorf("%q: exit code %d, %v; want %d", c.args[1:], code, err, c.code)
		}
		if st, err := os.Stat(out); (err == nil) != (c.code == 0) || err == nil && st.Size() > 1<<20 {
			t.Errorf("%q: output %v", c.args[1:], err)
		}
	}
}

// TestUnknownTypeCopied checks that COPY keeps a tensor of an unknown type byte for byte, in one file and in shards,
// and that errors of other recipes name the tensor.
func TestUnknownTypeCopied(t *testing.T) {
	m := gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: gguf.KeyFileType, Value: gguf.Uint32(0)}}
	tensors := []gguf.Tensor{
		{Name: "a.weight", NE: []int64{64, 3}, Type: 77, Stored: 320_000},
		{Name: "b.weight", NE: []int64{32, 2}, Type: gguf.TypeF32},
		{Name: "c.weight", NE: []int64{7}, Type: 4, Stored: 33},
	}
	in := ggufFile(t, m, 32, tensors...)
	want, err := gguf.Open(in)
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	out := filepath.Join(t.TempDir(), "out.gguf")
	for _, flags := range [][]string{nil, {"--split-max-tensors", "2"}} {
		code, text, err := call(append(flags, "--progress", "none", in, out, "COPY")...)
		if code != 0 {
			t.Fatal(err)
		}
		path := out
		if flags != nil {
			path = strings.TrimSuffix(out, ".gguf") + "-00001-of-00002.gguf"
		}
		got, err := gguf.OpenSet(path)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		defer got.Close()
		n := 0
		for shard, x := range got.Tensors() {
			y := want.Tensor(x.Name)
			if x.Type != y.Type || x.Bytes() != y.Bytes() || !bytes.Equal(got.Files[shard].Data(x), want.Data(y)) {
				t.Errorf("%q: %s is %v of %d bytes, want %v of %d", flags, x.Name, x.Type, x.Bytes(), y.Type, y.Bytes())
			}
			n++
		}
		if n != 3 {
			t.Errorf("%q: %d tensors", flags, n)
		}
	}
	if code, text, err := call("--dry-run", in, "COPY"); code != 0 || !strings.Contains(text, "type 77") ||
		!strings.Contains(text, "320000 bytes") {
		t.Errorf("dry run: exit code %d, %v\n%s", code, err, text)
	}
	if code, _, err := call("--progress", "none", in, out, "Q8_0"); code != 4 ||
		!strings.Contains(err.Error(), `tensor "a.weight"`) || !strings.Contains(err.Error(), `", type 77: `) {
		t.Errorf("Q8_0: exit code %d, %v", code, err)
	}
}
