package encoders

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// RADIO, the ViT of NVIDIA's models. Source: NemotronNanoV2VLModel and NemotronOmniVLModel of the reference.

// radio is the RADIO encoder of Nemotron Nano 2 VL, for images of one size, and of Nemotron 3 Nano Omni, which adds an
// audio encoder.
var radio = &table.Arch{
	Name:    name,
	Classes: []string{"RADIOModel", "NemotronH_Nano_VL_V2"},
	Encoder: encoderOf(inVision, inSoundConfig),
	BlockCount: func(c *config.View) (int64, error) {
		v, err := vitOf(c)
		if err != nil || !hasSoundConfig(c) {
			return v.layers, err
		}
		n, err := layers(inSoundConfig, blockKeys...)(c)
		return max(v.layers, n), err
	},
	Metadata: slices.Concat(
		rowsWithAudio(
			required(uint32Row(keyMels, inSoundConfig, "num_mel_bins", 0)),
			table.Row{Key: keyAudioEps, Const: gguf.Float32(1e-5)},
			required(uint32Row("audio.subsampling_factor", inSoundConfig, "subsampling_factor", 0)),
			required(uint32Row("audio.conv_kernel_size", inSoundConfig, "conv_kernel_size", 0)),
			table.Row{Key: "audio.projector_type", Const: gguf.String("parakeet")},
		),
		[]table.Row{{Key: "vision.projector_type", Derive: valueWithAudio(gguf.String("nemotron_v2_vl"), true)},
			{Key: keyProjector, Derive: valueWithAudio(gguf.String("nemotron_v2_vl"), false)}},
		vision(
			table.Row{Key: keyImageSize, Type: gguf.Uint32Type, From: []string{"force_image_size"},
				Const: gguf.Uint32(512)},
			vitRow(keyWidth, func(v vit) int64 { return v.width }),
			vitRow(keyFF, func(v vit) int64 { return 4 * v.width }),
			vitRow(keyBlocks, func(v vit) int64 { return v.layers }),
			vitRow(keyHeads, func(v vit) int64 { return v.heads }),
			table.Row{Key: "vision.image_mean", Derive: radioNorm("image_mean", "norm_mean", 0.485, 0.456, 0.406),
				Facts: config.ProcessorFiles},
			table.Row{Key: "vision.image_std", Derive: radioNorm("image_std", "norm_std", 0.229, 0.224, 0.225),
				Facts: config.ProcessorFiles},
		),
		rowsWithAudio(audioRows(inSoundConfig)[1:]...), radioEnd),
	Expect: []table.Expect{{Key: "feature_normalizer_config", In: inVision},
		{Key: "inter_feature_normalizer_config", In: inVision}, {Key: "vitdet_window_size", In: inVision},
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
	Drop: slices.Concat(radioDrops, dropAll("for films, which runtimes do not see by this projector",
		radioGenerator+"video_embedder."),
		[]table.Drop{dropCounters("sound_encoder.encoder.layers.")}),
	Tensors: slices.Concat(onlyIf(isViTLayer, radioLayers), radioRows, []table.TensorRow{
		{HF: radioGenerator + "pos_embed", Exact: true, GGUF: "v.position_embd.weight", Type: always32,
			Transform: radioPositions},
		{HF: radioGenerator + "cls_token.token", Exact: true, GGUF: "v.class_embd"},
		{HF: radioModel + "blocks.{bid}.attn.qkv", GGUF: "v.blk.{bid}.attn_qkv", Bias: table.NeedBias, If: isViTLayer},
		{HF: radioModel + "blocks.{bid}.attn.proj", GGUF: "v.blk.{bid}.attn_out", Bias: table.NeedBias, If: isViTLayer},
	}, onlyIf(func(l table.Layer) (bool, error) { return hasSoundConfig(l.View), nil }, parakeet)),
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
	{Key: keyNormEps, Const: gguf.Float32(1e-6)}, useGELU,
	{Key: keyScale, Derive: func(c *config.View) (gguf.Value, bool, error) {
		if !c.Present("downsample_ratio") {
			return gguf.Uint32(2), true, nil
		}
		return reciprocal(nil, "downsample_ratio")(c)
	}},
}

var radioLayers = []table.TensorRow{
	{HF: radioModel + "blocks.{bid}.norm1", GGUF: "v.blk.{bid}.ln1", Bias: table.NeedBias},
	{HF: radioModel + "blocks.{bid}.norm2", GGUF: "v.blk.{bid}.ln2", Bias: table.NeedBias},
	{HF: radioModel + "blocks.{bid}.mlp.fc1", GGUF: "v.blk.{bid}.ffn_up", Bias: table.NeedBias},
	{HF: radioModel + "blocks.{bid}.mlp.fc2", GGUF: "v.blk.{bid}.ffn_down", Bias: table.NeedBias},
}

var radioRows = []table.TensorRow{
	{HF: radioGenerator + "embedder", GGUF: "v.patch_embd", Type: kernelType, Transform: kernelOfPlanes},
	{HF: "mlp1.0", GGUF: "mm.model.mlp.0"},
	{HF: "mlp1.1", GGUF: "mm.model.mlp.1"},
	{HF: "mlp1.3", GGUF: "mm.model.mlp.3"},
}

var radioDrops = slices.Concat(dropAll("of the scale of pictures, which the metadata has",
	"vision_model.radio_model.input_conditioner."),
	dropAll("of summaries, which models do not read", "vision_model.radio_model.summary_idxs"), dropTextModel)

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
			return channelsOr(key, other...)(c)
		case c.Processor().Present(own):
			return channels(c.Processor(), own)
		case c.Present(own):
			return channels(c.Object, own)
		}
		return floats(other)
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
		size, err := intOr(l.Object, "force_image_size", 512)
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
		side, to := intSqrt(ne[1]), size/patch
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
