package edit_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"ggforge/gguf"
	"ggforge/writer"
	"ggforge/writer/edit"
)

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	tensors := []gguf.Tensor{{Name: "a", NE: []int64{8}, Type: gguf.TypeF32},
		{Name: "b", NE: []int64{8}, Type: gguf.TypeF32}}
	data := make([]byte, gguf.Layout(tensors, gguf.DefaultAlignment))
	path := filepath.Join(dir, "m.gguf")
	if err := os.WriteFile(path, append(gguf.AppendHeader(nil, nil, tensors, gguf.DefaultAlignment), data...),
		0o666); err != nil {
		log.Fatal(err)
	}
	set, err := gguf.OpenSet(path)
	if err != nil {
		log.Fatal(err)
	}
	defer set.Close()
	files, err := edit.Split(set, filepath.Join(dir, "m"), gguf.Cut{MaxTensors: 1}, false)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := writer.WriteAll(context.Background(), files, writer.Options{}); err != nil {
		log.Fatal(err)
	}
	for _, f := range files {
		fmt.Println(filepath.Base(f.Path), len(f.Tensors))
	}
	// Output:
	// m-00001-of-00002.gguf 1
	// m-00002-of-00002.gguf 1
}
