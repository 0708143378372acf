package arch_test

import (
	"fmt"
	"log"

	"ggforge/arch"
	"ggforge/arch/config"
)

// What becomes of two tensors of a Llama.
func Example() {
	cfg, err := arch.ParseConfig(
		[]byte(`{"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 1, "hidden_size": 64, "num_attention_heads": 4}`))
	if err != nil {
		log.Fatal(err)
	}
	view := cfg.View(config.Options{})
	a, err := arch.For(view)
	if err != nil {
		log.Fatal(err)
	}
	names := []string{"model.layers.0.mlp.down_proj.weight", "model.norm.weight"}
	layout, err := a.Layout(view, names)
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range layout.Outputs {
		fmt.Println(names[o.From[0]], "->", o.Row.Outputs(o.Layer.Bid, o.Suffix))
	}
	fmt.Println(len(layout.Missing), "missing, the first is", layout.Missing[0])
	// Output:
	// model.layers.0.mlp.down_proj.weight -> [blk.0.ffn_down.weight]
	// model.norm.weight -> [output_norm.weight]
	// 9 missing, the first is model.embed_tokens.weight
}
