package main

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"ggforge/convert"
	"ggforge/safetensors"
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

// The converter takes the checkpoint, whole and in shards.
func TestCheckpoint(t *testing.T) {
	const tokenizer = "../../testdata/gollama"
	m := llamaOfSize(1)
	dir := filepath.Join(t.TempDir(), "model")
	if err := m.write(dir, tokenizer); err != nil {
		t.Fatal(err)
	}
	j, err := convert.Prepare(dir, convert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if len(j.Plan) != len(m.tensors()) || j.Arch.Name != "llama" || len(j.Warnings) > 0 {
		t.Errorf("%d tensors of %q, warnings %q", len(j.Plan), j.Arch.Name, j.Warnings)
	}
	if _, err := j.Write(context.Background(), filepath.Join(dir, "out.gguf"), writer.Options{}); err != nil {
		t.Error(err)
	}

	weights := newPool()
	shards := safetensors.Split(m.tensors(), 3e6)
	if len(shards) < 2 {
		t.Fatalf("%d shards", len(shards))
	}
	path := filepath.Join(dir, "shard.safetensors")
	if err := writeShard(path, shards[1], weights); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

// The ring goes on where the last tensor ended, past its end as well.
func TestPool(t *testing.T) {
	p := newPool()
	a := bytes.Clone(p.next(10))
	if b := p.next(1 << 40); len(b) != 2*poolLen-10 || &b[0] != &p.bf16[10] {
		t.Errorf("second piece has %d bytes", len(b))
	}
	if b := p.next(10); !bytes.Equal(a, b) {
		t.Errorf("the ring begins with %x, then %x", a, b)
	}
}
