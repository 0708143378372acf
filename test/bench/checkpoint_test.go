package main

import (
	"context"
	"path/filepath"
	"testing"

	"ggforge/convert"
	"ggforge/writer"
)

func TestLlamaOfSize(t *testing.T) {
	for _, size := range []int64{1, 100e6, 1e9, 2e9, 16e9} {
		m := llamaOfSize(size)
		n := m.bytes()
		m.layers++
		if n > size && m.layers > 2 || m.bytes() <= size {
			t.Errorf("%d bytes wanted: %d bytes, one layer more %d: %+v", size, n, m.bytes(), m)
		}
	}
	if m := llamaOfSize(1e9); m.hidden != 2048 || m.layers != 8 {
		t.Errorf("1 GB is %+v", m)
	}
}

// TestCheckpoint checks that the converter accepts the checkpoint.
func TestCheckpoint(t *testing.T) {
	m := llamaOfSize(1)
	dir := t.TempDir()
	if err := m.write(dir); err != nil {
		t.Fatal(err)
	}
	j, err := convert.Prepare(t.Context(), filepath.Join(dir, "model"), convert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if j.Arch.Name != "llama" || j.Type != convert.BF16 || len(j.Warnings) > 0 {
		t.Errorf("architecture %q, type %v, warnings %q", j.Arch.Name, j.Type, j.Warnings)
	}
	if _, err := j.Write(context.Background(), filepath.Join(dir, "out.gguf"), writer.Options{}); err != nil {
		t.Error(err)
	}
}
