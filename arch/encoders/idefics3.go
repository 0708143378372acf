package encoders

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/gguf"
)

// idefics3 is Idefics 3's and SmolVLM's vision encoder: a SigLIP model whose neighbouring patches are merged.
var idefics3 = &table.Arch{
	Name:       name,
	Classes:    []string{"Idefics3ForConditionalGeneration", "SmolVLMForConditionalGeneration"},
	Encoder:    encoderOf(inVision),
	BlockCount: layers(inVision, blockKeys...),
	Metadata: vision(projector("idefics3"), epsOf("layer_norm_eps", 1e-5),
		uint32Row(keyScale, nil, "scale_factor", 2), useGELU,
		table.Row{Key: "vision.preproc_image_size", Derive: longestEdge}),
	Expect: []table.Expect{actOf(inVision, "gelu_pytorch_tanh")},
	Unused: []string{"vision_config.num_channels", "vision_config.model_type", "vision_config.size",
		"vision_config.max_image_size", "vision_config.use_base_siglip"},
	Drop: slices.Concat(dropTextModel, dropAll("of the language model", "model.text_model.")),
	Tensors: append(siglip("model.vision_model.", table.Always(gguf.TypeF32)),
		table.TensorRow{HF: "model.connector.modality_projection.proj", GGUF: "mm.model.fc"}),
	Shapes: shape.Rules{Tensors: shape.Table{"mm.model.fc": "v_shuffled, v_proj"}},
}

// longestEdge writes the size that images are resized to before they are cut into tiles.
func longestEdge(c *config.View) (gguf.Value, bool, error) {
	n, ok, err := c.Processor().Sub("size").Int("longest_edge")
	if err == nil && !ok {
		n, err = c.Vision().Require("image_size")
	}
	return table.Uint32Of(n, true, err)
}
