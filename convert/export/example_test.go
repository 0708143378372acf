package export_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"ggforge/checkpoint"
	"ggforge/convert/export"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/writer"
)

// Exporting a file as BF16.
func Example() {
	dir, err := os.MkdirTemp("", "export")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	in := &writer.File{Path: filepath.Join(dir, "in.gguf"), Tensors: []writer.Tensor{
		{Name: "output_norm.weight", Type: gguf.TypeF32, Source: rows.Float32s([]float32{1, 2.5, -3})},
	}}
	if _, err := writer.Write(context.Background(), in, writer.Options{}); err != nil {
		log.Fatal(err)
	}

	typ, err := export.ParseType("bf16")
	if err != nil {
		log.Fatal(err)
	}
	job, err := export.Prepare(context.Background(), in.Path, export.Options{Type: typ})
	if err != nil {
		log.Fatal(err)
	}
	defer job.Close()
	if _, err := job.Write(context.Background(), filepath.Join(dir, "out"), writer.Options{}); err != nil {
		log.Fatal(err)
	}

	files, err := checkpoint.Open(filepath.Join(dir, "out"), checkpoint.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer files.Close()
	c, err := files.Weights(false)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for _, t := range c.Tensors() {
		fmt.Printf("%s %v %v % x\n", t.Name, t.DType, t.Shape, t.Mapped)
	}
	// Output:
	// output_norm.weight BF16 [3] 80 3f 20 40 40 c0
}
