package parts

import (
	"ggforge/arch/config"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

// QwenVLKeys are the keys of Qwen2-VL and Qwen2.5-VL.
func QwenVLKeys(list ...table.Row) []table.Row {
	return VisionRows(append([]table.Row{
		{Key: KeyImageSize, Type: gguf.Uint32Type, In: InVision, From: []string{"image_size"}, Const: gguf.Uint32(560)},
		{Key: KeyVisionBlocks, Type: gguf.Uint32Type, In: InVision, From: []string{"depth"}, Required: true},
		{Key: KeyVisionHeads, Type: gguf.Uint32Type, In: InVision, From: []string{"num_heads"}, Required: true},
	}, list...)...)
}

// QwenVLNames rename tensors that the transformers library saves.
var QwenVLNames = []table.Rename{{Prefix: "model.visual.", With: "visual."}}

// QwenMergerShapes are the shapes of projectors that merge four neighbouring patches.
var QwenMergerShapes = shape.Table{"mm.0": "4 * v_embd, 4 * v_embd", "mm.2": "4 * v_embd, v_proj"}

// QwenVLExpect are settings with one value in runtimes.
var QwenVLExpect = []table.Expect{
	{Key: "spatial_merge_size", In: InVision, Values: []string{"2"}},
	{Key: "temporal_patch_size", In: InVision, Values: []string{"2"}},
}

// QwenVLUnused are keys that follow from the tensors, or concern videos only.
var QwenVLUnused = []string{"vision_config.in_chans", "vision_config.in_channels", "vision_config.spatial_patch_size",
	"vision_config.tokens_per_second",
	"vision_config.out_hidden_size"}

// Qwen25VLFeedForward are the rows of Qwen2.5-VL's gated FFNs.
var Qwen25VLFeedForward = []table.TensorRow{
	{HF: "visual.blocks.{bid}.mlp.gate_proj", GGUF: "v.blk.{bid}.ffn_gate", Bias: table.NeedBias},
	{HF: "visual.blocks.{bid}.mlp.up_proj", GGUF: "v.blk.{bid}.ffn_up", Bias: table.NeedBias},
	{HF: "visual.blocks.{bid}.mlp.down_proj", GGUF: "v.blk.{bid}.ffn_down", Bias: table.NeedBias},
}

// FullAttentionPeriod writes the period of full-attention layers.
func FullAttentionPeriod(c *config.View) (gguf.Value, bool, error) {
	const key = "fullatt_block_indexes"
	name := c.Vision().Names([]string{key})[0]
	list, ok, err := c.Vision().Ints(key)
	if err == nil && (!ok || len(list) == 0) {
		err = fault.Errorf(fault.Broken, "%s: key %q: want the layers that see the whole picture", c.FileName(), name)
	}
	if err != nil {
		return gguf.Value{}, false, err
	}
	period := list[0] + 1
	for i, n := range list {
		if i > 0 && n-list[i-1] != period {
			return gguf.Value{}, false, fault.Errorf(fault.Unsupported,
				"%s: key %q: %v, want layers at regular distances", c.FileName(), name, list)
		}
	}
	return table.Uint32Of(period, true, nil)
}
