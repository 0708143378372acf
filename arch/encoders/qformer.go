package encoders

import (
	"ggforge/arch/shape"
	"ggforge/arch/table"
)

// qFormer are the rows of a Q-Former's layers; hf and to are the prefixes of names in checkpoint and file, is is the
// condition of the rows.
func qFormer(hf, to string, is table.Cond) []table.TensorRow {
	return []table.TensorRow{
		{HF: hf + "attention.attention.query", GGUF: to + "self_attn_q", Bias: table.NeedBias, If: is},
		{HF: hf + "attention.attention.key", GGUF: to + "self_attn_k", Bias: table.NeedBias, If: is},
		{HF: hf + "attention.attention.value", GGUF: to + "self_attn_v", Bias: table.NeedBias, If: is},
		{HF: hf + "attention.output.dense", GGUF: to + "self_attn_out", Bias: table.NeedBias, If: is},
		{HF: hf + "attention.output.LayerNorm", GGUF: to + "self_attn_norm", Bias: table.NeedBias, If: is},
		{HF: hf + "crossattention.attention.query", GGUF: to + "cross_attn_q", Bias: table.NeedBias, If: is},
		{HF: hf + "crossattention.attention.key", GGUF: to + "cross_attn_k", Bias: table.NeedBias, If: is},
		{HF: hf + "crossattention.attention.value", GGUF: to + "cross_attn_v", Bias: table.NeedBias, If: is},
		{HF: hf + "crossattention.output.dense", GGUF: to + "cross_attn_out", Bias: table.NeedBias, If: is},
		{HF: hf + "crossattention.output.LayerNorm", GGUF: to + "cross_attn_norm", Bias: table.NeedBias, If: is},
		{HF: hf + "intermediate_query.dense", GGUF: to + "ffn_up", Bias: table.NeedBias, If: is},
		{HF: hf + "output_query.dense", GGUF: to + "ffn_down", Bias: table.NeedBias, If: is},
		{HF: hf + "output_query.LayerNorm", GGUF: to + "ffn_norm", Bias: table.NeedBias, If: is},
	}
}

// qFormerShapes are the dimensions of qFormer's tensors, given its width and the width of the states for
// cross-attention.
func qFormerShapes(to, width, inputWidth string) shape.Table {
	square := width + ", " + width
	return shape.Table{
		to + "self_attn_q": square, to + "self_attn_k": square, to + "self_attn_v": square,
		to + "self_attn_out": square, to + "self_attn_norm": width,
		to + "cross_attn_q": square, to + "cross_attn_k": inputWidth + ", " + width,
		to + "cross_attn_v":   inputWidth + ", " + width,
		to + "cross_attn_out": square, to + "cross_attn_norm": width,
		to + "ffn_up": width + ", ?q_ff", to + "ffn_down": "?q_ff, " + width, to + "ffn_norm": width,
	}
}
