package encoders

import (
	"math"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

const deepstackIndexes = "deepstack_visual_indexes"

// qwen3VLOf returns the vision encoder of Qwen3-VL and its successors. Mergers take the outputs of some layers into the
// first layers of the language model (DeepStack).
func qwen3VLOf(classes []string, list ...table.Row) *table.Arch {
	return &table.Arch{
		Name:       name,
		Classes:    classes,
		Encoder:    encoderOf(inVision),
		BlockCount: layers(inVision, "depth"),
		Metadata: vision(append([]table.Row{
			{Key: keyImageSize, Derive: sizeOfPositions},
			{Key: keyBlocks, Type: gguf.Uint32Type, In: inVision, From: []string{"depth"}, Required: true},
			{Key: keyHeads, Type: gguf.Uint32Type, In: inVision, From: []string{"num_heads"}, Required: true},
			projector("qwen3vl_merger"), useGELU,
			{Key: keyMerge, Type: gguf.Uint32Type, In: inVision, From: []string{"spatial_merge_size"}},
			{Key: keyNormEps, Type: gguf.Float32Type, In: inText, From: []string{"rms_norm_eps"},
				Const: gguf.Float32(1e-6)},
			{Key: "vision.is_deepstack_layers", Derive: deepstackLayers},
		}, list...)...),
		Unused: append([]string{"vision_config.num_position_embeddings", "vision_config.model_type"}, qwenVLUnused...),
		Expect: []table.Expect{actOf(inVision, "gelu_pytorch_tanh"),
			{Key: "temporal_patch_size", In: inVision, Values: []string{"2"}}},
		Rename: append([]table.Rename{
			{Prefix: "model.visual.deepstack_merger_list.", With: "visual.deepstack.{bid}.", Number: deepstackLayer},
			{Prefix: "visual.deepstack_merger_list.", With: "visual.deepstack.{bid}.", Number: deepstackLayer},
		}, saved("visual.")...),
		Drop:    dropTextModel,
		Tensors: slices.Concat(qwen3VLRows, qwen3VLMerger, deepstackRows),
		Shapes: shape.Rules{Tensors: shape.Table{"mm.0": "v_merged, v_merged", "mm.2": "v_merged, v_proj",
			"v.deepstack.{bid}.norm": "v_merged", "v.deepstack.{bid}.fc1": "v_merged, v_merged",
			"v.deepstack.{bid}.fc2": "v_merged, v_proj"}},
	}
}

var (
	qwen3VL = qwen3VLOf([]string{"Qwen3VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration",
		"Qwen3_5ForConditionalGeneration",
		"Qwen3_5MoeForConditionalGeneration", "Qwen4ExpForConditionalGeneration", "OpenJevModel", "ClefModel"})
	pplxDecider = qwen3VLOf([]string{"PplxDeciderModel"},
		table.Row{Key: "vision.image_min_pixels", Derive: processorSize("shortest_edge")},
		table.Row{Key: "vision.image_max_pixels", Derive: processorSize("longest_edge")})
	vllmD3 = qwen3VLOf([]string{"VllmD3Model"},
		table.Row{Key: "vision.image_min_pixels", Const: gguf.Uint32(65_536)},
		table.Row{Key: "vision.image_max_pixels", Const: gguf.Uint32(1_638_400)})
)

// qwen3VLRows are the rows except the merger's.
var qwen3VLRows = []table.TensorRow{
	framesRow("visual.patch_embed.proj"),
	{HF: "visual.patch_embed.proj.bias", Exact: true, GGUF: "v.patch_embd.bias"},
	{HF: "visual.pos_embed", GGUF: "v.position_embd"},
	{HF: "visual.blocks.{bid}.norm1", GGUF: "v.blk.{bid}.ln1", Bias: table.NeedBias},
	{HF: "visual.blocks.{bid}.norm2", GGUF: "v.blk.{bid}.ln2", Bias: table.NeedBias},
	{HF: "visual.blocks.{bid}.attn.qkv", GGUF: "v.blk.{bid}.attn_qkv", Bias: table.NeedBias},
	{HF: "visual.blocks.{bid}.attn.proj", GGUF: "v.blk.{bid}.attn_out", Bias: table.NeedBias},
	{HF: "visual.blocks.{bid}.mlp.linear_fc1", GGUF: "v.blk.{bid}.ffn_up", Bias: table.NeedBias},
	{HF: "visual.blocks.{bid}.mlp.linear_fc2", GGUF: "v.blk.{bid}.ffn_down", Bias: table.NeedBias},
}

var qwen3VLMerger = []table.TensorRow{
	{HF: "visual.merger.norm", GGUF: "v.post_ln", Bias: table.NeedBias},
	{HF: "visual.merger.linear_fc1", GGUF: "mm.0", Bias: table.NeedBias},
	{HF: "visual.merger.linear_fc2", GGUF: "mm.2", Bias: table.NeedBias},
}

var deepstackRows = []table.TensorRow{
	{HF: "visual.deepstack.{bid}.norm", GGUF: "v.deepstack.{bid}.norm", Bias: table.NeedBias, If: isDeepstack},
	{HF: "visual.deepstack.{bid}.linear_fc1", GGUF: "v.deepstack.{bid}.fc1", Bias: table.NeedBias, If: isDeepstack},
	{HF: "visual.deepstack.{bid}.linear_fc2", GGUF: "v.deepstack.{bid}.fc2", Bias: table.NeedBias, If: isDeepstack},
}

// sizeOfPositions writes the side of an image with a patch for each position.
func sizeOfPositions(c *config.View) (gguf.Value, bool, error) {
	v := c.Vision()
	if n, ok, err := v.Int("image_size"); ok || err != nil {
		return table.Uint32Of(n, ok, err)
	}
	positions, err := intOr(v, "num_position_embeddings", 2304)
	if err != nil {
		return gguf.Value{}, false, err
	}
	patch, err := intOr(v, "patch_size", 16)
	if err == nil && max(positions, patch) > math.MaxInt32 {
		err = fault.Errorf(fault.Broken, "%s: %d positions of patches of %d", c.FileName(), positions, patch)
	}
	return table.Uint32Of(int64(math.Sqrt(float64(positions))*float64(patch)), true, err)
}

// deepstack returns the layers with a DeepStack merger.
func deepstack(c *config.View) ([]int64, error) {
	list, _, err := c.Vision().Ints(deepstackIndexes)
	if err != nil {
		return nil, err
	}
	n, err := c.Vision().Require("depth")
	for _, i := range list {
		if err == nil && (i < 0 || i >= n) {
			err = fault.Errorf(fault.Broken, "%s: key %q: %v, want numbers of %d layers", c.FileName(),
				c.Vision().Names([]string{deepstackIndexes})[0], list, n)
		}
	}
	return list, err
}

func deepstackLayers(c *config.View) (gguf.Value, bool, error) {
	list, err := deepstack(c)
	if err != nil {
		return gguf.Value{}, false, err
	}
	n, err := c.Vision().Require("depth")
	if err != nil || n < 1 || n > config.MaxBlocks {
		return gguf.Value{}, false, err
	}
	is := make([]bool, n)
	for _, i := range list {
		is[i] = true
	}
	return gguf.Bools(is), true, nil
}

// deepstackLayer returns the layer of the n-th DeepStack merger.
func deepstackLayer(c *config.View, n int64) (int64, error) {
	list, err := deepstack(c)
	if err == nil && n >= int64(len(list)) {
		err = fault.Errorf(fault.Broken, "%s: key %q has no layer for merger %d", c.FileName(),
			c.Vision().Names([]string{deepstackIndexes})[0], n)
	}
	if err != nil {
		return 0, err
	}
	return list[n], nil
}

func isDeepstack(l table.Layer) (bool, error) {
	list, err := deepstack(l.View)
	return slices.Contains(list, l.Bid), err
}

// processorSize writes a number of pixels from the processor's size.
func processorSize(key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		n, err := c.Processor().Sub("size").Require(key)
		return table.Uint32Of(n, true, err)
	}
}

// ling3VL is Qwen3-VL's encoder with a second projector.
var ling3VL = &table.Arch{
	Name:       name,
	Classes:    []string{"BailingMoeV3VLForConditionalGeneration"},
	Encoder:    encoderOf(inVision),
	BlockCount: layers(inVision, "depth"),
	Metadata: vision(
		table.Row{Key: keyImageSize, Derive: sizeOfPositions},
		table.Row{Key: keyBlocks, Type: gguf.Uint32Type, In: inVision, From: []string{"depth"}, Required: true},
		table.Row{Key: keyHeads, Type: gguf.Uint32Type, In: inVision, From: []string{"num_heads"}, Required: true},
		projector("ling3vl"), useGELU, table.Row{Key: keyMerge, Type: gguf.Uint32Type, In: inVision,
			From: []string{"spatial_merge_size"}},
		table.Row{Key: keyNormEps, Type: gguf.Float32Type, In: inText, From: []string{"rms_norm_eps"},
			Const: gguf.Float32(1e-6)},
	),
	Expect: []table.Expect{actOf(inVision, "gelu_pytorch_tanh"),
		{Key: "disable_merger_proj", In: inVision, Values: []string{"true"}},
		{Key: "temporal_patch_size", In: inVision, Values: []string{"2"}},
		{Key: deepstackIndexes, In: inVision, Values: []string{"[]"}}},
	Unused: append([]string{"vision_config.num_position_embeddings", "vision_config.model_type"}, qwenVLUnused...),
	Rename: saved("visual.", "linear_proj."),
	Drop:   slices.Concat(dropTextModel, dropAll("of the language model", "model.word_embeddings.")),
	Tensors: slices.Concat(slices.DeleteFunc(slices.Clone(qwen3VLRows),
		func(r table.TensorRow) bool { return r.GGUF == "v.patch_embd.bias" }), []table.TensorRow{
		{HF: "visual.patch_embed.proj.bias", Exact: true, GGUF: "v.patch_embd.bias", Optional: true},
		{HF: "visual.merger.norm", GGUF: "mm.input_norm", Bias: table.NeedBias},
		{HF: "linear_proj.0", GGUF: "mm.0", Bias: table.MayBias},
		{HF: "linear_proj.2", GGUF: "mm.2", Bias: table.MayBias},
	}),
	Shapes: shape.Rules{Tensors: shape.Table{"mm.input_norm": "v_embd", "mm.0": "v_merged, ?between",
		"mm.2": "?between, v_proj"}},
}
