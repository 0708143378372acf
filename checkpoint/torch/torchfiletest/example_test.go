package torchfiletest_test

import (
	"fmt"
	"log"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/torch"
	"ggforge/checkpoint/torch/torchfiletest"
)

// A file with one tensor that is stored transposed, for a test.
func ExampleEncode() {
	data := torchfiletest.Encode([]torchfiletest.Tensor{
		{Name: "a", DType: safetensors.U8, Shape: []int64{2, 3}, Strides: []int64{1, 2},
			Data: []byte{1, 4, 2, 5, 3, 6}},
	})
	f, err := torch.Parse("made up", data)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range f.Tensors() {
		row := make([]byte, 3)
		_, err := t.ReadAt(row, 0)
		fmt.Println(t.Name, t.DType, t.Shape, row, err)
	}
	// Output: a U8 [2 3] [1 2 3] <nil>
}
