package arch

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

var _ = registerEncoder(nemotronOmni, radio)

// nemotronOmni is the RADIO encoder of Nemotron 3.5 Super VL, for images of any size and pairs of frames. Its tensors
// have RADIO's names, or the transformers library's.
var nemotronOmni = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"NemotronH_Omni_Reasoning_V3"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: parts.LayersIn(parts.InVision, parts.BlockKeys...),
	Metadata: append(parts.VisionRows(
		table.Row{Key: parts.KeyImageSize, Const: gguf.Uint32(512)}, // any size
		table.Row{Key: parts.KeyVisionFF, Derive: omniWidth},
		table.Row{Key: "vision.image_mean", Derive: parts.PerChannel("norm_mean"), Facts: config.ProcessorFiles},
		table.Row{Key: "vision.image_std", Derive: parts.PerChannel("norm_std"), Facts: config.ProcessorFiles},
		parts.ProjectorType("nemotron_omni"),
	), append(radioEnd[:len(radioEnd):len(radioEnd)],
		table.Row{Key: "vision.image_min_pixels", Derive: omniPixels("min_num_patches"), Facts: config.ProcessorFiles},
		table.Row{Key: "vision.image_max_pixels", Derive: omniPixels("max_num_patches"),
			Facts: config.ProcessorFiles})...),
	Expect: []table.Expect{{Key: "sound_config"}, {Key: "video_temporal_patch_size", Values: []string{"2"}},
		{Key: "video_temporal_patch_size", In: parts.InVision, Values: []string{"2"}},
		parts.ExpectAct(parts.InVision, "gelu"), {Key: "layer_norm_eps", In: parts.InVision, Values: []string{"1e-06"}},
		{Key: "num_channels", In: parts.InVision, Values: []string{"3"}}},
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
	Drop: append(parts.DropAll("of summaries, which models do not read", "vision_model.summary_idxs"), radioDrops...),
	Tensors: slices.Concat(radioLayers, radioRows, []table.TensorRow{
		{HF: radioGenerator + "video_embedder.weight", Exact: true, GGUF: "v.patch_embd.weight.1",
			Type:      parts.KernelType,
			Transform: kernelOfPlanes, Optional: true},
		{HF: "vision_projector.vision_final_layernorm", GGUF: "v.post_ln", Bias: table.NeedBias},
	}, parts.OnlyIf(omniFused, []table.TensorRow{
		{HF: radioGenerator + "pos_embed", Exact: true, GGUF: "v.position_embd.weight", Type: parts.AlwaysF32},
		{HF: radioGenerator + "cls_token.token", Exact: true, GGUF: "v.class_embd"},
		{HF: radioModel + "blocks.{bid}.attn.qkv", GGUF: "v.blk.{bid}.attn_qkv", Bias: table.NeedBias},
		{HF: radioModel + "blocks.{bid}.attn.proj", GGUF: "v.blk.{bid}.attn_out", Bias: table.NeedBias},
	}), parts.OnlyIf(parts.Not(omniFused), []table.TensorRow{
		{HF: "vision_model.embeddings.position_embedding", Exact: true, GGUF: "v.position_embd.weight",
			Type:      parts.AlwaysF32,
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

// RADIO, the ViT of NVIDIA's models. Source: NemotronNanoV2VLModel and NemotronOmniVLModel of the reference.

// radio is the RADIO encoder of Nemotron Nano 2 VL, for images of one size, and of Nemotron 3 Nano Omni, which adds an
// audio encoder.
var radio = &table.Arch{
	Name:    parts.CLIP,
	Classes: []string{"RADIOModel", "NemotronH_Nano_VL_V2"},
	Encoder: parts.EncoderOf(parts.InVision, inSoundConfig),
	BlockCount: func(c *config.View) (int64, error) {
		v, err := vitOf(c)
		if err != nil || !hasSoundConfig(c) {
			return v.layers, err
		}
		n, err := parts.LayersIn(inSoundConfig, parts.BlockKeys...)(c)
		return max(v.layers, n), err
	},
	Metadata: slices.Concat(
		rowsWithAudio(
			parts.RequiredUint32(parts.KeyMels, inSoundConfig, "num_mel_bins"),
			table.Row{Key: parts.KeyAudioEps, Const: gguf.Float32(1e-5)},
			parts.RequiredUint32("audio.subsampling_factor", inSoundConfig, "subsampling_factor"),
			parts.RequiredUint32("audio.conv_kernel_size", inSoundConfig, "conv_kernel_size"),
			table.Row{Key: "audio.projector_type", Const: gguf.String("parakeet")},
		),
		[]table.Row{{Key: "vision.projector_type", Derive: valueWithAudio(gguf.String("nemotron_v2_vl"), true)},
			{Key: parts.KeyProjectorType, Derive: valueWithAudio(gguf.String("nemotron_v2_vl"), false)}},
		parts.VisionRows(
			table.Row{Key: parts.KeyImageSize, Type: gguf.Uint32Type, From: []string{"force_image_size"},
				Const: gguf.Uint32(512)},
			vitRow(parts.KeyVisionWidth, func(v vit) int64 { return v.width }),
			vitRow(parts.KeyVisionFF, func(v vit) int64 { return 4 * v.width }),
			vitRow(parts.KeyVisionBlocks, func(v vit) int64 { return v.layers }),
			vitRow(parts.KeyVisionHeads, func(v vit) int64 { return v.heads }),
			table.Row{Key: "vision.image_mean", Derive: radioNorm("image_mean", "norm_mean", 0.485, 0.456, 0.406),
				Facts: config.ProcessorFiles},
			table.Row{Key: "vision.image_std", Derive: radioNorm("image_std", "norm_std", 0.229, 0.224, 0.225),
				Facts: config.ProcessorFiles},
		),
		rowsWithAudio(parts.AudioRows(inSoundConfig)[1:]...), radioEnd),
	Expect: []table.Expect{{Key: "feature_normalizer_config", In: parts.InVision},
		{Key: "inter_feature_normalizer_config", In: parts.InVision}, {Key: "vitdet_window_size", In: parts.InVision},
		{Key: "ps_version", Values: []string{"v2"}},
		{Key: "model_type", In: inSoundConfig, Values: []string{"parakeet"}},
		{Key: "hidden_act", In: inSoundConfig, Values: []string{"silu"}},
		{Key: "subsampling_conv_kernel_size", In: inSoundConfig, Values: []string{"3"}},
		{Key: "subsampling_conv_stride", In: inSoundConfig, Values: []string{"2"}}},
	Unused: []string{"vision_config.args", "vision_config.adaptor_configs", "vision_config.adaptor_names",
		"vision_config.max_resolution", "vision_config.preferred_resolution",
		"vision_config.version", "vision_config.model_type", "vision_config.min_num_patches",
		"vision_config.max_num_patches", "vision_config.video_target_num_patches",
		"vision_config.video_temporal_patch_size", "vision_config.separate_video_embedder",
		"sound_config.subsampling_conv_channels", "sound_config.projection_hidden_size", "sound_config.projection_bias",
		"sound_config.sampling_rate",
		"sound_config.attention_bias", "sound_config.convolution_bias"}, // follows from the tensors
	Drop: slices.Concat(radioDrops,
		parts.DropAll("for films, which runtimes do not see by this projector", radioGenerator+"video_embedder."),
		[]table.Drop{parts.DropBatchCounters("sound_encoder.encoder.layers.")}),
	Tensors: slices.Concat(parts.OnlyIf(isViTLayer, radioLayers), radioRows, []table.TensorRow{
		{HF: radioGenerator + "pos_embed", Exact: true, GGUF: "v.position_embd.weight", Type: parts.AlwaysF32,
			Transform: radioPositions},
		{HF: radioGenerator + "cls_token.token", Exact: true, GGUF: "v.class_embd"},
		{HF: radioModel + "blocks.{bid}.attn.qkv", GGUF: "v.blk.{bid}.attn_qkv", Bias: table.NeedBias, If: isViTLayer},
		{HF: radioModel + "blocks.{bid}.attn.proj", GGUF: "v.blk.{bid}.attn_out", Bias: table.NeedBias, If: isViTLayer},
	}, parts.OnlyIf(func(l table.Layer) (bool, error) { return hasSoundConfig(l.View), nil }, parakeet)),
	Shapes: shape.Rules{Tensors: shape.Merge(radioShapes, parakeetShapes)},
}

const (
	radioModel     = "vision_model.radio_model.model."
	radioGenerator = radioModel + "patch_generator."
	heardLayer     = "sound_encoder.encoder.layers.{bid}."
)

var inSoundConfig table.In = func(c *config.View) config.Object { return c.Sub("sound_config") }

func hasSoundConfig(c *config.View) bool { return c.Value("sound_config") != nil }

// radioEnd are the last rows.
var radioEnd = []table.Row{
	{Key: parts.KeyVisionEps, Const: gguf.Float32(1e-6)}, parts.UseGELU,
	{Key: parts.KeyVisionScale, Derive: func(c *config.View) (gguf.Value, bool, error) {
		if !c.Present("downsample_ratio") {
			return gguf.Uint32(2), true, nil
		}
		return parts.Reciprocal(nil, "downsample_ratio")(c)
	}},
}

var radioLayers = []table.TensorRow{
	{HF: radioModel + "blocks.{bid}.norm1", GGUF: "v.blk.{bid}.ln1", Bias: table.NeedBias},
	{HF: radioModel + "blocks.{bid}.norm2", GGUF: "v.blk.{bid}.ln2", Bias: table.NeedBias},
	{HF: radioModel + "blocks.{bid}.mlp.fc1", GGUF: "v.blk.{bid}.ffn_up", Bias: table.NeedBias},
	{HF: radioModel + "blocks.{bid}.mlp.fc2", GGUF: "v.blk.{bid}.ffn_down", Bias: table.NeedBias},
}

var radioRows = []table.TensorRow{
	{HF: radioGenerator + "embedder", GGUF: "v.patch_embd", Type: parts.KernelType, Transform: kernelOfPlanes},
	{HF: "mlp1.0", GGUF: "mm.model.mlp.0"},
	{HF: "mlp1.1", GGUF: "mm.model.mlp.1"},
	{HF: "mlp1.3", GGUF: "mm.model.mlp.3"},
}

var radioDrops = slices.Concat(parts.DropAll("of the scale of pictures, which the metadata has",
	"vision_model.radio_model.input_conditioner."),
	parts.DropAll("of summaries, which models do not read", "vision_model.radio_model.summary_idxs"),
	parts.DropTextModel)

var radioShapes = shape.Table{"v.class_embd": "v_embd, ?tokens", "mm.model.mlp.0": "v_shuffled",
	"mm.model.mlp.1": "v_shuffled, ?between", "mm.model.mlp.3": "?between, v_proj"}

// vit has the sizes of a ViT.
type vit struct{ width, layers, heads int64 }

// vits has the ViT sizes by timm's names; FFNs are four times as wide as the layers.
var vits = map[string]vit{"tiny": {192, 12, 3}, "small": {384, 12, 6}, "base": {768, 12, 12}, "large": {1024, 24, 16},
	"huge": {1280, 32, 16}}

// vitOf returns the ViT size that the configuration names, by default ViT-H, which the reference always uses.
func vitOf(c *config.View) (vit, error) {
	s, ok, err := c.Vision().Sub("args").String("model")
	if err != nil {
		return vit{}, err
	}
	if !ok {
		s = "vit_huge_patch16_224"
	}
	size, _, _ := strings.Cut(strings.TrimPrefix(s, "vit_"), "_")
	v, known := vits[size]
	if !known || !strings.HasPrefix(s, "vit_"+size+"_patch") {
		return v, fault.Errorf(fault.Unsupported,
			"%s: key \"vision_config.args.model\" is %q, want vit_SIZE_patch… with one of tiny, small, base, large and huge", c.FileName(), s)
	}
	return v, nil
}

func vitRow(key string, of func(vit) int64) table.Row {
	return table.Row{Key: key, Derive: func(c *config.View) (gguf.Value, bool, error) {
		v, err := vitOf(c)
		return table.Uint32Of(of(v), true, err)
	}}
}

// isViTLayer is the condition of the vision encoder's layers; the audio encoder may have more.
func isViTLayer(l table.Layer) (bool, error) {
	v, err := vitOf(l.View)
	return l.Bid < v.layers, err
}

// rowsWithAudio returns rows for models with an audio encoder.
func rowsWithAudio(list ...table.Row) []table.Row {
	list = slices.Clone(list)
	for i, r := range list {
		list[i] = table.Row{Key: r.Key, Derive: func(c *config.View) (gguf.Value, bool, error) {
			if !hasSoundConfig(c) {
				return gguf.Value{}, false, nil
			}
			return r.Value(c)
		}}
	}
	return list
}

// valueWithAudio writes one value for models with an audio encoder, another for models without.
func valueWithAudio(v gguf.Value, audio bool) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) { return v, hasSoundConfig(c) == audio, nil }
}

// radioNorm writes a number per channel: from the processor's file, under the usual or RADIO's key, else from
// config.json, where the reference uses other numbers.
func radioNorm(key, own string, other ...float64) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		switch {
		case c.Options.Reference || c.Processor().Present(key):
			return parts.PerChannelOr(key, other...)(c)
		case c.Processor().Present(own):
			return parts.PerChannelOf(c.Processor(), own)
		case c.Present(own):
			return parts.PerChannelOf(c.Object, own)
		}
		return parts.FloatList(other)
	}
}

// radioPositions resizes the position embeddings, [1, positions, width], to the positions of the fixed image size.
var radioPositions = &table.Transform{Name: "radio-positions",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		ne := s.NE()
		patch, err := l.Vision().Require("patch_size")
		if err != nil {
			return nil, err
		}
		size, err := parts.IntOr(l.Object, "force_image_size", 512)
		if err == nil && (patch < 1 || size < patch || size > math.MaxInt32) {
			err = fault.Errorf(fault.Broken, "%s: pictures of %d pixels have no patches of %d",
				l.FileName(), size, patch)
		}
		if err == nil && (len(ne) != 3 || ne[2] != 1 || ne[1] > math.MaxInt32) {
			err = fault.Errorf(fault.Broken, "dimensions %s, want a row for each position", gguf.Shape(ne))
		}
		if err != nil {
			return nil, err
		}
		side, to := parts.IntSqrt(ne[1]), size/patch
		if side == to {
			return s, nil
		}
		if s, err = rows.Reshape(s, ne[:2]); err == nil {
			s, err = rows.Resize(s, side, to)
		}
		if err != nil {
			return nil, fmt.Errorf("positions: %w", err)
		}
		return rows.Reshape(s, []int64{ne[0], to * to, 1})
	}}

// kernelOfPlanes turns a matrix over patches, [out, planes*height*width], into a convolution kernel: three planes for
// an image, six for two frames.
var kernelOfPlanes = &table.Transform{Name: "kernel-of-planes",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		ne := s.NE()
		patch, err := l.Vision().Require("patch_size")
		if err == nil && (len(ne) != 2 || patch < 1 || patch > 1<<12 || ne[0]%(3*patch*patch) != 0) {
			err = fault.Errorf(fault.Broken, "dimensions %s, want rows of patches of %d x %d pixels in three channels",
				gguf.Shape(ne), patch, patch)
		}
		if err != nil {
			return nil, err
		}
		return rows.Reshape(s, []int64{patch, patch, ne[0] / (patch * patch), ne[1]})
	}}

// kernelAsImage reshapes a depthwise convolution, [channels, 1, width], to [1, 1, channels, width]; biases are
// unchanged.
var kernelAsImage = &table.Transform{Name: "pictures",
	Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
		ne := s.NE()
		switch {
		case len(ne) == 1:
			return s, nil
		case len(ne) != 3 || ne[1] != 1:
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want a row for each channel", gguf.Shape(ne))
		}
		return rows.Reshape(s, []int64{ne[0], ne[2], 1, 1})
	}}
