package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/torchmath"
	"ggforge/rows"
)

var _ = registerEncoder(gemma4Vision, gemma4UnifiedVision)

// Vision and audio encoders of Gemma 4. Source: the Gemma 4 classes of the reference for images and audio.

// gemma4Vision has a vision encoder with layers like those of its language model and, if there is an audio_config, a
// conformer for audio.
var gemma4Vision = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"Gemma4ForConditionalGeneration", "EmbeddingGemma2Model"},
	Encoder:    parts.EncoderOf(parts.InVision, parts.InAudio),
	BlockCount: parts.MaxLayers,
	Metadata: slices.Concat(
		parts.VisionRows(nominalImageSize), ifAudio(parts.AudioRows(parts.InAudio)[1:],
			table.Row{Key: "audio.feed_forward_length", Derive: fourTimesAudio}),
		[]table.Row{{Key: parts.KeyVisionKind, Const: gguf.String("gemma4v")}, parts.VisionEps("layer_norm_eps", 1e-6)},
		ifAudio(gemma4Projector("gemma4a")),
	),
	Expect: []table.Expect{
		{Key: "hidden_activation", In: parts.InVision, Values: parts.GELUTanh},
		{Key: "pooling_kernel_size", In: parts.InVision, Values: []string{"3"}},
		{Key: "rms_norm_eps", In: parts.InVision, Values: []string{"1e-06"}},
		{Key: "rope_theta", In: inVisionRope, Values: []string{"100"}},
		{Key: "attention_bias", In: parts.InVision, Values: []string{"false"}},
		{Key: "hidden_act", In: parts.InAudio, Values: []string{"silu"}},
		{Key: "rms_norm_eps", In: parts.InAudio, Values: []string{"1e-06"}},
		{Key: "attention_chunk_size", In: parts.InAudio, Values: []string{"12"}},
		{Key: "attention_context_left", In: parts.InAudio, Values: []string{"13"}},
		{Key: "attention_context_right", In: parts.InAudio, Values: []string{"0"}},
		{Key: "attention_logit_cap", In: parts.InAudio, Values: []string{"50"}},
		{Key: "residual_weight", In: parts.InAudio, Values: []string{"0.5"}},
	},
	Unused: []string{"vision_config.model_type", "vision_config.head_dim", "vision_config.global_head_dim",
		"vision_config.num_key_value_heads", "vision_config.max_position_embeddings",
		"vision_config.position_embedding_size", "vision_config.default_output_length", "vision_config.standardize",
		"vision_config.use_clipped_linears", "vision_config.rope_parameters",
		"audio_config.model_type", "audio_config.attention_invalid_logits_value", "audio_config.conv_kernel_size",
		"audio_config.gradient_clipping",
		"audio_config.subsampling_conv_channels", "audio_config.output_proj_dims", "audio_config.use_clipped_linears"},
	Rename: []table.Rename{{Prefix: "model.", With: ""}},
	Drop:   slices.Concat(parts.DropAll("of the language model", "embedding_projection."), parts.DropTextModel),
	Tensors: slices.Concat([]table.TensorRow{
		{HF: "vision_tower.patch_embedder.input_proj", GGUF: "v.patch_embd", Type: parts.KernelType,
			Transform: kernelOfPixels},
		{HF: "vision_tower.patch_embedder.position_embedding_table", Exact: true, GGUF: "v.position_embd.weight",
			Type: table.Always(gguf.TypeF32)},
		{HF: "vision_tower.std_bias", Exact: true, GGUF: "v.std_bias", If: ifTrue(parts.InVision, "standardize")},
		{HF: "vision_tower.std_scale", Exact: true, GGUF: "v.std_scale", If: ifTrue(parts.InVision, "standardize")},
		{HF: "embed_vision.embedding_projection", GGUF: "mm.input_projection"},
	}, parts.LayersOfPart(parts.InVision, slices.Concat([]table.TensorRow{
		{HF: gemma4Block + "input_layernorm", GGUF: "v.blk.{bid}.ln1"},
		{HF: gemma4Block + "post_attention_layernorm", GGUF: "v.blk.{bid}.attn_post_norm"},
		{HF: gemma4Block + "pre_feedforward_layernorm", GGUF: "v.blk.{bid}.ln2"},
		{HF: gemma4Block + "post_feedforward_layernorm", GGUF: "v.blk.{bid}.ffn_post_norm"},
		{HF: gemma4Block + "self_attn.q_norm", GGUF: "v.blk.{bid}.attn_q_norm"},
		{HF: gemma4Block + "self_attn.k_norm", GGUF: "v.blk.{bid}.attn_k_norm"},
		{HF: gemma4Block + "layer_scalar", Exact: true, GGUF: "v.blk.{bid}.out_scale.weight", Optional: true},
	}, clippedLinears(parts.InVision, gemma4Block, "v.blk.{bid}.", gemma4VisionLinears))),
		parts.OnlyIf(parts.HasAudio, slices.Concat([]table.TensorRow{
			{HF: gemma4Sub + "layer0.conv", GGUF: "a.conv1d.0", Type: table.Always(gguf.TypeF32)},
			{HF: gemma4Sub + "layer0.norm", GGUF: "a.conv1d.0.norm"},
			{HF: gemma4Sub + "layer1.conv", GGUF: "a.conv1d.1", Type: table.Always(gguf.TypeF32)},
			{HF: gemma4Sub + "layer1.norm", GGUF: "a.conv1d.1.norm"},
			{HF: gemma4Sub + "input_proj_linear", GGUF: "a.input_projection", Type: table.Always(gguf.TypeF32)},
			{HF: "audio_tower.output_proj", GGUF: "a.pre_encode.out", Bias: table.NeedBias},
			{HF: "embed_audio.embedding_projection", GGUF: "mm.a.input_projection"},
		}, parts.LayersOfPart(parts.InAudio, slices.Concat([]table.TensorRow{
			{HF: gemma4Heard + "feed_forward1.pre_layer_norm", GGUF: "a.blk.{bid}.ffn_norm"},
			{HF: gemma4Heard + "feed_forward1.post_layer_norm", GGUF: "a.blk.{bid}.ffn_post_norm"},
			{HF: gemma4Heard + "feed_forward2.pre_layer_norm", GGUF: "a.blk.{bid}.ffn_norm_1"},
			{HF: gemma4Heard + "feed_forward2.post_layer_norm", GGUF: "a.blk.{bid}.ffn_post_norm_1"},
			{HF: gemma4Heard + "norm_pre_attn", GGUF: "a.blk.{bid}.attn_pre_norm"},
			{HF: gemma4Heard + "norm_post_attn", GGUF: "a.blk.{bid}.attn_post_norm"},
			{HF: gemma4Heard + "norm_out", GGUF: "a.blk.{bid}.ln2"},
			{HF: gemma4Heard + "self_attn.per_dim_scale", Exact: true, GGUF: "a.blk.{bid}.per_dim_scale.weight",
				Transform: softplus},
			{HF: gemma4Heard + "self_attn.relative_k_proj", GGUF: "a.blk.{bid}.attn_k_rel"},
			{HF: gemma4Heard + "lconv1d.pre_layer_norm", GGUF: "a.blk.{bid}.conv_norm"},
			{HF: gemma4Heard + "lconv1d.conv_norm", GGUF: "a.blk.{bid}.norm_conv"},
			{HF: gemma4Heard + "lconv1d.depthwise_conv1d", GGUF: "a.blk.{bid}.conv_dw",
				Type:      table.Always(gguf.TypeF32),
				Transform: parts.SqueezeKernel},
		}, clippedLinears(parts.InAudio, gemma4Heard, "a.blk.{bid}.", gemma4AudioLinears)))))),
	Shapes: shape.Rules{Tensors: shape.Merge(shape.Table{
		"v.position_embd": "v_embd, ?positions, 2", "v.std_bias": "v_embd", "v.std_scale": "v_embd",
		"mm.input_projection":        "v_embd, v_proj",
		"v.blk.{bid}.attn_post_norm": "v_embd", "v.blk.{bid}.ffn_post_norm": "v_embd", "v.blk.{bid}.out_scale": "1",
		"a.conv1d.0": "3, 3, 1, ?first", "a.conv1d.0.norm": "?first", "a.conv1d.1": "3, 3, ?first, ?second",
		"a.conv1d.1.norm":    "?second",
		"a.input_projection": "?spectra, a_embd", "a.pre_encode.out": "a_embd, ?heard",
		"mm.a.input_projection": "?heard, a_proj",
		"a.blk.{bid}.ffn_norm":  "a_embd", "a.blk.{bid}.ffn_post_norm": "a_embd", "a.blk.{bid}.ffn_norm_1": "a_embd",
		"a.blk.{bid}.ffn_post_norm_1": "a_embd",
		"a.blk.{bid}.attn_pre_norm":   "a_embd", "a.blk.{bid}.attn_post_norm": "a_embd",
		"a.blk.{bid}.per_dim_scale": "a_embd / @audio.attention.head_count",
		"a.blk.{bid}.attn_k_rel":    "a_embd, a_embd", "a.blk.{bid}.conv_norm": "a_embd",
		"a.blk.{bid}.norm_conv": "a_embd", "a.blk.{bid}.conv_dw": "?kernel, a_embd",
		"a.blk.{bid}.conv_pw1": "a_embd, 2 * a_embd", "a.blk.{bid}.conv_pw2": "a_embd, a_embd",
		"a.blk.{bid}.ffn_up_1": "a_embd, a_ff", "a.blk.{bid}.ffn_down_1": "a_ff, a_embd",
	}, boundShapes("v.blk.{bid}.", gemma4VisionLinears), boundShapes("a.blk.{bid}.", gemma4AudioLinears))},
}

// gemma4UnifiedVision has no encoder layers: it projects patches and audio frames directly.
var gemma4UnifiedVision = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"Gemma4UnifiedForConditionalGeneration"},
	Encoder:    parts.EncoderOf(parts.InVision, parts.InAudio),
	BlockCount: func(*config.View) (int64, error) { return 0, nil },
	Metadata: slices.Concat(
		parts.VisionRows(nominalImageSize, parts.RequiredUint32(parts.KeyVisionWidth, parts.InVision, "mm_embed_dim"),
			zeroRow(parts.KeyVisionFF),
			zeroRow(parts.KeyVisionBlocks), zeroRow(parts.KeyVisionHeads)),
		parts.WithRows(parts.AudioRows(parts.InAudio)[1:],
			[]table.Row{parts.RequiredUint32(parts.KeyAudioWidth, parts.InAudio, "audio_embed_dim"),
				zeroRow("audio.feed_forward_length"), zeroRow("audio.block_count"),
				zeroRow("audio.attention.head_count")}),
		[]table.Row{{Key: parts.KeyVisionKind, Const: gguf.String("gemma4uv")},
			parts.VisionEps("layer_norm_eps", 1e-6)},
		gemma4Projector("gemma4ua"),
	),
	Expect: []table.Expect{
		{Key: "rms_norm_eps", In: parts.InVision, Values: []string{"1e-06"}},
		{Key: "rms_norm_eps", In: parts.InAudio, Values: []string{"1e-06"}},
		{Key: "pooling_kernel_size", In: parts.InVision, Values: []string{"3"}},
	},
	Unused: []string{"vision_config.model_type", "vision_config.mm_posemb_size", "vision_config.output_proj_dims",
		"vision_config.num_soft_tokens", "audio_config.model_type",
		"audio_config.audio_samples_per_token", "audio_config.output_proj_dims"},
	Rename: gemma4Vision.Rename,
	Drop:   parts.DropTextModel,
	Tensors: []table.TensorRow{
		{HF: "vision_embedder.patch_dense.weight", Exact: true, GGUF: "v.patch_embd.weight", Type: parts.KernelType,
			Transform: channelsFirst},
		{HF: "vision_embedder.patch_dense.bias", Exact: true, GGUF: "v.patch_embd.bias"},
		{HF: "vision_embedder.patch_ln1", GGUF: "v.patch_norm.1", Bias: table.NeedBias, Transform: channelsFirst},
		{HF: "vision_embedder.patch_ln2", GGUF: "v.patch_norm.2", Bias: table.NeedBias},
		{HF: "vision_embedder.pos_norm", GGUF: "v.patch_norm.3", Bias: table.NeedBias},
		{HF: "vision_embedder.pos_embedding", Exact: true, GGUF: "v.position_embd.weight",
			Type: table.Always(gguf.TypeF32), Transform: eachAxis},
		{HF: "embed_vision.embedding_projection", GGUF: "mm.input_projection"},
		{HF: "embed_audio.embedding_projection", GGUF: "mm.a.input_projection"},
	},
	Shapes: shape.Rules{Tensors: shape.Table{
		"v.patch_embd": "?patch, v_embd", "v.patch_norm.1": "?patch", "v.patch_norm.2": "v_embd",
		"v.patch_norm.3": "v_embd", "v.position_embd": "v_embd, ?positions, 2",
		"mm.input_projection": "v_embd, v_proj", "mm.a.input_projection": "a_embd, a_proj",
	}},
}

const (
	gemma4Block = "vision_tower.encoder.layers.{bid}."
	gemma4Heard = "audio_tower.layers.{bid}."
	gemma4Sub   = "audio_tower.subsample_conv_projection."
)

// nominalImageSize is a required key without effect.
var nominalImageSize = table.Row{Key: parts.KeyImageSize, Const: gguf.Uint32(224)}

func zeroRow(key string) table.Row { return table.Row{Key: key, Const: gguf.Uint32(0)} }

// gemma4Projector are the rows of an audio projector of a type.
func gemma4Projector(kind string) []table.Row {
	return []table.Row{
		{Key: parts.KeyAudioKind, Const: gguf.String(kind)},
		parts.Uint32Row(parts.KeyMels, parts.InAudio, "input_feat_size", 128),
		{Key: parts.KeyAudioEps, Type: gguf.Float32Type, In: parts.InAudio, From: []string{"layer_norm_eps"},
			Const: gguf.Float32(1e-6)},
	}
}

// ifAudio returns rows for models with an audio encoder; rows of over replace rows with the same key.
func ifAudio(list []table.Row, over ...table.Row) []table.Row {
	list = parts.WithRows(list, over)
	for i, r := range list {
		list[i] = table.Row{Key: r.Key, Derive: func(c *config.View) (gguf.Value, bool, error) {
			if ok, err := parts.HasAudio(table.Layer{View: c, Bid: -1}); err != nil || !ok {
				return gguf.Value{}, false, err
			}
			return r.Value(c)
		}}
	}
	return list
}

func fourTimesAudio(c *config.View) (gguf.Value, bool, error) {
	n, err := c.Audio().Require("hidden_size")
	return table.Uint32Of(4*n, true, err)
}

// inVisionRope returns the RoPE settings of the vision encoder.
func inVisionRope(c *config.View) config.Object { return c.Vision().Sub("rope_parameters") }

// ifTrue is the condition that a key of an encoder's configuration is true.
func ifTrue(in table.In, key string) table.Cond {
	return func(l table.Layer) (bool, error) {
		b, _, err := in(l.View).Bool(key)
		return b, err
	}
}

// linear is a linear layer whose input and output may be clipped.
type linear struct{ hf, gguf string }

var gemma4VisionLinears = []linear{
	{"self_attn.q_proj", "attn_q"}, {"self_attn.k_proj", "attn_k"}, {"self_attn.v_proj", "attn_v"},
	{"self_attn.o_proj", "attn_out"},
	{"mlp.gate_proj", "ffn_gate"}, {"mlp.up_proj", "ffn_up"}, {"mlp.down_proj", "ffn_down"},
}

var gemma4AudioLinears = []linear{
	{"feed_forward1.ffw_layer_1", "ffn_up"}, {"feed_forward1.ffw_layer_2", "ffn_down"},
	{"feed_forward2.ffw_layer_1", "ffn_up_1"}, {"feed_forward2.ffw_layer_2", "ffn_down_1"},
	{"self_attn.q_proj", "attn_q"}, {"self_attn.k_proj", "attn_k"}, {"self_attn.v_proj", "attn_v"},
	{"self_attn.post", "attn_out"},
	{"lconv1d.linear_start", "conv_pw1"}, {"lconv1d.linear_end", "conv_pw2"},
}

// bounds are the limits of a linear layer's input and output.
var bounds = []string{"input_max", "input_min", "output_max", "output_min"}

// clippedLinears are the rows of linear layers; bounds are required with use_clipped_linears, else optional.
func clippedLinears(in table.In, hf, to string, list []linear) []table.TensorRow {
	has := ifTrue(in, "use_clipped_linears")
	var all []table.TensorRow
	for _, m := range list {
		all = append(all, table.TensorRow{HF: hf + m.hf + ".linear", GGUF: to + m.gguf})
		for _, b := range bounds {
			row := table.TensorRow{HF: hf + m.hf + "." + b, Exact: true, GGUF: to + m.gguf + "." + b, Number: true}
			all = append(all, parts.Only(has, []table.TensorRow{row})...)
			all = append(all, parts.Only(parts.Not(has), parts.OptionalRows([]table.TensorRow{row}))...)
		}
	}
	return all
}

func boundShapes(to string, list []linear) shape.Table {
	all := shape.Table{}
	for _, m := range list {
		for _, b := range bounds {
			all[to+m.gguf+"."+b] = "1"
		}
	}
	return all
}

// softplus applies log(1 + exp(x)).
var softplus = &table.Transform{Name: "softplus", Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
	if ne := s.NE(); len(ne) != 1 {
		return nil, fault.Errorf(fault.Broken, "dimensions %s, want one", gguf.Shape(ne))
	}
	return rows.Map(s, torchmath.Softplus), nil
}}

// byChannel reorders the rows of a matrix from [side*side][3] (pixels, channels) to [3][side*side].
func byChannel(s rows.Source, side int64) (rows.Source, error) {
	ne, area := s.NE(), side*side
	column, err := rows.Reshape(s, []int64{1, gguf.Rows(ne) * ne[0]})
	if err != nil {
		return nil, err
	}
	column, err = rows.Regroup(column, func(i int64) int64 {
		row, at := i/(3*area), i%(3*area)
		return row*3*area + at%area*3 + at/area
	})
	if err != nil {
		return nil, err
	}
	return rows.Reshape(column, ne)
}

// kernelOfPixels turns a matrix over patches, [out, height*width*3], into a convolution kernel [out, 3, height, width].
var kernelOfPixels = &table.Transform{Name: "kernel-of-pixels",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		ne := s.NE()
		patch, err := l.Vision().Require("patch_size")
		if err == nil && (len(ne) != 2 || patch < 1 || patch > 1<<12 || ne[0] != 3*patch*patch) {
			err = fault.Errorf(fault.Broken, "dimensions %s, want rows of patches of %d x %d pixels in three channels",
				gguf.Shape(ne), patch, patch)
		}
		if err != nil {
			return nil, err
		}
		if s, err = byChannel(s, patch); err != nil {
			return nil, err
		}
		return rows.Reshape(s, []int64{patch, patch, 3, ne[1]})
	}}

// channelsFirst is byChannel for weights or a norm over the pixels of a patch: runtimes lay out patches channel by
// channel.
var channelsFirst = &table.Transform{Name: "channels-first",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		o := l.Vision()
		side, ok, err := o.Int("model_patch_size")
		if err == nil && !ok {
			var patch, pool int64
			if patch, err = o.Require("patch_size"); err == nil {
				pool, err = o.Require("pooling_kernel_size")
			}
			if err == nil && max(patch, pool) <= 1<<12 {
				side = patch * pool
			}
		}
		if ne := s.NE(); err == nil && (side < 1 || side > 1<<24 || ne[0] != 3*side*side) {
			err = fault.Errorf(fault.Broken, "dimensions %s, want rows of %d x %d pixels in three channels",
				gguf.Shape(ne), side, side)
		}
		if err != nil {
			return nil, err
		}
		return byChannel(s, side)
	}}

// eachAxis reorders position embeddings from [positions][axes] to [axes][positions].
var eachAxis = &table.Transform{Name: "axes-first", Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
	ne := s.NE()
	if len(ne) != 3 {
		return nil, fault.Errorf(fault.Broken, "dimensions %s, want three", gguf.Shape(ne))
	}
	return rows.Gather(s, []int64{ne[0], ne[2], ne[1]}, func(i int64) int64 { return i%ne[2]*ne[1] + i/ne[2] })
}}
