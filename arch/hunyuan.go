package arch

import (
	"math"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(hunyuanDense, hunyuanVL, hunyuanMoE, hyV3)

// hunyuanDense is Tencent's Hunyuan, the dense models. Source: the HunYuan class
// of the reference's converter.
var hunyuanDense = &table.Arch{
	Name:      "hunyuan-dense",
	Classes:   []string{"HunYuanDenseV1ForCausalLM"},
	Body:      table.Body{Classes: []string{"HunYuanDenseV1Model"}, Prefix: "model."},
	Tokenizer: hunyuanTokens,
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.Override(parts.CommonRows,
		// some configs name one expert
		table.Row{Key: "expert_count", Type: gguf.Uint32Type, From: []string{"num_local_experts", "n_routed_experts"}},
		parts.DynamicAsNone,
	), []table.Row{
		{Key: "rope.freq_base", Derive: ifDynamic(hunyuanFreqBase)},
		{Key: "rope.scaling.type", Derive: ifDynamic(parts.Constant(gguf.String("none")))},
		{Key: "rope.scaling.factor", Derive: ifDynamic(parts.Constant(gguf.Float32(1)))},
		// no key has the context length that alpha extends; max_position_embeddings is smaller
		{Key: "rope.scaling.original_context_length", Derive: ifDynamic(parts.Constant(gguf.Uint32(hunyuanLength)))},
		{Key: "context_length", Derive: ifDynamic(hunyuanContext)},
	}),
	Expect: append([]table.Expect{
		parts.Expect("num_experts", "1"),
		parts.Expect("use_cla", "false"),
		parts.Expect("use_qk_norm", "true"),
		parts.Expect("norm_type", "rms"),
	}, parts.SiLU),
	Unused: append([]string{"rope_scaling.beta_fast", "rope_scaling.beta_slow", "add_classification_head", "class_num",
		"dense_list", "enable_lm_head_fp32", "eod_token_id", "im_end_id", "im_newline_id",
		"im_start_id", "image_token_id", "mask_init_id", "org_vocab_size", "pad_id", "pool_type", "sep_token_id",
		"text_end_id", "text_start_id"}, parts.BiasKeys...),
	Drop: []table.Drop{{Prefix: "lm_head.weight", Why: table.Silent, If: parts.Tied}},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.MayBias, table.MayBias),
		parts.MLPRows, []table.TensorRow{
			{HF: "model.layers.{bid}.self_attn.query_layernorm", GGUF: "blk.{bid}.attn_q_norm"},
			{HF: "model.layers.{bid}.self_attn.key_layernorm", GGUF: "blk.{bid}.attn_k_norm"},
		}),
	Graph: parts.Decoder(graph.RMS, parts.GQA(parts.NeoX, parts.QKNorm), parts.SwiGLU).Reading("rope.dimension_sections", "rope.scaling.alpha"),
}

// hunyuanVL is the language model of HunyuanOCR and other vision models, with M-RoPE of up to four axes. Source: the
// HunyuanVLText class of the reference's converter.
var hunyuanVL = &table.Arch{
	Name:         "hunyuan_vl",
	Classes:      []string{"HunYuanVLForConditionalGeneration"},
	Tokenizer:    hunyuanTokens,
	Fused:        table.FusedQKV,
	RopeSections: true,
	Metadata: slices.Concat(parts.Override(hunyuanDense.Metadata[:len(parts.CommonRows)],
		table.Row{Key: "rope.scaling.type", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			if axes, err := hunyuanAxes(c); err != nil || axes {
				return v, false, err
			}
			return parts.DynamicAsNone.Derive(c)
		}}), rowsByAxes(false, hunyuanDense.Metadata[len(parts.CommonRows):]), rowsByAxes(true, []table.Row{
		{Key: "rope.freq_base", Derive: parts.RopeTheta},
		{Key: "rope.scaling.type", Const: gguf.String("none")},
		{Key: "rope.scaling.factor", Derive: func(c *config.View) (gguf.Value, bool, error) {
			f, ok, err := c.Rope().Float("factor")
			if !ok {
				f = 1
			}
			return table.Float32Of(f, true, err)
		}},
		{Key: "rope.scaling.alpha", Derive: func(c *config.View) (gguf.Value, bool, error) {
			f, err := c.Rope().RequireFloat("alpha")
			return table.Float32Of(f, true, err)
		}},
		parts.UintRow("rope.scaling.original_context_length", "max_position_embeddings"),
		parts.UintRow("context_length", "max_position_embeddings"),
		{Key: "rope.dimension_sections", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			list, ok, err := c.Rope().Ints("xdrope_section", "mrope_section")
			if err == nil && (!ok || len(list) != 4) {
				err = fault.Errorf(fault.Broken, "%s: rope setting \"xdrope_section\": want four numbers, found %v",
					c.FileName(), list)
			}
			if err != nil {
				return v, false, err
			}
			return parts.PerLayer(list, nil)
		}},
	})),
	Expect: hunyuanDense.Expect,
	Unused: slices.Concat(hunyuanDense.Unused, []string{"cla_share_factor", "routed_scaling_factor", "img_end_id",
		"img_start_id", "image_start_token_id", "image_end_token_id", "image_newline_token_id", "video_start_id",
		"video_end_id", "video_token_id"}),
	Drop:    hunyuanDense.Drop,
	Tensors: hunyuanDense.Tensors,
	Graph:   parts.Decoder(graph.RMS, parts.GQA(parts.NeoX, parts.QKNorm), parts.SwiGLU).Reading("rope.dimension_sections", "rope.scaling.alpha"),
}

// hunyuanAxes reports whether the model has M-RoPE; newer versions of the transformers library call its rope type
// dynamic, too.
func hunyuanAxes(c *config.View) (bool, error) {
	s, _, err := c.RopeScaling()
	return s == "xdrope" || s == "dynamic" && c.Rope().Has("mrope_section"), err
}

// rowsByAxes returns rows for models with M-RoPE (want), or for models without.
func rowsByAxes(want bool, list []table.Row) []table.Row {
	list = slices.Clone(list)
	for i, r := range list {
		list[i] = table.Row{Key: r.Key, Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			if axes, err := hunyuanAxes(c); err != nil || axes != want {
				return v, false, err
			}
			return r.Value(c)
		}}
	}
	return list
}

// hunyuanLength is the context length of models with dynamic RoPE.
const hunyuanLength = 256 << 10

// ifDynamic returns d for the dynamic rope type, no value for others.
func ifDynamic(d table.Derive) table.Derive {
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
		if s, _, err := c.RopeScaling(); err != nil || s != "dynamic" {
			return v, false, err
		}
		return d(c)
	}
}

// hunyuanFreqBase writes the NTK-scaled RoPE base: rope_theta * alpha^(dim/(dim-2)).
func hunyuanFreqBase(c *config.View) (v gguf.Value, ok bool, err error) {
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
	if dim <= 2 || dim > config.MaxHeadDim || !(alpha > 0) {
		return v, false, fault.Errorf(fault.Broken, "%s: rope setting alpha %v for heads of %d elements",
			config.ConfigFile, alpha, dim)
	}
	return table.Float32Of(base*math.Pow(alpha, float64(dim)/float64(dim-2)), true, nil)
}

// hunyuanContext writes the context length of the published models with dynamic RoPE, and refuses settings that differ
// from theirs.
func hunyuanContext(c *config.View) (v gguf.Value, ok bool, err error) {
	base, _, err := c.Rope().Float("rope_theta")
	if err != nil {
		return v, false, err
	}
	n, _, err := c.Int("max_position_embeddings")
	if err == nil && (base != 10000 || n != 32<<10 && n != hunyuanLength) {
		err = fault.Errorf(fault.Unsupported,
			"%s: dynamic rope with rope_theta %v and max_position_embeddings %d, want 10000 and %d or %d: the "+
				"context length is not known",
			config.ConfigFile, base, n, 32<<10, hunyuanLength)
	}
	return gguf.Uint32(hunyuanLength), err == nil, err
}

// hunyuanMoE is Hunyuan-A13B. Some of its keys are lists with a number per layer; runtimes, and the reference, support
// equal numbers only.
var hunyuanMoE = &table.Arch{
	Name:      "hunyuan-moe",
	Classes:   []string{"HunYuanMoEV1ForCausalLM"},
	Body:      table.Body{Classes: []string{"HunYuanMoEV1Model"}, Prefix: "model."},
	Tokenizer: hunyuanMoETokens,
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.Override(parts.CommonRows, parts.DynamicAsNone), []table.Row{
		parts.UintRow("expert_shared_feed_forward_length", "intermediate_size"),
		{Key: "expert_feed_forward_length", Derive: uniformElement("moe_intermediate_size")},
		{Key: "expert_used_count", Derive: uniformElement("moe_topk")},
		{Key: "expert_shared_count", Derive: uniformElement("num_shared_expert")},
		{Key: "rope.freq_base", Derive: ifDynamic(hunyuanMoEFreqBase)},
		{Key: "rope.scaling.type", Derive: ifDynamic(parts.Constant(gguf.String("none")))},
		{Key: "rope.scaling.factor", Derive: ifDynamic(parts.Constant(gguf.Float32(1)))},
		{Key: "rope.scaling.original_context_length", Derive: ifDynamic(parts.Constant(gguf.Uint32(hunyuanLength)))},
		{Key: "context_length", Derive: ifDynamic(hunyuanContext)},
	}),
	Expect: []table.Expect{parts.SiLU, parts.Expect("use_cla", "false"), parts.Expect("use_mla", "false"),
		parts.Expect("use_qk_norm", "true"), parts.Expect("norm_type", "rms")},
	Unused: append([]string{"attention_head_dim", "cla_share_factor", "moe_drop_tokens", "moe_layer_num_skipped",
		"moe_random_routing_dropped_token",
		"use_mixed_mlp_moe", "num_media_embeds", "position_embedding_xdrope", "kv_lora_rank", "q_lora_rank",
		"qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
		"routed_scaling_factor", "norm_topk_prob", "group_limited_greedy", "eod_token_id", "anyres_pooling_size",
		"anyres_vit_max_image_size",
		"anyres_vit_two_views"}, hunyuanDense.Unused...),
	Drop: []table.Drop{{Prefix: "lm_head.weight", Why: table.Silent, If: parts.Tied}},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.MayBias, table.MayBias),
		[]table.TensorRow{
			{HF: "model.layers.{bid}.self_attn.query_layernorm", GGUF: "blk.{bid}.attn_q_norm"},
			{HF: "model.layers.{bid}.self_attn.key_layernorm", GGUF: "blk.{bid}.attn_k_norm"},
			{HF: "model.layers.{bid}.mlp.gate.wg", GGUF: "blk.{bid}.ffn_gate_inp"},
			{HF: "model.layers.{bid}.mlp.shared_mlp.gate_proj", GGUF: "blk.{bid}.ffn_gate_shexp"},
			{HF: "model.layers.{bid}.mlp.shared_mlp.up_proj", GGUF: "blk.{bid}.ffn_up_shexp"},
			{HF: "model.layers.{bid}.mlp.shared_mlp.down_proj", GGUF: "blk.{bid}.ffn_down_shexp"},
		}, parts.ExpertRows[1:]),
	Graph: &graph.Model{
		Dims:  graph.Dims{"n_ff_exp": "n_ff", "n_ff_shexp": parts.SharedExpertOrWhole},
		Norm:  graph.RMS,
		Layer: parts.PreNorm(parts.GQA(parts.NeoX, parts.QKNorm), parts.Experts(parts.RouterTopK, graph.HasShared)),
		Final: parts.OutputNorm, Head: graph.LM{},
		Unread: []string{"expert_feed_forward_length"},
	},
}

// uniformElement writes the element of a list whose elements must be equal.
func uniformElement(key string) table.Derive {
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
		list, ok, err := c.Ints(key)
		if err == nil && (!ok || len(list) == 0) {
			err = fault.Errorf(fault.Broken, "%s: key %q: want a list with a number for each layer",
				config.ConfigFile, key)
		}
		if err == nil && slices.ContainsFunc(list, func(n int64) bool { return n != list[0] }) {
			err = fault.Errorf(fault.Unsupported, "%s: key %q: the layers differ: %v", config.ConfigFile, key, list)
		}
		if err != nil {
			return v, false, err
		}
		return table.Uint32Of(list[0], true, nil)
	}
}

// hunyuanMoEFreqBase is hunyuanFreqBase for the settings of the only published model; it refuses others.
func hunyuanMoEFreqBase(c *config.View) (v gguf.Value, ok bool, err error) {
	alpha, ok, err := c.Rope().Float("alpha")
	if err == nil && !ok {
		alpha = 1000
	}
	if err != nil {
		return v, false, err
	}
	hidden, heads, err := c.HiddenAndHeads()
	if err == nil && (alpha != 1000 || hidden/heads != 128) {
		err = fault.Errorf(fault.Unsupported,
			"%s: dynamic rope with alpha %v and heads of %d elements, want 1000 and 128", config.ConfigFile, alpha,
			hidden/heads)
	}
	if err != nil {
		return v, false, err
	}
	return table.Float32Of(10000*math.Pow(alpha, 128.0/126), true, nil)
}

// hyV3 is Tencent's Hy 3, with MoE layers from the second layer on. The MTP layers follow the others. Source: the class
// HYV3Model of the reference's converter.
var hyV3 = &table.Arch{
	Name:      "hy_v3",
	Classes:   []string{"HYV3ForCausalLM"},
	Body:      table.Body{Classes: []string{"HYV3Model"}, Prefix: "model."},
	Tokenizer: tokenizer.BPE{},
	NextN:     parts.NumberedNextN,
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.UintRow("expert_feed_forward_length", "moe_intermediate_size"),
		{Key: "expert_shared_feed_forward_length", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			n, err := hySharedExperts(c)
			if err != nil {
				return v, false, err
			}
			return parts.Times(n, "moe_intermediate_size")(c)
		}},
		{Key: "expert_weights_norm", Type: gguf.BoolType, From: []string{"route_norm"}, Const: gguf.Bool(true)},
		{Key: "expert_weights_scale", Type: gguf.Float32Type, From: []string{"router_scaling_factor"},
			Const: gguf.Float32(1)},
		{Key: "expert_gating_func", Const: gguf.Uint32(parts.GatingFuncs["sigmoid"])},
		parts.NextNSome,
	}),
	Expect: []table.Expect{parts.SiLU, parts.Expect("qk_norm", "true"), parts.Expect("moe_router_use_sigmoid", "true"),
		parts.Expect("moe_router_enable_expert_bias", "true"),
		parts.Expect("attention_bias", "false"), parts.Expect("mlp_bias", "false")},
	Unused: []string{"expert_hidden_dim", "enable_moe_fp32_combine", "enable_attention_fp32_softmax",
		"enable_lm_head_fp32", "output_router_logits", "mlp_layer_types",
		"first_k_dense_replace"},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.NoBias, table.NoBias),
		parts.QKNormRows,
		parts.Only(hyIsDense, parts.MLPRows),
		parts.Only(parts.Not(hyIsDense), slices.Concat(parts.ExpertRows[1:], []table.TensorRow{
			{HF: "model.layers.{bid}.mlp.router.gate", GGUF: "blk.{bid}.ffn_gate_inp"},
			{HF: "model.layers.{bid}.mlp.expert_bias", Exact: true, GGUF: "blk.{bid}.exp_probs_b"},
			{HF: "model.layers.{bid}.mlp.shared_mlp.gate_proj", GGUF: "blk.{bid}.ffn_gate_shexp", If: hyHasShared},
			{HF: "model.layers.{bid}.mlp.shared_mlp.up_proj", GGUF: "blk.{bid}.ffn_up_shexp", If: hyHasShared},
			{HF: "model.layers.{bid}.mlp.shared_mlp.down_proj", GGUF: "blk.{bid}.ffn_down_shexp", If: hyHasShared},
		})),
		parts.Only(parts.NextN, []table.TensorRow{
			{HF: "model.layers.{bid}.eh_proj", GGUF: "blk.{bid}.nextn.eh_proj"},
			{HF: "model.layers.{bid}.embed_tokens", GGUF: "blk.{bid}.nextn.embed_tokens", Optional: true},
			{HF: "model.layers.{bid}.enorm", GGUF: "blk.{bid}.nextn.enorm"},
			{HF: "model.layers.{bid}.hnorm", GGUF: "blk.{bid}.nextn.hnorm"},
			{HF: "model.layers.{bid}.final_layernorm", GGUF: "blk.{bid}.nextn.shared_head_norm"},
			{HF: "model.layers.{bid}.shared_head.head", GGUF: "blk.{bid}.nextn.shared_head_head", Optional: true},
		})),
	Graph: &graph.Model{
		Reads: parts.RouterKeys,
		Norm:  graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: parts.PreNorm(parts.GQA(parts.QKNorm, parts.NeoX),
			parts.Sparse(parts.Experts(parts.RouterBias, graph.MayShared), parts.SwiGLU)),
		Runtime: []graph.Quirk{graph.DraftsRead{"exp_probs_b", "ffn_gate_inp.", "ffn_down_", "ffn_gate_", "ffn_up_",
			"nextn.shared_head_norm."}},
	},
}

func hySharedExperts(c *config.View) (int64, error) {
	n, ok, err := c.Int("num_shared_experts")
	if !ok {
		n = 1
	}
	if err == nil && (n < 0 || n > config.MaxParts) {
		err = config.WrongType("num_shared_experts", "a number of experts", n)
	}
	return n, err
}

func hyHasShared(l table.Layer) (bool, error) {
	n, err := hySharedExperts(l.View)
	return n > 0, err
}

// hyIsDense is the condition of layers without experts.
func hyIsDense(l table.Layer) (bool, error) {
	if n, ok, err := l.Int("first_k_dense_replace"); ok || err != nil {
		return l.Bid < n, err
	}
	n, err := l.BlockCount()
	if err != nil || l.Bid >= n {
		return false, err
	}
	kind, ok, err := l.StringAt("mlp_layer_types", l.Bid)
	return kind == "dense" || !ok && l.Bid == 0, err
}

// hunyuanTokens are the dense models': tokenizer.json, else hy.tiktoken.
var (
	hunyuanTokens = tokenizer.Either{
		First: tokenizer.BPE{NegativePad: true},
		Else: hyTokens(tokenizer.Where{Key: "hidden_size", N: 4096,
			Then: tokenizer.Steps{parts.TokenID("bos", 127958)}}), // <|startoftext|>
		Then: tokenizer.Steps{tokenizer.ModelID{Kind: "eos", Key: "eod_token_id"}, tokenizer.GenerationEOT{}},
	}
	hunyuanMoETokens = hyTokens(parts.TokenID("bos", 127959)) // <|bos|>
)

// hyTokens is HunYuan's vocabulary in tiktoken's format.
func hyTokens(then tokenizer.Step) tokenizer.Tiktoken {
	return tokenizer.Tiktoken{File: "hy.tiktoken", Words: parts.QwenWords,
		Special: []string{"<|endoftext|>", "<|startoftext|>", "<|bos|>", "<|eos|>", "<|pad|>"},
		Extra:   205, FewerExtra: true, Then: tokenizer.Steps{then}}
}
