package arch

import (
	"math"
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

// hunyuanDense is Tencent's Hunyuan, the dense models. Source: the HunYuan class
// of the reference's converter.
var hunyuanDense = &Arch{
	Name:      "hunyuan-dense",
	Classes:   []string{"HunYuanDenseV1ForCausalLM"},
	Tokenizer: tokenizer.ClassHunYuan,
	Metadata: slices.Concat(with(commonRows,
		// some configs name one expert
		Row{Key: "expert_count", Type: gguf.Uint32Type, From: []string{"num_local_experts", "n_routed_experts"}},
		dynamicAsNone,
	), []Row{
		{Key: "rope.freq_base", Derive: ifDynamic(hunyuanFreqBase)},
		{Key: "rope.scaling.type", Derive: ifDynamic(constant(gguf.String("none")))},
		{Key: "rope.scaling.factor", Derive: ifDynamic(constant(gguf.Float32(1)))},
		// nothing tells the length that alpha stands for; the config is too modest
		{Key: "rope.scaling.original_context_length", Derive: ifDynamic(constant(gguf.Uint32(hunyuanLength)))},
		{Key: "context_length", Derive: ifDynamic(hunyuanContext)},
	}),
	Expect: append([]Expect{
		{"num_experts", []string{"1"}},
		{"use_cla", []string{"false"}},
		{"use_qk_norm", []string{"true"}},
		{"norm_type", []string{"rms"}},
	}, silu),
	Unused: append([]string{"rope_scaling.beta_fast", "rope_scaling.beta_slow", "add_classification_head", "class_num", "dense_list", "enable_lm_head_fp32", "eod_token_id", "im_end_id", "im_newline_id",
		"im_start_id", "image_token_id", "mask_init_id", "org_vocab_size", "pad_id", "pool_type", "sep_token_id", "text_end_id", "text_start_id"}, biasKeys...),
	Drop: []Drop{{Prefix: "lm_head.weight", Why: silent, If: tied}},
	Tensors: slices.Concat(embedRows, normRows, attentionRows(MayBias, MayBias), mlpRows, []TensorRow{
		{HF: "model.layers.{bid}.self_attn.query_layernorm", GGUF: "blk.{bid}.attn_q_norm"},
		{HF: "model.layers.{bid}.self_attn.key_layernorm", GGUF: "blk.{bid}.attn_k_norm"},
	}),
}

// hunyuanLength is the context length with dynamic rope.
const hunyuanLength = 256 << 10

// constant is a value that depends on nothing.
func constant(v gguf.Value) Derive {
	return func(*Config) (gguf.Value, bool, error) { return v, true, nil }
}

// ifDynamic is d for the dynamic rope type, nothing for others.
func ifDynamic(d Derive) Derive {
	return func(c *Config) (v gguf.Value, ok bool, err error) {
		if s, _, err := c.scaling(); err != nil || s != "dynamic" {
			return v, false, err
		}
		return d(c)
	}
}

// hunyuanFreqBase is the base that makes all wavelengths longer: rope_theta times
// alpha to the power dim/(dim-2).
func hunyuanFreqBase(c *Config) (v gguf.Value, ok bool, err error) {
	alpha, ok, err := c.Rope().Float("alpha")
	if err == nil && !ok {
		alpha = 50
	}
	if err != nil {
		return v, false, err
	}
	base, ok, err := c.Rope().Float("rope_theta")
	if err != nil {
		return v, false, err
	}
	if !ok {
		base = 10000
	}
	dim, err := c.Require("head_dim")
	if err != nil {
		return v, false, err
	}
	if dim <= 2 || dim > maxHeadDim || !(alpha > 0) {
		return v, false, fault.Errorf(fault.Broken, "%s: rope setting alpha %v for heads of %d elements", ConfigFile, alpha, dim)
	}
	return float32Of(base*math.Pow(alpha, float64(dim)/float64(dim-2)), true, nil)
}

// hunyuanContext is the context length that the published models have with dynamic
// rope; what is not like them is refused.
func hunyuanContext(c *Config) (v gguf.Value, ok bool, err error) {
	base, _, err := c.Rope().Float("rope_theta")
	if err != nil {
		return v, false, err
	}
	n, _, err := c.Int("max_position_embeddings")
	if err == nil && (base != 10000 || n != 32<<10 && n != hunyuanLength) {
		err = fault.Errorf(fault.Unsupported, "%s: dynamic rope with rope_theta %v and max_position_embeddings %d, want 10000 and %d or %d: the context length is not known",
			ConfigFile, base, n, 32<<10, hunyuanLength)
	}
	return gguf.Uint32(hunyuanLength), err == nil, err
}

// hunyuanMoE is Hunyuan-A13B. Some of its keys are lists with a number for each
// layer; the reference, and the runtime, know models of one number.
var hunyuanMoE = &Arch{
	Name:      "hunyuan-moe",
	Classes:   []string{"HunYuanMoEV1ForCausalLM"},
	Tokenizer: tokenizer.ClassHunYuanMoE,
	Metadata: slices.Concat(with(commonRows, dynamicAsNone), []Row{
		uintRow("expert_shared_feed_forward_length", "intermediate_size"),
		{Key: "expert_feed_forward_length", Derive: oneOfAll("moe_intermediate_size")},
		{Key: "expert_used_count", Derive: oneOfAll("moe_topk")},
		{Key: "expert_shared_count", Derive: oneOfAll("num_shared_expert")},
		{Key: "rope.freq_base", Derive: ifDynamic(hunyuanMoEFreqBase)},
		{Key: "rope.scaling.type", Derive: ifDynamic(constant(gguf.String("none")))},
		{Key: "rope.scaling.factor", Derive: ifDynamic(constant(gguf.Float32(1)))},
		{Key: "rope.scaling.original_context_length", Derive: ifDynamic(constant(gguf.Uint32(hunyuanLength)))},
		{Key: "context_length", Derive: ifDynamic(hunyuanContext)},
	}),
	Expect: []Expect{silu, {"use_cla", []string{"false"}}, {"use_mla", []string{"false"}}, {"use_qk_norm", []string{"true"}}, {"norm_type", []string{"rms"}}},
	Unused: append([]string{"attention_head_dim", "cla_share_factor", "moe_drop_tokens", "moe_layer_num_skipped", "moe_random_routing_dropped_token",
		"use_mixed_mlp_moe", "num_media_embeds", "position_embedding_xdrope", "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
		"routed_scaling_factor", "norm_topk_prob", "group_limited_greedy", "eod_token_id", "anyres_pooling_size", "anyres_vit_max_image_size",
		"anyres_vit_two_views"}, hunyuanDense.Unused...),
	Drop: []Drop{{Prefix: "lm_head.weight", Why: silent, If: tied}},
	Tensors: slices.Concat(embedRows, normRows, attentionRows(MayBias, MayBias), []TensorRow{
		{HF: "model.layers.{bid}.self_attn.query_layernorm", GGUF: "blk.{bid}.attn_q_norm"},
		{HF: "model.layers.{bid}.self_attn.key_layernorm", GGUF: "blk.{bid}.attn_k_norm"},
		{HF: "model.layers.{bid}.mlp.gate.wg", GGUF: "blk.{bid}.ffn_gate_inp"},
		{HF: "model.layers.{bid}.mlp.shared_mlp.gate_proj", GGUF: "blk.{bid}.ffn_gate_shexp"},
		{HF: "model.layers.{bid}.mlp.shared_mlp.up_proj", GGUF: "blk.{bid}.ffn_up_shexp"},
		{HF: "model.layers.{bid}.mlp.shared_mlp.down_proj", GGUF: "blk.{bid}.ffn_down_shexp"},
	}, expertRows[1:]),
}

// oneOfAll writes the number that all members of a list are.
func oneOfAll(key string) Derive {
	return func(c *Config) (v gguf.Value, ok bool, err error) {
		list, ok, err := c.Ints(key)
		if err == nil && (!ok || len(list) == 0) {
			err = fault.Errorf(fault.Broken, "%s: key %q: want a list with a number for each layer", ConfigFile, key)
		}
		if err == nil && slices.ContainsFunc(list, func(n int64) bool { return n != list[0] }) {
			err = fault.Errorf(fault.Unsupported, "%s: key %q: the layers differ: %v", ConfigFile, key, list)
		}
		if err != nil {
			return v, false, err
		}
		return uint32Of(list[0], true, nil)
	}
}

// hunyuanMoEFreqBase is hunyuanFreqBase for the settings of the one known model,
// others are refused.
func hunyuanMoEFreqBase(c *Config) (v gguf.Value, ok bool, err error) {
	alpha, ok, err := c.Rope().Float("alpha")
	if err == nil && !ok {
		alpha = 1000
	}
	if err != nil {
		return v, false, err
	}
	hidden, heads, err := c.hiddenAndHeads()
	if err == nil && (alpha != 1000 || hidden/heads != 128) {
		err = fault.Errorf(fault.Unsupported, "%s: dynamic rope with alpha %v and heads of %d elements, want 1000 and 128", ConfigFile, alpha, hidden/heads)
	}
	if err != nil {
		return v, false, err
	}
	return float32Of(10000*math.Pow(alpha, 128.0/126), true, nil)
}
