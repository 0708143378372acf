package logprobs_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log"

	"ggforge/eval/logprobs"
)

// Read a file of one chunk of 3 tokens, with a vocabulary of 2.
func Example() {
	b := bytes.NewBufferString("_logits_")
	write := func(v any) {
		if err := binary.Write(b, binary.LittleEndian, v); err != nil {
			log.Fatal(err)
		}
	}
	write([]int32{3, 2, 1})    // tokens of a chunk, of the vocabulary, chunks
	write([]int32{1, 0, 1})    // the text
	write([]float32{5e-5, -4}) // scale and minimum of the only row
	write([]uint16{1000, 3e4}) // codes
	f, err := logprobs.New("base", bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		log.Fatal(err)
	}
	row := make([]float32, f.Vocab)
	if err := f.Row(row, new([]byte), 0, 0); err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Tokens, "position", f.First(), row)
	// Output:
	// [1 0 1] position 1 [-3.95 -2.5]
}
