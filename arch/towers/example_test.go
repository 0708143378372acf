package towers_test

import (
	"fmt"

	"ggforge/arch/towers"
)

// The classes of models that see as Qwen2-VL does.
func ExampleAll() {
	for _, a := range towers.All() {
		if a.Classes[0] == "Qwen2VLForConditionalGeneration" {
			fmt.Println(a.Name, a.Classes)
		}
	}
	// Output: clip [Qwen2VLForConditionalGeneration Qwen2VLModel]
}
