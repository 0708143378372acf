package vocab_test

import (
	"strings"
	"testing"

	"ggforge/test/vocabtest"
	"ggforge/tokenizer/vocab"
)

// BenchmarkEncode encodes a long text of the corpus.
func BenchmarkEncode(b *testing.B) {
	cases, err := vocabtest.Cases(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat(vocabtest.Text(1, 4000), 4)
	for _, c := range cases {
		v, err := vocab.New(c.Metadata)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.Name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := v.Encode(text, vocab.Options{ParseSpecial: true}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
