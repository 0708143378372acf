package arch

import (
	"slices"

	"ggforge/gguf"
	"ggforge/tokenizer"
)

// windowKeys tell of sliding windows that are off unless use_sliding_window is on.
var windowKeys = []string{"sliding_window", "max_window_layers", "layer_types"}

// qwen2 is Qwen 1.5, 2 and 2.5. Source: the Qwen2 class of the reference's
// converter.
var qwen2 = &Arch{
	Name:      "qwen2",
	Classes:   []string{"Qwen2ForCausalLM", "Qwen2Model"},
	Tokenizer: tokenizer.ClassSPMOrGPT2,
	Metadata:  slices.Concat(commonRows, []Row{{Key: "pooling_type", Derive: poolingType}}),
	Unused:    windowKeys,
	Expect:    []Expect{silu},
	Rename:    bareNames,
	Tensors:   slices.Concat(embedRows, normRows, attentionRows(MayBias, NoBias), mlpRows),
}

// qwen2moe is Qwen 1.5 and 2 with experts.
var qwen2moe = &Arch{
	Name:      "qwen2moe",
	Classes:   []string{"Qwen2MoeForCausalLM"},
	Tokenizer: tokenizer.ClassGPT2,
	Metadata: slices.Concat(commonRows, []Row{
		{Key: "expert_feed_forward_length", Type: gguf.Uint32Type, From: []string{"moe_intermediate_size"}},
		{Key: "expert_shared_feed_forward_length", Type: gguf.Uint32Type, From: []string{"shared_expert_intermediate_size"}},
	}),
	Unused:  windowKeys,
	Expect:  []Expect{silu, {"norm_topk_prob", []string{"false"}}, {"decoder_sparse_step", []string{"1"}}},
	Tensors: slices.Concat(embedRows, normRows, attentionRows(MayBias, NoBias), expertRows, fusedExpertRows, qwenSharedRows),
}

// qwenSharedRows are an expert that every token passes, and its gate.
var qwenSharedRows = []TensorRow{
	{HF: "model.layers.{bid}.mlp.shared_expert_gate", GGUF: "blk.{bid}.ffn_gate_inp_shexp"},
	{HF: "model.layers.{bid}.mlp.shared_expert.gate_proj", GGUF: "blk.{bid}.ffn_gate_shexp"},
	{HF: "model.layers.{bid}.mlp.shared_expert.up_proj", GGUF: "blk.{bid}.ffn_up_shexp"},
	{HF: "model.layers.{bid}.mlp.shared_expert.down_proj", GGUF: "blk.{bid}.ffn_down_shexp"},
}

// qwen3 is Qwen 3, its embedding models and its rerankers.
var qwen3 = &Arch{
	Name:      "qwen3",
	Classes:   []string{"Qwen3ForCausalLM", "Qwen3Model"},
	Tokenizer: tokenizer.ClassSPMOrGPT2,
	Metadata:  slices.Concat(qwen2.Metadata, rerankRows),
	Unused:    windowKeys,
	Expect:    []Expect{silu},
	Rename:    bareNames,
	Tensors:   slices.Concat(rerankHead, normRows, attentionRows(MayBias, NoBias), qkNormRows, mlpRows),
}

// qwen3moe is Qwen 3 with experts.
var qwen3moe = &Arch{
	Name:      "qwen3moe",
	Classes:   []string{"Qwen3MoeForCausalLM"},
	Tokenizer: tokenizer.ClassGPT2,
	Metadata:  qwen2moe.Metadata,
	Unused:    windowKeys,
	Expect:    []Expect{silu, {"norm_topk_prob", []string{"true"}}, {"decoder_sparse_step", []string{"1"}}},
	Tensors:   slices.Concat(embedRows, normRows, attentionRows(MayBias, NoBias), qkNormRows, expertRows, fusedExpertRows),
}
