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

var _ = registerEncoder(paddleOCRVision)

// Vision encoders of small OCR models.

// paddleOCRVision is PaddleOCR-VL's vision encoder, a SigLIP model with interpolated positions. vision_config has its
// class.
var paddleOCRVision = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"PaddleOCRVisionModel"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: parts.LayersIn(parts.InVision, parts.BlockKeys...),
	Metadata: parts.VisionRows(table.Row{Key: parts.KeyImageSize, Derive: sideOfPixels},
		parts.ProjectorType("paddleocr"),
		parts.RequiredUint32("vision.image_max_pixels", parts.InProcessor, "max_pixels"),
		parts.RequiredUint32("vision.image_min_pixels", parts.InProcessor, "min_pixels"),
		parts.UseGELU, parts.VisionEps("rms_norm_eps", 1e-6)),
	Expect: []table.Expect{parts.ExpectAct(parts.InVision, "gelu_pytorch_tanh"),
		{Key: "spatial_merge_size", In: parts.InVision, Values: []string{"2"}},
		{Key: "temporal_patch_size", In: parts.InVision, Values: []string{"1", "2"}}},
	Unused: []string{"vision_config.model_type", "vision_config.num_channels", "vision_config.image_size",
		"vision_config.layer_norm_eps", "vision_config.pad_token_id",
		"vision_config.tokens_per_second", "vision_config.auto_map"},
	Rename: []table.Rename{{Prefix: "visual.vision_model.", With: "vision_model."},
		{Prefix: "model.visual.vision_model.", With: "vision_model."}},
	Drop: slices.Concat(parts.DropAll("of positions that pictures of one size need",
		"vision_model.embeddings.packing_position_embedding."),
		parts.DropAll("of a head that no runtime has", "vision_model.head."), parts.DropTextModel),
	Tensors: append(parts.SigLIP("vision_model.", parts.KernelType),
		table.TensorRow{HF: "mlp_AR.pre_norm", GGUF: "mm.input_norm", Bias: table.NeedBias},
		table.TensorRow{HF: "mlp_AR.linear_1", GGUF: "mm.1", Bias: table.NeedBias},
		table.TensorRow{HF: "mlp_AR.linear_2", GGUF: "mm.2", Bias: table.NeedBias}),
	Shapes: shape.Rules{Tensors: shape.Table{"v.position_embd": "v_embd, ?positions", "mm.input_norm": "v_embd",
		"mm.1": "4 * v_embd, 4 * v_embd", "mm.2": "4 * v_embd, v_proj"}},
}

// sideOfPixels writes the side of a square image of max_pixels.
func sideOfPixels(c *config.View) (gguf.Value, bool, error) {
	n, err := c.Processor().Require("max_pixels")
	if err == nil && (n < 0 || n > math.MaxUint32) {
		err = fault.Errorf(fault.Broken, "%s: key \"max_pixels\": %d", c.Processor().FileName(), n)
	}
	if err != nil {
		return gguf.Value{}, false, err
	}
	return table.Uint32Of(int64(math.Sqrt(float64(n))), true, nil)
}
