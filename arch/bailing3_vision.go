package arch

import (
	"slices"

	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/gguf"
)

var _ = registerEncoder(ling3VL)

// ling3VL is Qwen3-VL's encoder with a second projector.
var ling3VL = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"BailingMoeV3VLForConditionalGeneration"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: parts.LayersIn(parts.InVision, "depth"),
	Metadata: parts.VisionRows(
		table.Row{Key: parts.KeyImageSize, Derive: parts.SizeOfPositions},
		table.Row{Key: parts.KeyVisionBlocks, Type: gguf.Uint32Type, In: parts.InVision, From: []string{"depth"},
			Required: true},
		table.Row{Key: parts.KeyVisionHeads, Type: gguf.Uint32Type, In: parts.InVision, From: []string{"num_heads"},
			Required: true},
		parts.ProjectorType("ling3vl"), parts.UseGELU, table.Row{Key: parts.KeyVisionMerge, Type: gguf.Uint32Type,
			In:   parts.InVision,
			From: []string{"spatial_merge_size"}},
		table.Row{Key: parts.KeyVisionEps, Type: gguf.Float32Type, In: parts.InText, From: []string{"rms_norm_eps"},
			Const: gguf.Float32(1e-6)},
	),
	Expect: []table.Expect{parts.ExpectAct(parts.InVision, "gelu_pytorch_tanh"),
		{Key: "disable_merger_proj", In: parts.InVision, Values: []string{"true"}},
		{Key: "temporal_patch_size", In: parts.InVision, Values: []string{"2"}},
		{Key: parts.DeepstackIndexes, In: parts.InVision, Values: []string{"[]"}}},
	Unused: append([]string{"vision_config.num_position_embeddings", "vision_config.model_type"},
		parts.QwenVLUnused...),
	Rename: parts.SavedNames("visual.", "linear_proj."),
	Drop:   slices.Concat(parts.DropTextModel, parts.DropAll("of the language model", "model.word_embeddings.")),
	Tensors: slices.Concat(slices.DeleteFunc(slices.Clone(parts.Qwen3VLRows),
		func(r table.TensorRow) bool { return r.GGUF == "v.patch_embd.bias" }), []table.TensorRow{
		{HF: "visual.patch_embed.proj.bias", Exact: true, GGUF: "v.patch_embd.bias", Optional: true},
		{HF: "visual.merger.norm", GGUF: "mm.input_norm", Bias: table.NeedBias},
		{HF: "linear_proj.0", GGUF: "mm.0", Bias: table.MayBias},
		{HF: "linear_proj.2", GGUF: "mm.2", Bias: table.MayBias},
	}),
	Shapes: shape.Rules{Tensors: shape.Table{"mm.input_norm": "v_embd", "mm.0": "v_merged, ?between",
		"mm.2": "?between, v_proj"}},
}
