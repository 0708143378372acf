package logprobs_test

import (
	"bytes"
	"fmt"
	"log"

	"ggforge/eval/logprobs"
)

// Write and read a file of one chunk of four tokens, of which the third predicts the fourth, with a vocabulary of 3.
func Example() {
	var b bytes.Buffer
	l := logprobs.Layout{Chunk: 4, Vocab: 3, Chunks: 1}
	if err := l.WriteHeader(&b, []int32{0, 1, 2, 1}); err != nil {
		log.Fatal(err)
	}
	raw := make([]byte, l.RowBytes())
	logprobs.EncodeRow(raw, []float32{0, 0, -20})
	b.Write(raw)
	f, err := logprobs.New("base", bytes.NewReader(b.Bytes()), l.Size())
	if err != nil {
		log.Fatal(err)
	}
	row := make([]float32, f.Vocab)
	if err := f.Row(row, new([]byte), 0, 0); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v position %d %.3f\n", f.Tokens, f.First(), row)
	// Output:
	// [0 1 2 1] position 2 [-0.693 -0.693 -16.693]
}
