package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/gguf"
)

var _ = registerEncoder(qwen2VL, qwen25VL, qwen3VL, dotsOCR)

// dotsOCR is the vision encoder of dots.ocr: layers like a language model's over images of any size, and a projector
// that merges neighbouring patches. Source: DotsOCRVisionModel of the reference.
var dotsOCR = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"DotsOCRForCausalLM"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: parts.LayersIn(parts.InVision, parts.BlockKeys...),
	Metadata: parts.VisionRows(
		table.Row{Key: parts.KeyImageSize, Const: gguf.Uint32(0)}, // 0: any size
		parts.ProjectorType("dots_ocr"),
		table.Row{Key: "vision.image_min_pixels", Type: gguf.Uint32Type, In: parts.InProcessor,
			From:     []string{"min_pixels"},
			Required: true},
		table.Row{Key: "vision.image_max_pixels", Type: gguf.Uint32Type, In: parts.InProcessor,
			From:     []string{"max_pixels"},
			Required: true},
		table.Row{Key: parts.KeyVisionEps, Type: gguf.Float32Type, In: parts.InVision, From: []string{"rms_norm_eps"},
			Required: true},
		table.Row{Key: parts.KeyVisionScale, Type: gguf.Uint32Type, In: parts.InVision,
			From:     []string{"spatial_merge_size"},
			Required: true},
		parts.UseSiLU,
	),
	Expect: []table.Expect{{Key: "temporal_patch_size", In: parts.InVision, Values: []string{"1"}},
		{Key: "use_bias", In: parts.InVision, Values: []string{"false"}},
		{Key: "post_norm", In: parts.InVision, Values: []string{"true"}}},
	Unused: []string{"vision_config.embed_dim", "vision_config.num_channels", "vision_config.is_causal",
		"vision_config.init_merger_std", "vision_config.gradient_checkpointing",
		"vision_config.attn_implementation"},
	Drop: parts.DropTextModel,
	Tensors: []table.TensorRow{
		{HF: "vision_tower.patch_embed.patchifier.proj", GGUF: "v.patch_embd", Bias: table.MayBias,
			Type: parts.KernelType},
		{HF: "vision_tower.patch_embed.patchifier.norm", GGUF: "v.pre_ln"},
		{HF: "vision_tower.blocks.{bid}.norm1", GGUF: "v.blk.{bid}.ln1"},
		{HF: "vision_tower.blocks.{bid}.norm2", GGUF: "v.blk.{bid}.ln2"},
		{HF: "vision_tower.blocks.{bid}.attn.qkv", GGUF: "v.blk.{bid}.attn_qkv", Bias: table.MayBias},
		{HF: "vision_tower.blocks.{bid}.attn.proj", GGUF: "v.blk.{bid}.attn_out", Bias: table.MayBias},
		{HF: "vision_tower.blocks.{bid}.mlp.fc1", GGUF: "v.blk.{bid}.ffn_gate", Bias: table.MayBias},
		{HF: "vision_tower.blocks.{bid}.mlp.fc2", GGUF: "v.blk.{bid}.ffn_down", Bias: table.MayBias},
		{HF: "vision_tower.blocks.{bid}.mlp.fc3", GGUF: "v.blk.{bid}.ffn_up", Bias: table.MayBias},
		{HF: "vision_tower.post_trunk_norm", GGUF: "mm.post_norm"},
		{HF: "vision_tower.merger.ln_q", GGUF: "mm.input_norm", Bias: table.MayBias},
		{HF: "vision_tower.merger.mlp.0", GGUF: "mm.0", Bias: table.MayBias},
		{HF: "vision_tower.merger.mlp.2", GGUF: "mm.2", Bias: table.MayBias},
	},
	Shapes: shape.Rules{Tensors: shape.Table{
		"v.blk.{bid}.attn_qkv": "v_embd, 3 * v_embd", "mm.post_norm": "v_embd", "mm.input_norm": "v_embd",
		"mm.0": "v_embd * @vision.projector.scale_factor * @vision.projector.scale_factor, ?mm_ff",
		"mm.2": "?mm_ff, v_proj",
	}},
}

var qwen3VL = parts.Qwen3VLEncoder([]string{"Qwen3VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration",
	"Qwen3_5ForConditionalGeneration",
	"Qwen3_5MoeForConditionalGeneration", "Qwen4ExpForConditionalGeneration", "OpenJevModel", "ClefModel"})

var qwenVLEps = table.Row{Key: parts.KeyVisionEps, Type: gguf.Float32Type, From: []string{"rms_norm_eps"},
	Const: gguf.Float32(1e-6)}

// qwenVLRows are the rows of Qwen2-VL and Qwen2.5-VL, FFN excluded.
var qwenVLRows = []table.TensorRow{
	parts.FramesRow("visual.patch_embed.proj"),
	{HF: "visual.blocks.{bid}.norm1", GGUF: "v.blk.{bid}.ln1", Bias: table.MayBias},
	{HF: "visual.blocks.{bid}.norm2", GGUF: "v.blk.{bid}.ln2", Bias: table.MayBias},
	{HF: "visual.blocks.{bid}.attn.qkv", Split: parts.QKVThirds, Bias: table.NeedBias},
	{HF: "visual.blocks.{bid}.attn.proj", GGUF: "v.blk.{bid}.attn_out", Bias: table.NeedBias},
	{HF: "visual.merger.ln_q", GGUF: "v.post_ln", Bias: table.MayBias},
	{HF: "visual.merger.mlp.0", GGUF: "mm.0", Bias: table.NeedBias},
	{HF: "visual.merger.mlp.2", GGUF: "mm.2", Bias: table.NeedBias},
}

var qwen2VL = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"Qwen2VLForConditionalGeneration", "Qwen2VLModel", "Sarashina2VisionForCausalLM"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: parts.LayersIn(parts.InVision, "depth"),
	Metadata: parts.QwenVLKeys(
		table.Row{Key: parts.KeyVisionWidth, Type: gguf.Uint32Type, In: parts.InVision, From: []string{"embed_dim"},
			Required: true},
		table.Row{Key: parts.KeyVisionFF, Derive: qwen2VLWidth},
		parts.ProjectorType("qwen2vl_merger"), qwenVLEps,
	),
	Unused: parts.QwenVLUnused,
	Expect: append([]table.Expect{{Key: "hidden_act", In: parts.InVision, Values: []string{"quick_gelu"}},
		{Key: "mlp_ratio", In: parts.InVision, Values: []string{"4"}}}, parts.QwenVLExpect...),
	Rename: parts.QwenVLNames,
	Drop:   slices.Concat(parts.DropTextModel, parts.DropAll("of the language model", "llm.", "norm.")),
	Tensors: slices.Concat(qwenVLRows, []table.TensorRow{
		{HF: "visual.blocks.{bid}.mlp.fc1", GGUF: "v.blk.{bid}.ffn_up", Bias: table.NeedBias},
		{HF: "visual.blocks.{bid}.mlp.fc2", GGUF: "v.blk.{bid}.ffn_down", Bias: table.NeedBias},
	}),
	Shapes: shape.Rules{Tensors: shape.Merge(parts.QwenMergerShapes,
		shape.Table{"v.blk.{bid}.ffn_up": "v_embd, 4 * v_embd",
			"v.blk.{bid}.ffn_down": "4 * v_embd, v_embd"})},
}

// qwen2VLWidth writes feed_forward_length as the reference does: the language model's hidden_size. The FFN is 4 times
// as wide as the layers; runtimes do not read the key.
func qwen2VLWidth(c *config.View) (gguf.Value, bool, error) {
	n, err := c.Vision().Require("hidden_size")
	return table.Uint32Of(n, true, err)
}

var qwen25VL = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"Qwen2_5_VLForConditionalGeneration"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: parts.LayersIn(parts.InVision, "depth"),
	Metadata: parts.QwenVLKeys(parts.ProjectorType("qwen2.5vl_merger"), parts.UseSiLU,
		table.Row{Key: "vision.n_wa_pattern", Derive: parts.FullAttentionPeriod}, qwenVLEps),
	Unused: parts.QwenVLUnused,
	Expect: append([]table.Expect{{Key: "hidden_act", In: parts.InVision, Values: parts.SiLU.Values},
		{Key: "window_size", In: parts.InVision, Values: []string{"112"}}}, parts.QwenVLExpect...),
	Rename:  parts.QwenVLNames,
	Drop:    parts.DropTextModel,
	Tensors: slices.Concat(qwenVLRows, parts.Qwen25VLFeedForward),
	Shapes:  shape.Rules{Tensors: parts.QwenMergerShapes},
}
