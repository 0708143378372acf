package parts_test

import (
	"fmt"

	"ggforge/arch/parts"
)

// Rows that many tables have.
func Example() {
	for _, row := range parts.MLPRows {
		fmt.Println(row.HF, "->", row.GGUF)
	}
	// Output:
	// model.layers.{bid}.mlp.gate_proj -> blk.{bid}.ffn_gate
	// model.layers.{bid}.mlp.up_proj -> blk.{bid}.ffn_up
	// model.layers.{bid}.mlp.down_proj -> blk.{bid}.ffn_down
}
