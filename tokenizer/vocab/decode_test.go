package vocab_test

import (
	"testing"

	"ggforge/gguf"
	"ggforge/test/vocabtest"
	"ggforge/tokenizer/vocab"
)

// TestDecode checks that tokens of a text decode to it, with the tokenizers that keep every byte. Others change letters,
// merge blanks, or put blanks before lines.
func TestDecode(t *testing.T) {
	cases, err := vocabtest.Cases(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	text := "func main() {\n\tx := \"é — 漢字 😀\"  // two  blanks\n}"
	equal := 0
	for _, c := range cases {
		v, err := vocab.New(c.Metadata)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := v.Encode(text, vocab.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		key := func(name string) string {
			value, _ := c.Metadata.Get(name)
			s, _ := value.Str()
			return s
		}
		switch model := key("tokenizer.ggml.model"); {
		case model == "t5", model == "bert", model == "whitespace", key("tokenizer.ggml.pre") == "mmbert":
			continue
		}
		if equal++; v.Decode(ids) != text {
			t.Errorf("%s: %q, want %q", c.Name, v.Decode(ids), text)
		}
	}
	if equal < 100 {
		t.Errorf("only %d cases", equal)
	}
}

// TestPiece checks the bytes of tokens of each kind.
func TestPiece(t *testing.T) {
	for _, c := range []struct{ model, token, want string }{
		{"llama", "▁a", " a"}, {"llama", "<0x0A>", "\n"}, {"llama", "<0xFF>", "\xff"}, {"llama", "</s>", "</s>"},
		{"t5", "▁a", " a"}, {"bert", "▁a", " a"}, {"gemma4", "▁a", " a"}, {"plamo2", "▁a", "▁a"}, {"plamo2", "<0x20>", " "},
		{"hybriddna", "ab", "ab"}, {"whitespace", "▁a", "▁a"},
	} {
		m := withBytes(c.model)
		v, err := vocab.New(m)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for id := range int32(v.Len()) {
			if v.Token(id) == c.token {
				found = true
				if got := v.Piece(id); got != c.want {
					t.Errorf("%s: %q is %q, want %q", c.model, c.token, got, c.want)
				}
			}
		}
		if !found {
			t.Errorf("%s has no token %q", c.model, c.token)
		}
	}
	m := small("gpt2")
	m.Set("tokenizer.ggml.tokens", gguf.Strings([]string{"<unk>", "<s>", "</s>", "Ġa", "Ċ", "Ã", "©", "漢", "<mask>"}))
	v, err := vocab.New(m)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := v.Decode([]int32{3, 4, 5, 6, 7, 8, 1}), " a\né漢<mask><s>"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
