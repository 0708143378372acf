package allocate_test

import (
	"fmt"

	"ggforge/gguf"
	"ggforge/quantize/allocate"
)

// Write types of tensors as a recipe, and read it again.
func ExampleFormatRecipe() {
	text := allocate.FormatRecipe([]allocate.TensorType{
		{Name: "token_embd.weight", Type: gguf.TypeQ5_K}, {Name: "blk.0.ffn_down.weight", Type: gguf.TypeIQ4_XS},
	})
	fmt.Printf("%s", text)
	r, err := allocate.ParseRecipe("recipe.txt", text)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Check([]string{"token_embd.weight", "blk.1.ffn_down.weight"}))
	// Output:
	// ^token_embd\.weight$=q5_k
	// ^blk\.0\.ffn_down\.weight$=iq4_xs
	// recipe.txt, line 2: "^blk\\.0\\.ffn_down\\.weight$" matches no tensor
}
