package encoders

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

// qwenVLKeys are the keys of Qwen2-VL and Qwen2.5-VL.
func qwenVLKeys(list ...table.Row) []table.Row {
	return vision(append([]table.Row{
		{Key: keyImageSize, Type: gguf.Uint32Type, In: inVision, From: []string{"image_size"}, Const: gguf.Uint32(560)},
		{Key: keyBlocks, Type: gguf.Uint32Type, In: inVision, From: []string{"depth"}, Required: true},
		{Key: keyHeads, Type: gguf.Uint32Type, In: inVision, From: []string{"num_heads"}, Required: true},
	}, list...)...)
}

var qwenVLEps = table.Row{Key: keyNormEps, Type: gguf.Float32Type, From: []string{"rms_norm_eps"},
	Const: gguf.Float32(1e-6)}

// qwenVLRows are the rows of Qwen2-VL and Qwen2.5-VL, FFN excluded.
var qwenVLRows = []table.TensorRow{
	framesRow("visual.patch_embed.proj"),
	{HF: "visual.blocks.{bid}.norm1", GGUF: "v.blk.{bid}.ln1", Bias: table.MayBias},
	{HF: "visual.blocks.{bid}.norm2", GGUF: "v.blk.{bid}.ln2", Bias: table.MayBias},
	{HF: "visual.blocks.{bid}.attn.qkv", Split: qkvThirds, Bias: table.NeedBias},
	{HF: "visual.blocks.{bid}.attn.proj", GGUF: "v.blk.{bid}.attn_out", Bias: table.NeedBias},
	{HF: "visual.merger.ln_q", GGUF: "v.post_ln", Bias: table.MayBias},
	{HF: "visual.merger.mlp.0", GGUF: "mm.0", Bias: table.NeedBias},
	{HF: "visual.merger.mlp.2", GGUF: "mm.2", Bias: table.NeedBias},
}

// qwenVLNames rename tensors that the transformers library saves.
var qwenVLNames = []table.Rename{{Prefix: "model.visual.", With: "visual."}}

// mergerShapes are the shapes of projectors that merge four neighbouring patches.
var mergerShapes = shape.Table{"mm.0": "4 * v_embd, 4 * v_embd", "mm.2": "4 * v_embd, v_proj"}

var qwenVLExpect = []table.Expect{
	{Key: "spatial_merge_size", In: inVision, Values: []string{"2"}},
	{Key: "temporal_patch_size", In: inVision, Values: []string{"2"}},
}

// qwenVLUnused are keys that follow from the tensors, or concern videos only.
var qwenVLUnused = []string{"vision_config.in_chans", "vision_config.in_channels", "vision_config.spatial_patch_size",
	"vision_config.tokens_per_second",
	"vision_config.out_hidden_size"}

var qwen2VL = &table.Arch{
	Name:       name,
	Classes:    []string{"Qwen2VLForConditionalGeneration", "Qwen2VLModel", "Sarashina2VisionForCausalLM"},
	Encoder:    encoderOf(inVision),
	BlockCount: layers(inVision, "depth"),
	Metadata: qwenVLKeys(
		table.Row{Key: keyWidth, Type: gguf.Uint32Type, In: inVision, From: []string{"embed_dim"}, Required: true},
		table.Row{Key: keyFF, Derive: qwen2VLWidth},
		projector("qwen2vl_merger"), qwenVLEps,
	),
	Unused: qwenVLUnused,
	Expect: append([]table.Expect{{Key: "hidden_act", In: inVision, Values: []string{"quick_gelu"}},
		{Key: "mlp_ratio", In: inVision, Values: []string{"4"}}}, qwenVLExpect...),
	Rename: qwenVLNames,
	Drop:   slices.Concat(dropTextModel, dropAll("of the language model", "llm.", "norm.")),
	Tensors: slices.Concat(qwenVLRows, []table.TensorRow{
		{HF: "visual.blocks.{bid}.mlp.fc1", GGUF: "v.blk.{bid}.ffn_up", Bias: table.NeedBias},
		{HF: "visual.blocks.{bid}.mlp.fc2", GGUF: "v.blk.{bid}.ffn_down", Bias: table.NeedBias},
	}),
	Shapes: shape.Rules{Tensors: shape.Merge(mergerShapes, shape.Table{"v.blk.{bid}.ffn_up": "v_embd, 4 * v_embd",
		"v.blk.{bid}.ffn_down": "4 * v_embd, v_embd"})},
}

// qwen2VLWidth writes feed_forward_length as the reference does: the language model's hidden_size. The FFN is 4 times
// as wide as the layers; runtimes do not read the key.
func qwen2VLWidth(c *config.View) (gguf.Value, bool, error) {
	n, err := c.Vision().Require("hidden_size")
	return table.Uint32Of(n, true, err)
}

var qwen25VL = &table.Arch{
	Name:       name,
	Classes:    []string{"Qwen2_5_VLForConditionalGeneration"},
	Encoder:    encoderOf(inVision),
	BlockCount: layers(inVision, "depth"),
	Metadata: qwenVLKeys(projector("qwen2.5vl_merger"), useSiLU,
		table.Row{Key: "vision.n_wa_pattern", Derive: windowPattern}, qwenVLEps),
	Unused: qwenVLUnused,
	Expect: append([]table.Expect{{Key: "hidden_act", In: inVision, Values: parts.SiLU.Values},
		{Key: "window_size", In: inVision, Values: []string{"112"}}}, qwenVLExpect...),
	Rename:  qwenVLNames,
	Drop:    dropTextModel,
	Tensors: slices.Concat(qwenVLRows, qwen25VLFeedForward),
	Shapes:  shape.Rules{Tensors: mergerShapes},
}

var qwen25VLFeedForward = []table.TensorRow{
	{HF: "visual.blocks.{bid}.mlp.gate_proj", GGUF: "v.blk.{bid}.ffn_gate", Bias: table.NeedBias},
	{HF: "visual.blocks.{bid}.mlp.up_proj", GGUF: "v.blk.{bid}.ffn_up", Bias: table.NeedBias},
	{HF: "visual.blocks.{bid}.mlp.down_proj", GGUF: "v.blk.{bid}.ffn_down", Bias: table.NeedBias},
}

// windowPattern writes the period of full-attention layers.
func windowPattern(c *config.View) (gguf.Value, bool, error) {
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
