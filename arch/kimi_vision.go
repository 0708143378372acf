package arch

import (
	"math"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

var _ = registerEncoder(kimiVL, kimiK25)

// moonViT are the rows of Moonshot's MoonViT, for images of any size.
var moonViT = []table.TensorRow{
	{HF: "vision_tower.patch_embed.proj", GGUF: "v.patch_embd", Bias: table.NeedBias, Type: parts.KernelType},
	{HF: "vision_tower.encoder.blocks.{bid}.norm0", GGUF: "v.blk.{bid}.ln1", Bias: table.NeedBias},
	{HF: "vision_tower.encoder.blocks.{bid}.norm1", GGUF: "v.blk.{bid}.ln2", Bias: table.NeedBias},
	{HF: "vision_tower.encoder.blocks.{bid}.wo", GGUF: "v.blk.{bid}.attn_out", Bias: table.NeedBias},
	{HF: "vision_tower.encoder.blocks.{bid}.mlp.fc0", GGUF: "v.blk.{bid}.ffn_up", Bias: table.NeedBias},
	{HF: "vision_tower.encoder.blocks.{bid}.mlp.fc1", GGUF: "v.blk.{bid}.ffn_down", Bias: table.NeedBias},
	{HF: "vision_tower.encoder.final_layernorm", GGUF: "v.post_ln", Bias: table.NeedBias},
}

// moonShapes are the shapes of moonViT and its projectors, whose inner widths differ.
var moonShapes = shape.Table{"v.position_embd": "v_embd, ?positions", "mm.input_norm": "v_embd",
	"mm.1": "v_shuffled, ?between", "mm.2": "?between, v_proj"}

var moonUnused = []string{"vision_config.model_type", "vision_config.init_pos_emb_height",
	"vision_config.init_pos_emb_width"}

var kimiVL = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"KimiVLForConditionalGeneration"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: parts.LayersIn(parts.InVision, parts.BlockKeys...),
	Metadata: parts.VisionRows(table.Row{Key: parts.KeyImageSize, Const: gguf.Uint32(64 * 14)},
		parts.ProjectorType("kimivl"), parts.UseGELU,
		table.Row{Key: parts.KeyVisionScale, Const: gguf.Uint32(2)}, parts.VisionEps("layer_norm_eps", 1e-5)),
	Expect: []table.Expect{{Key: "merge_kernel_size", In: parts.InVision, Values: []string{"[2 2]"}}},
	Unused: moonUnused,
	Drop:   parts.DropTextModel,
	Tensors: slices.Concat(moonViT, []table.TensorRow{
		{HF: "vision_tower.patch_embed.pos_emb", GGUF: "v.position_embd", Transform: flatGrid},
		{HF: "vision_tower.encoder.blocks.{bid}.wqkv", Split: parts.QKVThirds, Bias: table.NeedBias},
		{HF: "multi_modal_projector.pre_norm", GGUF: "mm.input_norm", Bias: table.NeedBias},
		{HF: "multi_modal_projector.linear_1", GGUF: "mm.1", Bias: table.NeedBias},
		{HF: "multi_modal_projector.linear_2", GGUF: "mm.2", Bias: table.NeedBias},
	}),
	Shapes: shape.Rules{Tensors: moonShapes},
}

// flatGrid joins rows and columns of positions, [rows, columns, width] in the checkpoint.
var flatGrid = &table.Transform{Name: "flat-grid", Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
	ne := s.NE()
	if len(ne) != 3 {
		return nil, fault.Errorf(fault.Broken, "dimensions %s, want three", gguf.Shape(ne))
	}
	return rows.Reshape(s, []int64{ne[0], ne[1] * ne[2]})
}}

// kimiK25 also supports videos; runtimes do not.
var kimiK25 = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"KimiK25ForConditionalGeneration", "Glm5vForConditionalGeneration"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: parts.LayersIn(parts.InVision, parts.BlockKeys...),
	Metadata: parts.VisionRows(table.Row{Key: parts.KeyImageSize, Derive: kimiSize}, parts.ProjectorType("kimik25"),
		whole(parts.Uint32Row("vision.pos_emb_height", parts.InVision, "init_pos_emb_height", 64)),
		whole(parts.Uint32Row("vision.pos_emb_width", parts.InVision, "init_pos_emb_width", 64)),
		whole(parts.Uint32Row("vision.pos_emb_time", parts.InVision, "init_pos_emb_time", 4)),
		table.Row{Key: "use_gelu", Derive: kimiGELU}, parts.VisionEps("projector_ln_eps", 1e-5),
		table.Row{Key: parts.KeyVisionScale, Derive: kimiMerge},
		table.Row{Key: "vision.image_min_pixels", Derive: kimiPixels("", 8)},
		table.Row{Key: "vision.image_max_pixels", Derive: kimiPixels("in_patch_limit", 16384)}),
	Unused: append([]string{"vision_config.merge_type", "vision_config.mm_hidden_size",
		"vision_config.mm_projector_type", "vision_config.pos_emb_type",
		"vision_config.text_hidden_size", "vision_config.video_attn_type", "vision_config.init_pos_emb_time"},
		moonUnused...),
	Rename: []table.Rename{
		{Prefix: "mm_projector.proj.0.", With: "mm_projector.linear_1."},
		{Prefix: "mm_projector.proj.2.", With: "mm_projector.linear_2."},
	},
	Drop: parts.DropTextModel,
	Tensors: slices.Concat(moonViT, []table.TensorRow{
		{HF: "vision_tower.patch_embed.pos_emb", GGUF: "v.position_embd"},
		{HF: "vision_tower.encoder.blocks.{bid}.wqkv", GGUF: "v.blk.{bid}.attn_qkv", Bias: table.NeedBias,
			Transform: splitRope2D},
		{HF: "mm_projector.pre_norm", GGUF: "mm.input_norm", Bias: table.NeedBias},
		{HF: "mm_projector.linear_1", GGUF: "mm.1", Bias: table.NeedBias},
		{HF: "mm_projector.linear_2", GGUF: "mm.2", Bias: table.NeedBias},
	}),
	Shapes: shape.Rules{Tensors: shape.Merge(moonShapes, shape.Table{"v.position_embd": "v_embd, ?columns, ?rows"})},
}

// whole returns the row with a key without the architecture's prefix, as the reference writes it.
func whole(r table.Row) table.Row {
	r.Whole = true
	return r
}

func kimiSize(c *config.View) (gguf.Value, bool, error) {
	height, err := parts.IntOr(c.Vision(), "init_pos_emb_height", 64)
	if err != nil {
		return gguf.Value{}, false, err
	}
	patch, err := parts.IntOr(c.Vision(), "patch_size", 14)
	if err == nil && max(height, patch) > math.MaxInt16 {
		err = fault.Errorf(fault.Broken, "%s: %d patches of %d pixels", c.FileName(), height, patch)
	}
	return table.Uint32Of(height*patch, true, err)
}

func kimiGELU(c *config.View) (gguf.Value, bool, error) {
	s, ok, err := c.Vision().String("projector_hidden_act")
	return gguf.Bool(!ok || s == "gelu"), err == nil, err
}

func kimiMerge(c *config.View) (gguf.Value, bool, error) {
	list, ok, err := c.Vision().Ints("merge_kernel_size")
	if !ok {
		list = []int64{2, 2}
	}
	if err == nil && (len(list) != 2 || list[0] != list[1]) {
		err = fault.Errorf(fault.Unsupported, "%s: key \"vision_config.merge_kernel_size\": %v, want a square",
			c.FileName(), list)
	}
	if err != nil {
		return gguf.Value{}, false, err
	}
	return table.Uint32Of(list[0], true, nil)
}

// kimiPixels writes the number of pixels of a number of patches.
func kimiPixels(key string, patches int64) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		n := patches
		if key != "" {
			var err error
			if n, err = parts.IntOr(c.Processor(), key, patches); err != nil {
				return gguf.Value{}, false, err
			}
		}
		patch, err := parts.IntOr(c.Vision(), "patch_size", 14)
		if err == nil && (patch > math.MaxInt16 || n > math.MaxInt32) {
			err = fault.Errorf(fault.Broken, "%s: %d patches of %d pixels", c.FileName(), n, patch)
		}
		return table.Uint32Of(n*patch*patch, true, err)
	}
}

// splitRope2D reorders Q and K of a joined projection. A head has groups of four rows: a pair rotated by the column of
// a patch and a pair rotated by its row. The result has all rows for columns, in halves, then all rows for rows.
var splitRope2D = &table.Transform{Name: "split-rope-2d",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		heads, err := parts.IntOr(l.Vision(), "num_attention_heads", 16)
		if err != nil {
			return nil, err
		}
		ne := s.NE()
		n := ne[len(ne)-1]
		if len(ne) > 2 || heads < 1 || n%(3*heads) != 0 || n/(3*heads)%4 != 0 {
			return nil, fault.Errorf(fault.Broken,
				"dimensions %s, want queries, keys and values of %d heads of a multiple of 4", gguf.Shape(ne), heads)
		}
		dim := n / (3 * heads)
		return rows.Regroup(s, func(i int64) int64 {
			if i >= 2*heads*dim {
				return i
			}
			// [2][groups][2] of the result is [groups][2][2] of the source
			in, groups := i%dim, dim/4
			axis, group, half := in/(2*groups), in/2%groups, in%2
			return i - in + group*4 + axis*2 + half
		})
	}}
