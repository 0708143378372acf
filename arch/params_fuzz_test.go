package arch

import (
	"testing"

	"ggforge/arch/config"
)

// FuzzParams is FuzzParseConfig for params.json.
func FuzzParams(f *testing.F) {
	f.Add([]byte(`{"dim": 64, "n_layers": 2, "head_dim": 16, "hidden_dim": 128, "n_heads": 4, "n_kv_heads": 2, "norm_eps": 1e-5, "vocab_size": 100, "rope_theta": 10000.0}`))
	f.Add([]byte(`{"dim": 0, "n_layers": -1, "n_heads": 1e300, "yarn": {"factor": 2, "original_max_position_embeddings": 0}, "llama_4_scaling": {"beta": 0}}`))
	f.Add([]byte(`{"moe": {"num_experts": 2}, "lora": {"rank": 3}, "quantization": {"qformat_weight": "fp8_e4m3"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, err := config.ParseParams(data)
		if err != nil {
			return
		}
		c := cfg.View(config.Options{})
		a, err := For(c)
		if err != nil {
			return
		}
		a.Blocks(c)
		a.KVs(c, 0)
		for _, e := range a.Extra {
			e.Make(c)
		}
		a.Layout(c, []string{"layers.0.attention.wq.weight", "layers.1.feed_forward.w1.weight", "tok_embeddings.weight",
			"norm.weight"})
	})
}
