package batch_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"ggforge/gguf"
	"ggforge/model"
	"ggforge/quantize"
	"ggforge/quantize/batch"
)

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	tensors := []gguf.Tensor{{Name: "output.weight", NE: []int64{256, 64}, Type: gguf.TypeF32}}
	file := append(gguf.AppendHeader(nil, nil, tensors, 32), make([]byte, gguf.Layout(tensors, 32))...)
	if err := os.WriteFile(filepath.Join(dir, "in.gguf"), file, 0o666); err != nil {
		log.Fatal(err)
	}
	m, err := model.Open(filepath.Join(dir, "in.gguf"))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	order := &batch.Request{Warn: func(...string) {}}
	for _, name := range []string{"Q8_0", "Q4_0"} {
		r, _ := quantize.LookupRecipe(name)
		order.Recipes = append(order.Recipes, r)
		order.Paths = append(order.Paths, filepath.Join(dir, name+".gguf"))
	}
	run, err := batch.Prepare(context.Background(), m, order)
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()
	results, err := run.Write(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		fmt.Println(filepath.Base(r.Files[0]), r.Bytes)
	}
	// Output:
	// Q8_0.gguf 17568
	// Q4_0.gguf 13600
}
