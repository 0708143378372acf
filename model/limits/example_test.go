package limits_test

import (
	"fmt"

	"ggforge/gguf"
	"ggforge/model/limits"
)

func ExampleCheck() {
	err := limits.Check(gguf.Metadata{
		{Key: "general.architecture", Value: gguf.String("llama")},
		{Key: "llama.block_count", Value: gguf.Uint32(1000)},
	})
	fmt.Println(err)
	// Output:
	// "llama.block_count" is 1000: llama.cpp loads at most 512
}
