package quants_test

import (
	"fmt"
	"log"

	"ggforge/gguf"
	"ggforge/quants"
)

// One row to Q8_0 and back.
func Example() {
	row := make([]float32, 32)
	for i := range row {
		row[i] = float32(i) / 8
	}
	c := quants.Lookup(gguf.TypeQ8_0)
	blocks := make([]byte, gguf.TypeQ8_0.RowBytes(int64(len(row))))
	if err := c.Quantize(blocks, row, len(row), nil); err != nil {
		log.Fatal(err)
	}
	back := make([]float32, len(row))
	if err := c.Dequantize(back, blocks); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(blocks), "bytes")
	fmt.Println(row[29:], back[29:])
	// Output:
	// 34 bytes
	// [3.625 3.75 3.875] [3.6315918 3.753662 3.8757324]
}
