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

var _ = registerEncoder(idefics3, janusVision)

// idefics3 is Idefics 3's and SmolVLM's vision encoder: a SigLIP model whose neighbouring patches are merged.
var idefics3 = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"Idefics3ForConditionalGeneration", "SmolVLMForConditionalGeneration"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: parts.LayersIn(parts.InVision, parts.BlockKeys...),
	Metadata: parts.VisionRows(parts.ProjectorType("idefics3"), parts.VisionEps("layer_norm_eps", 1e-5),
		parts.Uint32Row(parts.KeyVisionScale, nil, "scale_factor", 2), parts.UseGELU,
		table.Row{Key: "vision.preproc_image_size", Derive: longestEdge}),
	Expect: []table.Expect{parts.ExpectAct(parts.InVision, "gelu_pytorch_tanh")},
	Unused: []string{"vision_config.num_channels", "vision_config.model_type", "vision_config.size",
		"vision_config.max_image_size", "vision_config.use_base_siglip"},
	Drop: slices.Concat(parts.DropTextModel, parts.DropAll("of the language model", "model.text_model.")),
	Tensors: append(parts.SigLIP("model.vision_model.", table.Always(gguf.TypeF32)),
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

// janusVision is Janus Pro's vision encoder, a SigLIP model; the image generation parts are dropped. Source:
// JanusProVisionModel of the reference.
var janusVision = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"JanusForConditionalGeneration"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: parts.LayersIn(parts.InVision, "num_hidden_layers"),
	Metadata: parts.VisionRows(table.Row{Key: parts.KeyVisionFF, Derive: widthOfRatio},
		parts.ProjectorType("janus_pro"), parts.VisionEps("layer_norm_eps", 1e-6),
		table.Row{Key: "use_gelu", Derive: parts.ActivationFlag("gelu")},
		table.Row{Key: "use_silu", Derive: parts.ActivationFlag("silu")}),
	Expect: []table.Expect{parts.ExpectAct(parts.InVision, "gelu", "silu"),
		{Key: "use_qk_norm", In: parts.InVision, Values: []string{"false"}},
		{Key: "depth", In: parts.InVision, Values: []string{"2"}}},
	Unused: []string{"vision_config.model_type", "vision_config.num_channels", "vision_config.attention_bias",
		"vision_config.hidden_dropout_rate", "vision_config.num_image_tokens",
		"vision_config.projection_dim", "vision_config.projection_dropout"},
	Drop: slices.Concat(parts.DropTextModel, parts.DropAll("of what draws", "model.vqmodel.",
		"model.generation_embeddings.",
		"model.generation_aligner.", "model.generation_head.")),
	Tensors: append(renameSuffix("self_attn.out_proj", "self_attn.projection_layer",
		parts.SigLIP("model.vision_model.", parts.KernelType)),
		table.TensorRow{HF: "model.aligner.fc1", GGUF: "mm.0", Bias: table.NeedBias},
		table.TensorRow{HF: "model.aligner.hidden_layers.0", GGUF: "mm.1", Bias: table.NeedBias}),
	Shapes: shape.Rules{Tensors: shape.Table{"mm.0": "v_embd, ?between", "mm.1": "?between, v_proj"}},
}

// renameSuffix returns rows with the suffix old of a name replaced by name.
func renameSuffix(old, name string, list []table.TensorRow) []table.TensorRow {
	for i, r := range list {
		if n := len(r.HF) - len(old); n >= 0 && r.HF[n:] == old {
			list[i].HF = r.HF[:n] + name
		}
	}
	return list
}

// widthOfRatio writes the FFN width: from its key, else hidden_size times a ratio, rounded half to even.
func widthOfRatio(c *config.View) (gguf.Value, bool, error) {
	o := c.Vision()
	n, ok, err := o.Int("intermediate_size")
	if ok || err != nil {
		return table.Uint32Of(n, ok, err)
	}
	width, err := o.Require("hidden_size")
	if err != nil {
		return gguf.Value{}, false, err
	}
	ratio, err := o.RequireFloat("mlp_ratio")
	f := math.RoundToEven(float64(width) * ratio)
	if err == nil && !(f >= 1 && f <= math.MaxUint32) {
		err = fault.Errorf(fault.Broken, "%s: key %q: %v times %d, want a width", o.FileName(),
			"vision_config.mlp_ratio", ratio, width)
	}
	if err != nil {
		return gguf.Value{}, false, err
	}
	return gguf.Uint32(uint32(f)), true, nil
}
