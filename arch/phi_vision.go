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
)

var _ = registerEncoder(phi4V)

// phi4V is Phi 4's vision encoder, SigLIP 2 without its last layer. Source: Phi4VisionMmprojModel of the reference.
var phi4V = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"Phi4ForCausalLMV"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: phi4Layers,
	Metadata: parts.VisionRows(
		table.Row{Key: parts.KeyImageSize, Derive: phi4Size},
		parts.RequiredUint32(parts.KeyPatchSize, parts.InProcessor, "patch_size"),
		table.Row{Key: parts.KeyVisionBlocks, Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := phi4Layers(c)
			return table.Uint32Of(n, true, err)
		}},
		parts.ProjectorType("phi4"),
		table.Row{Key: "vision.image_min_pixels", Derive: phi4Pixels("min_num_patches")},
		table.Row{Key: "vision.image_max_pixels", Derive: phi4Pixels("max_num_patches")},
		parts.UseGELU, parts.VisionEps("layer_norm_eps", 1e-6)),
	Expect: []table.Expect{parts.ExpectAct(parts.InVision, "gelu_pytorch_tanh"),
		{Key: "mm_projector_type", Values: []string{"mlp2x_gelu"}}},
	Unused: []string{"vision_config.model_type", "vision_config.num_channels", "vision_config.vision_use_head",
		"vision_config.patch_size"},
	Rename: []table.Rename{{Prefix: "model.vision_tower.vision_tower.", With: "vision_tower."},
		{Prefix: "model.mm_projector.", With: "mm_projector."}},
	Drop: slices.Concat(parts.DropTextModel, []table.Drop{{Prefix: "vision_tower.vision_model.encoder.layers.",
		AfterModel: true,
		Why:        "of the last layer, which is not used"}},
		parts.DropAll("after the layer that is used", "vision_tower.vision_model.head.",
			"vision_tower.vision_model.post_layernorm.")),
	Tensors: append(slices.DeleteFunc(parts.WithKernel(parts.SigLIP("vision_tower.vision_model.", parts.KernelType),
		parts.KernelOfPatches),
		func(r table.TensorRow) bool { return r.GGUF == "v.post_ln" }),
		table.TensorRow{HF: "mm_projector.0", GGUF: "mm.0", Bias: table.NeedBias},
		table.TensorRow{HF: "mm_projector.2", GGUF: "mm.2", Bias: table.NeedBias}),
	Shapes: shape.Rules{Tensors: shape.Table{"mm.0": "v_embd, ?between", "mm.2": "?between, v_proj"}},
}

// phi4Layers returns the number of layers in the file.
func phi4Layers(c *config.View) (int64, error) {
	n, err := c.Vision().Require(parts.BlockKeys...)
	if err == nil && n < 2 {
		err = fault.Errorf(fault.Unsupported, "%s: %d layers that see, want at least 2", c.FileName(), n)
	}
	return n - 1, err
}

// phi4Size writes the side of an image with a patch for each position.
func phi4Size(c *config.View) (gguf.Value, bool, error) {
	const key = "num_patches"
	n, err := parts.IntOr(c.Vision(), key, 256)
	if err != nil {
		return gguf.Value{}, false, err
	}
	patch, err := c.Processor().Require("patch_size")
	if err != nil {
		return gguf.Value{}, false, err
	}
	if n > math.MaxInt32 || patch < 1 || patch > math.MaxInt16 {
		return gguf.Value{}, false, fault.Errorf(fault.Broken, "%s: %d patches of %d pixels", c.FileName(), n, patch)
	}
	side := parts.IntSqrt(n)
	if side*side != n {
		err = fault.Errorf(fault.Unsupported, "%s: key \"vision_config.%s\": %d, want a square", c.FileName(), key, n)
	}
	return table.Uint32Of(side*patch, true, err)
}

// phi4Pixels writes the number of pixels of a number of patches.
func phi4Pixels(key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		n, ok, err := c.Processor().Int(key)
		if err == nil && !ok {
			n, err = c.Require(key)
		}
		if err != nil {
			return gguf.Value{}, false, err
		}
		patch, err := c.Processor().Require("patch_size")
		if err == nil && (n < 0 || n > math.MaxInt32 || patch < 1 || patch > math.MaxInt16) {
			err = fault.Errorf(fault.Broken, "%s: key %q: %d patches of %d pixels", c.FileName(), key, n, patch)
		}
		return table.Uint32Of(n*patch*patch, true, err)
	}
}
