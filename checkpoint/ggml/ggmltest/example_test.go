package ggmltest_test

import (
	"fmt"
	"log"

	"ggforge/checkpoint/ggml"
	"ggforge/checkpoint/ggml/ggmltest"
	"ggforge/gguf"
)

// A small model, for a test.
func ExampleLlama() {
	f, err := ggml.Parse("made up", ggmltest.Encode(ggmltest.Llama("tjgg", 3, 2, gguf.TypeQ4_0, false)))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Format, len(f.Tokens), len(f.Tensors), f.Tensors[0].Name, f.Tensors[0].Type)
	// Output: GGJTv3 300 21 tok_embeddings.weight Q4_0
}
