package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(minimaxM2, minimax01, minimaxM3)

// minimaxM2 is MiniMax's M2. Source: the MiniMaxM2 class of the
// reference's converter.
var minimaxM2 = &table.Arch{
	Name:      "minimax-m2",
	Classes:   []string{"MiniMaxM2ForCausalLM"},
	Body:      table.Body{Classes: []string{"MiniMaxM2Model"}, Prefix: "model."},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.UintRow("expert_feed_forward_length", "intermediate_size"),
		parts.UintRow("rope.dimension_count", "rotary_dim"),
	}),
	Expect: []table.Expect{parts.SiLU, parts.Expect("use_qk_norm", "true"), parts.Expect("qk_norm_type", "per_layer"),
		parts.Expect("use_routing_bias", "true"),
		parts.Expect("shared_intermediate_size", "0")},
	Unused: append([]string{"rope_scaling.partial_rotary_factor", "attn_type_list", "mtp_transformer_layers",
		"num_mtp_modules", "use_mtp", "layernorm_full_attention_beta", "layernorm_linear_attention_beta",
		"layernorm_mlp_beta", "output_router_logits", "router_aux_loss_coef", "mlp_intermediate_size",
		"shared_moe_mode", "max_model_len", "attn_window_size"}, parts.BiasKeys...),
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.NoBias, table.NoBias),
		parts.QKNormRows, parts.MixtralExperts, []table.TensorRow{
			{HF: "model.layers.{bid}.block_sparse_moe.e_score_correction_bias", GGUF: "blk.{bid}.exp_probs_b.bias",
				Exact: true},
		}),
	Graph: parts.Decoder(graph.RMS, parts.GQA(parts.QKNorm, parts.NeoX),
		parts.Experts(parts.RouterBiasTopK, graph.NoShared)).Reading("expert_gating_func!"),
}

// minimax01 is MiniMax-Text-01 and M1: seven of eight layers have lightning attention. Tokens without an embedding are
// suppressed. Source: the MiniMaxText01 class of the reference's converter.
var minimax01 = &table.Arch{
	Name:      "minimax-01",
	Classes:   []string{"MiniMaxText01ForCausalLM", "MiniMaxM1ForCausalLM"},
	Tokenizer: tokenizer.BPE{Then: tokenizer.Steps{tokenizer.ChatTemplateFile{}}},
	Fused:     table.FusedQKV,
	Special:   []table.Special{table.SuppressZeroRows{}},
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		{Key: parts.SuppressRow.Key, Derive: parts.SuppressRow.Derive},
		{Key: "residual_scale", Derive: minimaxAlpha},
		parts.UintRow("rope.dimension_count", "rotary_dim"),
	}),
	Expect: []table.Expect{parts.SiLU, parts.Expect("postnorm", "true"), parts.Expect("shared_intermediate_size", "0"),
		parts.Expect("layernorm_full_attention_beta", "1"),
		parts.Expect("layernorm_linear_attention_beta", "1"), parts.Expect("layernorm_mlp_beta", "1")},
	Unused: append([]string{"attn_type_list", "shared_moe_mode", "max_model_len"}, parts.BiasKeys...),
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.MixtralExperts,
		parts.Only(minimaxFull, parts.AttentionRows(table.NoBias, table.NoBias)),
		parts.Only(parts.Not(minimaxFull), []table.TensorRow{
			{HF: "model.layers.{bid}.self_attn.qkv_proj", GGUF: "blk.{bid}.attn_qkv"},
			{HF: "model.layers.{bid}.self_attn.out_proj", GGUF: "blk.{bid}.attn_output"},
			{HF: "model.layers.{bid}.self_attn.output_gate", GGUF: "blk.{bid}.attn_gate"},
			{HF: "model.layers.{bid}.self_attn.norm", GGUF: "blk.{bid}.attn_norm_2"},
		})),
	// parts and their residual connections have the same norm as input
	Graph: &graph.Model{
		Reads: []string{"attention.recurrent_layers", "full_attention_interval"},
		Norm:  graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: []graph.Step{
			graph.Normalize{Norm: graph.Norm{Name: "attn_norm"}},
			graph.Residual{Carry: "@residual_scale", Part: graph.Choose{
				{In: graph.Where("(@attention.recurrent_layers or (i + 1) mod (@full_attention_interval or 8)) = 0"),
					Then: parts.GQA(parts.NeoX)},
				{In: graph.Every{}, Then: graph.Lightning{}},
			}},
			graph.Normalize{Norm: graph.Norm{Name: "ffn_norm"}},
			graph.Residual{Carry: "@residual_scale", Part: parts.Experts(parts.RouterTopK, graph.NoShared)},
		},
	},
}

// minimaxFull is the condition of full-attention layers: every eighth one, as in runtimes.
func minimaxFull(l table.Layer) (bool, error) {
	const key = "attn_type_list"
	full := (l.Bid+1)%8 == 0
	if kind, ok, err := l.IntAt(key, l.Bid); err != nil || ok && (kind == 1) != full {
		if err == nil {
			err = parts.UnsupportedPattern(key, "full attention in each eighth layer")
		}
		return false, err
	}
	return full, nil
}

// minimaxAlpha writes the factor of the residual stream, which must be the same for all kinds of layers.
func minimaxAlpha(c *config.View) (v gguf.Value, ok bool, err error) {
	first := 0.0
	for i, key := range []string{"layernorm_full_attention_alpha", "layernorm_linear_attention_alpha",
		"layernorm_mlp_alpha"} {
		f, err := c.RequireFloat(key)
		if err != nil {
			return v, false, err
		}
		if i == 0 {
			first = f
		} else if f != first {
			return v, false, fault.Errorf(fault.Unsupported,
				"%s: key %q is %v, but layernorm_full_attention_alpha %v: the architecture has one factor",
				config.ConfigFile, key, f, first)
		}
	}
	return table.Float32Of(first, true, nil)
}

// minimaxM3 is MiniMax's M3: a few dense layers with full attention, then MoE layers with sparse attention to blocks
// that an indexer selects. Norm weights are stored minus 1. Source: the MiniMaxM3 class of the reference's converter.
// The raw config.json is read, because the configuration class of the transformers library drops keys that the
// reference reads.
var minimaxM3 = &table.Arch{
	Name:      "minimax-m3",
	Classes:   []string{"MiniMaxM3SparseForCausalLM", "MiniMaxM3SparseForConditionalGeneration"},
	Tokenizer: tokenizer.BPE{},
	Config:    config.Rules{Raw: true},
	Metadata: slices.Concat(minimaxM2.Metadata, []table.Row{
		parts.UintRow("expert_shared_count", "n_shared_experts"),
		parts.FloatRow("expert_weights_scale", "routed_scaling_factor"),
		{Key: "expert_weights_norm", Const: gguf.Bool(true)},
		sparseRow("attention.indexer.head_count", "sparse_num_index_heads"),
		sparseRow("attention.indexer.key_length", "sparse_index_dim"),
		sparseRow("attention.indexer.top_k", "sparse_topk_blocks"),
		sparseRow("attention.indexer.block_size", "sparse_block_size"),
		sparseRow("attention.indexer.local_blocks", "sparse_local_block"),
		{Key: "leading_dense_block_count", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := minimaxDense(c)
			return table.Uint32Of(n, true, err)
		}},
	}),
	Expect: []table.Expect{parts.Expect("hidden_act", "swigluoai"), parts.Expect("swiglu_alpha", "1.702"),
		parts.Expect("swiglu_beta", "1"), parts.Expect("swiglu_limit", "7"),
		parts.Expect("use_qk_norm", "true"), parts.Expect("qk_norm_type", "per_head"),
		parts.Expect("use_gemma_norm", "true"), parts.Expect("use_routing_bias", "true"),
		parts.Expect("attention_output_gate", "false"), parts.Expect("scoring_func", "sigmoid")},
	Unused: append([]string{"rope_scaling.partial_rotary_factor", "sparse_attention_config", "num_mtp_modules",
		"num_nextn_predict_layers", "shared_intermediate_size", "mtp_transformer_layers", "max_model_len",
		"image_token_index", "video_token_index", "projector_hidden_size", "img_token_compression_config",
		"multimodal_projector_bias", "projector_hidden_act",
		"vision_feature_layer", "vision_feature_select_strategy", "image_seq_length", "image_grid_pinpoints",
		"image_token_compression_method", "process_image_mode",
		"num_reward_heads"}, parts.BiasKeys...),
	Tensors: slices.Concat(parts.TransformBySuffix(parts.EmbedRows, "norm", parts.PlusOne),
		parts.WithTransform(parts.PlusOne, parts.NormRows),
		parts.AttentionRows(table.NoBias, table.NoBias), parts.WithTransform(parts.PlusOne, parts.QKNormRows),
		parts.Only(minimaxIsDense, parts.MLPRows),
		parts.Only(parts.Not(minimaxIsDense), slices.Concat(parts.MixtralExperts, []table.TensorRow{
			{HF: "model.layers.{bid}.block_sparse_moe.e_score_correction_bias", GGUF: "blk.{bid}.exp_probs_b.bias",
				Exact: true},
			{HF: "model.layers.{bid}.block_sparse_moe.shared_experts.gate_proj", GGUF: "blk.{bid}.ffn_gate_shexp"},
			{HF: "model.layers.{bid}.block_sparse_moe.shared_experts.up_proj", GGUF: "blk.{bid}.ffn_up_shexp"},
			{HF: "model.layers.{bid}.block_sparse_moe.shared_experts.down_proj", GGUF: "blk.{bid}.ffn_down_shexp"},
			{HF: "model.layers.{bid}.self_attn.index_q_proj", GGUF: "blk.{bid}.indexer.q_proj",
				Type: table.Always(gguf.TypeF32)},
			{HF: "model.layers.{bid}.self_attn.index_k_proj", GGUF: "blk.{bid}.indexer.k_proj",
				Type: table.Always(gguf.TypeF32)},
			{HF: "model.layers.{bid}.self_attn.index_q_norm", GGUF: "blk.{bid}.indexer.q_norm",
				Transform: parts.PlusOne},
			{HF: "model.layers.{bid}.self_attn.index_k_norm", GGUF: "blk.{bid}.indexer.k_norm",
				Transform: parts.PlusOne},
		}))),
	Graph: parts.Decoder(graph.RMS, graph.Attention{Steps: []graph.HeadStep{parts.QKNorm, parts.NeoX},
		Scores: []graph.ScoreStep{graph.OnScores{In: graph.Has("indexer.q_proj"),
			Steps: []graph.ScoreStep{graph.BlockIndexer{}}}},
	}, parts.Sparse(graph.MoE{Router: graph.Router{Score: graph.Sigmoid, Bias: true}, Experts: minimaxFFN,
		Shared: graph.HasShared}, minimaxFFN)).Reading(parts.RouterKeys...),
}

// minimaxFFN is the activation of gpt-oss, in dense layers, too.
var minimaxFFN = graph.FFN{Act: graph.SwiGLUOAI{Alpha: 1.702, Limit: 7}}

// sparseRow is the row of a number in sparse_attention_config.
func sparseRow(key, from string) table.Row {
	return table.Row{Key: key, Derive: func(c *config.View) (gguf.Value, bool, error) {
		n, err := c.Sub("sparse_attention_config").Require(from)
		return table.Uint32Of(n, true, err)
	}}
}

// minimaxDense returns the number of layers before the first MoE layer. In the runtime, all layers after these have
// experts and an indexer of a fixed kind.
func minimaxDense(c *config.View) (int64, error) {
	const key = "moe_layer_freq"
	moe, err := c.LayerInts(key)
	if err != nil {
		return 0, err
	}
	n := slices.IndexFunc(moe, func(v int64) bool { return v != 0 })
	if n < 0 {
		n = len(moe)
	}
	if slices.Contains(moe[n:], 0) {
		return 0, parts.UnsupportedPattern(key, "no plain layers after the first with experts")
	}
	sparse := c.Sub("sparse_attention_config")
	for _, of := range []string{"sparse_attention_freq", "sparse_disable_index_value"} {
		list, ok, err := sparse.Ints(of)
		if err != nil {
			return 0, err
		}
		if ok && !slices.Equal(list, moe) {
			return 0, parts.UnsupportedPattern("sparse_attention_config."+of, "the same layers as "+key)
		}
	}
	if init, _, err := sparse.Int("sparse_init_block"); err != nil || init != 0 {
		if err == nil {
			err = fault.Errorf(fault.Unsupported,
				"%s: sparse_attention_config.sparse_init_block is %d, but the architecture has none",
				config.ConfigFile, init)
		}
		return 0, err
	}
	if score, ok, err := sparse.String("sparse_score_type"); err != nil || ok && score != "max" {
		if err == nil {
			err = fault.Errorf(fault.Unsupported,
				"%s: sparse_attention_config.sparse_score_type is %q, but the architecture has max only",
				config.ConfigFile, score)
		}
		return 0, err
	}
	return int64(n), nil
}

func minimaxIsDense(l table.Layer) (bool, error) {
	n, err := minimaxDense(l.View)
	return l.Bid < n, err
}
