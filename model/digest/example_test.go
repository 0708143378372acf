package digest_test

import (
	"context"
	"fmt"
	"log"

	"ggforge/gguf"
	"ggforge/model/digest"
)

func Example() {
	tensors := []gguf.Tensor{{Name: "a", NE: []int64{8}, Type: gguf.TypeF32}}
	data := make([]byte, gguf.Layout(tensors, gguf.DefaultAlignment))
	f, err := gguf.Parse("model.gguf", append(gguf.AppendHeader(nil, nil, tensors, gguf.DefaultAlignment), data...))
	if err != nil {
		log.Fatal(err)
	}
	sums, err := digest.Of(context.Background(), f.Set(), []digest.Kind{digest.XXH64, digest.UUID}, false)
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range sums {
		fmt.Println(s.Kind, s.Hash)
	}
	// Output:
	// xxh64 f6e9be5d70632cf5
	// uuid d07b40de-6f04-57d9-a868-e4929933f50d
}
