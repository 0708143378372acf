package arch

import (
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

var _ = registerEncoder(hunyuanVision)

// hunyuanVision is HunyuanOCR's vision encoder: layers over images of any size, then two convolutions that merge
// neighbours. The file has embeddings for the begin and end of an image and for the end of a row. Source:
// HunyuanVLVisionModel of the reference.
var hunyuanVision = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"HunYuanVLForConditionalGeneration"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: parts.LayersIn(parts.InVision, parts.BlockKeys...),
	Metadata: parts.VisionRows(
		table.Row{Key: parts.KeyImageSize, Type: gguf.Uint32Type, In: parts.InVision,
			From: []string{"image_size", "max_image_size"}, Const: gguf.Uint32(2048)},
		parts.ProjectorType("hunyuanvl"), parts.UseGELU, parts.VisionEps("rms_norm_eps", 1e-5),
		parts.Uint32Row(parts.KeyVisionMerge, parts.InVision, "spatial_merge_size", 2),
		parts.RequiredUint32("vision.image_min_pixels", parts.InProcessor, "min_pixels"),
		parts.RequiredUint32("vision.image_max_pixels", parts.InProcessor, "max_pixels"),
	),
	Expect: []table.Expect{parts.ExpectAct(parts.InVision, "gelu"),
		{Key: "cat_extra_token", In: parts.InVision, Values: []string{"1", "true"}},
		{Key: "interpolate_mode", In: parts.InVision, Values: []string{"bilinear"}},
		{Key: "temporal_patch_size", In: parts.InVision, Values: []string{"1"}}},
	Unused: []string{"vision_config.add_patchemb_bias", "vision_config.hidden_dropout",
		"vision_config.img_max_token_num", "vision_config.max_vit_seq_len", "vision_config.num_channels",
		"vision_config.out_hidden_size", "vision_config.model_type", "vision_config.max_image_size",
		"vision_config.min_image_size", "vision_config.resize_resolution",
		"vision_config.text_hidden_size", "vision_config.video_max_image_size", "vision_config.video_min_image_size",
		"vision_config.anyres_pooling_size",
		"vision_config.anyres_vit_max_image_size", "vision_config.anyres_vit_two_views",
		"vision_config.learnable_mlp_pooling_size", "vision_config.remove_prenorm"},
	Drop: parts.DropTextModel,
	Tensors: []table.TensorRow{
		{HF: "vit.embeddings.patch_embedding", GGUF: "v.patch_embd", Bias: table.MayBias, Type: parts.KernelType},
		{HF: "vit.embeddings.position_embedding", GGUF: "v.position_embd", Transform: dropFirstRow},
		{HF: "vit.layers.{bid}.input_layernorm", GGUF: "v.blk.{bid}.ln1", Bias: table.MayBias},
		{HF: "vit.layers.{bid}.post_attention_layernorm", GGUF: "v.blk.{bid}.ln2", Bias: table.MayBias},
		{HF: "vit.layers.{bid}.self_attn.q_proj", GGUF: "v.blk.{bid}.attn_q", Bias: table.MayBias},
		{HF: "vit.layers.{bid}.self_attn.k_proj", GGUF: "v.blk.{bid}.attn_k", Bias: table.MayBias},
		{HF: "vit.layers.{bid}.self_attn.v_proj", GGUF: "v.blk.{bid}.attn_v", Bias: table.MayBias},
		{HF: "vit.layers.{bid}.self_attn.o_proj", GGUF: "v.blk.{bid}.attn_out", Bias: table.MayBias},
		{HF: "vit.layers.{bid}.mlp.dense_h_to_4h", GGUF: "v.blk.{bid}.ffn_up", Bias: table.MayBias},
		{HF: "vit.layers.{bid}.mlp.dense_4h_to_h", GGUF: "v.blk.{bid}.ffn_down", Bias: table.MayBias},
		{HF: "vit.perceive.before_rms", GGUF: "mm.pre_norm"},
		{HF: "vit.perceive.proj.0", GGUF: "mm.0", Bias: table.MayBias, Type: parts.KernelType},
		{HF: "vit.perceive.proj.2", GGUF: "mm.2", Bias: table.MayBias, Type: parts.KernelType},
		{HF: "vit.perceive.mlp", GGUF: "mm.model.fc", Bias: table.MayBias},
		{HF: "vit.perceive.after_rms", GGUF: "mm.post_norm"},
		{HF: "vit.perceive.image_begin", Exact: true, GGUF: "mm.image_begin"},
		{HF: "vit.perceive.image_end", Exact: true, GGUF: "mm.image_end"},
		{HF: "vit.perceive.image_newline", Exact: true, GGUF: "v.image_newline"},
		{HF: "vit.perceive.image_sep", Exact: true, GGUF: "v.view_seperator", Optional: true},
	},
	Shapes: shape.Rules{Tensors: shape.Table{
		"mm.pre_norm": "v_embd", "mm.0": "@vision.spatial_merge_size, @vision.spatial_merge_size, v_embd, ?inner",
		"mm.0.bias": "?inner",
		"mm.2":      "1, 1, ?inner, ?outer", "mm.2.bias": "?outer", "mm.model.fc": "?outer, v_proj",
		"mm.post_norm":   "v_proj",
		"mm.image_begin": "v_proj", "mm.image_end": "v_proj", "v.image_newline": "?outer", "v.view_seperator": "v_proj",
	}},
}

// dropFirstRow drops the first row of the position embeddings, which is the class token's.
var dropFirstRow = &table.Transform{Name: "without-first",
	Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
		ne := s.NE()
		if len(ne) != 2 || ne[1] < 2 {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want a row for the class, then those of positions",
				gguf.Shape(ne))
		}
		return rows.Slice(s, 1, 1, ne[1])
	}}
