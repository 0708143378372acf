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

var _ = register(ernie4_5, paddleOCR, ernie4_5moe)

// ernie4_5 is Baidu's ERNIE 4.5, the dense models. Source: the Ernie4_5 class of the reference's converter. Older
// checkpoints have joined Q, K and V, and joined gate and up projections.
var ernie4_5 = &table.Arch{
	Name:      "ernie4_5",
	Classes:   []string{"Ernie4_5_ForCausalLM", "Ernie4_5ForCausalLM"},
	Tokenizer: tokenizer.SentencePiece{Then: tokenizer.Steps{tokenizer.AddSpacePrefix{}}},
	Fused:     table.FusedQKV,
	Metadata:  parts.CommonRows,
	Expect:    []table.Expect{parts.SiLU},
	Unused: append([]string{"compression_ratio", "weight_share_add_bias", "fuse_swiglu", "fuse_rms_norm", "use_rmsnorm",
		"rope_reorder", "freq_allocation",
		"use_flash_attention", "sequence_parallel", "fuse_linear", "fuse_attn_qkv", "fuse_attn_ffn",
		"virtual_pp_degree", "pp_seg_method", "max_sequence_length",
		"ignored_index", "scale_qk_coeff", "token_balance_loss", "token_balance_seqlen", "cachekv_quant",
		"micro_batch_size"}, parts.BiasKeys...),
	Rename: []table.Rename{{Prefix: "ernie.", With: "model."}},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.MayBias, table.MayBias),
		parts.WithBias(table.MayBias, parts.MLPRows), []table.TensorRow{
			{HF: "model.layers.{bid}.self_attn.qkv_proj", Optional: true, Split: []table.Part{
				{GGUF: "blk.{bid}.attn_q", Transform: parts.QOfJoined},
				{GGUF: "blk.{bid}.attn_k", Transform: parts.KOfJoined},
				{GGUF: "blk.{bid}.attn_v", Transform: parts.VOfJoined},
			}},
			{HF: "model.layers.{bid}.mlp.up_gate_proj", Optional: true, Split: []table.Part{
				{GGUF: "blk.{bid}.ffn_gate", Transform: parts.Half(0)},
				{GGUF: "blk.{bid}.ffn_up", Transform: parts.Half(1)},
			}},
		}),
	Graph: parts.Decoder(graph.RMS, parts.GQA(parts.Interleaved), parts.SwiGLU).Reading("rope.dimension_sections"),
}

// paddleOCR is the language model of PaddleOCR-VL, an ERNIE 4.5 with M-RoPE.
var paddleOCR = &table.Arch{
	Name:         "paddleocr",
	Classes:      []string{"PaddleOCRVLForConditionalGeneration"},
	Config:       config.Rules{Types: []string{"paddleocr_vl"}, Flat: true},
	Tokenizer:    tokenizer.SentencePiece{Then: tokenizer.Steps{tokenizer.AddSpacePrefix{}}},
	Fused:        table.FusedQKV,
	RopeSections: true,
	Metadata:     parts.CommonRows,
	Expect: []table.Expect{parts.SiLU, parts.Expect("use_3d_rope", "true"),
		parts.Expect("rope_is_neox_style", "true")},
	Unused:  slices.Concat(ernie4_5.Unused, parts.MultimodalKeys),
	Tensors: ernie4_5.Tensors,
	Graph:   parts.Decoder(graph.RMS, parts.GQA(parts.NeoX), parts.SwiGLU).Reading("rope.dimension_sections!"),
}

// ernie4_5moe is ERNIE 4.5 with experts. The MTP layers are left out.
var ernie4_5moe = &table.Arch{
	Name:      "ernie4_5-moe",
	Classes:   []string{"Ernie4_5_MoeForCausalLM"},
	Tokenizer: tokenizer.SentencePiece{Then: tokenizer.Steps{tokenizer.AddSpacePrefix{}}},
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.UintRow("expert_count", "moe_num_experts"),
		parts.UintRow("expert_used_count", "moe_k"),
		parts.UintRow("interleave_moe_layer_step", "moe_layer_interval"),
		parts.UintRow("leading_dense_block_count", "moe_layer_start_index"),
		parts.Optional(parts.UintRow("expert_feed_forward_length", "moe_intermediate_size")),
		parts.Optional(parts.UintRow("expert_shared_count", "moe_num_shared_experts")),
		{Key: "expert_shared_feed_forward_length", Derive: ernieSharedLength},
	}),
	Expect: []table.Expect{parts.SiLU, parts.Expect("moe_gate", "topk")},
	Unused: append([]string{"moe_capacity", "moe_group", "moe_gate_act", "moe_norm_min", "moe_use_aux_free",
		"moe_aux_loss_lambda", "moe_orthogonal_loss_lambda",
		"moe_layer_end_index", "num_nextn_predict_layers", "multi_token_pred_lambda",
		"moe_multimodal_dispatch_use_allgather", "moe_use_hard_gate",
		"moe_dense_experts_token_type_id", "moe_reverse_token_drop", "moe_all_to_all_dropout"}, ernie4_5.Unused...),
	Rename: ernie4_5.Rename,
	Drop: []table.Drop{
		{Prefix: "model.mtp_block.", Why: parts.MTP}, {Prefix: "model.mtp_emb_norm.", Why: parts.MTP},
		{Prefix: "model.mtp_hidden_norm.", Why: parts.MTP}, {Prefix: "model.mtp_linear_proj.", Why: parts.MTP},
	},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.MayBias, table.MayBias),
		parts.Only(parts.Not(ernieExperts), parts.MLPRows), parts.Only(ernieExperts, []table.TensorRow{
			{HF: "model.layers.{bid}.mlp.gate", GGUF: "blk.{bid}.ffn_gate_inp"},
			{HF: "model.layers.{bid}.mlp.moe_statics.e_score_correction_bias", Exact: true, Optional: true,
				GGUF: "blk.{bid}.exp_probs_b.bias"},
			{HF: "model.layers.{bid}.mlp.experts.{xid}.gate_proj", GGUF: "blk.{bid}.ffn_gate_exps",
				Experts: ernieCount},
			{HF: "model.layers.{bid}.mlp.experts.{xid}.up_proj", GGUF: "blk.{bid}.ffn_up_exps", Experts: ernieCount},
			{HF: "model.layers.{bid}.mlp.experts.{xid}.down_proj", GGUF: "blk.{bid}.ffn_down_exps",
				Experts: ernieCount},
		}), parts.Only(ernieShared, parts.SharedExpertRows)),
	Graph: parts.Decoder(graph.RMS, parts.GQA(parts.Interleaved),
		parts.Sparse(parts.Experts(parts.RouterBiasTopK, graph.MayShared), parts.SwiGLU)).Reading("rope.dimension_sections"),
}

func ernieCount(l table.Layer) (int64, error) { return l.Require("moe_num_experts") }

// ernieExperts is the condition of MoE layers: every moe_layer_interval-th one from moe_layer_start_index to
// moe_layer_end_index.
func ernieExperts(l table.Layer) (bool, error) {
	first, err := l.Require("moe_layer_start_index")
	if err != nil {
		return false, err
	}
	last, ok, err := l.Int("moe_layer_end_index")
	if err != nil {
		return false, err
	}
	step, err := l.Require("moe_layer_interval")
	if err == nil && step < 1 {
		err = config.WrongType("moe_layer_interval", "a positive integer", step)
	}
	return err == nil && l.Bid >= first && (!ok || last < 0 || l.Bid <= last) && (l.Bid+1)%step == 0, err
}

func ernieShared(l table.Layer) (bool, error) {
	n, _, err := l.Int("moe_num_shared_experts")
	if err != nil || n == 0 {
		return false, err
	}
	return ernieExperts(l)
}

// ernieSharedLength writes the width of the shared experts as the reference computes it, which is right for the
// published sizes only; runtimes do not read it.
func ernieSharedLength(c *config.View) (v gguf.Value, ok bool, err error) {
	shared, _, err := c.Int("moe_num_shared_experts")
	if err != nil || shared <= 0 {
		return v, false, err
	}
	width, ok, err := c.Int("intermediate_size")
	if err != nil || !ok {
		return v, false, err
	}
	heads, ok, err := c.Int("num_key_value_heads")
	if err == nil && ok && heads < 1 {
		err = config.WrongType("num_key_value_heads", "a positive integer", heads)
	}
	if err != nil || !ok {
		return v, false, err
	}
	return table.Uint32Of(width/heads, true, nil)
}
