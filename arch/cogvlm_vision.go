package arch

import (
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/gguf"
)

var _ = registerEncoder(cogVLMVision)

// cogVLMVision is CogVLM's vision encoder: EVA's layers, with norms after attention and FFN, and a gated projector.
// Source: CogVLMVisionModel of the reference.
var cogVLMVision = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"CogVLMForCausalLM"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: parts.LayersIn(parts.InVision, parts.BlockKeys...),
	Metadata: parts.VisionRows(
		table.Row{Key: parts.KeyVisionEps, Type: gguf.Float32Type, In: parts.InVision, From: []string{"layer_norm_eps"},
			Const: gguf.Float32(1e-6)},
		parts.ProjectorType("cogvlm"),
	),
	Expect: []table.Expect{{Key: "hidden_act", In: parts.InVision, Values: []string{"gelu"}}},
	Unused: []string{"vision_config.in_channels", "vision_config.num_positions", "vision_config.dropout_prob"},
	Drop:   parts.DropTextModel,
	Tensors: []table.TensorRow{
		{HF: "model.vision.patch_embedding.proj", GGUF: "v.patch_embd", Bias: table.NeedBias, Type: parts.KernelType},
		{HF: "model.vision.patch_embedding.cls_embedding", Exact: true, GGUF: "v.class_embd"},
		{HF: "model.vision.patch_embedding.position_embedding", GGUF: "v.position_embd"},
		{HF: "model.vision.transformer.layers.{bid}.attention.query_key_value", GGUF: "v.blk.{bid}.attn_qkv",
			Bias: table.NeedBias},
		{HF: "model.vision.transformer.layers.{bid}.attention.dense", GGUF: "v.blk.{bid}.attn_out",
			Bias: table.NeedBias},
		{HF: "model.vision.transformer.layers.{bid}.input_layernorm", GGUF: "v.blk.{bid}.ln1", Bias: table.NeedBias},
		{HF: "model.vision.transformer.layers.{bid}.post_attention_layernorm", GGUF: "v.blk.{bid}.ln2",
			Bias: table.NeedBias},
		{HF: "model.vision.transformer.layers.{bid}.mlp.fc1", GGUF: "v.blk.{bid}.ffn_up", Bias: table.NeedBias},
		{HF: "model.vision.transformer.layers.{bid}.mlp.fc2", GGUF: "v.blk.{bid}.ffn_down", Bias: table.NeedBias},
		{HF: "model.vision.linear_proj.linear_proj", GGUF: "mm.model.fc"},
		{HF: "model.vision.linear_proj.norm1", GGUF: "mm.post_fc_norm", Bias: table.NeedBias},
		{HF: "model.vision.linear_proj.gate_proj", GGUF: "mm.gate"},
		{HF: "model.vision.linear_proj.dense_h_to_4h", GGUF: "mm.up"},
		{HF: "model.vision.linear_proj.dense_4h_to_h", GGUF: "mm.down"},
		{HF: "model.vision.boi", Exact: true, GGUF: "v.boi"},
		{HF: "model.vision.eoi", Exact: true, GGUF: "v.eoi"},
	},
	Shapes: shape.Rules{Tensors: shape.Table{
		"v.class_embd": "v_embd", "v.position_embd": "v_embd, ?positions", "v.blk.{bid}.attn_qkv": "v_embd, 3 * v_embd",
		"mm.model.fc": "v_embd, v_proj", "mm.post_fc_norm": "v_proj",
		"mm.gate": "v_proj, ?mm_ff", "mm.up": "v_proj, ?mm_ff", "mm.down": "?mm_ff, v_proj", "v.boi": "v_proj",
		"v.eoi": "v_proj",
	}},
}
