package main

import (
	"bytes"
	"os"
	"testing"

	"ggforge/gguf"
)

// TestEndian writes a file with tensors of all types in the other byte order and back, and compares with bytes swapped
// by package gguf.
func TestEndian(t *testing.T) {
	dir := t.TempDir() + "/"
	var tensors []gguf.Tensor
	for id := range 64 {
		if typ := gguf.Type(id); typ.Known() {
			tensors = append(tensors, gguf.Tensor{Name: typ.String(), NE: []int64{3 * typ.BlockLen(), 5}, Type: typ})
		}
	}
	meta := gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: "list", Value: gguf.Float32s([]float32{1, 2})}}
	data := make([]byte, gguf.Layout(tensors, 32))
	for i := range data {
		data[i] = byte(i*131 + i>>8)
	}
	for i, x := range tensors { // clear the padding
		end := int64(len(data))
		if i+1 < len(tensors) {
			end = tensors[i+1].Offset
		}
		clear(data[x.Offset+x.Bytes() : end])
	}
	little := append(gguf.AppendHeader(nil, meta, tensors, 32), data...)
	for _, x := range tensors {
		x.Type.SwapBytes(data[x.Offset:][:x.Bytes()])
	}
	big := append(gguf.AppendHeaderBE(nil, meta, tensors, 32), data...)
	if err := os.WriteFile(dir+"little.gguf", little, 0o666); err != nil {
		t.Fatal(err)
	}
	run := expect(t, "endian", "--progress", "none")
	run(0, "big.gguf", dir+"little.gguf", dir+"big.gguf")
	if got, err := os.ReadFile(dir + "big.gguf"); err != nil || !bytes.Equal(got, big) {
		t.Errorf("big-endian: bytes differ, %v", err)
	}
	run(0, "again.gguf", "--to", "little", dir+"big.gguf", dir+"again.gguf")
	if got, err := os.ReadFile(dir + "again.gguf"); err != nil || !bytes.Equal(got, little) {
		t.Errorf("back in little-endian: bytes differ, %v", err)
	}
	run(5, "already in big-endian order", dir+"big.gguf", dir+"x.gguf")
	run(2, "want big or little", "--to", "middle", dir+"big.gguf", dir+"x.gguf")
	odd(t, dir+"odd.gguf", false)
	run(4, "byte order", dir+"odd.gguf", dir+"x.gguf")
	run(2, "output equals input", "--force", dir+"little.gguf", dir+"little.gguf")
}
