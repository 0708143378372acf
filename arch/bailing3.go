package arch

import (
	"encoding/json"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/torchmath"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(bailingMoE3, bailingMoE3VL)

// bailingMoE3 is inclusionAI's Ling 3: groups of layers, the last one with MLA, the others with delta attention.
// Source: the BailingMoeV3 classes of the reference's converter.
var (
	bailingMoE3 = &table.Arch{
		Name:      "bailingmoe3",
		Classes:   []string{"BailingMoeV3ForCausalLM"},
		Tokenizer: tokenizer.BPE{},
		NextN:     bailing3NextN,
		Metadata:  bailing3Metadata,
		Unused:    bailing3Unused,
		Expect:    bailing3Expect,
		Tensors:   bailing3Tensors,
		Graph:     bailing3Graph,
	}
	// bailingMoE3VL is the language model of Ling 3 VL.
	bailingMoE3VL = &table.Arch{
		Name:         "bailingmoe3",
		Classes:      []string{"BailingMoeV3VLForConditionalGeneration"},
		Tokenizer:    tokenizer.BPE{},
		NextN:        bailing3NextN,
		RopeSections: true,
		Metadata: append(slices.Clone(bailing3Metadata),
			table.Row{Key: "rope.dimension_sections", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
				const key = "mrope_section"
				list, ok, err := c.Ints(key)
				if err != nil {
					return v, false, err
				}
				dims, err := c.Require("qk_rope_head_dim")
				if err != nil {
					return v, false, err
				}
				if !ok || len(list) < 3 || 2*(list[0]+list[1]+list[2]) != dims {
					return v, false, fault.Errorf(fault.Broken,
						"%s: key %q is %v, want three numbers whose sum is half of %d", c.FileName(), key, list, dims)
				}
				return parts.PerLayer([]int64{list[0], list[1], list[2], 0}, nil)
			}}),
		Unused: append([]string{"image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id"},
			bailing3Unused...),
		Expect:  bailing3Expect,
		Drop:    []table.Drop{{Prefix: "linear_proj", Why: table.Silent}},
		Tensors: bailing3Tensors,
		Graph:   bailing3Graph,
	}
)

// bailing3Graph: texts have the same position on all axes, so that sections change nothing.
var bailing3Graph = &graph.Model{
	Reads: slices.Concat(parts.RouterKeys, parts.NeedsMLA, []string{"rope.dimension_sections"}),
	Norm:  graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
	Dims: graph.Dims{"d_conv": "@ssm.conv_kernel"},
	Layer: parts.PreNorm(graph.Choose{
		{In: graph.Where("n_head_kv = 0"), Then: graph.KDA{Bounded: true}},
		{In: graph.Every{}, Then: graph.MLA{Steps: []graph.HeadStep{parts.Interleaved},
			After: []graph.OutStep{graph.OutGate{}}}},
	}, parts.Sparse(graph.MoE{
		Router:  parts.RouterGroups,
		Experts: graph.FFN{Act: graph.LimitedSwiGLU{Limit: "@swiglu_clamp_exp or 0", Late: true}},
		Shared:  graph.HasShared, With: []graph.MoEOption{graph.SharedFFN{FFN: bailing3FFN}},
	}, bailing3FFN)),
	Runtime: []graph.Quirk{graph.DraftsCached{}},
}

var bailing3FFN = graph.FFN{Act: graph.LimitedSwiGLU{Limit: "@swiglu_clamp_shexp or 0", Late: true}}

var bailing3NextN = &table.NextN{Layers: parts.NextNLayers,
	Shared: []string{"model.word_embeddings.weight", "model.norm.weight", "lm_head.weight"}}

var bailing3Metadata = slices.Concat(parts.Override(parts.CommonRows,
	table.Row{Key: table.KeyHeadCountKV, Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
		n, err := bailingMoE3Blocks(c)
		heads := make([]int64, n)
		for i := range heads {
			full, err := bailing3Full(table.Layer{View: c, Bid: int64(i)})
			if err != nil {
				return v, false, err
			}
			if full {
				heads[i] = 1
			}
		}
		return parts.PerLayer(heads, err)
	}}), []table.Row{
	parts.UintRow("vocab_size", "vocab_size"),
	parts.UintRow("ssm.conv_kernel", "short_conv_kernel_size"),
	parts.UintRow("kda.head_dim", "head_dim"),
	{Key: "kda.safe_gate", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
		for _, key := range []string{"no_kda_lora", "kda_safe_gate"} {
			if on, _, err := c.Bool(key); err != nil || !on {
				if err == nil {
					err = fault.Errorf(fault.Unsupported, "%s: key %q is not true: the architecture has no other gates",
						c.FileName(), key)
				}
				return v, false, err
			}
		}
		const key = "gated_attention_proj_granularity_type"
		if s, _, err := c.String(key); err != nil || s != "head_wise" {
			if err == nil {
				err = fault.Errorf(fault.Unsupported, "%s: key %q is %q, want head_wise", c.FileName(), key, s)
			}
			return v, false, err
		}
		return gguf.Bool(true), true, nil
	}},
	parts.FloatRow("kda.gate_lower_bound", "kda_lower_bound"),
	parts.Optional(parts.UintRow("attention.q_lora_rank", "q_lora_rank")),
	parts.UintRow("attention.kv_lora_rank", "kv_lora_rank"),
	parts.UintRow("rope.dimension_count", "qk_rope_head_dim"),
	{Key: "attention.key_length", Derive: parts.SumOf("kv_lora_rank", "qk_rope_head_dim")},
	{Key: "attention.key_length_mla", Derive: parts.SumOf("qk_nope_head_dim", "qk_rope_head_dim")},
	parts.UintRow("attention.value_length_mla", "v_head_dim"),
	parts.UintRow("expert_feed_forward_length", "moe_intermediate_size"),
	parts.UintRow("expert_shared_feed_forward_length", "moe_shared_expert_intermediate_size"),
	{Key: "expert_shared_count", Type: gguf.Uint32Type, From: []string{"num_shared_experts"}, Const: gguf.Uint32(1)},
	parts.UintRow("leading_dense_block_count", "first_k_dense_replace"),
	parts.FloatRow("expert_weights_scale", "routed_scaling_factor"),
	parts.BoolRow("expert_weights_norm", "norm_topk_prob"),
	{Key: "swiglu_clamp_exp", Derive: bailing3Clamp("expert_swiglu_limit_list")},
	{Key: "swiglu_clamp_shexp", Derive: bailing3Clamp("share_expert_swiglu_limit_list")},
	parts.NextNSome,
})

var bailing3Expect = []table.Expect{parts.SiLU, parts.Expect("use_bias", "false"),
	parts.Expect("use_qkv_bias", "false"), parts.Expect("use_rmsnorm", "true"), parts.Expect("rope_interleave", "true")}

var bailing3Unused = []string{"no_kda_lora", "kda_safe_gate", "layer_group_size", "num_key_value_heads",
	"embedding_dropout", "output_dropout", "max_window_layers", "router_dtype", "topk_method",
	"moe_router_enable_expert_bias", "mtp_loss_scaling_factor", "use_qk_norm", "group_norm_size",
	"partial_rotary_factor", "rotary_dim", "num_nextn_predict_layers", "output_router_logits"}

var bailing3Tensors = slices.Concat([]table.TensorRow{{HF: "model.word_embeddings", GGUF: "token_embd"}},
	parts.EmbedRows[1:], parts.NormRows,
	parts.Only(parts.FirstDense("first_k_dense_replace"), parts.MLPRows),
	parts.Only(parts.Not(parts.FirstDense("first_k_dense_replace")),
		slices.Concat(parts.ExpertRows, parts.SharedExpertRows, []table.TensorRow{
			{HF: "model.layers.{bid}.mlp.gate.expert_bias", GGUF: "blk.{bid}.exp_probs_b.bias", Exact: true,
				Optional: true},
		})), bailing3Rows(false, slices.DeleteFunc(slices.Clone(parts.KDARows), func(r table.TensorRow) bool {
		return r.GGUF == "blk.{bid}.ssm_f_a" || r.GGUF == "blk.{bid}.ssm_f_b"
	})), parts.Only(parts.Not(bailing3Full), []table.TensorRow{
		{HF: "model.layers.{bid}.attention.f_proj", GGUF: "blk.{bid}.ssm_f_a"},
		{HF: "model.layers.{bid}.attention.g_proj", GGUF: "blk.{bid}.ssm_g_a"},
		{HF: "model.layers.{bid}.attention.A_log", GGUF: "blk.{bid}.ssm_a", Exact: true, Transform: expColumn},
	}), bailing3Rows(true, parts.MLARows), parts.Only(bailing3Full,
		[]table.TensorRow{{HF: "model.layers.{bid}.attention.g_proj", GGUF: "blk.{bid}.attn_gate"}}),
	parts.Only(parts.NextN, []table.TensorRow{
		{HF: "model.layers.{bid}.eh_proj", GGUF: "blk.{bid}.nextn.eh_proj"},
		{HF: "model.layers.{bid}.enorm", GGUF: "blk.{bid}.nextn.enorm"},
		{HF: "model.layers.{bid}.hnorm", GGUF: "blk.{bid}.nextn.hnorm"},
		{HF: "model.layers.{bid}.final_layernorm", GGUF: "blk.{bid}.layer_output_norm"},
	}))

// bailing3Rows returns the attention rows for layers of one kind, MLA or delta attention, under the names of this
// architecture.
func bailing3Rows(compressed bool, list []table.TensorRow) []table.TensorRow {
	cond := table.Cond(bailing3Full)
	if !compressed {
		cond = parts.Not(bailing3Full)
	}
	list = slices.Clone(list)
	for i, own := range list {
		row := &list[i]
		const before = "model.layers.{bid}.self_attn."
		row.HF = "model.layers.{bid}.attention." + own.HF[len(before):]
		row.If = cond
		if own.If != nil {
			row.If = parts.Both(cond, own.If)
		}
		if own.Split != nil {
			row.HF = "model.layers.{bid}.attention.kv_b_proj"
			row.Split = []table.Part{{GGUF: own.Split[0].GGUF, Transform: parts.MLAKeysOf("num_attention_heads")},
				{GGUF: own.Split[1].GGUF, Transform: parts.MLAValuesOf("num_attention_heads")}}
		}
		if own.GGUF == "blk.{bid}.attn_output" && compressed {
			row.HF = "model.layers.{bid}.attention.dense"
		}
	}
	return list
}

// expColumn applies exp to a vector and reshapes it to a column.
var expColumn = parts.Chain("exp-column",
	&table.Transform{Name: "exp", Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
		return rows.Map(s, torchmath.Exp), nil
	}}, &table.Transform{Name: "column", Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
		n := int64(1)
		for _, d := range s.NE() {
			n *= d
		}
		return rows.Reshape(s, []int64{1, n})
	}})

// bailingMoE3Blocks returns the number of layers of the file.
func bailingMoE3Blocks(c *config.View) (int64, error) {
	n, err := c.BoundedBlockCount(0)
	if err != nil {
		return 0, err
	}
	more, err := parts.NextNLayers(c)
	return n + more, err
}

// bailing3Full is the condition of full-attention layers: the last layer of each group, the layers after the last
// complete group, and MTP layers.
func bailing3Full(l table.Layer) (bool, error) {
	n, err := l.BlockCount()
	if err != nil {
		return false, err
	}
	group, err := l.Require("layer_group_size")
	if err == nil && (group < 1 || group > config.MaxBlocks) {
		err = config.WrongType("layer_group_size", "a number of layers", group)
	}
	if err != nil {
		return false, err
	}
	return l.Bid >= n || (l.Bid+1)%group == 0 || l.Bid >= n/group*group, nil
}

// bailing3Clamp writes the limit at which each layer clamps gates, 0 for none.
func bailing3Clamp(key string) table.Derive {
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
		list, isList := c.Value(key).([]any)
		if c.Value(key) == nil {
			return v, false, nil
		}
		n, err := bailingMoE3Blocks(c)
		if err == nil && !isList {
			err = config.WrongType(key, "a list", c.Value(key))
		}
		if err != nil {
			return v, false, err
		}
		limits := make([]float32, n)
		for i := range min(int(n), len(list)) {
			if list[i] == nil {
				continue
			}
			number, _ := list[i].(json.Number)
			f, err := number.Float64()
			if err != nil {
				return v, false, config.WrongType(key, "numbers", list[i])
			}
			limits[i] = float32(f)
		}
		return gguf.Float32s(limits), true, nil
	}
}
