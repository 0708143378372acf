package encoders

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

// nemotronOmni is the RADIO encoder of Nemotron 3.5 Super VL, for images of any size and pairs of frames. Its tensors
// have RADIO's names, or the transformers library's.
var nemotronOmni = &table.Arch{
	Name:       name,
	Classes:    []string{"NemotronH_Omni_Reasoning_V3"},
	Encoder:    encoderOf(inVision),
	BlockCount: layers(inVision, blockKeys...),
	Metadata: append(vision(
		table.Row{Key: keyImageSize, Const: gguf.Uint32(512)}, // any size
		table.Row{Key: keyFF, Derive: omniWidth},
		table.Row{Key: "vision.image_mean", Derive: perChannel("norm_mean"), Facts: config.ProcessorFiles},
		table.Row{Key: "vision.image_std", Derive: perChannel("norm_std"), Facts: config.ProcessorFiles},
		projector("nemotron_omni"),
	), append(radioEnd[:len(radioEnd):len(radioEnd)],
		table.Row{Key: "vision.image_min_pixels", Derive: omniPixels("min_num_patches"), Facts: config.ProcessorFiles},
		table.Row{Key: "vision.image_max_pixels", Derive: omniPixels("max_num_patches"),
			Facts: config.ProcessorFiles})...),
	Expect: []table.Expect{{Key: "sound_config"}, {Key: "video_temporal_patch_size", Values: []string{"2"}},
		{Key: "video_temporal_patch_size", In: inVision, Values: []string{"2"}},
		actOf(inVision, "gelu"), {Key: "layer_norm_eps", In: inVision, Values: []string{"1e-06"}},
		{Key: "num_channels", In: inVision, Values: []string{"3"}}},
	Unused: []string{"vision_config.model_type", "vision_config.max_img_size", "vision_config.image_size",
		"vision_config.num_cls_tokens", "vision_config.num_registers",
		"vision_config.qkv_bias", "vision_config.layerscale_value", "vision_config.summary_idxs", "vision_config.args",
		"vision_config.version", "vision_config.preferred_resolution",
		"vision_config.max_resolution", "vision_config.min_num_patches", "vision_config.max_num_patches",
		"vision_config.video_target_num_patches", "vision_config.separate_video_embedder"},
	Rename: []table.Rename{
		{Prefix: "vision_model.embeddings.patch_projection.", With: radioGenerator + "embedder."},
		{Prefix: "vision_model.embeddings.video_patch_projection.", With: radioGenerator + "video_embedder."},
		{Prefix: "vision_model.encoder.layer.", With: radioModel + "blocks."},
		{Prefix: "vision_model.input_conditioner.", With: "vision_model.radio_model.input_conditioner."},
		{Prefix: "vision_projector.mlp1.norm.", With: "mlp1.0."},
		{Prefix: "vision_projector.mlp1.linear1.", With: "mlp1.1."},
		{Prefix: "vision_projector.mlp1.linear2.", With: "mlp1.3."},
	},
	Drop: append(dropAll("of summaries, which models do not read", "vision_model.summary_idxs"), radioDrops...),
	Tensors: slices.Concat(radioLayers, radioRows, []table.TensorRow{
		{HF: radioGenerator + "video_embedder.weight", Exact: true, GGUF: "v.patch_embd.weight.1", Type: kernelType,
			Transform: kernelOfPlanes, Optional: true},
		{HF: "vision_projector.vision_final_layernorm", GGUF: "v.post_ln", Bias: table.NeedBias},
	}, onlyIf(omniFused, []table.TensorRow{
		{HF: radioGenerator + "pos_embed", Exact: true, GGUF: "v.position_embd.weight", Type: always32},
		{HF: radioGenerator + "cls_token.token", Exact: true, GGUF: "v.class_embd"},
		{HF: radioModel + "blocks.{bid}.attn.qkv", GGUF: "v.blk.{bid}.attn_qkv", Bias: table.NeedBias},
		{HF: radioModel + "blocks.{bid}.attn.proj", GGUF: "v.blk.{bid}.attn_out", Bias: table.NeedBias},
	}), onlyIf(parts.Not(omniFused), []table.TensorRow{
		{HF: "vision_model.embeddings.position_embedding", Exact: true, GGUF: "v.position_embd.weight", Type: always32,
			Transform: parts.Squeeze},
		{HF: "vision_model.embeddings.cls_register_token", Exact: true, GGUF: "v.class_embd"},
		{HF: radioModel + "blocks.{bid}.attention.attention.query", GGUF: "v.blk.{bid}.attn_q", Bias: table.NeedBias},
		{HF: radioModel + "blocks.{bid}.attention.attention.key", GGUF: "v.blk.{bid}.attn_k", Bias: table.NeedBias},
		{HF: radioModel + "blocks.{bid}.attention.attention.value", GGUF: "v.blk.{bid}.attn_v", Bias: table.NeedBias},
		{HF: radioModel + "blocks.{bid}.attention.output.dense", GGUF: "v.blk.{bid}.attn_out", Bias: table.NeedBias},
		{HF: radioModel + "blocks.{bid}.layer_scale1.lambda1", Exact: true, GGUF: "v.blk.{bid}.ls1.weight",
			Optional: true},
		{HF: radioModel + "blocks.{bid}.layer_scale2.lambda1", Exact: true, GGUF: "v.blk.{bid}.ls2.weight",
			Optional: true},
	})),
	Shapes: shape.Rules{Tensors: shape.Merge(radioShapes,
		shape.Table{"v.position_embd": "v_embd, ?positions", "v.patch_embd.weight.1": "v_patch, v_patch, 6, v_embd"})},
}

// omniWidth writes the FFN width.
func omniWidth(c *config.View) (gguf.Value, bool, error) {
	width, err := c.Vision().Require("hidden_size")
	if err != nil {
		return gguf.Value{}, false, err
	}
	ratio, err := c.Vision().RequireFloat("mlp_ratio")
	f := float64(width) * ratio
	if err == nil && !(f >= 1 && f <= math.MaxUint32) {
		err = fault.Errorf(fault.Broken, "%s: key \"vision_config.mlp_ratio\": %v times %d, want a width", c.FileName(),
			ratio, width)
	}
	if err != nil {
		return gguf.Value{}, false, err
	}
	return gguf.Uint32(uint32(f)), true, nil
}

// omniPixels writes a limit of the image size in pixels; processor files have it in patches.
func omniPixels(key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		n, err := c.Processor().Require(key)
		if err != nil {
			return gguf.Value{}, false, err
		}
		patch, err := c.Vision().Require("patch_size")
		if err == nil && (min(n, patch) < 0 || n > math.MaxInt32 || patch > math.MaxInt16) {
			err = fault.Errorf(fault.Broken, "%s: key %q: %d patches of %d pixels", c.Processor().FileName(),
				key, n, patch)
		}
		return table.Uint32Of(n*patch*patch, true, err)
	}
}

// omniFused is the condition that tensors have RADIO's names, with a joined QKV projection.
func omniFused(l table.Layer) (bool, error) {
	return l.Facts.Tensors == nil || slices.Contains(l.Facts.Tensors, radioGenerator+"pos_embed"), nil
}
