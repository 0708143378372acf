package arch

import (
	"slices"

	"ggforge/arch/hparams"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

// deepseek is DeepSeek's first model with experts. Source: the DeepSeek classes
// of the reference's converter.
var deepseek = &table.Arch{
	Name:      "deepseek",
	Classes:   []string{"DeepseekForCausalLM"},
	Tokenizer: tokenizer.ClassSPMOrGPT2,
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.RopeDimensionRow,
		{Key: "rope.scaling.type", Const: gguf.String("none")},
		parts.UintRow("leading_dense_block_count", "first_k_dense_replace"),
		parts.UintRow("vocab_size", "vocab_size"),
		parts.UintRow("expert_feed_forward_length", "moe_intermediate_size"),
		{Key: "expert_weights_scale", Const: gguf.Float32(1)},
		parts.UintRow("expert_count", "n_routed_experts"),
		parts.UintRow("expert_shared_count", "n_shared_experts"),
	}),
	Unused: []string{"topk_method", "ep_size"},
	Expect: []table.Expect{parts.SiLU, parts.Expect("norm_topk_prob", "false"), parts.Expect("moe_layer_freq", "1")},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows,
		parts.EachEnding(parts.EachEnding(parts.AttentionRows(table.MayBias, table.NoBias), ".q_proj", parts.PermuteQ), ".k_proj", parts.PermuteK),
		parts.Only(parts.DenseFirst, parts.MLPRows), parts.Only(parts.MoEAfter, slices.Concat(parts.ExpertRows, parts.SharedExpertRows))),
}

// deepseek2 is DeepSeek V2, V3 and R1, whose attention has one compressed key and
// value for all heads (MLA). The file keeps it compressed: the runtime sees one
// key head.
var deepseek2 = &table.Arch{
	Name: "deepseek2",
	Shapes: shape.Rules{
		Dims: shape.Table{"n_embd_head_k_mla": "@attention.key_length_mla", "n_embd_head_v_mla": "@attention.value_length_mla"},
		Tensors: shape.Table{
			"attn_q": "n_embd, n_head * n_embd_head_k_mla", "attn_q_b": "n_lora_q, n_head * n_embd_head_k_mla", "attn_output": "n_head * n_embd_head_v_mla, n_embd",
			"attn_k_b": "n_embd_head_k_mla - n_rot, n_lora_kv, n_head", "attn_v_b": "n_lora_kv, n_embd_head_v_mla, n_head",
		},
	},
	Classes:   []string{"DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM"},
	Body:      table.Body{Classes: []string{"DeepseekV2Model", "DeepseekV3Model"}, Prefix: "model."},
	Tokenizer: tokenizer.ClassDeepSeek2,
	Metadata: slices.Concat(parts.With(parts.CommonRows,
		table.Row{Key: table.KeyHeadCountKV, Const: gguf.Uint32(1)},
		table.Row{Key: "attention.layer_norm_rms_epsilon", Type: gguf.Float32Type, From: []string{"rms_norm_eps"}, Const: gguf.Float32(1e-6)},
	), []table.Row{
		{Key: "leading_dense_block_count", Derive: func(c *hparams.View) (gguf.Value, bool, error) {
			n, err := parts.LeadingDense(c)
			return table.Uint32Of(n, true, err)
		}},
		parts.UintRow("vocab_size", "vocab_size"),
		parts.Optional(parts.UintRow("attention.q_lora_rank", "q_lora_rank")),
		{Key: "attention.kv_lora_rank", Derive: parts.SumOf("kv_lora_rank")},
		{Key: "attention.key_length", Derive: parts.SumOf("kv_lora_rank", "qk_rope_head_dim")},
		{Key: "attention.value_length", Derive: parts.SumOf("kv_lora_rank")},
		{Key: "attention.key_length_mla", Derive: parts.SumOf("qk_nope_head_dim", "qk_rope_head_dim")},
		{Key: "attention.value_length_mla", Derive: parts.SumOf("v_head_dim")},
		parts.UintRow("expert_feed_forward_length", "moe_intermediate_size", "intermediate_size"),
		parts.Optional(parts.UintRow("expert_count", "n_routed_experts")),
		{Key: "expert_shared_count", Type: gguf.Uint32Type, From: []string{"n_shared_experts"}, Const: gguf.Uint32(0)},
		parts.Optional(parts.FloatRow("expert_weights_scale", "routed_scaling_factor")),
		{Key: "expert_weights_norm", Derive: isTrue("norm_topk_prob")},
		parts.UintRow("rope.dimension_count", "qk_rope_head_dim"),
		{Key: "rope.scaling.yarn_log_multiplier", Derive: func(c *hparams.View) (gguf.Value, bool, error) {
			f, ok, err := c.Rope().Float("mscale_all_dim")
			return table.Float32Of(0.1*f, ok, err)
		}},
	}),
	// the runtime takes mscale_all_dim for both, as published models have them
	Unused: []string{"topk_method", "ep_size", "num_nextn_predict_layers", "qk_head_dim", "rope_scaling.mscale"},
	Expect: []table.Expect{parts.SiLU, parts.Expect("moe_layer_freq", "1"), parts.Expect("rope_interleave", "true")},
	Drop: []table.Drop{
		{Prefix: "lm_head.weight", Why: table.Silent, If: parts.Tied},
		{Prefix: "model.layers.", Beyond: true, Why: parts.MTP},
	},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, []table.TensorRow{
		{HF: "model.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q", If: parts.Not(parts.Has("q_lora_rank"))},
		{HF: "model.layers.{bid}.self_attn.q_a_proj", GGUF: "blk.{bid}.attn_q_a", If: parts.Has("q_lora_rank")},
		{HF: "model.layers.{bid}.self_attn.q_a_layernorm", GGUF: "blk.{bid}.attn_q_a_norm", If: parts.Has("q_lora_rank")},
		{HF: "model.layers.{bid}.self_attn.q_b_proj", GGUF: "blk.{bid}.attn_q_b", If: parts.Has("q_lora_rank")},
		{HF: "model.layers.{bid}.self_attn.kv_a_proj_with_mqa", GGUF: "blk.{bid}.attn_kv_a_mqa"},
		{HF: "model.layers.{bid}.self_attn.kv_a_layernorm", GGUF: "blk.{bid}.attn_kv_a_norm"},
		{HF: "model.layers.{bid}.self_attn.kv_b_proj", Split: []table.Part{
			{GGUF: "blk.{bid}.attn_k_b", Transform: mlaKeys},
			{GGUF: "blk.{bid}.attn_v_b", Transform: mlaValues},
		}},
		{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output"},
	}, parts.Only(parts.DenseFirst, parts.MLPRows), parts.Only(parts.MoEAfter, slices.Concat(parts.ExpertRows, []table.TensorRow{parts.CorrectionRow})),
		parts.Only(parts.SharedAfter, parts.SharedExpertRows)),
}

// mlaKeys and mlaValues take the two parts of kv_b_proj, which unfolds the
// compressed keys and values: [heads, nope+value, rank]. The keys' part is
// transposed, for the runtime folds it into the queries.
var (
	mlaKeys = &table.Transform{Name: "mla-keys", Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		s, nope, _, err := mlaHeads(l, s)
		if err != nil {
			return nil, err
		}
		if s, err = rows.Slice(s, 1, 0, nope); err != nil {
			return nil, err
		}
		return rows.Transpose(s)
	}}
	mlaValues = &table.Transform{Name: "mla-values", Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		s, nope, value, err := mlaHeads(l, s)
		if err != nil {
			return nil, err
		}
		return rows.Slice(s, 1, nope, nope+value)
	}}
)

// mlaHeads returns kv_b_proj of [heads*(nope+value), rank] with a dimension for
// the heads, and the two lengths.
func mlaHeads(l table.Layer, s rows.Source) (_ rows.Source, nope, value int64, err error) {
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

// isTrue writes a flag that is on.
func isTrue(key string) table.Derive {
	return func(c *hparams.View) (gguf.Value, bool, error) {
		b, ok, err := c.Bool(key)
		return table.BoolOf(b, ok && b, err)
	}
}
