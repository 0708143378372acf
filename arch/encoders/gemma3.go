package encoders

import (
	"slices"

	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/gguf"
)

// gemma3 is Gemma 3's vision encoder: a SigLIP model whose patches are pooled to a fixed number.
var gemma3 = &table.Arch{
	Name:       name,
	Classes:    []string{"Gemma3ForConditionalGeneration"},
	Encoder:    encoderOf(inVision),
	BlockCount: layers(inVision, blockKeys...),
	Metadata: vision(projector("gemma3"), epsOf("layer_norm_eps", 1e-6), useGELU,
		table.Row{Key: keyScale, Derive: poolSide(inVision, 0)}),
	Expect: []table.Expect{actOf(inVision, "gelu_pytorch_tanh")},
	Unused: []string{"vision_config.num_channels", "vision_config.vision_use_head", "vision_config.model_type"},
	Rename: slices.Concat([]table.Rename{
		{Prefix: "vision_tower.vision_model.", With: "vision_tower."},
		{Prefix: "model.vision_tower.vision_model.", With: "vision_tower."},
	}, saved("vision_tower.", "multi_modal_projector.")),
	Drop: slices.Concat(dropAll("of a head that no runtime has", "vision_tower.head."), dropTextModel),
	Tensors: slices.Concat(siglip("vision_tower.", table.Always(gguf.TypeF32)), []table.TensorRow{
		{HF: "multi_modal_projector.mm_input_projection_weight", Exact: true, GGUF: "mm.input_projection.weight",
			Type: table.Always(gguf.TypeF16)},
		{HF: "multi_modal_projector.mm_soft_emb_norm", GGUF: "mm.soft_emb_norm", Transform: parts.PlusOne},
	}),
	Shapes: shape.Rules{Tensors: shape.Table{"mm.input_projection": "v_proj, v_embd", "mm.soft_emb_norm": "v_embd"}},
}
