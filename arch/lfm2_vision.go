package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

var _ = registerEncoder(lfm2VL)

// lfm2VL is LFM2-VL's vision encoder, a SigLIP 2 model for images of any size.
var lfm2VL = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"Lfm2VlForConditionalGeneration"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: parts.LayersIn(parts.InVision, parts.BlockKeys...),
	Metadata: parts.VisionRows(table.Row{Key: parts.KeyImageSize, Const: gguf.Uint32(256)},
		table.Row{Key: parts.KeyVisionBlocks, Derive: layersUpToFeature},
		parts.ProjectorType("lfm2"), parts.VisionEps("layer_norm_eps", 0),
		parts.Uint32Row(parts.KeyVisionScale, nil, "downsample_factor", 2), parts.UseGELU,
		table.Row{Key: "vision.image_resize_algo", Derive: resample}),
	Expect: []table.Expect{parts.ExpectAct(parts.InVision, "gelu_pytorch_tanh"),
		{Key: "patch_size", In: parts.InVision, Values: []string{"16"}}},
	Unused: []string{"vision_config.model_type", "vision_config.num_channels", "vision_config.num_patches",
		"vision_config.vision_use_head"},
	Rename: parts.SigLIPNames,
	Drop:   parts.DropTextModel,
	Tensors: append(slices.Concat(parts.WithKernel(parts.SigLIP("vision_tower.", parts.KernelType),
		parts.KernelOfPatches)),
		table.TensorRow{HF: "multi_modal_projector.layer_norm", GGUF: "mm.input_norm", Optional: true,
			Bias: table.MayBias},
		table.TensorRow{HF: "multi_modal_projector.linear_1", GGUF: "mm.1", Bias: table.MayBias},
		table.TensorRow{HF: "multi_modal_projector.linear_2", GGUF: "mm.2", Bias: table.MayBias}),
	Shapes: shape.Rules{Tensors: shape.Table{"v.position_embd": "v_embd, ?positions", "mm.input_norm": "v_shuffled",
		"mm.1": "v_shuffled, ?between", "mm.2": "?between, v_proj"}},
}

// layersUpToFeature returns the number of layers up to the one whose output is used; negative keys count from the last
// layer.
func layersUpToFeature(c *config.View) (gguf.Value, bool, error) {
	n, err := c.Vision().Require(parts.BlockKeys...)
	if err != nil {
		return gguf.Value{}, false, err
	}
	last, ok, err := c.Int("vision_feature_layer")
	if !ok {
		last = -1
	}
	if err == nil && (last >= 0 || -last > n) {
		err = fault.Errorf(fault.Unsupported,
			"%s: key \"vision_feature_layer\" is %d, want one of %d layers, counted from the last",
			c.FileName(), last, n)
	}
	return table.Uint32Of(n+last+1, true, err)
}

// resample writes the name of the resize filter.
func resample(c *config.View) (gguf.Value, bool, error) {
	n, ok, err := c.Processor().Int("resample")
	if !ok || err != nil {
		return gguf.Value{}, false, err
	}
	s := map[int64]string{1: "lanczos", 2: "bilinear", 3: "bicubic"}[n]
	if s == "" {
		err = fault.Errorf(fault.Unsupported, "%s: key \"resample\" is %d, want 1, 2 or 3", c.Processor().FileName(), n)
	}
	return gguf.String(s), err == nil, err
}
