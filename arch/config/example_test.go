package config_test

import (
	"fmt"
	"log"

	"ggforge/arch/config"
)

// A key that config.json leaves out has the default that the transformers library
// gives it.
func Example() {
	cfg, err := config.Parse(
		[]byte(`{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4}`), nil)
	if err != nil {
		log.Fatal(err)
	}
	c := cfg.View(config.Options{})
	dim, err := c.HeadDim()
	if err != nil {
		log.Fatal(err)
	}
	eps, _, err := c.Float("rms_norm_eps")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(dim, eps, c.Defaulted())
	// Output:
	// 16 1e-06 [rms_norm_eps]
}
