package arch

import (
	"slices"
	"strconv"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

var _ = registerEncoder(graniteVision)

var inQFormer table.In = func(c *config.View) config.Object { return c.Sub("qformer_config") }

// graniteVision is a SigLIP model; projectors take the outputs of several of its layers into layers of the language
// model. Each is a Q-Former with a few queries for each window of the image. Projectors are in the order of their
// target layers.
var graniteVision = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"Granite4VisionForConditionalGeneration"},
	Encoder:    parts.EncoderOf(parts.InVision, inQFormer),
	BlockCount: parts.LayersIn(parts.InVision, parts.BlockKeys...),
	Metadata: parts.VisionRows(parts.ProjectorType("granite4_vision"), parts.VisionEps("layer_norm_eps", 1e-6),
		parts.UseGELU,
		parts.RequiredUint32("vision.preproc_image_size", parts.InVision, "image_size"),
		table.Row{Key: "vision.projector.query_side", Derive: windowSide(0)},
		table.Row{Key: "vision.projector.window_side", Derive: windowSide(1)},
		table.Row{Key: "vision.feature_layer", Derive: projectedLayers},
		table.Row{Key: "vision.projector.spatial_offsets", Derive: spatialOffsets},
		table.Row{Key: "vision.image_grid_pinpoints", Derive: pinpoints}),
	Expect: []table.Expect{
		parts.ExpectAct(parts.InVision, "gelu_pytorch_tanh"),
		{Key: "vision_feature_select_strategy", Values: []string{"full"}},
		parts.ExpectAct(inQFormer, "gelu"), {Key: "num_hidden_layers", In: inQFormer, Values: []string{"1"}},
		{Key: "cross_attention_frequency", In: inQFormer, Values: []string{"1"}},
		{Key: "use_qformer_text_input", In: inQFormer, Values: []string{"false"}},
	},
	Unused: []string{"vision_config.model_type", "vision_config.num_channels", "vision_config.vision_use_head",
		"qformer_config"},
	Rename: []table.Rename{
		{Prefix: "model.layerwise_projectors.", With: "projectors.{bid}.", Number: projectorNumber(false)},
		{Prefix: "model.spatial_projectors.", With: "projectors.{bid}.", Number: projectorNumber(true)},
		{Prefix: "model.vision_tower.vision_model.", With: "model.vision_tower."},
	},
	Drop: slices.Concat(parts.DropAll("of a head that no runtime has", "model.vision_tower.head."),
		parts.DropTextModel),
	Tensors: slices.Concat(parts.SigLIP("model.vision_tower.", parts.KernelType), []table.TensorRow{
		{HF: "model.image_newline", Exact: true, GGUF: "v.image_newline"},
		{HF: "projectors.{bid}.image_positions", Exact: true, GGUF: "v.proj_blk.{bid}.img_pos", If: isProjector},
		{HF: "projectors.{bid}.query", Exact: true, GGUF: "v.proj_blk.{bid}.query", If: isProjector},
		{HF: "projectors.{bid}.out_linear", GGUF: "v.proj_blk.{bid}.linear", Bias: table.NeedBias, If: isProjector},
		{HF: "projectors.{bid}.norm", GGUF: "v.proj_blk.{bid}.norm", Bias: table.NeedBias, If: isProjector},
		{HF: "projectors.{bid}.qformer.layernorm", GGUF: "v.proj_blk.{bid}.post_norm", Bias: table.NeedBias,
			If: isProjector},
	}, qFormer("projectors.{bid}.qformer.encoder.layer.0.", "v.proj_blk.{bid}.", isProjector)),
	Shapes: shape.Rules{Tensors: shape.Merge(qFormerShapes("v.proj_blk.{bid}.", "v_embd", "v_embd"), shape.Table{
		"v.image_newline": "v_proj", "v.proj_blk.{bid}.linear": "v_embd, v_proj", "v.proj_blk.{bid}.norm": "v_embd",
		"v.proj_blk.{bid}.post_norm": "v_embd",
		"v.proj_blk.{bid}.img_pos":   "v_embd, @vision.projector.window_side * @vision.projector.window_side, 1",
		"v.proj_blk.{bid}.query":     "v_embd, @vision.projector.query_side * @vision.projector.query_side, 1",
	})},
}

// graniteProjectors returns the projectors, with non-negative numbers of vision encoder layers.
func graniteProjectors(c *config.View) ([]parts.Projector, error) {
	n, ok, err := c.Text().Int("num_hidden_layers")
	if err == nil && (!ok || n < 0 || n > config.MaxBlocks) {
		err = fault.Errorf(fault.Broken, "%s: no number of layers of the language model (\"num_hidden_layers\")",
			c.FileName())
	}
	if err != nil {
		return nil, err
	}
	list, err := parts.Projectors(c, n)
	if err == nil && len(list) == 0 {
		err = fault.Errorf(fault.Broken,
			"%s: has neither of the keys \"deepstack_layer_map\" and \"spatial_target_layers\", the target layers of "+
				"the projectors",
			c.FileName())
	}
	if err != nil {
		return nil, err
	}
	layers, err := c.Vision().Require("num_hidden_layers")
	if err != nil {
		return nil, err
	}
	for i := range list {
		seen := &list[i].VisionLayer
		if *seen < 0 {
			*seen += layers
		}
		if *seen < 0 || *seen > min(layers, config.MaxBlocks) {
			return nil, fault.Errorf(fault.Broken,
				"%s: a projector of layer %d of the vision encoder, which has %d layers", c.FileName(), *seen, layers)
		}
	}
	return list, nil
}

// projectorNumber maps the number of a projector of a kind in the checkpoint to its number in the file.
func projectorNumber(spatial bool) func(*config.View, int64) (int64, error) {
	return func(c *config.View, n int64) (int64, error) {
		list, err := graniteProjectors(c)
		at := slices.IndexFunc(list, func(p parts.Projector) bool { return p.Spatial == spatial && p.Index == n })
		if err == nil && at < 0 {
			key := "deepstack_layer_map"
			if spatial {
				key = "spatial_target_layers"
			}
			err = fault.Errorf(fault.Broken, "%s: key %q has no layer for projector %d", c.FileName(), key, n)
		}
		return int64(at), err
	}
}

func isProjector(l table.Layer) (bool, error) {
	list, err := graniteProjectors(l.View)
	return l.Bid < int64(len(list)), err
}

// projectedLayers writes the vision encoder layer of each projector.
func projectedLayers(c *config.View) (gguf.Value, bool, error) {
	list, err := graniteProjectors(c)
	seen := make([]int32, len(list))
	for i, p := range list {
		seen[i] = int32(p.VisionLayer)
	}
	return gguf.Int32s(seen), err == nil, err
}

// spatialOffsets writes for each projector the index of its patch among four neighbours, -1 for all four.
func spatialOffsets(c *config.View) (gguf.Value, bool, error) {
	list, err := graniteProjectors(c)
	offsets := make([]int32, len(list))
	for i, p := range list {
		if offsets[i] = -1; p.Spatial {
			offsets[i] = int32(p.Index)
		}
	}
	return gguf.Int32s(offsets), err == nil, err
}

// windowSide returns the number of queries (0) or patches (1) along a side of a window.
func windowSide(i int) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		const key = "downsample_rate"
		rate, ok, err := c.String(key)
		if err == nil && !ok {
			err = fault.Errorf(fault.Broken, "%s: has no key %q", c.FileName(), key)
		}
		if err != nil {
			return gguf.Value{}, false, err
		}
		sides := strings.Split(rate, "/")
		var n uint64
		if len(sides) == 2 {
			n, err = strconv.ParseUint(sides[i], 10, 16)
		}
		if err != nil || n == 0 {
			return gguf.Value{}, false, fault.Errorf(fault.Broken,
				"%s: key %q: %q, want two numbers of patches, as 4/8", c.FileName(), key, rate)
		}
		return gguf.Uint32(uint32(n)), true, nil
	}
}

// pinpoints writes the sizes that images are resized to, as width, height; config.json has the height first.
func pinpoints(c *config.View) (gguf.Value, bool, error) {
	const key = "image_grid_pinpoints"
	sizes, _, err := c.IntLists(key)
	if err != nil || len(sizes) == 0 {
		return gguf.Value{}, false, err
	}
	var list []int32
	for _, s := range sizes {
		if len(s) != 2 || min(s[0], s[1]) < 1 || max(s[0], s[1]) > 1<<24 {
			return gguf.Value{}, false, fault.Errorf(fault.Broken, "%s: key %q: %v, want height and width",
				c.FileName(), key, s)
		}
		list = append(list, int32(s[1]), int32(s[0]))
	}
	return gguf.Int32s(list), true, nil
}

// qFormer are the rows of a Q-Former's layers; hf and to are the prefixes of names in checkpoint and file, is is the
// condition of the rows.
func qFormer(hf, to string, is table.Cond) []table.TensorRow {
	return []table.TensorRow{
		{HF: hf + "attention.attention.query", GGUF: to + "self_attn_q", Bias: table.NeedBias, If: is},
		{HF: hf + "attention.attention.key", GGUF: to + "self_attn_k", Bias: table.NeedBias, If: is},
		{HF: hf + "attention.attention.value", GGUF: to + "self_attn_v", Bias: table.NeedBias, If: is},
		{HF: hf + "attention.output.dense", GGUF: to + "self_attn_out", Bias: table.NeedBias, If: is},
		{HF: hf + "attention.output.LayerNorm", GGUF: to + "self_attn_norm", Bias: table.NeedBias, If: is},
		{HF: hf + "crossattention.attention.query", GGUF: to + "cross_attn_q", Bias: table.NeedBias, If: is},
		{HF: hf + "crossattention.attention.key", GGUF: to + "cross_attn_k", Bias: table.NeedBias, If: is},
		{HF: hf + "crossattention.attention.value", GGUF: to + "cross_attn_v", Bias: table.NeedBias, If: is},
		{HF: hf + "crossattention.output.dense", GGUF: to + "cross_attn_out", Bias: table.NeedBias, If: is},
		{HF: hf + "crossattention.output.LayerNorm", GGUF: to + "cross_attn_norm", Bias: table.NeedBias, If: is},
		{HF: hf + "intermediate_query.dense", GGUF: to + "ffn_up", Bias: table.NeedBias, If: is},
		{HF: hf + "output_query.dense", GGUF: to + "ffn_down", Bias: table.NeedBias, If: is},
		{HF: hf + "output_query.LayerNorm", GGUF: to + "ffn_norm", Bias: table.NeedBias, If: is},
	}
}

// qFormerShapes are the dimensions of qFormer's tensors, given its width and the width of the states for
// cross-attention.
func qFormerShapes(to, width, inputWidth string) shape.Table {
	square := width + ", " + width
	return shape.Table{
		to + "self_attn_q": square, to + "self_attn_k": square, to + "self_attn_v": square,
		to + "self_attn_out": square, to + "self_attn_norm": width,
		to + "cross_attn_q": square, to + "cross_attn_k": inputWidth + ", " + width,
		to + "cross_attn_v":   inputWidth + ", " + width,
		to + "cross_attn_out": square, to + "cross_attn_norm": width,
		to + "ffn_up": width + ", ?q_ff", to + "ffn_down": "?q_ff, " + width, to + "ffn_norm": width,
	}
}
