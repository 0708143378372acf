package convert

import (
	"strings"
	"testing"

	"ggforge/checkpoint/precision"
	"ggforge/checkpoint/safetensors"
)

// FuzzAdapter reads adapters of any configuration and names of tensors. Accepted
// adapters have pairs of one rank, with scales.
func FuzzAdapter(f *testing.F) {
	const a, b = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight",
		"base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight"
	f.Add(`{"peft_type": "LORA", "r": 2, "lora_alpha": 4}`, a+"\n"+b)
	f.Add(`{"lora_alpha": 4, "use_rslora": true, "alpha_pattern": {"q_proj": 2, "layers.\\d+.v": 3}, "rank_pattern": {"q_proj": 2}}`, a+"\n"+b)
	f.Add(`{"lora_alpha": 1e300, "use_dora": true}`, a)
	f.Add(`{"lora_alpha": 1, "alpha_pattern": {"(": 2}, "alora_invocation_tokens": [1, -2]}`,
		"model.norm.weight\nx.lora_embedding_A\nx.lora_embedding_B")
	f.Fuzz(func(t *testing.T, config, names string) {
		l := new(lora)
		if l.configure([]byte(config)) != nil {
			return
		}
		var tensors []*precision.Tensor
		for i, name := range strings.Split(names, "\n") {
			shape := []int64{2, 4}
			if i%2 == 1 {
				shape = []int64{6, 2}
			}
			tensors = append(tensors, &precision.Tensor{Name: name, DType: safetensors.F32, Shape: shape,
				Mapped: make([]byte, 4*shape[0]*shape[1])})
		}
		if l.match(tensors) != nil {
			return
		}
		for _, p := range l.pairs {
			product, err := p.factors()
			if err != nil {
				t.Fatal(err)
			}
			l.scale(p, product.Rank())
			l.share(p, product.Rank())
		}
	})
}
