package gguf_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"ggforge/gguf"
)

// Write the header of a small file, then open it and look inside.
func ExampleOpen() {
	metadata := gguf.Metadata{
		{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: "llama.block_count", Value: gguf.Uint32(1)},
	}
	tensors := []gguf.Tensor{{Name: "output_norm.weight", NE: []int64{8}, Type: gguf.TypeF32}}
	size := gguf.Layout(tensors, gguf.DefaultAlignment)
	data := append(gguf.AppendHeader(nil, metadata, tensors, gguf.DefaultAlignment), make([]byte, size)...)
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "small.gguf")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		log.Fatal(err)
	}

	f, err := gguf.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for _, kv := range f.Metadata {
		fmt.Println(kv.Key, "=", kv.Value)
	}
	t := f.Tensor("output_norm.weight")
	fmt.Println(t.Name, t.Type, gguf.Shape(t.NE), len(f.Data(t)), "bytes")
	// Output:
	// general.architecture = "llama"
	// llama.block_count = 1
	// output_norm.weight F32 8 32 bytes
}
