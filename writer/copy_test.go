package writer

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"ggforge/gguf"
	"ggforge/rows"
)

// TestCopy writes tensors that the system copies, does not copy, or fails to copy: the file is the same, unless there
// is an error.
func TestCopy(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in.gguf")
	tensors := []gguf.Tensor{{Name: "a", NE: []int64{256, 5000}, Type: gguf.TypeF32},
		{Name: "b", NE: []int64{31}, Type: gguf.TypeF32}}
	data := make([]byte, gguf.Layout(tensors, gguf.DefaultAlignment))
	for i := range data[:5*1024*1000+4*31] {
		data[i] = byte(i * i >> 7)
	}
	if err := os.WriteFile(in, append(gguf.AppendHeader(nil, nil, tensors, gguf.DefaultAlignment), data...),
		0o666); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(in)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var copied, calls atomic.Int64
	broken := errors.New("broken")
	for name, fail := range map[string]error{"copied": nil, "read": errors.ErrUnsupported, "fails": broken} {
		copied.Store(0)
		calls.Store(0)
		file := &File{Path: filepath.Join(dir, name+".gguf"), Stated: map[string]gguf.Tensor{}}
		for i := range f.Tensors {
			tensor := &f.Tensors[i]
			file.Stated[tensor.Name] = *tensor
			file.Tensors = append(file.Tensors, Tensor{Name: tensor.Name, Type: gguf.TypeI8,
				Source: rows.Bytes(f, tensor), Copy: func(dst *os.File, to, from, n int64) error {
					calls.Add(1)
					if fail != nil {
						return fail
					}
					err := f.CopyTo(dst, to, tensor, from, n)
					if err == nil {
						copied.Add(n)
					}
					return err
				}})
		}
		result, err := Write(t.Context(), file, Options{Workers: 3})
		if !errors.Is(err, fail) && fail == broken {
			t.Errorf("%s: %v, want %v", name, err, broken)
		}
		if fail == broken {
			if _, err := os.Stat(file.Path); err == nil {
				t.Errorf("%s: a file is left", name)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, err := os.ReadFile(in)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file.Path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: other bytes (%v)", name, err)
		}
		if result.DataBytes != 5*1024*1000+4*31 {
			t.Errorf("%s: %d bytes of data", name, result.DataBytes)
		}
		if n := copied.Load(); name == "copied" && n != result.DataBytes && n != 0 { // 0: not on this system
			t.Errorf("%s: %d of %d bytes", name, n, result.DataBytes)
		}
		if n := calls.Load(); n == 0 || name == "read" && n > 3 { // each worker at most once
			t.Errorf("%s: %d calls", name, n)
		}
	}
}
