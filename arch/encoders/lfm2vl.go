package encoders

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// siglipNames unify the names of SigLIP tensors in versions of the transformers library.
var siglipNames = []table.Rename{
	{Prefix: "vision_tower.vision_model.", With: "vision_tower."},
	{Prefix: "model.vision_tower.vision_model.", With: "vision_tower."},
	{Prefix: "model.vision_tower.", With: "vision_tower."},
	{Prefix: "model.multi_modal_projector.", With: "multi_modal_projector."},
}

// lfm2VL is LFM2-VL's vision encoder, a SigLIP 2 model for images of any size.
var lfm2VL = &table.Arch{
	Name:       name,
	Classes:    []string{"Lfm2VlForConditionalGeneration"},
	Encoder:    encoderOf(inVision),
	BlockCount: layers(inVision, blockKeys...),
	Metadata: vision(table.Row{Key: keyImageSize, Const: gguf.Uint32(256)},
		table.Row{Key: keyBlocks, Derive: layersUpToFeature},
		projector("lfm2"), epsOf("layer_norm_eps", 0), uint32Row(keyScale, nil, "downsample_factor", 2), useGELU,
		table.Row{Key: "vision.image_resize_algo", Derive: resample}),
	Expect: []table.Expect{actOf(inVision, "gelu_pytorch_tanh"),
		{Key: "patch_size", In: inVision, Values: []string{"16"}}},
	Unused: []string{"vision_config.model_type", "vision_config.num_channels", "vision_config.num_patches",
		"vision_config.vision_use_head"},
	Rename: siglipNames,
	Drop:   dropTextModel,
	Tensors: append(slices.Concat(patched(siglip("vision_tower.", kernelType), kernelOfPatches)),
		table.TensorRow{HF: "multi_modal_projector.layer_norm", GGUF: "mm.input_norm", Optional: true,
			Bias: table.MayBias},
		table.TensorRow{HF: "multi_modal_projector.linear_1", GGUF: "mm.1", Bias: table.MayBias},
		table.TensorRow{HF: "multi_modal_projector.linear_2", GGUF: "mm.2", Bias: table.MayBias}),
	Shapes: shape.Rules{Tensors: shape.Table{"v.position_embd": "v_embd, ?positions", "mm.input_norm": "v_shuffled",
		"mm.1": "v_shuffled, ?between", "mm.2": "?between, v_proj"}},
}

// patched returns rows with a transform of the first convolution's weight.
func patched(list []table.TensorRow, t *table.Transform) []table.TensorRow {
	for i := range list {
		if list[i].GGUF == "v.patch_embd" {
			list[i].Transform = t
		}
	}
	return list
}

// kernelOfPatches turns a matrix over patches, [out, height*width*3], channels innermost, into a convolution kernel;
// biases are unchanged.
var kernelOfPatches = &table.Transform{Name: "kernel-of-patches",
	Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
		ne := s.NE()
		if len(ne) == 1 {
			return s, nil
		}
		side := intSqrt(ne[0] / 3)
		if len(ne) != 2 || ne[0] != 3*side*side {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want rows of square patches in three channels",
				gguf.Shape(ne))
		}
		s, err := rows.Reshape(s, []int64{3, side * side, ne[1]})
		if err != nil {
			return nil, err
		}
		if s, err = rows.Transpose(s); err != nil {
			return nil, err
		}
		return rows.Reshape(s, []int64{side, side, 3, ne[1]})
	}}

// intSqrt returns the square root of n, rounded down.
func intSqrt(n int64) int64 {
	r := int64(0)
	for (r+1)*(r+1) <= n {
		r++
	}
	return r
}

// layersUpToFeature returns the number of layers up to the one whose output is used; negative keys count from the last
// layer.
func layersUpToFeature(c *config.View) (gguf.Value, bool, error) {
	n, err := c.Vision().Require(blockKeys...)
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

// cohere2Vision is Cohere's vision encoder, a SigLIP model over tiles.
var cohere2Vision = &table.Arch{
	Name:       name,
	Classes:    []string{"Cohere2VisionForConditionalGeneration"},
	Encoder:    encoderOf(inVision),
	BlockCount: layers(inVision, blockKeys...),
	Metadata: vision(projector("cohere2v"), epsOf("layer_norm_eps", 0),
		required(uint32Row(keyScale, nil, "downsample_factor", 0)),
		required(uint32Row("vision.preproc_max_tiles", inProc, "max_patches", 0)), useGELU),
	Expect: []table.Expect{actOf(inVision, "gelu_pytorch_tanh")},
	Unused: []string{"vision_config.model_type", "vision_config.num_channels", "vision_config.vision_use_head"},
	Rename: siglipNames,
	Drop:   dropTextModel,
	Tensors: append(siglip("vision_tower.", table.Always(gguf.TypeF32)),
		table.TensorRow{HF: "multi_modal_projector.linear_1", GGUF: "mm.1", Bias: table.NeedBias},
		table.TensorRow{HF: "multi_modal_projector.linear_2", GGUF: "mm.2", Bias: table.NeedBias}),
	Shapes: shape.Rules{Tensors: shape.Table{"mm.1": "v_shuffled, ?between", "mm.2": "?half, v_proj"}},
}
