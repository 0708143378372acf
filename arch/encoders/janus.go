package encoders

import (
	"math"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

// janus is Janus Pro's vision encoder, a SigLIP model; the image generation parts are dropped. Source:
// JanusProVisionModel of the reference.
var janus = &table.Arch{
	Name:       name,
	Classes:    []string{"JanusForConditionalGeneration"},
	Encoder:    encoderOf(inVision),
	BlockCount: layers(inVision, "num_hidden_layers"),
	Metadata: vision(table.Row{Key: keyFF, Derive: widthOfRatio}, projector("janus_pro"), epsOf("layer_norm_eps", 1e-6),
		table.Row{Key: "use_gelu", Derive: activationFlag("gelu")},
		table.Row{Key: "use_silu", Derive: activationFlag("silu")}),
	Expect: []table.Expect{actOf(inVision, "gelu", "silu"),
		{Key: "use_qk_norm", In: inVision, Values: []string{"false"}},
		{Key: "depth", In: inVision, Values: []string{"2"}}},
	Unused: []string{"vision_config.model_type", "vision_config.num_channels", "vision_config.attention_bias",
		"vision_config.hidden_dropout_rate", "vision_config.num_image_tokens",
		"vision_config.projection_dim", "vision_config.projection_dropout"},
	Drop: slices.Concat(dropTextModel, dropAll("of what draws", "model.vqmodel.", "model.generation_embeddings.",
		"model.generation_aligner.", "model.generation_head.")),
	Tensors: append(renameSuffix("self_attn.out_proj", "self_attn.projection_layer",
		siglip("model.vision_model.", kernelType)),
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
