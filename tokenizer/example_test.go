package tokenizer_test

import (
	"fmt"
	"log"

	"ggforge/checkpoint"
	"ggforge/tokenizer"
)

func ExampleLoad() {
	dir, err := checkpoint.Open("testdata/gollama", checkpoint.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dir.Close()
	v, err := tokenizer.Load(dir, tokenizer.Options{
		Rules:     tokenizer.Llama{},
		VocabSize: 4098, // two more than the model has pieces
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q %q %q\n", v.Tokens[1], v.Tokens[260], v.Tokens[4097])
	for _, kv := range v.KVs() {
		fmt.Println(kv.Key, kv.Value.Type())
	}
	// Output:
	// "<s>" "▁▁▁▁" "[PAD4097]"
	// tokenizer.ggml.model str
	// tokenizer.ggml.pre str
	// tokenizer.ggml.tokens arr
	// tokenizer.ggml.scores arr
	// tokenizer.ggml.token_type arr
	// tokenizer.ggml.bos_token_id u32
	// tokenizer.ggml.eos_token_id u32
	// tokenizer.ggml.add_bos_token bool
	// tokenizer.ggml.add_eos_token bool
}
