package parts_test

import (
	"fmt"

	"ggforge/gguf"
	"ggforge/quants"
	"ggforge/quants/parts"
)

func Example() {
	x := make([]float32, 32)
	for i := range x {
		x[i] = float32(i-16) / 4
	}
	data := make([]byte, gguf.TypeQ4_0.BlockBytes())
	if err := quants.Lookup(gguf.TypeQ4_0).Quantize(data, x, len(x), nil); err != nil {
		fmt.Println(err)
		return
	}
	f, b := parts.Of(gguf.TypeQ4_0), &parts.Block{}
	f.Unpack(b, data)
	fmt.Println("scale", b.D, "levels", b.Levels[:8])
	b.Levels[0]++
	f.Pack(data, b)
	f.Values(x, b)
	fmt.Println("values", x[:4])
	// Output:
	// scale 0.5 levels [-8 -7 -7 -6 -6 -5 -5 -4]
	// values [-3.5 -3.5 -3.5 -3]
}
