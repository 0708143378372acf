package encoders_test

import (
	"fmt"

	"ggforge/arch/encoders"
)

// The classes of models that see as Idefics 3 does.
func ExampleAll() {
	for _, a := range encoders.All() {
		if a.Classes[0] == "Idefics3ForConditionalGeneration" {
			fmt.Println(a.Name, a.Classes)
		}
	}
	// Output: clip [Idefics3ForConditionalGeneration SmolVLMForConditionalGeneration]
}
