package parts

import (
	"math"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

// DeepstackIndexes is the key of the layers whose outputs mergers take.
const DeepstackIndexes = "deepstack_visual_indexes"

// Qwen3VLEncoder returns the vision encoder of Qwen3-VL and its successors. Mergers take the outputs of some layers
// into the first layers of the language model (DeepStack).
func Qwen3VLEncoder(classes []string, list ...table.Row) *table.Arch {
	return &table.Arch{
		Name:       CLIP,
		Classes:    classes,
		Encoder:    EncoderOf(InVision),
		BlockCount: LayersIn(InVision, "depth"),
		Metadata: VisionRows(append([]table.Row{
			{Key: KeyImageSize, Derive: SizeOfPositions},
			{Key: KeyVisionBlocks, Type: gguf.Uint32Type, In: InVision, From: []string{"depth"}, Required: true},
			{Key: KeyVisionHeads, Type: gguf.Uint32Type, In: InVision, From: []string{"num_heads"}, Required: true},
			ProjectorType("qwen3vl_merger"), UseGELU,
			{Key: KeyVisionMerge, Type: gguf.Uint32Type, In: InVision, From: []string{"spatial_merge_size"}},
			{Key: KeyVisionEps, Type: gguf.Float32Type, In: InText, From: []string{"rms_norm_eps"},
				Const: gguf.Float32(1e-6)},
			{Key: "vision.is_deepstack_layers", Derive: DeepstackLayers},
		}, list...)...),
		Unused: append([]string{"vision_config.num_position_embeddings", "vision_config.model_type"}, QwenVLUnused...),
		Expect: []table.Expect{ExpectAct(InVision, "gelu_pytorch_tanh"),
			{Key: "temporal_patch_size", In: InVision, Values: []string{"2"}}},
		Rename: append([]table.Rename{
			{Prefix: "model.visual.deepstack_merger_list.", With: "visual.deepstack.{bid}.", Number: DeepstackLayer},
			{Prefix: "visual.deepstack_merger_list.", With: "visual.deepstack.{bid}.", Number: DeepstackLayer},
		}, SavedNames("visual.")...),
		Drop:    DropTextModel,
		Tensors: slices.Concat(Qwen3VLRows, qwen3VLMerger, deepstackRows),
		Shapes: shape.Rules{Tensors: shape.Table{"mm.0": "v_merged, v_merged", "mm.2": "v_merged, v_proj",
			"v.deepstack.{bid}.norm": "v_merged", "v.deepstack.{bid}.fc1": "v_merged, v_merged",
			"v.deepstack.{bid}.fc2": "v_merged, v_proj"}},
	}
}

// Qwen3VLRows are the rows except the merger's.
var Qwen3VLRows = []table.TensorRow{
	FramesRow("visual.patch_embed.proj"),
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
	{HF: "visual.deepstack.{bid}.norm", GGUF: "v.deepstack.{bid}.norm", Bias: table.NeedBias, If: IsDeepstack},
	{HF: "visual.deepstack.{bid}.linear_fc1", GGUF: "v.deepstack.{bid}.fc1", Bias: table.NeedBias, If: IsDeepstack},
	{HF: "visual.deepstack.{bid}.linear_fc2", GGUF: "v.deepstack.{bid}.fc2", Bias: table.NeedBias, If: IsDeepstack},
}

// SizeOfPositions writes the side of an image with a patch for each position.
func SizeOfPositions(c *config.View) (gguf.Value, bool, error) {
	v := c.Vision()
	if n, ok, err := v.Int("image_size"); ok || err != nil {
		return table.Uint32Of(n, ok, err)
	}
	positions, err := IntOr(v, "num_position_embeddings", 2304)
	if err != nil {
		return gguf.Value{}, false, err
	}
	patch, err := IntOr(v, "patch_size", 16)
	if err == nil && max(positions, patch) > math.MaxInt32 {
		err = fault.Errorf(fault.Broken, "%s: %d positions of patches of %d", c.FileName(), positions, patch)
	}
	return table.Uint32Of(int64(math.Sqrt(float64(positions))*float64(patch)), true, err)
}

// deepstack returns the layers with a DeepStack merger.
func deepstack(c *config.View) ([]int64, error) {
	list, _, err := c.Vision().Ints(DeepstackIndexes)
	if err != nil {
		return nil, err
	}
	n, err := c.Vision().Require("depth")
	for _, i := range list {
		if err == nil && (i < 0 || i >= n) {
			err = fault.Errorf(fault.Broken, "%s: key %q: %v, want numbers of %d layers", c.FileName(),
				c.Vision().Names([]string{DeepstackIndexes})[0], list, n)
		}
	}
	return list, err
}

// DeepstackLayers writes which layers these are.
func DeepstackLayers(c *config.View) (gguf.Value, bool, error) {
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

// DeepstackLayer returns the layer of the n-th DeepStack merger.
func DeepstackLayer(c *config.View, n int64) (int64, error) {
	list, err := deepstack(c)
	if err == nil && n >= int64(len(list)) {
		err = fault.Errorf(fault.Broken, "%s: key %q has no layer for merger %d", c.FileName(),
			c.Vision().Names([]string{DeepstackIndexes})[0], n)
	}
	if err != nil {
		return 0, err
	}
	return list[n], nil
}

// IsDeepstack is the condition of such a layer.
func IsDeepstack(l table.Layer) (bool, error) {
	list, err := deepstack(l.View)
	return slices.Contains(list, l.Bid), err
}
