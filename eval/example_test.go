package eval_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"ggforge/convert"
	"ggforge/eval"
)

// lines are the tokens of some lines of Go.
var lines = []int32{1716, 3832, 2737, 4023, 4015, 327, 606, 4020, 4051, 4022, 268, 13, 12, 4015, 4020, 891, 981, 427,
	1459, 4037, 13, 4029, 1036, 639, 516, 268, 13, 12, 4029, 1507, 516, 385}

// How well a checkpoint predicts a text, straight from its directory.
func Example() {
	ctx := context.Background()
	m, _, err := convert.Open(ctx, "../test/testdata/gollama", convert.Options{Type: convert.F16})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	e, err := eval.New(m)
	if err != nil {
		log.Fatal(err)
	}
	tokens := lines
	p, err := e.Perplexity(ctx, eval.Run{Tokens: tokens, Chunk: len(tokens), Workers: 2})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.6f over %d tokens\n", p.Value, p.Predicted)
	// Output: 38.825930 over 15 tokens
}

// The sensitivity of the loss to the linear layers of the last layer: the mean square of its gradient with respect to
// their outputs.
func ExampleModel_Backward() {
	ctx := context.Background()
	m, _, err := convert.Open(ctx, "../test/testdata/gollama", convert.Options{Type: convert.F16})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	e, err := eval.New(m)
	if err != nil {
		log.Fatal(err)
	}
	g := eval.Gradients{Run: eval.Run{Tokens: lines, Chunk: len(lines), Workers: 2}}
	g.Linear = func(l eval.LinearGradient) error {
		if strings.HasPrefix(l.Name, "blk.5.") {
			var sum float64
			for _, v := range l.G {
				sum += float64(v) * float64(v)
			}
			fmt.Printf("%-25s %.3e\n", l.Name, sum/float64(len(l.G)))
		}
		return nil
	}
	loss, err := e.Backward(ctx, g)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("loss %.5f\n", loss)
	// Output:
	// blk.5.ffn_down.weight     9.206e-05
	// blk.5.ffn_gate.weight     5.257e-05
	// blk.5.ffn_up.weight       4.066e-05
	// blk.5.attn_output.weight  9.335e-05
	// blk.5.attn_q.weight       1.168e-04
	// blk.5.attn_k.weight       1.362e-03
	// blk.5.attn_v.weight       7.238e-04
	// loss 100.61060
}
