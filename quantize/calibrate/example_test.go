package calibrate_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"ggforge/convert"
	"ggforge/eval"
	"ggforge/gguf"
	"ggforge/quantize/calibrate"
)

// Choose the blocks of a tensor by the inputs of its layer over a text.
func Example() {
	ctx := context.Background()
	m, _, err := convert.Open(ctx, "../../test/testdata/gollama", convert.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	var targets []calibrate.Target
	for i := range m.Tensors {
		if m.Tensors[i].Name == "blk.0.attn_v.weight" {
			targets = append(targets, calibrate.Target{Tensor: i, Type: gguf.TypeQ4_K})
		}
	}
	tokens := make([]int32, 128)
	for i := range tokens {
		tokens[i] = int32(300 + i*7%1000)
	}
	blocks, err := calibrate.Run(ctx, m, targets, calibrate.Options{Run: eval.Run{Tokens: tokens, Chunk: 64},
		Dir: os.TempDir()})
	if err != nil {
		log.Fatal(err)
	}
	defer blocks.Close()
	for _, l := range blocks.Errors {
		fmt.Println(l.Name, l.Type, l.Rows, "inputs; less than half the error:", l.After < l.Before/2)
	}
	fmt.Println(blocks.Source(targets[0]).Type())
	// Output:
	// blk.0.attn_v.weight Q4_K 128 inputs; less than half the error: true
	// Q4_K
}
