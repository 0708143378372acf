package eval

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer/vocab"
)

// letters returns a vocabulary of letters.
func letters(t *testing.T, bos bool) *vocab.Vocab {
	t.Helper()
	var m gguf.Metadata
	m.Set("tokenizer.ggml.model", gguf.String("rwkv"))
	tokens := []string{"<s>"}
	for c := 'a'; c <= 'z'; c++ {
		tokens = append(tokens, string(c))
	}
	m.Set("tokenizer.ggml.tokens", gguf.Strings(tokens))
	m.Set("tokenizer.ggml.bos_token_id", gguf.Uint32(0))
	m.Set("tokenizer.ggml.add_bos_token", gguf.Bool(bos))
	v, err := vocab.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestText checks how texts are cut into chunks.
func TestText(t *testing.T) {
	const alphabet = "abcdefghijklmnopqrstuvwxyz"
	long := strings.Repeat(alphabet, 20) // 520 tokens
	for _, c := range []struct {
		name string
		text Text
		bos  bool
		of   string
		n    int // chunks
		size int
		want []int32 // the first token of each
	}{
		{"without BOS", Text{Chunk: 5}, false, alphabet, 5, 5, []int32{1, 6, 11, 16, 21}},
		{"with BOS", Text{Chunk: 5}, true, alphabet, 5, 5, []int32{0, 0, 0, 0, 0}},
		{"a limit", Text{Chunk: 5, Chunks: 2}, false, alphabet, 2, 5, []int32{1, 6}},
		{"from a chunk on", Text{Chunk: 5, Chunks: 2, Skip: 3}, false, alphabet, 2, 5, []int32{16, 21}},
		{"from a chunk on, with BOS", Text{Chunk: 5, Skip: 4}, true, alphabet, 1, 5, []int32{0}},
		{"more than there are", Text{Chunk: 13, Chunks: 9}, false, alphabet, 2, 13, []int32{1, 14}},
		{"spread", Text{Chunk: 5, Chunks: 2, Spread: true}, false, alphabet, 2, 5, []int32{1, 11}},
		{"spread, with BOS", Text{Chunk: 4, Chunks: 4, Spread: true}, true, alphabet, 4, 4, []int32{0, 0, 0, 0}},
		{"spread, odd", Text{Chunk: 4, Chunks: 4, Spread: true}, false, alphabet, 4, 4, []int32{1, 5, 13, 17}},
		{"spread, all", Text{Chunk: 5, Spread: true}, false, alphabet, 5, 5, []int32{1, 6, 11, 16, 21}},
		{"spread, more than there are", Text{Chunk: 13, Chunks: 9, Spread: true}, false, alphabet, 2, 13, []int32{1, 14}},
		{"overlapping", Text{Chunk: 200, Stride: 100}, true, long, 3, 256, nil},
		{"with a limit", Text{Chunk: 206, Stride: 100, Chunks: 2}, false, long, 2, 256, []int32{1, 101 % 26}},
	} {
		r, err := c.text.Run(letters(t, c.bos), c.of)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var first []int32
		for i := 0; i < len(r.Tokens); i += r.Chunk {
			first = append(first, r.Tokens[i])
		}
		if r.Chunk != c.size || len(first) != c.n || c.want != nil && !slices.Equal(first, c.want) ||
			c.text.Stride > 0 && r.First != c.size-1-c.text.Stride {
			t.Errorf("%s: chunks of %d from %d on, which begin with %v; want %d of %d, %v", c.name, r.Chunk, r.First,
				first, c.n, c.size, c.want)
		}
	}
	for _, c := range []struct {
		text Text
		of   string
		kind error
	}{
		{Text{Chunk: 30}, alphabet, fault.Refused}, {Text{Chunk: 30, Stride: 8}, alphabet, fault.Refused},
		{Text{Chunk: 3}, alphabet, fault.Usage},
		{Text{Chunk: 8, Stride: -1}, long, fault.Usage}, {Text{Chunk: 8, Chunks: -1}, long, fault.Usage},
		{Text{Chunk: 100, Stride: 255}, long, fault.Usage},
	} {
		if _, err := c.text.Run(letters(t, false), c.of); !errors.Is(err, c.kind) {
			t.Errorf("%+v: %v, want %v", c.text, err, c.kind)
		}
	}
}
