package arch

import (
	"math"
	"slices"

	"ggforge/gguf"
	"ggforge/internal/fault"
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
	Unused: append([]string{"add_classification_head", "class_num", "dense_list", "enable_lm_head_fp32", "eod_token_id", "im_end_id", "im_newline_id",
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
