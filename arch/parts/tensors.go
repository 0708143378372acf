package parts

import (
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/table"
)

// Rows of Llama-like decoders, with the transformers library's names.

// EmbedRows are the tensors outside the layers. A model without lm_head uses the
// embedding for the output, too.
var EmbedRows = []table.TensorRow{
	{HF: "model.embed_tokens", GGUF: "token_embd"},
	{HF: "model.norm", GGUF: "output_norm"},
	{HF: "lm_head", GGUF: "output", Optional: true},
}

// NormRows are the norms before attention and before the FFN.
var NormRows = []table.TensorRow{
	{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
	{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.ffn_norm"},
}

// AttentionRows are the projections of attention; qkv and out are the kinds
// of their biases.
func AttentionRows(qkv, out table.Bias) []table.TensorRow {
	return []table.TensorRow{
		{HF: "model.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q", Bias: qkv},
		{HF: "model.layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.attn_k", Bias: qkv},
		{HF: "model.layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.attn_v", Bias: qkv},
		{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output", Bias: out},
	}
}

// QKNormRows are norms of queries and keys.
var QKNormRows = []table.TensorRow{
	{HF: "model.layers.{bid}.self_attn.q_norm", GGUF: "blk.{bid}.attn_q_norm"},
	{HF: "model.layers.{bid}.self_attn.k_norm", GGUF: "blk.{bid}.attn_k_norm"},
}

// MLPRows are the projections of a gated FFN.
var MLPRows = []table.TensorRow{
	{HF: "model.layers.{bid}.mlp.gate_proj", GGUF: "blk.{bid}.ffn_gate"},
	{HF: "model.layers.{bid}.mlp.up_proj", GGUF: "blk.{bid}.ffn_up"},
	{HF: "model.layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down"},
}

// ExpertRows are a router and its experts, one tensor per expert.
var ExpertRows = []table.TensorRow{
	{HF: "model.layers.{bid}.mlp.gate", GGUF: "blk.{bid}.ffn_gate_inp"},
	{HF: "model.layers.{bid}.mlp.experts.{xid}.down_proj", GGUF: "blk.{bid}.ffn_down_exps"},
	{HF: "model.layers.{bid}.mlp.experts.{xid}.gate_proj", GGUF: "blk.{bid}.ffn_gate_exps"},
	{HF: "model.layers.{bid}.mlp.experts.{xid}.up_proj", GGUF: "blk.{bid}.ffn_up_exps"},
}

// FusedExpertRows are the experts as transformers 5 keeps them: down_proj of
// [experts, hidden, width], gate_up_proj of [experts, 2*width, hidden], the gate
// first.
var FusedExpertRows = []table.TensorRow{
	{HF: "model.layers.{bid}.mlp.experts.down_proj", Exact: true, Optional: true,
		GGUF: "blk.{bid}.ffn_down_exps.weight"},
	{HF: "model.layers.{bid}.mlp.experts.down_proj.weight", Exact: true, Optional: true,
		GGUF: "blk.{bid}.ffn_down_exps.weight"},
	{HF: "model.layers.{bid}.mlp.experts.gate_up_proj", Exact: true, Optional: true, Split: GateUp},
	{HF: "model.layers.{bid}.mlp.experts.gate_up_proj.weight", Exact: true, Optional: true, Split: GateUp},
}

// GateUp splits gate and up projections of experts that are one tensor, the gate first.
var GateUp = []table.Part{
	{GGUF: "blk.{bid}.ffn_gate_exps.weight", Transform: Half(0)},
	{GGUF: "blk.{bid}.ffn_up_exps.weight", Transform: Half(1)},
}

// TransformBySuffix returns rows with the transform for those whose HF name ends in suffix.
func TransformBySuffix(list []table.TensorRow, suffix string, t *table.Transform) []table.TensorRow {
	list = slices.Clone(list)
	for i := range list {
		if strings.HasSuffix(list[i].HF, suffix) {
			list[i].Transform = t
		}
	}
	return list
}

// Only returns rows with the condition cond.
func Only(cond table.Cond, list []table.TensorRow) []table.TensorRow {
	list = slices.Clone(list)
	for i := range list {
		list[i].If = cond
	}
	return list
}

// OptionalRows returns the rows as optional ones.
func OptionalRows(list []table.TensorRow) []table.TensorRow {
	list = slices.Clone(list)
	for i := range list {
		list[i].Optional = true
	}
	return list
}

// HeadlessNames rename tensors of checkpoints saved from the class without the output head: their names lack
// "model.".
var HeadlessNames = []table.Rename{
	{Prefix: "embed_tokens.", With: "model.embed_tokens."},
	{Prefix: "layers.", With: "model.layers."},
	{Prefix: "norm.", With: "model.norm."},
}

// NumberAfter returns a Rename.Number that adds count to layer numbers.
func NumberAfter(count func(*config.View) (int64, error)) func(*config.View, int64) (int64, error) {
	return func(c *config.View, n int64) (int64, error) {
		before, err := count(c)
		return before + n, err
	}
}

// SharedExpertRows are shared experts, stored as one FFN.
var SharedExpertRows = []table.TensorRow{
	{HF: "model.layers.{bid}.mlp.shared_experts.gate_proj", GGUF: "blk.{bid}.ffn_gate_shexp"},
	{HF: "model.layers.{bid}.mlp.shared_experts.up_proj", GGUF: "blk.{bid}.ffn_up_shexp"},
	{HF: "model.layers.{bid}.mlp.shared_experts.down_proj", GGUF: "blk.{bid}.ffn_down_shexp"},
}

// CorrectionRow is the bias of the router's scores for top-k selection; the experts' weights do not have it.
var CorrectionRow = table.TensorRow{
	HF: "model.layers.{bid}.mlp.gate.e_score_correction_bias", Exact: true, Optional: true,
	GGUF: "blk.{bid}.exp_probs_b.bias",
}

// NextNRows are the tensors of MTP layers only. Embedding and head are optional: they may be the model's.
var NextNRows = []table.TensorRow{
	{HF: "model.layers.{bid}.eh_proj", GGUF: "blk.{bid}.nextn.eh_proj"},
	{HF: "model.layers.{bid}.embed_tokens", GGUF: "blk.{bid}.nextn.embed_tokens", Optional: true},
	{HF: "model.layers.{bid}.enorm", GGUF: "blk.{bid}.nextn.enorm"},
	{HF: "model.layers.{bid}.hnorm", GGUF: "blk.{bid}.nextn.hnorm"},
	{HF: "model.layers.{bid}.shared_head.head", GGUF: "blk.{bid}.nextn.shared_head_head", Optional: true},
	{HF: "model.layers.{bid}.shared_head.norm", GGUF: "blk.{bid}.nextn.shared_head_norm"},
}

// PermutedRows are AttentionRows for runtimes with interleaved RoPE (pairs of neighbours): the rows of each head of Q
// and K are permuted.
func PermutedRows(bias table.Bias) []table.TensorRow {
	list := AttentionRows(bias, bias)
	list[0].Transform, list[1].Transform = PermuteQ, PermuteK
	return list
}

// WithBias returns rows with a kind of bias.
func WithBias(b table.Bias, rows []table.TensorRow) []table.TensorRow {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Bias = b
	}
	return rows
}

// WithTransform returns rows with a transform.
func WithTransform(t *table.Transform, rows []table.TensorRow) []table.TensorRow {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Transform = t
	}
	return rows
}

// MixtralExperts are a router and its experts under Mixtral's names.
var MixtralExperts = []table.TensorRow{
	{HF: "model.layers.{bid}.block_sparse_moe.gate", GGUF: "blk.{bid}.ffn_gate_inp"},
	{HF: "model.layers.{bid}.block_sparse_moe.experts.{xid}.w1", GGUF: "blk.{bid}.ffn_gate_exps"},
	{HF: "model.layers.{bid}.block_sparse_moe.experts.{xid}.w2", GGUF: "blk.{bid}.ffn_down_exps"},
	{HF: "model.layers.{bid}.block_sparse_moe.experts.{xid}.w3", GGUF: "blk.{bid}.ffn_up_exps"},
}

// QwenSharedRows are a shared expert and its gate.
var QwenSharedRows = []table.TensorRow{
	{HF: "model.layers.{bid}.mlp.shared_expert_gate", GGUF: "blk.{bid}.ffn_gate_inp_shexp"},
	{HF: "model.layers.{bid}.mlp.shared_expert.gate_proj", GGUF: "blk.{bid}.ffn_gate_shexp"},
	{HF: "model.layers.{bid}.mlp.shared_expert.up_proj", GGUF: "blk.{bid}.ffn_up_shexp"},
	{HF: "model.layers.{bid}.mlp.shared_expert.down_proj", GGUF: "blk.{bid}.ffn_down_shexp"},
}

// LlamaTensors are the tensors of Llama-like models with heads in the transformers library's layout.
var LlamaTensors = slices.Concat(EmbedRows, NormRows, PermutedRows(table.MayBias), WithBias(table.MayBias, MLPRows))
