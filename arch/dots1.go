package arch

import (
	"slices"

	"ggforge/tokenizer"
)

// dots1 is dots.llm1: the attention of Qwen 3, experts as in DeepSeek V3. Source:
// the Dots1 class of the reference's converter.
var dots1 = &Arch{
	Name:      "dots1",
	Classes:   []string{"Dots1ForCausalLM"},
	Tokenizer: tokenizer.ClassGPT2,
	Metadata: slices.Concat(qwen2moe.Metadata, []Row{
		uintRow("leading_dense_block_count", "first_k_dense_replace"),
		uintRow("expert_shared_count", "n_shared_experts"),
		floatRow("expert_weights_scale", "routed_scaling_factor"),
		boolRow("expert_weights_norm", "norm_topk_prob"),
	}),
	Unused: append([]string{"topk_method", "ep_size"}, windowKeys...),
	Expect: []Expect{silu, {"moe_layer_freq", []string{"1"}}, {"use_sliding_window", []string{"false"}}},
	Tensors: slices.Concat(embedRows, normRows, attentionRows(MayBias, NoBias), qkNormRows, only(denseFirst, mlpRows),
		only(moeAfter, slices.Concat(expertRows, fusedExpertRows, []TensorRow{correctionRow})), only(sharedAfter, sharedExpertRows)),
}
