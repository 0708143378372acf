package arch

import (
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/gguf"
)

var _ = registerEncoder(cohere2Vision)

// cohere2Vision is Cohere's vision encoder, a SigLIP model over tiles.
var cohere2Vision = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"Cohere2VisionForConditionalGeneration"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: parts.LayersIn(parts.InVision, parts.BlockKeys...),
	Metadata: parts.VisionRows(parts.ProjectorType("cohere2v"), parts.VisionEps("layer_norm_eps", 0),
		parts.RequiredUint32(parts.KeyVisionScale, nil, "downsample_factor"),
		parts.RequiredUint32("vision.preproc_max_tiles", parts.InProcessor, "max_patches"), parts.UseGELU),
	Expect: []table.Expect{parts.ExpectAct(parts.InVision, "gelu_pytorch_tanh")},
	Unused: []string{"vision_config.model_type", "vision_config.num_channels", "vision_config.vision_use_head"},
	Rename: parts.SigLIPNames,
	Drop:   parts.DropTextModel,
	Tensors: append(parts.SigLIP("vision_tower.", table.Always(gguf.TypeF32)),
		table.TensorRow{HF: "multi_modal_projector.linear_1", GGUF: "mm.1", Bias: table.NeedBias},
		table.TensorRow{HF: "multi_modal_projector.linear_2", GGUF: "mm.2", Bias: table.NeedBias}),
	Shapes: shape.Rules{Tensors: shape.Table{"mm.1": "v_shuffled, ?between", "mm.2": "?half, v_proj"}},
}
