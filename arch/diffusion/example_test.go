package diffusion_test

import (
	"fmt"

	"ggforge/arch/diffusion"
	"ggforge/gguf"
)

func ExampleHas() {
	for _, architecture := range []string{"flux", "llama"} {
		l := gguf.LimitsOf(architecture)
		fmt.Println(architecture, diffusion.Has(architecture), l.Name, l.Dims)
	}
	// Output:
	// flux true 127 5
	// llama false 63 4
}
