package logprobstest_test

import (
	"bytes"
	"fmt"
	"log"

	"ggforge/eval/logprobs"
	"ggforge/eval/logprobs/logprobstest"
)

// Make a file for a chunk of four tokens, of which the third predicts the fourth.
func Example() {
	b := logprobstest.Encode(4, []int32{0, 1, 2, 1}, [][]float32{{0, 0, -20}})
	f, err := logprobs.New("base", bytes.NewReader(b), int64(len(b)))
	if err != nil {
		log.Fatal(err)
	}
	row := make([]float32, f.Vocab)
	if err := f.Row(row, new([]byte), 0, 0); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.3f\n", row)
	// Output:
	// [-0.693 -0.693 -16.693]
}
