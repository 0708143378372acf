package arch

import (
	"slices"

	"ggforge/gguf"
	"ggforge/tokenizer"
)

// glm4 is GLM-4 of April 2025 and its successors without experts. Source: the GLM
// classes of the reference's converter.
var glm4 = &Arch{
	Name:      "glm4",
	Classes:   []string{"Glm4ForCausalLM"},
	Tokenizer: tokenizer.ClassGLM4,
	Metadata:  slices.Concat(commonRows, []Row{{Key: "rope.dimension_count", Derive: partialRope(0.5)}}),
	Expect:    []Expect{silu},
	Tensors: slices.Concat(embedRows, attentionRows(MayBias, NoBias), []TensorRow{
		{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "model.layers.{bid}.post_self_attn_layernorm", GGUF: "blk.{bid}.post_attention_norm"},
		{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.ffn_norm"},
		{HF: "model.layers.{bid}.post_mlp_layernorm", GGUF: "blk.{bid}.post_ffw_norm"},
		{HF: "model.layers.{bid}.mlp.gate_up_proj", GGUF: "blk.{bid}.ffn_up"}, // the gate first
		{HF: "model.layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down"},
	}),
}

// partialRope is the number of dimensions that rotate where only a part of a head
// does: the rope setting partial_rotary_factor, part by default.
func partialRope(part float64) Derive {
	return func(c *Config) (gguf.Value, bool, error) {
		f, ok, err := c.Rope().Float("partial_rotary_factor")
		if err != nil {
			return gguf.Value{}, false, err
		}
		if !ok {
			f = part
		}
		dim, err := c.headDim()
		if err == nil && (!(f >= 0 && f <= 1) || dim < 0 || dim > maxHeadDim) {
			err = wrongType("partial_rotary_factor", "a part of a head", f)
		}
		return uint32Of(int64(float64(dim)*f), true, err)
	}
}

// glm4moe is GLM-4.5 and its successors. The layer that predicts further tokens
// is kept behind the others.
var glm4moe = &Arch{
	Name:       "glm4moe",
	Classes:    []string{"Glm4MoeForCausalLM"},
	Tokenizer:  tokenizer.ClassGLM,
	BlockCount: withNextn,
	Metadata: slices.Concat(with(commonRows, Row{Key: keyBlockCount, Derive: func(c *Config) (gguf.Value, bool, error) {
		n, err := withNextn(c)
		return uint32Of(n, true, err)
	}}), []Row{
		{Key: "rope.dimension_count", Derive: partialRope(0.5)},
		{Key: "expert_count", Type: gguf.Uint32Type, From: []string{"n_routed_experts"}},
		{Key: "expert_feed_forward_length", Type: gguf.Uint32Type, From: []string{"moe_intermediate_size"}},
		{Key: "expert_shared_count", Type: gguf.Uint32Type, From: []string{"n_shared_experts"}},
		{Key: "leading_dense_block_count", Type: gguf.Uint32Type, From: []string{"first_k_dense_replace"}},
		{Key: "expert_gating_func", Const: gguf.Uint32(gatingFuncs["sigmoid"])},
		{Key: "expert_weights_scale", Type: gguf.Float32Type, From: []string{"routed_scaling_factor"}},
		{Key: "expert_weights_norm", Type: gguf.BoolType, From: []string{"norm_topk_prob"}},
		{Key: "nextn_predict_layers", Type: gguf.Uint32Type, From: []string{"num_nextn_predict_layers"}},
	}),
	Unused: []string{"use_qk_norm"}, // the norms tell
	Expect: []Expect{silu},
	Tensors: slices.Concat(embedRows, attentionRows(MayBias, NoBias), []TensorRow{
		{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.post_attention_norm"},
	}, only(isTrueCond("use_qk_norm"), qkNormRows),
		only(denseFirst, mlpRows), only(moeAfter, slices.Concat(expertRows, []TensorRow{correctionRow})), only(sharedAfter, sharedExpertRows),
		only(nextn, nextnRows)),
}

// withNextn is the number of layers together with those that predict further
// tokens (MTP).
func withNextn(c *Config) (int64, error) {
	n, err := c.BlockCount()
	if err != nil {
		return 0, err
	}
	more, _, err := c.Int("num_nextn_predict_layers")
	if err == nil && (more < 0 || more > maxBlocks || n < 0 || n > maxBlocks) {
		err = wrongType("num_nextn_predict_layers", "a number of layers", more)
	}
	return n + more, err
}

// nextn is the condition of layers behind those of the model.
func nextn(l Layer) (bool, error) {
	n, err := l.BlockCount()
	return l.Bid >= n, err
}

// nextnRows are what such a layer has besides those of the model. Embedding and
// head may be the model's own.
var nextnRows = []TensorRow{
	{HF: "model.layers.{bid}.eh_proj", GGUF: "blk.{bid}.nextn.eh_proj"},
	{HF: "model.layers.{bid}.embed_tokens", GGUF: "blk.{bid}.nextn.embed_tokens", Optional: true},
	{HF: "model.layers.{bid}.enorm", GGUF: "blk.{bid}.nextn.enorm"},
	{HF: "model.layers.{bid}.hnorm", GGUF: "blk.{bid}.nextn.hnorm"},
	{HF: "model.layers.{bid}.shared_head.head", GGUF: "blk.{bid}.nextn.shared_head_head", Optional: true},
	{HF: "model.layers.{bid}.shared_head.norm", GGUF: "blk.{bid}.nextn.shared_head_norm"},
}
