package vocab_test

import (
	"fmt"

	"ggforge/gguf"
	"ggforge/tokenizer/vocab"
)

func Example() {
	m := gguf.Metadata{
		{Key: "tokenizer.ggml.model", Value: gguf.String("gpt2")},
		{Key: "tokenizer.ggml.pre", Value: gguf.String("gpt-2")},
		{Key: "tokenizer.ggml.tokens", Value: gguf.Strings([]string{"a", "b", "c", "Ġ", "ab", "Ġab", "<|endoftext|>"})},
		{Key: "tokenizer.ggml.merges", Value: gguf.Strings([]string{"a b", "Ġ ab"})},
		{Key: "tokenizer.ggml.bos_token_id", Value: gguf.Uint32(6)},
		{Key: "tokenizer.ggml.add_bos_token", Value: gguf.Bool(true)},
	}
	v, err := vocab.New(m)
	if err != nil {
		fmt.Println(err)
		return
	}
	ids, err := v.Encode("abc ab", vocab.Options{AddSpecial: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, id := range ids {
		fmt.Printf("%d %s\n", id, v.Token(id))
	}
	// Output:
	// 6 <|endoftext|>
	// 4 ab
	// 2 c
	// 5 Ġab
}
