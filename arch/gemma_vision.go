package arch

import (
	"slices"

	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/gguf"
)

var _ = registerEncoder(gemma3Vision)

// gemma3Vision is Gemma 3's vision encoder: a SigLIP model whose patches are pooled to a fixed number.
var gemma3Vision = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"Gemma3ForConditionalGeneration"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: parts.LayersIn(parts.InVision, parts.BlockKeys...),
	Metadata: parts.VisionRows(parts.ProjectorType("gemma3"), parts.VisionEps("layer_norm_eps", 1e-6), parts.UseGELU,
		table.Row{Key: parts.KeyVisionScale, Derive: parts.PoolSide(parts.InVision, 0)}),
	Expect: []table.Expect{parts.ExpectAct(parts.InVision, "gelu_pytorch_tanh")},
	Unused: []string{"vision_config.num_channels", "vision_config.vision_use_head", "vision_config.model_type"},
	Rename: slices.Concat([]table.Rename{
		{Prefix: "vision_tower.vision_model.", With: "vision_tower."},
		{Prefix: "model.vision_tower.vision_model.", With: "vision_tower."},
	}, parts.SavedNames("vision_tower.", "multi_modal_projector.")),
	Drop: slices.Concat(parts.DropAll("of a head that no runtime has", "vision_tower.head."), parts.DropTextModel),
	Tensors: slices.Concat(parts.SigLIP("vision_tower.", table.Always(gguf.TypeF32)), []table.TensorRow{
		{HF: "multi_modal_projector.mm_input_projection_weight", Exact: true, GGUF: "mm.input_projection.weight",
			Type: table.Always(gguf.TypeF16)},
		{HF: "multi_modal_projector.mm_soft_emb_norm", GGUF: "mm.soft_emb_norm", Transform: parts.PlusOne},
	}),
	Shapes: shape.Rules{Tensors: shape.Table{"mm.input_projection": "v_proj, v_embd", "mm.soft_emb_norm": "v_embd"}},
}
