package arch

import (
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

// deepseek is DeepSeek's first model with experts. Source: the DeepSeek classes
// of the reference's converter.
var deepseek = &Arch{
	Name:      "deepseek",
	Classes:   []string{"DeepseekForCausalLM"},
	Tokenizer: tokenizer.ClassSPMOrGPT2,
	Metadata: slices.Concat(commonRows, []Row{
		{Key: "rope.dimension_count", Derive: ropeDimensionCount},
		{Key: "rope.scaling.type", Const: gguf.String("none")},
		{Key: "leading_dense_block_count", Type: gguf.Uint32Type, From: []string{"first_k_dense_replace"}, Required: true},
		{Key: "vocab_size", Type: gguf.Uint32Type, From: []string{"vocab_size"}, Required: true},
		{Key: "expert_feed_forward_length", Type: gguf.Uint32Type, From: []string{"moe_intermediate_size"}, Required: true},
		{Key: "expert_weights_scale", Const: gguf.Float32(1)},
		{Key: "expert_count", Type: gguf.Uint32Type, From: []string{"n_routed_experts"}, Required: true},
		{Key: "expert_shared_count", Type: gguf.Uint32Type, From: []string{"n_shared_experts"}, Required: true},
	}),
	Unused: []string{"topk_method", "ep_size"},
	Expect: []Expect{silu, {"norm_topk_prob", []string{"false"}}, {"moe_layer_freq", []string{"1"}}},
	Tensors: slices.Concat(embedRows, normRows,
		each(each(attentionRows(MayBias, NoBias), ".q_proj", permuteQ), ".k_proj", permuteK),
		only(denseFirst, mlpRows), only(moeAfter, slices.Concat(expertRows, sharedExpertRows))),
}

// sharedExpertRows are experts that every token passes, kept as one.
var sharedExpertRows = []TensorRow{
	{HF: "model.layers.{bid}.mlp.shared_experts.gate_proj", GGUF: "blk.{bid}.ffn_gate_shexp"},
	{HF: "model.layers.{bid}.mlp.shared_experts.up_proj", GGUF: "blk.{bid}.ffn_up_shexp"},
	{HF: "model.layers.{bid}.mlp.shared_experts.down_proj", GGUF: "blk.{bid}.ffn_down_shexp"},
}

// correctionRow is the bias by which experts are chosen, but not weighed.
var correctionRow = TensorRow{
	HF: "model.layers.{bid}.mlp.gate.e_score_correction_bias", Exact: true, Optional: true, GGUF: "blk.{bid}.exp_probs_b.bias",
}

// denseFirst is the condition of layers before the first that has experts,
// moeAfter its opposite. Without experts all layers are dense.
func denseFirst(l Layer) (bool, error) {
	moe, err := moeAfter(l)
	return !moe, err
}

func moeAfter(l Layer) (bool, error) {
	dense, err := leadingDense(l.Config)
	return l.Bid >= dense, err
}

func leadingDense(c *Config) (int64, error) {
	n, ok, err := c.Int("first_k_dense_replace")
	switch {
	case err != nil || ok:
		return n, err
	case c.Has("n_routed_experts"):
		return 0, nil
	}
	return c.BlockCount()
}

// deepseek2 is DeepSeek V2, V3 and R1, whose attention has one compressed key and
// value for all heads (MLA). The file keeps it compressed: the runtime sees one
// key head.
var deepseek2 = &Arch{
	Name:      "deepseek2",
	Classes:   []string{"DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM"},
	Tokenizer: tokenizer.ClassDeepSeek2,
	Metadata: slices.Concat(with(commonRows,
		Row{Key: keyHeadCountKV, Const: gguf.Uint32(1)},
		Row{Key: "attention.layer_norm_rms_epsilon", Type: gguf.Float32Type, From: []string{"rms_norm_eps"}, Const: gguf.Float32(1e-6)},
	), []Row{
		{Key: "leading_dense_block_count", Derive: func(c *Config) (gguf.Value, bool, error) {
			n, err := leadingDense(c)
			return uint32Of(n, true, err)
		}},
		{Key: "vocab_size", Type: gguf.Uint32Type, From: []string{"vocab_size"}, Required: true},
		{Key: "attention.q_lora_rank", Type: gguf.Uint32Type, From: []string{"q_lora_rank"}},
		{Key: "attention.kv_lora_rank", Derive: sumOf("kv_lora_rank")},
		{Key: "attention.key_length", Derive: sumOf("kv_lora_rank", "qk_rope_head_dim")},
		{Key: "attention.value_length", Derive: sumOf("kv_lora_rank")},
		{Key: "attention.key_length_mla", Derive: sumOf("qk_nope_head_dim", "qk_rope_head_dim")},
		{Key: "attention.value_length_mla", Derive: sumOf("v_head_dim")},
		{Key: "expert_feed_forward_length", Type: gguf.Uint32Type, From: []string{"moe_intermediate_size", "intermediate_size"}, Required: true},
		{Key: "expert_count", Type: gguf.Uint32Type, From: []string{"n_routed_experts"}},
		{Key: "expert_shared_count", Type: gguf.Uint32Type, From: []string{"n_shared_experts"}, Const: gguf.Uint32(0)},
		{Key: "expert_weights_scale", Type: gguf.Float32Type, From: []string{"routed_scaling_factor"}},
		{Key: "expert_weights_norm", Derive: isTrue("norm_topk_prob")},
		{Key: "rope.dimension_count", Type: gguf.Uint32Type, From: []string{"qk_rope_head_dim"}, Required: true},
		{Key: "rope.scaling.yarn_log_multiplier", Derive: func(c *Config) (gguf.Value, bool, error) {
			f, ok, err := c.Rope().Float("mscale_all_dim")
			return float32Of(0.1*f, ok, err)
		}},
	}),
	// the runtime takes mscale_all_dim for both, as published models have them
	Unused: []string{"topk_method", "ep_size", "num_nextn_predict_layers", "qk_head_dim", "rope_scaling.mscale"},
	Expect: []Expect{silu, {"moe_layer_freq", []string{"1"}}, {"rope_interleave", []string{"true"}}},
	Drop: []Drop{
		{Prefix: "lm_head.weight", Why: silent, If: tied},
		{Prefix: "model.layers.", Beyond: true, Why: mtp},
	},
	Tensors: slices.Concat(embedRows, normRows, []TensorRow{
		{HF: "model.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q", If: not(has("q_lora_rank"))},
		{HF: "model.layers.{bid}.self_attn.q_a_proj", GGUF: "blk.{bid}.attn_q_a", If: has("q_lora_rank")},
		{HF: "model.layers.{bid}.self_attn.q_a_layernorm", GGUF: "blk.{bid}.attn_q_a_norm", If: has("q_lora_rank")},
		{HF: "model.layers.{bid}.self_attn.q_b_proj", GGUF: "blk.{bid}.attn_q_b", If: has("q_lora_rank")},
		{HF: "model.layers.{bid}.self_attn.kv_a_proj_with_mqa", GGUF: "blk.{bid}.attn_kv_a_mqa"},
		{HF: "model.layers.{bid}.self_attn.kv_a_layernorm", GGUF: "blk.{bid}.attn_kv_a_norm"},
		{HF: "model.layers.{bid}.self_attn.kv_b_proj", Split: []Part{
			{GGUF: "blk.{bid}.attn_k_b", Transform: mlaKeys},
			{GGUF: "blk.{bid}.attn_v_b", Transform: mlaValues},
		}},
		{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output"},
	}, only(denseFirst, mlpRows), only(moeAfter, slices.Concat(expertRows, []TensorRow{correctionRow})),
		only(sharedAfter, sharedExpertRows)),
}

// mtp tells of tensors that are left out.
const mtp = "of layers that predict further tokens (MTP)"

// sharedAfter is moeAfter for models that have shared experts.
func sharedAfter(l Layer) (bool, error) {
	n, _, err := l.Int("n_shared_experts")
	if err != nil || n == 0 {
		return false, err
	}
	return moeAfter(l)
}

// mlaKeys and mlaValues take the two parts of kv_b_proj, which unfolds the
// compressed keys and values: [heads, nope+value, rank]. The keys' part is
// transposed, for the runtime folds it into the queries.
var (
	mlaKeys = &Transform{Name: "mla-keys", Forward: func(l Layer, s rows.Source) (rows.Source, error) {
		s, nope, _, err := mlaHeads(l, s)
		if err != nil {
			return nil, err
		}
		if s, err = rows.Slice(s, 1, 0, nope); err != nil {
			return nil, err
		}
		return rows.Transpose(s)
	}}
	mlaValues = &Transform{Name: "mla-values", Forward: func(l Layer, s rows.Source) (rows.Source, error) {
		s, nope, value, err := mlaHeads(l, s)
		if err != nil {
			return nil, err
		}
		return rows.Slice(s, 1, nope, nope+value)
	}}
)

// mlaHeads returns kv_b_proj of [heads*(nope+value), rank] with a dimension for
// the heads, and the two lengths.
func mlaHeads(l Layer, s rows.Source) (_ rows.Source, nope, value int64, err error) {
	heads, err := l.Require("num_key_value_heads")
	if err == nil {
		nope, err = l.Require("qk_nope_head_dim")
	}
	if err == nil {
		value, err = l.Require("v_head_dim")
	}
	ne := s.NE()
	if err == nil && (heads < 1 || nope < 1 || value < 1 || len(ne) != 2 || ne[1]%heads != 0 || ne[1]/heads != nope+value) {
		err = fault.Errorf(fault.Broken, "dimensions %s, want %d heads of %d and %d rows", gguf.Shape(ne), heads, nope, value)
	}
	if err != nil {
		return nil, 0, 0, err
	}
	s, err = rows.Reshape(s, []int64{ne[0], nope + value, heads})
	return s, nope, value, err
}

// sumOf adds up keys, all of which must be there.
func sumOf(keys ...string) Derive {
	return func(c *Config) (gguf.Value, bool, error) {
		sum := int64(0)
		for _, key := range keys {
			n, err := c.Require(key)
			if err != nil {
				return gguf.Value{}, false, err
			}
			sum += n
		}
		return uint32Of(sum, true, nil)
	}
}

// isTrue writes a flag that is on.
func isTrue(key string) Derive {
	return func(c *Config) (gguf.Value, bool, error) {
		b, ok, err := c.Bool(key)
		return boolOf(b, ok && b, err)
	}
}
