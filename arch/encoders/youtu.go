package encoders

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

// youtuVL is Youtu-VL's vision encoder, a SigLIP 2 model with full attention in some layers only.
var youtuVL = &table.Arch{
	Name:       name,
	Classes:    []string{"YoutuVLForConditionalGeneration"},
	Encoder:    encoderOf(inVision),
	BlockCount: layers(inVision, blockKeys...),
	Metadata: vision(uint32Row(keyImageSize, inVision, "image_size", 560), projector("youtuvl"),
		epsOf("layer_norm_eps", 1e-6),
		table.Row{Key: "use_gelu", Derive: youtuAct(parts.GELU...)},
		table.Row{Key: "use_silu", Derive: youtuAct("silu")},
		uint32Row(keyMerge, inVision, "spatial_merge_size", 2),
		uint32Row("vision.window_size", inVision, "window_size", 0),
		table.Row{Key: "vision.wa_layer_indexes", Derive: fullAttentionLayers}),
	Expect: []table.Expect{actOf(inVision, append([]string{"gelu_accurate", "silu"}, parts.GELU...)...)},
	Unused: []string{"vision_config.model_type", "vision_config.num_channels", "vision_config.num_patches",
		"vision_config.out_hidden_size", "vision_config.vision_use_head",
		"vision_config.tokens_per_second", "vision_config.temporal_patch_size"},
	Drop: dropTextModel,
	Tensors: append(slices.DeleteFunc(siglip("siglip2.vision_model.", kernelType),
		func(r table.TensorRow) bool { return r.GGUF == "v.position_embd" }),
		table.TensorRow{HF: "merger.ln_q", GGUF: "mm.input_norm", Bias: table.MayBias},
		table.TensorRow{HF: "merger.mlp.0", GGUF: "mm.0", Bias: table.NeedBias},
		table.TensorRow{HF: "merger.mlp.2", GGUF: "mm.2", Bias: table.NeedBias}),
	Shapes: shape.Rules{Tensors: shape.Table{"v.patch_embd": "3 * v_patch * v_patch, v_embd", "mm.input_norm": "v_embd",
		"mm.0": "v_merged, v_merged", "mm.2": "v_merged, v_proj"}},
}

// youtuAct writes true if the activation function is one of names.
func youtuAct(names ...string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		s, ok, err := c.Vision().String("hidden_act")
		if !ok {
			s = "gelu_pytorch_tanh"
		}
		return gguf.Bool(true), slices.Contains(names, s) || s == "gelu_accurate" && len(names) > 1, err
	}
}

// fullAttentionLayers lists the full-attention layers.
func fullAttentionLayers(c *config.View) (gguf.Value, bool, error) {
	const key = "fullatt_block_indexes"
	list, ok, err := c.Vision().Ints(key)
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: has no key \"vision_config.%s\"", c.FileName(), key)
	}
	var values []gguf.Value
	for _, n := range list {
		if err == nil && (n < 0 || n > config.MaxBlocks) {
			err = fault.Errorf(fault.Broken, "%s: key \"vision_config.%s\": %v, want layers", c.FileName(), key, list)
		}
		values = append(values, gguf.Int32(int32(n)))
	}
	return gguf.Array(gguf.Int32Type, values...), err == nil && len(values) > 0, err
}
