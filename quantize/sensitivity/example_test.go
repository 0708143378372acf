package sensitivity_test

import (
	"context"
	"fmt"
	"log"

	"ggforge/convert"
	"ggforge/eval"
	"ggforge/gguf"
	"ggforge/quantize/sensitivity"
)

// Measure the loss of a model with 2 bits, by the roles of its tensors.
func Example() {
	ctx := context.Background()
	m, _, err := convert.Open(ctx, "../../test/testdata/gollama", convert.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	tokens := make([]int32, 64)
	for i := range tokens {
		tokens[i] = int32(300 + i*7%1000)
	}
	table, err := sensitivity.Measure(ctx, m, sensitivity.Options{
		Types: []gguf.Type{gguf.TypeQ2_K}, Group: sensitivity.ByRole, Run: eval.Run{Tokens: tokens, Chunk: 32},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, row := range table.Rows {
		if row.Group == sensitivity.All {
			fmt.Println(len(table.Rows), "rows,", len(row.Tensors), "tensors of", row.Weights, "weights")
		}
	}
	// Output:
	// 10 rows, 44 tensors of 6619136 weights
}
