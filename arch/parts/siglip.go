package parts

import (
	"ggforge/arch/table"
)

// SigLIPNames unify the names of SigLIP tensors in versions of the transformers library.
var SigLIPNames = []table.Rename{
	{Prefix: "vision_tower.vision_model.", With: "vision_tower."},
	{Prefix: "model.vision_tower.vision_model.", With: "vision_tower."},
	{Prefix: "model.vision_tower.", With: "vision_tower."},
	{Prefix: "model.multi_modal_projector.", With: "multi_modal_projector."},
}

// SigLIP are the rows of a SigLIP or CLIP model; p is the prefix of names, embedding the type of its embeddings.
func SigLIP(p string, embedding table.TypeOf) []table.TensorRow {
	l, g := p+"encoder.layers.{bid}.", "v.blk.{bid}."
	return []table.TensorRow{
		{HF: p + "embeddings.patch_embedding", GGUF: "v.patch_embd", Bias: table.NeedBias, Type: embedding},
		{HF: p + "embeddings.position_embedding", GGUF: "v.position_embd"},
		{HF: l + "layer_norm1", GGUF: g + "ln1", Bias: table.NeedBias},
		{HF: l + "layer_norm2", GGUF: g + "ln2", Bias: table.NeedBias},
		{HF: l + "self_attn.q_proj", GGUF: g + "attn_q", Bias: table.NeedBias},
		{HF: l + "self_attn.k_proj", GGUF: g + "attn_k", Bias: table.NeedBias},
		{HF: l + "self_attn.v_proj", GGUF: g + "attn_v", Bias: table.NeedBias},
		{HF: l + "self_attn.out_proj", GGUF: g + "attn_out", Bias: table.NeedBias},
		{HF: l + "mlp.fc1", GGUF: g + "ffn_up", Bias: table.NeedBias},
		{HF: l + "mlp.fc2", GGUF: g + "ffn_down", Bias: table.NeedBias},
		{HF: p + "post_layernorm", GGUF: "v.post_ln", Bias: table.NeedBias},
	}
}
