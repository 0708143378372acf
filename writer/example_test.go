package writer_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/writer"
)

// Write a GGUF file with one tensor, which changes its type on the way.
func ExampleWrite() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	f := &writer.File{
		Path:     filepath.Join(dir, "small.gguf"),
		Metadata: gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")}},
		Tensors: []writer.Tensor{{Name: "output.weight", Type: gguf.TypeQ8_0,
			Source: rows.Float32s(make([]float32, 64))}},
	}
	fmt.Println(f.Size(), "bytes planned")
	result, err := writer.Write(context.Background(), f, writer.Options{Workers: 2})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Bytes, "bytes written")
	// Output:
	// 224 bytes planned
	// 224 bytes written
}
