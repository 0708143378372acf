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

var _ = registerEncoder(museGlimmerVision)

// museGlimmerVision is the vision encoder of Meta's Muse Glimmer; a patch has two frames of a video, or the image
// twice. Source: MuseGlimmerVisionModel of the reference.
var museGlimmerVision = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"MuseGlimmerForConditionalGeneration"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: museLayers,
	Metadata: parts.VisionRows(table.Row{Key: parts.KeyImageSize, Derive: museSize},
		parts.ProjectorType("muse-glimmer"),
		parts.VisionEps("layer_norm_eps", 0),
		parts.RequiredUint32(parts.KeyVisionMerge, parts.InVision, "merge_size")),
	Expect: []table.Expect{parts.ExpectAct(parts.InVision, "gelu"),
		{Key: "patch_temporal", In: parts.InVision, Values: []string{"2"}},
		{Key: "projector_hidden_act", Values: []string{"gelu"}},
		{Key: "rope_theta", In: func(c *config.View) config.Object { return c.Vision().Sub("rope_parameters") },
			Values: []string{"10000"}}},
	Unused: []string{"vision_config.model_type", "vision_config.pos_emb_width", "vision_config.max_position_embeddings",
		"vision_config.rope_parameters"},
	Drop: parts.DropTextModel,
	Tensors: []table.TensorRow{
		{HF: "model.vision_tower.patch_embedder.patch_embedding", GGUF: "v.patch_embd", Type: parts.KernelType,
			Transform: sumFrames},
		{HF: "model.vision_tower.patch_embedder.position_embedding_table", GGUF: "v.position_embd"},
		{HF: "model.vision_tower.ln_pre", GGUF: "v.pre_ln", Bias: table.MayBias},
		{HF: "model.vision_tower.ln_post", GGUF: "v.post_ln", Bias: table.MayBias},
		{HF: "model.vision_tower.layers.{bid}.norm1", GGUF: "v.blk.{bid}.ln1", Bias: table.MayBias},
		{HF: "model.vision_tower.layers.{bid}.norm2", GGUF: "v.blk.{bid}.ln2", Bias: table.MayBias},
		{HF: "model.vision_tower.layers.{bid}.attn.q_proj", GGUF: "v.blk.{bid}.attn_q", Bias: table.MayBias,
			Transform: parts.PermuteVisionHeads},
		{HF: "model.vision_tower.layers.{bid}.attn.k_proj", GGUF: "v.blk.{bid}.attn_k", Bias: table.MayBias,
			Transform: parts.PermuteVisionHeads},
		{HF: "model.vision_tower.layers.{bid}.attn.v_proj", GGUF: "v.blk.{bid}.attn_v", Bias: table.MayBias},
		{HF: "model.vision_tower.layers.{bid}.attn.proj", GGUF: "v.blk.{bid}.attn_out", Bias: table.MayBias},
		{HF: "model.vision_tower.layers.{bid}.mlp.fc1", GGUF: "v.blk.{bid}.ffn_up", Bias: table.MayBias},
		{HF: "model.vision_tower.layers.{bid}.mlp.fc2", GGUF: "v.blk.{bid}.ffn_down", Bias: table.MayBias},
		{HF: "model.vision_adapter.fc1", GGUF: "mm.0", Bias: table.MayBias},
		{HF: "model.vision_adapter.fc2", GGUF: "mm.1", Bias: table.MayBias},
		{HF: "model.vision_projection", GGUF: "mm.2", Bias: table.MayBias},
	},
	Shapes: shape.Rules{Tensors: shape.Table{"v.position_embd": "v_embd, ?positions", "mm.0": "v_merged, ?first",
		"mm.1": "?first, ?second", "mm.2": "?second, v_proj"}},
}

// museLayers returns the number of layers. Full attention in every fourth layer and in the last one is built into
// runtimes.
func museLayers(c *config.View) (int64, error) {
	const key = "layer_types"
	n, err := c.Vision().Require(parts.BlockKeys...)
	if err != nil {
		return 0, err
	}
	types, ok, err := c.Vision().Strings(key)
	if err != nil || !ok {
		return n, err
	}
	if int64(len(types)) != n {
		return 0, fault.Errorf(fault.Broken, "%s: key \"vision_config.%s\": %d types, want one for each of %d layers",
			c.FileName(), key, len(types), n)
	}
	if i := slices.IndexFunc(types, func(s string) bool {
		return s != "full_attention" && s != "window_attention" && s != "sliding_attention"
	}); i >= 0 {
		return 0, fault.Errorf(fault.Unsupported,
			"%s: key \"vision_config.%s\": %q, want full_attention or window_attention", c.FileName(), key, types[i])
	}
	for i, s := range types {
		if full := i%4 == 3 || i == len(types)-1; full != (s == "full_attention") {
			return 0, fault.Errorf(fault.Unsupported,
				"%s: key \"vision_config.%s\": layer %d is %s; runtimes compute full attention in every fourth layer "+
					"and in the last", c.FileName(), key, i, s)
		}
	}
	return n, nil
}

// museSize writes the side of an image with as many merged patches as the position grid has rows.
func museSize(c *config.View) (gguf.Value, bool, error) {
	size := int64(1)
	for _, key := range []string{"pos_emb_height", "patch_size", "merge_size"} {
		n, err := c.Vision().Require(key)
		if err == nil && (n < 1 || n > math.MaxInt16) {
			err = fault.Errorf(fault.Broken, "%s: key \"vision_config.%s\": %d, want a size", c.FileName(), key, n)
		}
		if err != nil {
			return gguf.Value{}, false, err
		}
		size *= n
	}
	return table.Uint32Of(size, true, nil)
}

// sumFrames turns a matrix over patches of two frames, [out, 2*3*height*width], into one convolution kernel, the sum
// over both frames.
var sumFrames = &table.Transform{Name: "frames-together",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		ne := s.NE()
		patch, err := l.Vision().Require("patch_size")
		if err == nil && (len(ne) != 2 || patch < 1 || patch > 1<<12 || ne[0] != 2*3*patch*patch) {
			err = fault.Errorf(fault.Broken,
				"dimensions %s, want rows of two frames of %d x %d pixels in three channels",
				gguf.Shape(ne), patch, patch)
		}
		if err != nil {
			return nil, err
		}
		first, err := rows.Slice(s, 0, 0, ne[0]/2)
		if err != nil {
			return nil, err
		}
		second, err := rows.Slice(s, 0, ne[0]/2, ne[0])
		if err != nil {
			return nil, err
		}
		if s, err = rows.Sum(first, second); err != nil {
			return nil, err
		}
		return rows.Reshape(s, []int64{patch, patch, 3, ne[1]})
	}}
