package manifest_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"ggforge/gguf"
	"ggforge/publish/manifest"
)

func ExampleFileAt() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "a.gguf")
	tensors := []gguf.Tensor{{Name: "t", NE: []int64{8}, Type: gguf.TypeF32}}
	if err := os.WriteFile(path, append(gguf.AppendHeader(nil, nil, tensors, 32), make([]byte, 32)...),
		0o666); err != nil {
		log.Fatal(err)
	}
	f, err := manifest.FileAt(context.Background(), path)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range f.Tensors {
		fmt.Println(f.Name, f.Bytes, t.Name, t.Type, t.Shape, t.Offset, t.SHA256[:16])
	}
	// Output:
	// a.gguf 96 t F32 [8] 64 66687aadf862bd77
}
