package safetensorstest_test

import (
	"fmt"
	"log"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
)

// A file with one tensor, for a test.
func ExampleEncode() {
	data := safetensorstest.Encode([]safetensorstest.Tensor{
		{Name: "a", DType: safetensors.F32, Shape: []int64{2}, Data: safetensorstest.F32(1, -1)},
	}, nil)
	f, err := safetensors.Parse("made up", data)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range f.Tensors() {
		fmt.Printf("%s %v %v % x\n", t.Name, t.DType, t.Shape, t.Data())
	}
	// Output: a F32 [2] 00 00 80 3f 00 00 80 bf
}
