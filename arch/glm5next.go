package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
)

var _ = register(glm5next)

// glm5next is GLM-5.3 Flash: layers with delta attention, layers with sparse attention to tokens that an indexer
// selects, and hyper-connections (several mixed residual streams). Source: the Glm5Next class of the reference's
// converter.
var glm5next = &table.Arch{
	Name:      "glm5-next",
	Classes:   []string{"Glm5NextForConditionalGeneration"},
	Tokenizer: parts.GLMTokens,
	NextN:     parts.NumberedNextN,
	Metadata: slices.Concat(parts.WithoutKeys(parts.CommonRows, "attention.key_length", "attention.value_length"),
		[]table.Row{
			{Key: table.KeyHeadCountKV, Derive: glm5KeyHeads},
			parts.UintRow("vocab_size", "vocab_size"),
			{Key: "attention.layer_norm_epsilon", Const: gguf.Float32(1e-6)}, // the indexer's
			parts.NextNSome,
			parts.KDARow("ssm.conv_kernel", "short_conv_kernel_size", true),
			parts.KDARow("kda.head_dim", "head_dim", true),
			parts.KDARow("kda.gate_lower_bound", "gate_lower_bound", false),
			parts.UintRow("attention.q_lora_rank", "q_lora_rank"),
			parts.UintRow("attention.kv_lora_rank", "kv_lora_rank"),
			parts.UintRow("rope.dimension_count", "qk_rope_head_dim"),
			{Key: "attention.key_length", Derive: parts.SumOf("kv_lora_rank", "qk_rope_head_dim")},
			parts.UintRow("attention.value_length", "kv_lora_rank"),
			{Key: "attention.key_length_mla", Derive: parts.SumOf("qk_nope_head_dim", "qk_rope_head_dim")},
			parts.UintRow("attention.value_length_mla", "v_head_dim"),
		}, parts.IndexerMetadata, []table.Row{
			parts.UintRow("attention.indexer.kpool", "index_kpool"),
			{Key: "attention.indexer.kpool_select_tail", Type: gguf.BoolType,
				From: []string{"index_kpool_always_select_tail"}, Const: gguf.Bool(true)},
			{Key: "attention.indexer.types", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
				types, ok, err := c.Strings("indexer_types")
				full := make([]bool, len(types))
				for i := range types {
					full[i] = types[i] == "full"
				}
				return gguf.Bools(full), ok && len(full) > 0, err
			}},
			parts.UintRow("hyper_connection.count", "hc_mult"),
			parts.UintRow("hyper_connection.sinkhorn_iterations", "hc_sinkhorn_iters"),
			parts.FloatRow("hyper_connection.epsilon", "hc_eps"),
			parts.UintRow("leading_dense_block_count", "first_k_dense_replace"),
			parts.UintRow("expert_feed_forward_length", "moe_intermediate_size"),
			parts.UintRow("expert_shared_count", "n_shared_experts"),
			parts.FloatRow("expert_weights_scale", "routed_scaling_factor"),
			parts.BoolRow("expert_weights_norm", "norm_topk_prob"),
			{Key: "swiglu_clamp_exp", Derive: glm5Clamp},
			{Key: "swiglu_clamp_shexp", Derive: glm5Clamp},
		}),
	Expect: []table.Expect{parts.SiLU, parts.Expect("mla_use_nope", "true"), parts.Expect("qk_rope_head_dim", "0"),
		parts.Expect("mhc", "true"),
		parts.Expect("index_kpool_compress", "true")},
	Unused: []string{"linear_attn_config", "head_dim", "qk_head_dim", "topk_method", "mlp_layer_types",
		"num_key_value_heads", "index_topk_freq", "index_share_for_mtp_iteration",
		"indexer_rope_interleave", "moe_router_dtype", "ep_size", "image_token_id", "video_token_id",
		"image_start_token_id", "image_end_token_id", "video_start_token_id",
		"video_end_token_id", "rope_theta"},
	Drop: []table.Drop{parts.TiedHead},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.Only(parts.DenseFirst, parts.MLPRows),
		parts.Only(parts.MoEAfter, slices.Concat(parts.ExpertRows, []table.TensorRow{parts.CorrectionRow})),
		parts.Only(parts.SharedAfter, parts.SharedExpertRows),
		parts.Only(glm5Linear, slices.Concat(parts.KDARows, parts.KDAGateRows, []table.TensorRow{
			{HF: "model.layers.{bid}.self_attn.A_log", Exact: true, GGUF: "blk.{bid}.ssm_a", Transform: parts.KDADecay},
		})),
		parts.Only(parts.Not(glm5Linear), slices.Concat(parts.MLARows[1:], parts.IndexerTensors, []table.TensorRow{
			glm5Exact("model.layers.{bid}.self_attn.indexer.index_kpool_compress_ape",
				"blk.{bid}.indexer_compressor_ape", parts.Not(glm5Linear)),
			glm5Exact("model.layers.{bid}.self_attn.indexer.index_kpool_compress_gate",
				"blk.{bid}.indexer_compressor_gate", parts.Not(glm5Linear)),
		})),
		[]table.TensorRow{
			glm5Exact("model.layers.{bid}.hc_attn_fn", "blk.{bid}.hc_attn_fn", parts.Not(parts.NextN)),
			glm5Exact("model.layers.{bid}.hc_attn_base", "blk.{bid}.hc_attn_base", parts.Not(parts.NextN)),
			glm5Exact("model.layers.{bid}.hc_attn_scale", "blk.{bid}.hc_attn_scale", parts.Not(parts.NextN)),
			glm5Exact("model.layers.{bid}.hc_ffn_fn", "blk.{bid}.hc_ffn_fn", parts.Not(parts.NextN)),
			glm5Exact("model.layers.{bid}.hc_ffn_base", "blk.{bid}.hc_ffn_base", parts.Not(parts.NextN)),
			glm5Exact("model.layers.{bid}.hc_ffn_scale", "blk.{bid}.hc_ffn_scale", parts.Not(parts.NextN)),
		},
		parts.Only(parts.NextN, parts.NextNRows)),
	Graph: &graph.Model{
		Reads:   slices.Concat(parts.NeedsMLA, []string{"expert_gating_func", "expert_weights_norm", "expert_weights_scale"}),
		Streams: graph.HyperConnections{Mean: true}, Norm: graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: []graph.Step{
			graph.Mixed{Name: "attn", Residual: graph.Residual{Pre: graph.Norm{Name: "attn_norm"},
				Part: graph.Choose{
					{In: graph.Where("n_head_kv = 0 and @kda.gate_lower_bound != 0"),
						Then: graph.KDA{Bounded: true, Negative: true, UnitEps: "0.000001"}},
					{In: graph.Where("n_head_kv = 0"), Then: graph.KDA{Negative: true, UnitEps: "0.000001"}},
					{In: graph.Every{}, Then: graph.MLA{Scores: []graph.ScoreStep{
						graph.OnScores{In: graph.Where("(@attention.indexer.types or 1) != 0"),
							Steps: []graph.ScoreStep{glm5Indexer}},
						graph.OnScores{In: graph.Where("(@attention.indexer.types or 1) = 0"),
							Steps: []graph.ScoreStep{graph.SharedIndexer{}}},
					}}},
				}}},
			graph.Mixed{Name: "ffn", Residual: graph.Residual{Pre: graph.Norm{Name: "ffn_norm"},
				Part: glm5FFN}},
		},
		Draft: parts.PreNorm(graph.MLA{Scores: []graph.ScoreStep{glm5Indexer}}, glm5FFN),
	},
}

// glm5Indexer is the indexer of layers that have one, and of MTP layers.
var glm5Indexer = graph.Indexer{Eps: "@attention.layer_norm_epsilon or 0", Pooled: true}

var (
	glm5FFN = parts.Sparse(graph.MoE{
		Router:  graph.Router{Score: graph.Sigmoid, Bias: true},
		Experts: graph.FFN{Act: graph.LimitedSwiGLU{Limit: "@swiglu_clamp_exp or 0"}},
		Shared:  graph.HasShared, With: []graph.MoEOption{graph.SharedFFN{FFN: glm5Dense}},
	}, glm5Dense)
	glm5Dense = graph.FFN{Act: graph.LimitedSwiGLU{Limit: "@swiglu_clamp_shexp or @swiglu_clamp_exp or 0"}}
)

// glm5Exact is the row of a parameter that stays F32.
func glm5Exact(hf, name string, cond table.Cond) table.TensorRow {
	return table.TensorRow{HF: hf, Exact: true, GGUF: name + ".weight", If: cond, Type: table.Always(gguf.TypeF32)}
}

// glm5Linear is the condition of layers with delta attention.
func glm5Linear(l table.Layer) (bool, error) {
	if next, err := parts.NextN(l); err != nil || next {
		return false, err
	}
	kind, err := l.LayerType(l.Bid)
	return kind == "linear_attention", err
}

// glm5KeyHeads writes the number of key heads of each layer, see parts.KeyHeads.
func glm5KeyHeads(c *config.View) (v gguf.Value, ok bool, err error) {
	if err := parts.KDAHeads(c); err != nil {
		return v, false, err
	}
	kinds, err := c.RequireLayerTypes()
	if err != nil {
		return v, false, err
	}
	more, err := parts.NextNLayers(c)
	if err != nil {
		return v, false, err
	}
	heads := slices.Repeat([]int64{1}, len(kinds)+int(more))
	for i, kind := range kinds {
		if kind == "linear_attention" {
			heads[i] = 0
		}
	}
	return parts.PerLayer(heads, nil)
}

// glm5Clamp writes the limit at which each layer clamps activations.
func glm5Clamp(c *config.View) (v gguf.Value, ok bool, err error) {
	limit, ok, err := c.Float("swiglu_limit")
	if err != nil || !ok {
		return v, false, err
	}
	n, err := parts.BlocksWithNextN(c)
	if err != nil {
		return v, false, err
	}
	return gguf.Float32s(slices.Repeat([]float32{float32(limit)}, int(n))), n > 0, nil
}
