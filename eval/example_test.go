package eval_test

import (
	"context"
	"fmt"
	"log"

	"ggforge/convert"
	"ggforge/eval"
)

// How well a checkpoint predicts a text, straight from its directory.
func Example() {
	ctx := context.Background()
	m, _, err := convert.Open(ctx, "../testdata/gollama", convert.Options{Type: convert.F16})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	e, err := eval.New(m)
	if err != nil {
		log.Fatal(err)
	}
	// The tokens of some lines of Go.
	tokens := []int32{1716, 3832, 2737, 4023, 4015, 327, 606, 4020, 4051, 4022, 268, 13, 12, 4015, 4020, 891, 981, 427, 1459, 4037, 13, 4029, 1036, 639, 516, 268, 13, 12, 4029, 1507, 516, 385}
	p, err := e.Perplexity(ctx, eval.Run{Tokens: tokens, Chunk: len(tokens), Workers: 2})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.6f over %d tokens\n", p.Value, p.Predicted)
	// Output: 38.825930 over 15 tokens
}
