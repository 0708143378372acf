//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/gguf"
)

// TestPipes replaces each file that is read by a named pipe, and one of them by a device.
func TestPipes(t *testing.T) {
	for _, name := range inputNames {
		t.Run(name, func(t *testing.T) {
			dir := copyOf(t, "model")
			path := filepath.Join(dir, name)
			os.Remove(path)
			must(t, unix.Mkfifo(path, 0o666))
			fails(t, 3, name+": is a named pipe, want a regular file", dir)
		})
	}
	t.Run("metadata", func(t *testing.T) { // the file of --metadata
		dir, path := copyOf(t, "model"), filepath.Join(t.TempDir(), "pipe")
		must(t, unix.Mkfifo(path, 0o666))
		fails(t, 1, "pipe: is not a regular file", dir, "--metadata", path)
		fails(t, 1, "/dev/zero: is not a regular file", dir, "--metadata", "/dev/zero")
	})
	t.Run("device", func(t *testing.T) {
		dir := copyOf(t, "model")
		must(t, os.Symlink("/dev/zero", filepath.Join(dir, "chat_template.jinja")))
		fails(t, 5, "chat_template.jinja: is a link to /dev/zero", dir)
		fails(t, 3, "chat_template.jinja: is a device", dir, "--outside-links")
	})
}

// TestManyShards converts a checkpoint of more shards than the process may have
// files open.
func TestManyShards(t *testing.T) {
	f, err := safetensors.Open(filepath.Join(gollama, "model.safetensors"))
	must(t, err)
	defer f.Close()
	dir, whole := copyOf(t, "model"), copyOf(t, "model")
	must(t, os.Remove(filepath.Join(dir, "model.safetensors")))
	const empty = 200 // shards without a needed tensor
	n := len(f.Tensors()) + empty
	shard := func(i int) string { return filepath.Join(dir, fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, n)) }
	for i := range n {
		list := []safetensorstest.Tensor{{Name: fmt.Sprintf(
			"model.layers.0.self_attn.rotary_emb.%d.rotary_emb.inv_freq", i), DType: safetensors.F32, Shape: []int64{1},
			Data: make([]byte, 4)}}
		if i >= empty {
			x := f.Tensors()[i-empty]
			list = append(list, safetensorstest.Tensor{Name: x.Name, DType: x.DType, Shape: x.Shape, Data: x.Data()})
		}
		must(t, safetensorstest.Write(shard(i), list, nil))
	}
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	low := limit
	low.Cur = 200
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	a, b := filepath.Join(t.TempDir(), "a.gguf"), filepath.Join(t.TempDir(), "b.gguf")
	if code, _, err := call("--progress", "none", dir, a); code != 0 {
		t.Fatal(err)
	}
	if code, _, err := call("--progress", "none", whole, b); code != 0 {
		t.Fatal(err)
	}
	x, err := gguf.Open(a)
	must(t, err)
	defer x.Close()
	y, err := gguf.Open(b)
	must(t, err)
	defer y.Close()
	if len(x.Tensors) != len(y.Tensors) {
		t.Fatalf("%d tensors, want %d", len(x.Tensors), len(y.Tensors))
	}
	for i := range y.Tensors {
		want := &y.Tensors[i]
		if got := x.Tensor(want.Name); got == nil || !bytes.Equal(x.Data(got), y.Data(want)) {
			t.Errorf("tensor %q differs", want.Name)
		}
	}
}
