package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(deepseek, deepseek2, deepseek2OCR, deepseek32)

// deepseek is DeepSeek MoE, the first generation. Source: the DeepSeek classes of the reference's converter.
var deepseek = &table.Arch{
	Name:      "deepseek",
	Classes:   []string{"DeepseekForCausalLM"},
	Tokenizer: parts.SPMOrBPE,
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
		parts.TransformBySuffix(parts.TransformBySuffix(parts.AttentionRows(table.MayBias, table.NoBias), ".q_proj",
			parts.PermuteQ),
			".k_proj", parts.PermuteK),
		parts.Only(parts.DenseFirst, parts.MLPRows),
		parts.Only(parts.MoEAfter, slices.Concat(parts.ExpertRows, parts.SharedExpertRows))),
	Graph: parts.Decoder(graph.RMS, parts.GQA(parts.Interleaved),
		parts.Sparse(parts.Experts(parts.RouterBias, graph.MayShared), parts.SwiGLU)).Reading("expert_weights_scale"),
}

// deepseek2 is DeepSeek V2, V3 and R1 with multi-head latent attention (MLA): one compressed key and value for all
// heads. The file keeps it compressed, with one KV head.
var deepseek2 = &table.Arch{
	Name: "deepseek2",
	Classes: []string{"DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "KimiVLForConditionalGeneration",
		"KimiK25ForConditionalGeneration",
		"YoutuForCausalLM", "YoutuVLForConditionalGeneration"},
	Body:      table.Body{Classes: []string{"DeepseekV2Model", "DeepseekV3Model"}, Prefix: "model."},
	Config:    config.Rules{Types: []string{"deepseek_v2", "deepseek_v3", "youtu"}, Derived: parts.RotaryHeadDim},
	Tokenizer: parts.KimiTokens,
	Metadata:  parts.MLAMetadata,
	Unused:    slices.Concat(parts.MultimodalKeys, parts.MLAUnused),
	Expect:    parts.MLAExpect,
	Drop:      []table.Drop{parts.TiedHead, parts.BeyondNextN},
	Tensors:   parts.MLATensors,
	// OCR models name the class of their language model in architectures
	Variant: func(c *config.View) (*table.Arch, error) {
		if list, _ := c.Raw["architectures"].([]any); len(list) > 0 && slices.ContainsFunc(deepseek2OCR.Classes,
			func(class string) bool { return list[0] == class }) {
			return deepseek2OCR, nil
		}
		return nil, nil
	},
	Graph: parts.DeepSeek2Graph,
}

// deepseek2OCR is the language model of DeepSeek-OCR and of Unlimited-OCR: experts
// as in DeepSeek V2, plain attention.
var deepseek2OCR = &table.Arch{
	Name:      "deepseek2-ocr",
	Classes:   []string{"DeepseekOCRForCausalLM", "UnlimitedOCRForCausalLM"},
	Tokenizer: parts.KimiTokens,
	Fused:     table.FusedQKV | table.FusedGateUp,
	// the default, if the tokenizer has no chat template
	HeaderFirst: []table.Row{{Key: "tokenizer.chat_template",
		Const: gguf.String("{% for m in messages %}{{m['content']}}{% endfor %}")}},
	Metadata: parts.UncompressedMetadata,
	Unused: append([]string{"lm_head", "rm_head", "kv_lora_rank", "qk_nope_head_dim", "v_head_dim",
		"candidate_resolutions", "global_view_pos", "projector_config", "tile_tag"},
		parts.MLAUnused...),
	Expect: append([]table.Expect{parts.Expect("use_mla", "false")}, parts.MLAExpect...),
	Drop: []table.Drop{parts.TiedHead, parts.BeyondNextN, {Prefix: "model.sam_model.", Why: table.Silent},
		{Prefix: "model.qwen2_model.", Why: table.Silent}},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.NoBias, table.NoBias),
		parts.MLAFeedForward),
	Graph: &graph.Model{
		Reads: []string{"expert_gating_func", "expert_weights_norm", "expert_weights_scale"},
		Dims:  graph.Dims{"n_rot": "n_embd_head_k"}, // the runtime rotates whole heads
		Norm:  graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: parts.PreNorm(parts.GQA(parts.NeoX),
			parts.Sparse(parts.Experts(parts.RouterBias, graph.MayShared), parts.SwiGLU)),
		Unread: []string{"rope.dimension_count", "attention.sliding_window"},
	},
}

// deepseek32 is DeepSeek V3.2: sparse attention to the tokens that an indexer selects. The MTP layers follow the
// others.
var deepseek32 = &table.Arch{
	Name:      "deepseek32",
	Classes:   []string{"DeepseekV32ForCausalLM"},
	Body:      table.Body{Classes: []string{"DeepseekV32Model"}, Prefix: "model."},
	Config:    config.Rules{Types: []string{"deepseek_v32"}, Derived: parts.RotaryHeadDim},
	Tokenizer: tokenizer.BPE{},
	NextN:     parts.NumberedNextN,
	Metadata:  slices.Concat(parts.MLAMetadata, []table.Row{parts.NextNRow}, parts.IndexerMetadata),
	// every layer has an indexer; the MoE layers follow from the number of dense ones
	Unused: append([]string{"num_experts", "layer_types", "mlp_layer_types"}, parts.MLAUnused...),
	Expect: append([]table.Expect{parts.Expect("attention_bias", "false"), parts.Expect("mlp_bias", "false")},
		parts.MLAExpect...),
	Drop:    []table.Drop{parts.TiedHead},
	Tensors: slices.Concat(parts.MLATensors, parts.IndexerTensors, parts.Only(parts.NextN, parts.NextNRows)),
	Graph: &graph.Model{
		Reads: slices.Concat(parts.RouterKeys, parts.NeedsMLA,
			[]string{"rope.scaling.yarn_log_multiplier", "rope.dimension_sections"}),
		Norm: graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: parts.PreNorm(graph.MLA{Steps: []graph.HeadStep{graph.RoPE{Pairs: graph.Interleaved, Scaling: graph.MScaleEq}},
			Scores: []graph.ScoreStep{graph.Indexer{Eps: "@attention.layer_norm_epsilon or 0.000001"}}},
			parts.Sparse(parts.Experts(parts.RouterGroups, graph.MayShared), parts.SwiGLU)),
		Unread:  parts.MLAUnread,
		Runtime: []graph.Quirk{graph.DraftsRead{"exp_probs_b."}},
	},
}
