package model_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"ggforge/gguf"
	"ggforge/model"
	"ggforge/rows"
	"ggforge/writer"
)

// Open a model and read a row of a tensor as float32.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "small.gguf")
	if _, err := writer.Write(context.Background(), &writer.File{
		Path:     path,
		Metadata: gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")}},
		Tensors: []writer.Tensor{{Name: "output_norm.weight", Type: gguf.TypeF32,
			Source: rows.Float32s([]float32{1, 2.5, -3})}},
	}, writer.Options{}); err != nil {
		log.Fatal(err)
	}

	m, err := model.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	t := m.Tensors[0]
	row, buf := make([]float32, t.NE[0]), []byte(nil)
	if err := rows.Decode(t.Source, row, &buf, 0, 1); err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Architecture(), m.BPW(), "bits per weight")
	fmt.Println(t.Name, t.Type, row)
	// Output:
	// llama 32 bits per weight
	// output_norm.weight F32 [1 2.5 -3]
}
