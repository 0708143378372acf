package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/checkpoint/torch/torchfiletest"
	"ggforge/fault"
)

func TestIsStateDict(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.safetensors"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		write("a.safetensors", ""): true, write("b.CKPT", "PK\x03\x04"): true, write("c.bin", "\x80\x02"): true,
		write("d.bin", "GGUF\x03\x00"): false, write("e.gguf", ""): false, write("f.bin", "lmgg"): false,
		filepath.Join(dir, "folder.safetensors"): false, filepath.Join(dir, "none.safetensors"): false,
		"hf://org/name/x.safetensors": true, "hf://org/name": false, "hf://org/name.bin": false,
		"https://example.org/a/x.pt": true, "https://example.org/a/": false, "s3://bucket/a/x.ckpt": true,
	} {
		if got := IsStateDict(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// stateDict returns the names of the tensors in a file.
func stateDict(t *testing.T, dir, name string) (names []string, left []string) {
	t.Helper()
	d, file, err := OpenStateDict(t.Context(), filepath.Join(dir, name), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, left, err := d.StateDict(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, x := range s.Tensors() {
		names = append(names, x.Name)
	}
	return names, left
}

// TestStateDict reads files in the order of their data, and dicts in others.
func TestStateDict(t *testing.T) {
	dir := t.TempDir()
	tensor := func(name string, n int64) safetensorstest.Tensor {
		return safetensorstest.Tensor{Name: name, DType: safetensors.F32, Shape: []int64{n}, Data: make([]byte, 4*n)}
	}
	list := []safetensorstest.Tensor{tensor("z", 2), tensor("empty", 0), tensor("b", 1), tensor("a", 3)}
	if err := safetensorstest.Write(filepath.Join(dir, "m.safetensors"), list, nil); err != nil {
		t.Fatal(err)
	}
	if names, left := stateDict(t, dir, "m.safetensors"); !slices.Equal(names, []string{"z", "empty", "b", "a"}) ||
		left != nil {
		t.Errorf("%q, left %q", names, left)
	}
	if err := torchfiletest.Write(filepath.Join(dir, "m.pth"), []torchfiletest.Tensor{
		{Name: "z", DType: safetensors.F32, Shape: []int64{2}, Data: make([]byte, 8)},
		{Name: "a", DType: safetensors.F32, Shape: []int64{1}, Data: make([]byte, 4)},
	}); err != nil {
		t.Fatal(err)
	}
	if names, left := stateDict(t, dir, "m.pth"); !slices.Equal(names, []string{"z", "a"}) || left != nil {
		t.Errorf("%q, left %q", names, left)
	}
}

// TestDiffusers has folders whose weights are those of no variant, of one, and of several.
func TestDiffusers(t *testing.T) {
	for _, c := range []struct {
		files []string
		want  []string
		kind  error
	}{
		{[]string{"", ".fp16"}, []string{""}, nil},
		{[]string{".fp16"}, []string{".fp16"}, nil},
		{[]string{".fp16-00001-of-00002", ".fp16-00002-of-00002"},
			[]string{".fp16-00001-of-00002", ".fp16-00002-of-00002"}, nil},
		{[]string{".fp16", ".bf16"}, nil, fault.Unsupported},
		{[]string{"-00001-of-00002"}, nil, fault.Broken},
		{nil, nil, ErrNone},
	} {
		dir := t.TempDir()
		for _, f := range c.files {
			if err := safetensorstest.Write(filepath.Join(dir, "diffusion_pytorch_model"+f+".safetensors"),
				[]safetensorstest.Tensor{{Name: "w" + f, DType: safetensors.F32, Shape: []int64{1}, Data: make([]byte, 4)}},
				nil); err != nil {
				t.Fatal(err)
			}
		}
		d, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.Diffusers(".")
		if err != nil {
			if c.kind == nil || !errors.Is(err, c.kind) {
				t.Errorf("%q: %v", c.files, err)
			}
			d.Close()
			continue
		}
		var got []string
		for _, x := range s.Tensors() {
			got = append(got, x.Name[1:])
		}
		if !slices.Equal(got, c.want) || c.kind != nil {
			t.Errorf("%q: %q", c.files, got)
		}
		s.Close()
		d.Close()
	}
}
