package ggml_test

import (
	"fmt"
	"log"

	"ggforge/checkpoint/ggml"
	"ggforge/checkpoint/ggml/ggmltest"
	"ggforge/gguf"
)

// List the hyperparameters and tensors of a file of an old format.
func ExampleParse() {
	f, err := ggml.Parse("model.bin", ggmltest.Encode(ggmltest.Llama("lmgg", 0, 1, gguf.TypeF16, false)))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Format, ggml.FileTypes[f.Sizes.FileType], f.Sizes.Embd, "elements")
	for _, t := range f.Tensors[:3] {
		fmt.Println(t.Name, t.Type, gguf.Shape(t.NE), len(t.Data()))
	}
	// Output:
	// GGMLv1 MOSTLY_F16 64 elements
	// tok_embeddings.weight F16 64 x 300 38400
	// norm.weight F32 64 256
	// output.weight F16 64 x 300 38400
}
