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

// A checkpoint's names show which model it has.
func ExampleDetect() {
	names := []string{
		"model.diffusion_model.blocks.0.self_attn.norm_q.weight",
		"model.diffusion_model.text_embedding.2.weight",
		"model.diffusion_model.head.modulation",
		"first_stage_model.encoder.conv_in.weight",
	}
	prefix := diffusion.Prefix(names)
	var own []string
	for _, n := range names {
		if n, ok := diffusion.Strip(n, prefix); ok {
			own = append(own, n)
		}
	}
	m, err := diffusion.Detect(own)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Name, diffusion.UseOf(m.Name, "").Tag, "of", len(own), "tensors")
	fmt.Println("float32:", m.F32.Match("head.modulation"), "dimensions:", m.MinDims("head.modulation"))
	// Output:
	// wan text-to-video of 3 tensors
	// float32: true dimensions: 3
}
