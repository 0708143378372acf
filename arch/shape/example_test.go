package shape_test

import (
	"fmt"

	"ggforge/arch/shape"
	"ggforge/gguf"
)

// A tensor that is not as wide as the metadata say.
func ExampleRules_Check() {
	m := gguf.Metadata{
		{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: "llama.block_count", Value: gguf.Uint32(1)},
		{Key: "llama.embedding_length", Value: gguf.Uint32(64)},
	}
	for _, width := range []int64{64, 48} {
		tensors := []shape.Tensor{{Name: "output_norm.weight", NE: []int64{width}}}
		errs := shape.Rules{}.Check("llama", m, tensors, nil)
		fmt.Println(width, len(errs))
	}
	// Output:
	// 64 0
	// 48 1
}
