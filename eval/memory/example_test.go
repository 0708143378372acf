package memory_test

import (
	"fmt"
	"log"

	_ "ggforge/arch" // the graphs of architectures
	"ggforge/eval/memory"
	"ggforge/gguf"
)

// The memory of a model of Llama 3's shape for 32 Ki tokens, its cache quantized.
func Example() {
	m := gguf.Metadata{
		{Key: "general.architecture", Value: gguf.String("llama")},
		{Key: "llama.block_count", Value: gguf.Uint32(32)},
		{Key: "llama.context_length", Value: gguf.Uint32(8192)},
		{Key: "llama.embedding_length", Value: gguf.Uint32(4096)},
		{Key: "llama.attention.head_count", Value: gguf.Uint32(32)},
		{Key: "llama.attention.head_count_kv", Value: gguf.Uint32(8)},
	}
	none := func(func(*gguf.Tensor) bool) {}
	q8, err := memory.ParseCacheType("q8_0")
	if err != nil {
		log.Fatal(err)
	}
	u, err := memory.Estimate(memory.Model{Metadata: m, Tensors: none},
		memory.Options{Context: 32 << 10, Keys: q8, Values: q8})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(u.Context, "tokens:", memory.Size(u.Cache))
	// Output: 32768 tokens: 2.12 GiB
}
