package digest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
)

// TestOfModel compares sums of a file and of its tensors, which begin and end anywhere within the pieces that are
// read, with those of their bytes.
func TestOfModel(t *testing.T) {
	var tensors []gguf.Tensor
	for i, n := range []int64{3, buffer, 1, 3*buffer + 17, 5, 2 * pieces * buffer} {
		tensors = append(tensors, gguf.Tensor{Name: fmt.Sprint("t", i), NE: []int64{n}, Type: gguf.TypeI8})
	}
	size := gguf.Layout(tensors, 32)
	file := gguf.AppendHeader(nil, nil, tensors, 32)
	for i := range size {
		file = append(file, byte(i>>12^i))
	}
	path := filepath.Join(t.TempDir(), "a.gguf")
	if err := os.WriteFile(path, file, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	whole, list, err := OfModel(context.Background(), path, f)
	if want := fmt.Sprintf("%x", sha256.Sum256(file)); err != nil || whole != (File{"a.gguf", int64(len(file)), want}) {
		t.Errorf("%+v, %v; want sum %s", whole, err, want)
	}
	if len(list) != len(tensors) {
		t.Fatalf("%d tensors, want %d", len(list), len(tensors))
	}
	for i := range list {
		data := f.Data(&f.Tensors[i])
		if want := fmt.Sprintf("%x", sha256.Sum256(data)); list[i].SHA256 != want ||
			!bytes.Equal(file[list[i].Start:][:len(data)], data) {
			t.Errorf("%s: %s at %d, want %s", list[i].Name, list[i].SHA256, list[i].Start, want)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, _, err := OfModel(ctx, path, f); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if _, err := OfFile(context.Background(), filepath.Dir(path)); !errors.Is(err, fault.Usage) {
		t.Errorf("a folder: %v", err)
	}
}

// BenchmarkOfModel hashes a file of 64 MiB with its tensors, as manifests need them: one read, two processors.
func BenchmarkOfModel(b *testing.B) {
	tensors := []gguf.Tensor{{Name: "a", NE: []int64{40 << 20}, Type: gguf.TypeI8},
		{Name: "b", NE: []int64{24 << 20}, Type: gguf.TypeI8}}
	size := gguf.Layout(tensors, 32)
	path := filepath.Join(b.TempDir(), "a.gguf")
	file := append(gguf.AppendHeader(nil, nil, tensors, 32), make([]byte, size)...)
	if err := os.WriteFile(path, file, 0o666); err != nil {
		b.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		if _, _, err := OfModel(context.Background(), path, f); err != nil {
			b.Fatal(err)
		}
	}
}
