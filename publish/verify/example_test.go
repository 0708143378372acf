package verify_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"ggforge/gguf"
	"ggforge/publish/verify"
)

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	tensors := []gguf.Tensor{{Name: "a", NE: []int64{8}, Type: gguf.TypeF32}}
	path := filepath.Join(dir, "m.gguf")
	if err := os.WriteFile(path, gguf.AppendHeader(nil, nil, tensors, gguf.DefaultAlignment), 0o666); err != nil {
		log.Fatal(err)
	}
	found, err := verify.Model(context.Background(), path, verify.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range found {
		fmt.Println(strings.TrimPrefix(f.Text, dir+string(filepath.Separator)))
	}
	// Output:
	// m.gguf: tensor "a" (byte 64): 32 bytes at offset 0 of the data, but the file has only 0 bytes of data: truncated?
	// m.gguf: has no key "general.architecture", or not a text
}
