package table_test

import (
	"fmt"

	"ggforge/arch/table"
)

// A row of a table: one tensor in each layer.
func ExampleTensorRow_Outputs() {
	row := table.TensorRow{HF: "model.layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down"}
	fmt.Println(row.Outputs(3, ".weight"))
	// Output: [blk.3.ffn_down.weight]
}
