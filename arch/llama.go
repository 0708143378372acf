package arch

import (
	"slices"

	"ggforge/gguf"
	"ggforge/tokenizer"
)

// llama is the Llama family: Llama 1 to 3 and Mistral. Source: the Llama class of
// the reference's converter.
var llama = &Arch{
	Name:      "llama",
	Classes:   []string{"LLaMAForCausalLM", "LlamaForCausalLM", "MistralForCausalLM"},
	Tokenizer: tokenizer.ClassLlama,
	Metadata: slices.Concat(commonRows, []Row{
		{Key: "vocab_size", Type: gguf.Uint32Type, From: []string{"vocab_size"}, Required: true},
		{Key: "rope.dimension_count", Derive: ropeDimensionCount},
	}),
	Expect: []Expect{
		{"hidden_act", []string{"silu", "swish"}},
		{"draft_vocab_size", nil}, // a draft model for another one
	},
	Tensors: []TensorRow{
		{HF: "model.embed_tokens", GGUF: "token_embd"},
		{HF: "model.norm", GGUF: "output_norm"},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "model.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q", Transform: permuteQ, Bias: MayBias},
		{HF: "model.layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.attn_k", Transform: permuteK, Bias: MayBias},
		{HF: "model.layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.attn_v", Bias: MayBias},
		{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output", Bias: MayBias},
		{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.ffn_norm"},
		{HF: "model.layers.{bid}.mlp.gate_proj", GGUF: "blk.{bid}.ffn_gate", Bias: MayBias},
		{HF: "model.layers.{bid}.mlp.up_proj", GGUF: "blk.{bid}.ffn_up", Bias: MayBias},
		{HF: "model.layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down", Bias: MayBias},
		// buffers of older checkpoints, computed by every loader
		{HF: "model.layers.{bid}.self_attn.rotary_emb.inv_freq"},
		{HF: "model.rotary_emb.inv_freq"},
	},
	Extra: []ExtraTensor{
		{GGUF: "rope_freqs.weight", Make: llama3Factors},
	},
}

// mixtral is Mixtral: Llama with experts. It shares the name, the metadata and
// the arithmetic of its attention.
var mixtral = &Arch{
	Name:      "llama",
	Classes:   []string{"MixtralForCausalLM"},
	Tokenizer: tokenizer.ClassLlama,
	Metadata:  llama.Metadata,
	Expect:    llama.Expect,
	Tensors: slices.Concat(embedRows, normRows,
		permutedRows(MayBias),
		mixtralExperts),
	Extra: llama.Extra,
}

// mixtralExperts are a router and its experts under Mixtral's names.
var mixtralExperts = []TensorRow{
	{HF: "model.layers.{bid}.block_sparse_moe.gate", GGUF: "blk.{bid}.ffn_gate_inp"},
	{HF: "model.layers.{bid}.block_sparse_moe.experts.{xid}.w1", GGUF: "blk.{bid}.ffn_gate_exps"},
	{HF: "model.layers.{bid}.block_sparse_moe.experts.{xid}.w2", GGUF: "blk.{bid}.ffn_down_exps"},
	{HF: "model.layers.{bid}.block_sparse_moe.experts.{xid}.w3", GGUF: "blk.{bid}.ffn_up_exps"},
}
