package towers_test

import (
	"fmt"

	"ggforge/arch/towers"
)

// The classes of models that see as Idefics 3 does.
func ExampleAll() {
	for _, a := range towers.All() {
		if a.Classes[0] == "Idefics3ForConditionalGeneration" {
			fmt.Println(a.Name, a.Classes)
		}
	}
	// Output: clip [Idefics3ForConditionalGeneration SmolVLMForConditionalGeneration]
}
