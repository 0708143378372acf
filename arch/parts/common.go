package parts

import (
	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/gguf"
)

// CommonRows is the block that most architectures begin with. Source: the order
// and the key lists of the reference's TextModel.
var CommonRows = []table.Row{
	{Key: table.KeyBlockCount, Type: gguf.Uint32Type, From: config.BlockCountKeys, Required: true},
	{Key: "context_length", Type: gguf.Uint32Type, From: []string{"max_position_embeddings", "n_ctx", "n_positions",
		"max_length", "max_sequence_length", "model_max_length"}},
	{Key: "embedding_length", Type: gguf.Uint32Type, From: []string{"hidden_size", "n_embd", "dim"}},
	{Key: "feed_forward_length", Type: gguf.Uint32Type,
		From: []string{"prefix_dense_intermediate_size", "dense_intermediate_size", "intermediate_size", "n_inner",
			"hidden_dim"}},
	{Key: table.KeyHeadCount, Type: gguf.Uint32Type, From: config.HeadKeys},
	{Key: table.KeyHeadCountKV, Type: gguf.Uint32Type, From: config.HeadKVKeys},
	{Key: "attention.causal", Derive: notCausal},
	{Key: "rope.scaling.type", Derive: ropeScalingType},
	{Key: "rope.scaling.factor", Derive: ropeScalingFactor},
	{Key: "rope.scaling.original_context_length", Derive: yarnInt("original_max_position_embeddings")},
	{Key: "rope.scaling.yarn_truncate", Derive: yarnBool("truncate")},
	{Key: "rope.scaling.yarn_ext_factor", Derive: yarnFloat("extrapolation_factor")},
	{Key: "rope.scaling.yarn_attn_factor", Derive: yarnFloat("attention_factor", "attn_factor")},
	{Key: "rope.scaling.yarn_beta_fast", Derive: yarnFloat("beta_fast")},
	{Key: "rope.scaling.yarn_beta_slow", Derive: yarnFloat("beta_slow")},
	{Key: "rope.dimension_sections", Derive: ropeSections},
	{Key: "rope.freq_base", Derive: func(c *config.View) (gguf.Value, bool,
		error) {
		return table.Float32Of(c.Rope().Float("rope_theta"))
	}},
	{Key: "rope.freq_base_swa", Derive: func(c *config.View) (gguf.Value, bool, error) {
		return table.Float32Of(c.RopeRoot().Sub("sliding_attention").Float("rope_theta"))
	}},
	{Key: "attention.layer_norm_rms_epsilon", Type: gguf.Float32Type, From: []string{"rms_norm_eps", "norm_eps"}},
	{Key: "attention.layer_norm_epsilon", Type: gguf.Float32Type, From: []string{"layer_norm_eps", "layer_norm_epsilon",
		"norm_epsilon"}},
	{Key: "expert_count", Type: gguf.Uint32Type, From: config.ExpertKeys},
	{Key: "expert_used_count", Type: gguf.Uint32Type, From: []string{"num_experts_per_tok", "num_experts_per_token",
		"top_k_experts"}},
	{Key: "expert_group_count", Type: gguf.Uint32Type, From: []string{"n_group"}},
	{Key: "expert_group_used_count", Type: gguf.Uint32Type, From: []string{"topk_group"}},
	{Key: "expert_gating_func", Derive: gatingFunc},
	{Key: "attention.key_length", Type: gguf.Uint32Type, From: []string{"head_dim"}},
	{Key: "attention.value_length", Type: gguf.Uint32Type, From: []string{"head_dim"}},
	{Key: gguf.KeyFileType},
}
