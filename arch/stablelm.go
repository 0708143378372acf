package arch

import (
	"slices"

	"ggforge/gguf"
	"ggforge/tokenizer"
)

// stablelm is Stability AI's StableLM 3B and StableLM 2. Source: the StableLM
// class of the reference's converter, which stops at the norms per head of
// StableLM 2 12B: they are stacked here as it means to.
var stablelm = &Arch{
	Name:      "stablelm",
	Classes:   []string{"StableLmForCausalLM", "StableLMEpochForCausalLM", "LlavaStableLMEpochForCausalLM"},
	Tokenizer: tokenizer.ClassGPT2,
	Metadata: []Row{
		uintRow("context_length", "max_position_embeddings"),
		uintRow("embedding_length", "hidden_size"),
		uintRow(keyBlockCount, blockCountKeys...),
		uintRow("feed_forward_length", "intermediate_size"),
		{Key: "rope.dimension_count", Derive: ropeShareOfHead(0)},
		uintRow(keyHeadCount, "num_attention_heads"),
		uintRow(keyHeadCountKV, "num_key_value_heads"),
		{Key: "use_parallel_residual", Type: gguf.BoolType, From: []string{"use_parallel_residual"}, Const: gguf.Bool(true)},
		floatRow("attention.layer_norm_epsilon", "layer_norm_eps", "norm_eps"),
		fileTypeRow,
	},
	Expect: []Expect{silu},
	Unused: slices.Concat(biasKeys, []string{"qk_layernorm"}),
	Tensors: slices.Concat(embedRows[:1], embedRows[2:], withBias(NeedBias, embedRows[1:2]), withBias(NeedBias, normRows[:1]), mlpRows, []TensorRow{
		// models with parallel residuals have one norm per layer
		{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.ffn_norm", Bias: NeedBias, Optional: true},
		{HF: "model.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q", Bias: MayBias},
		{HF: "model.layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.attn_k", Bias: MayBias},
		{HF: "model.layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.attn_v", Bias: MayBias},
		{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output"},
		{HF: "model.layers.{bid}.self_attn.q_layernorm.norms.{xid}", GGUF: "blk.{bid}.attn_q_norm", Optional: true, Group: "q-norms",
			Experts: func(l Layer) (int64, error) { return l.Require("num_attention_heads") }},
		{HF: "model.layers.{bid}.self_attn.k_layernorm.norms.{xid}", GGUF: "blk.{bid}.attn_k_norm", Optional: true, Group: "k-norms",
			Experts: func(l Layer) (int64, error) { return l.Require("num_key_value_heads") }},
	}),
}
