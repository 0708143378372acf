package fault_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/writer"
)

// Errors about files that are there or missing answer to the names of package
// io/fs, whatever their kind.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "model-00001-of-00002.gguf")
	write := func() error {
		_, err := writer.Write(context.Background(), &writer.File{
			Path: out,
			Metadata: gguf.Metadata{{Key: "split.no", Value: gguf.Uint16(0)},
				{Key: "split.count", Value: gguf.Uint16(2)}, {Key: "split.tensors.count", Value: gguf.Int32(1)}},
			Tensors: []writer.Tensor{{Name: "output_norm.weight", Type: gguf.TypeF32,
				Source: rows.Float32s([]float32{1})}},
		}, writer.Options{})
		return err
	}
	if err := write(); err != nil {
		t.Fatal(err)
	}
	index := filepath.Join(dir, "model.safetensors.index.json")
	if err := os.WriteFile(index,
		[]byte(`{"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}`),
		0o666); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		run      func() error
		kind, is error // kind is nil for an error of reading
	}{
		"output exists": {write, fault.Usage, fs.ErrExist},
		"missing input": {func() error { _, err := gguf.Open(filepath.Join(dir, "none")); return err }, nil,
			fs.ErrNotExist},
		"missing shard": {func() error { _, err := gguf.OpenSet(out); return err }, fault.Broken, fs.ErrNotExist},
		"missing safetensors": {func() error { _, err := safetensorstest.OpenDir(dir); return err }, fault.Broken,
			fs.ErrNotExist},
	} {
		err := c.run()
		if !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want one that is %v", name, err, c.is)
		}
		if c.kind == nil && fault.Has(err) || c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want one of kind %v", name, err, c.kind)
		}
		if err != nil && strings.Contains(err.Error(), "file already exists") {
			t.Errorf("%s: the text is the system's: %v", name, err)
		}
	}
}
