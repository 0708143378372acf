package precision_test

import (
	"fmt"
	"log"

	"ggforge/arch/config"
	"ggforge/checkpoint"
	"ggforge/checkpoint/precision"
)

// The weights of a checkpoint, with their types and dimensions.
func ExampleWeights() {
	dir, err := checkpoint.Open("../../test/testdata/gollama", checkpoint.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dir.Close()
	store, err := dir.Weights(false)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	weights, _, err := precision.Weights(store.Tensors(), config.Object{})
	if err != nil {
		log.Fatal(err)
	}
	w := weights[0]
	src, err := w.Source()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(weights), "weights")
	fmt.Println(w.Name, w.First().DType, src.NE(), src.Type())
	// Output:
	// 57 weights
	// lm_head.weight BF16 [256 4096] BF16
}
