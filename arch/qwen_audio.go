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

var _ = registerEncoder(qwen25Omni, qwen3Omni, qwen3ASR, audioFlamingo3, qwen2Audio)

// Vision and audio encoders of Qwen's Omni and ASR models. Their configurations are in thinker_config; models that
// speak have a talker_config next to it. Audio positions are sinusoidal: files have them, checkpoints do not. Source:
// Qwen25OmniModel and Qwen3OmniMmprojModel of the reference.

// omniPositions is the number of positions of 30 seconds of audio.
var omniPositions = []table.ExtraTensor{{GGUF: "a.position_embd.weight",
	Make: func(c *config.View) (rows.Source, error) {
		const positions, widest = 1500, 1 << 16
		width, err := c.Audio().Require("d_model")
		if err == nil && (width < 4 || width > widest || width%2 != 0) {
			err = fault.Errorf(fault.Broken, "%s: key %q: %d, want an even width from 4 to %d", c.FileName(),
				c.Audio().Names([]string{"d_model"})[0], width, widest)
		}
		if err != nil {
			return nil, err
		}
		return rows.Compute([]int64{width, positions}, torchmath.NewSinusoids(positions, int(width)).Rows), nil
	}}}

// omniAudio are the keys of the audio encoder, without the projector's type.
func omniAudio() []table.Row {
	return parts.WithRows(parts.AudioRows(parts.InAudio)[1:], []table.Row{
		parts.RequiredUint32(parts.KeyAudioWidth, parts.InAudio, "d_model"),
		parts.RequiredUint32("audio.feed_forward_length", parts.InAudio, "encoder_ffn_dim"),
		parts.RequiredUint32("audio.attention.head_count", parts.InAudio, "encoder_attention_heads"),
		parts.RequiredUint32(parts.KeyMels, parts.InAudio, "num_mel_bins"),
		{Key: parts.KeyAudioEps, Type: gguf.Float32Type, In: parts.InAudio, From: []string{"layer_norm_eps"},
			Const: gguf.Float32(1e-5)},
	})
}

// omniExpect are settings of the audio encoder with one value in runtimes; window is n_window, half the length of a
// chunk of audio for the convolutions.
func omniExpect(window string, list ...table.Expect) []table.Expect {
	return append([]table.Expect{
		{Key: "activation_function", In: parts.InAudio, Values: []string{"gelu"}},
		{Key: "scale_embedding", In: parts.InAudio, Values: []string{"false"}},
		{Key: "max_source_positions", In: parts.InAudio, Values: []string{"1500"}},
		{Key: "n_window", In: parts.InAudio, Values: []string{window}},
	}, list...)
}

// omniUnused are keys in thinker_config without effect on the file.
func omniUnused(lists ...[]string) []string {
	var list []string
	for _, key := range slices.Concat(lists...) {
		list = append(list, "thinker_config."+key)
	}
	for _, key := range slices.Concat(parts.WhisperUnused, []string{"output_dim", "downsample_hidden_size",
		"conv_chunksize",
		"model_type"}) {
		list = append(list, "thinker_config.audio_config."+key)
	}
	return list
}

// omniDrop drops the talker and the language model.
var omniDrop = slices.Concat(parts.DropAll("of the language model", "thinker.model.", "thinker.lm_head."),
	parts.DropAll("of the part that speaks", "talker.", "token2wav.", "code2wav."), parts.DropTextModel)

// omniLayers are the layers of the audio encoder and the norm after them.
var omniLayers = append(parts.LayersOfPart(parts.InAudio, parts.WhisperLayers),
	table.TensorRow{HF: "audio_tower.ln_post", GGUF: "a.post_ln",
		Bias: table.NeedBias})

var qwen25Omni = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"Qwen2_5OmniModel"},
	Encoder:    parts.EncoderOf(parts.InVision, parts.InAudio),
	BlockCount: parts.MaxLayers,
	Metadata: slices.Concat(parts.QwenVLKeys(
		table.Row{Key: parts.KeyVisionWidth, Type: gguf.Uint32Type, In: parts.InVision,
			From:     []string{"embed_dim", "hidden_size"},
			Required: true},
		table.Row{Key: parts.KeyVisionFF, Derive: qwen25OmniWidth},
	), omniAudio(), []table.Row{parts.ProjectorType("qwen2.5o"), parts.UseSiLU,
		{Key: "vision.n_wa_pattern", Derive: parts.FullAttentionPeriod}, qwenVLEps}),
	Unused: omniUnused([]string{"vision_config.model_type"}, parts.QwenVLUnused),
	Expect: omniExpect("100", qwen25VL.Expect...),
	Rename: []table.Rename{{Prefix: "thinker.visual.", With: "visual."},
		{Prefix: "thinker.audio_tower.", With: "audio_tower."}},
	Drop: append(parts.DropAll("that transformers does not use either", "audio_tower.audio_bos_eos_token."),
		omniDrop...),
	Extra: omniPositions,
	Tensors: slices.Concat(parts.LayersOfPart(parts.InVision, qwen25OmniVision), omniLayers,
		parts.WhisperConv(gguf.TypeF16),
		[]table.TensorRow{{HF: "audio_tower.proj", GGUF: "mm.a.fc", Bias: table.NeedBias}}),
	Shapes: shape.Rules{Tensors: shape.Merge(parts.QwenMergerShapes, shape.Table{"mm.a.fc": "a_embd, a_proj",
		"v.blk.{bid}.ffn_gate": "v_embd, ?v_wide", "v.blk.{bid}.ffn_up": "v_embd, ?v_wide",
		"v.blk.{bid}.ffn_down": "?v_wide, v_embd"})},
}

// qwen25OmniVision are Qwen2.5-VL's rows with separate Q, K and V.
var qwen25OmniVision = slices.Concat(slices.DeleteFunc(slices.Clone(qwenVLRows),
	func(r table.TensorRow) bool { return len(r.Split) == len(parts.QKVThirds) }), parts.Qwen25VLFeedForward,
	[]table.TensorRow{
		{HF: "visual.blocks.{bid}.attn.q", GGUF: "v.blk.{bid}.attn_q", Bias: table.NeedBias},
		{HF: "visual.blocks.{bid}.attn.k", GGUF: "v.blk.{bid}.attn_k", Bias: table.NeedBias},
		{HF: "visual.blocks.{bid}.attn.v", GGUF: "v.blk.{bid}.attn_v", Bias: table.NeedBias},
	})

// qwen25OmniWidth writes feed_forward_length as the reference does: the layers' width if embed_dim is set. Runtimes do
// not read it.
func qwen25OmniWidth(c *config.View) (gguf.Value, bool, error) {
	key := "intermediate_size"
	if c.Vision().Present("embed_dim") {
		key = "hidden_size"
	}
	n, err := c.Vision().Require(key)
	return table.Uint32Of(n, true, err)
}

// qwen3Audio are the tensors of the audio encoder of Qwen3 models: convolutions over images of spectra before the
// layers.
func qwen3Audio() []table.TensorRow {
	list := slices.Clone(omniLayers)
	for _, i := range []string{"1", "2", "3"} {
		list = append(list,
			table.TensorRow{HF: "audio_tower.conv2d" + i, GGUF: "a.conv2d." + i, Type: table.Always(gguf.TypeF16)},
			table.TensorRow{HF: "audio_tower.conv2d" + i + ".bias", Exact: true, GGUF: "a.conv2d." + i + ".bias",
				Transform: parts.ChannelsAsPlane})
	}
	return append(list,
		table.TensorRow{HF: "audio_tower.conv_out", GGUF: "a.conv_out", Type: table.Always(gguf.TypeF16)},
		table.TensorRow{HF: "audio_tower.proj1", GGUF: "mm.a.mlp.1", Bias: table.NeedBias},
		table.TensorRow{HF: "audio_tower.proj2", GGUF: "mm.a.mlp.2", Bias: table.NeedBias})
}

var qwen3AudioShapes = shape.Table{
	"a.conv2d.1": "3, 3, 1, ?a_sub", "a.conv2d.2": "3, 3, ?a_sub, ?a_sub", "a.conv2d.3": "3, 3, ?a_sub, ?a_sub",
	"a.conv2d.1.bias": "1, 1, ?a_sub", "a.conv2d.2.bias": "1, 1, ?a_sub", "a.conv2d.3.bias": "1, 1, ?a_sub",
	"a.conv_out": "?a_flat, a_embd", "mm.a.mlp.1": "a_embd, ?a_between", "mm.a.mlp.2": "?a_between, a_proj",
}

var qwen3AudioExpect = omniExpect("50", table.Expect{Key: "n_window_infer", In: parts.InAudio, Values: []string{"800"}})

// qwen3Omni has Qwen3-VL's vision encoder.
var qwen3Omni = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"Qwen3OmniMoeForConditionalGeneration"},
	Encoder:    parts.EncoderOf(parts.InVision, parts.InAudio),
	BlockCount: parts.MaxLayers,
	Metadata: slices.Concat(parts.VisionRows(
		table.Row{Key: parts.KeyImageSize, Derive: parts.SizeOfPositions},
		table.Row{Key: parts.KeyVisionBlocks, Type: gguf.Uint32Type, In: parts.InVision, From: []string{"depth"},
			Required: true},
		table.Row{Key: parts.KeyVisionHeads, Type: gguf.Uint32Type, In: parts.InVision, From: []string{"num_heads"},
			Required: true},
	), omniAudio(), []table.Row{
		parts.UseGELU, {Key: parts.KeyVisionMerge, Type: gguf.Uint32Type, In: parts.InVision,
			From: []string{"spatial_merge_size"}},
		{Key: parts.KeyVisionEps, Type: gguf.Float32Type, In: parts.InText, From: []string{"rms_norm_eps"},
			Const: gguf.Float32(1e-6)},
		{Key: "vision.is_deepstack_layers", Derive: parts.DeepstackLayers},
		{Key: parts.KeyVisionKind, Const: gguf.String("qwen3vl_merger")},
		{Key: parts.KeyAudioKind, Const: gguf.String("qwen3a")},
	}),
	Unused: omniUnused(qwen3VL.Unused),
	Expect: append(slices.Clone(qwen3VL.Expect),
		append(qwen3AudioExpect,
			table.Expect{Key: "apply_vit_abs_pos_embed", In: parts.InVision, Values: []string{"true"}})...),
	Rename: slices.Concat(qwen3OmniNames("thinker.visual."), qwen3OmniNames("model.visual."),
		[]table.Rename{{Prefix: "thinker.audio_tower.", With: "audio_tower."}}),
	Drop:    omniDrop,
	Extra:   omniPositions,
	Tensors: slices.Concat(parts.LayersOfPart(parts.InVision, qwen3OmniVision), qwen3Audio()),
	Shapes:  shape.Rules{Tensors: shape.Merge(qwen3VL.Shapes.Tensors, qwen3AudioShapes)},
}

// qwen3OmniVision are Qwen3-VL's rows with other names of mergers.
var qwen3OmniVision = slices.Concat(parts.Qwen3VLRows, []table.TensorRow{
	{HF: "visual.merger.ln_q", GGUF: "v.post_ln", Bias: table.NeedBias},
	{HF: "visual.merger.mlp.0", GGUF: "mm.0", Bias: table.NeedBias},
	{HF: "visual.merger.mlp.2", GGUF: "mm.2", Bias: table.NeedBias},
	{HF: "visual.deepstack.{bid}.ln_q", GGUF: "v.deepstack.{bid}.norm", Bias: table.NeedBias, If: parts.IsDeepstack},
	{HF: "visual.deepstack.{bid}.mlp.0", GGUF: "v.deepstack.{bid}.fc1", Bias: table.NeedBias, If: parts.IsDeepstack},
	{HF: "visual.deepstack.{bid}.mlp.2", GGUF: "v.deepstack.{bid}.fc2", Bias: table.NeedBias, If: parts.IsDeepstack},
})

// qwen3OmniNames rename tensors under a prefix to Qwen3-VL's names.
func qwen3OmniNames(prefix string) []table.Rename {
	return []table.Rename{{Prefix: prefix + "merger_list.", With: "visual.deepstack.{bid}.",
		Number: parts.DeepstackLayer},
		{Prefix: prefix, With: "visual."}}
}

var qwen3ASR = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"Qwen3ASRForConditionalGeneration"},
	Encoder:    parts.EncoderOf(parts.InAudio),
	BlockCount: parts.LayersIn(parts.InAudio, parts.BlockKeys...),
	Metadata: slices.Concat([]table.Row{{Key: gguf.KeyFileType}}, omniAudio(),
		[]table.Row{{Key: parts.KeyAudioKind, Const: gguf.String("qwen3a")}}),
	Unused:  omniUnused(),
	Expect:  qwen3AudioExpect,
	Rename:  []table.Rename{{Prefix: "thinker.audio_tower.", With: "audio_tower."}},
	Drop:    omniDrop,
	Extra:   omniPositions,
	Tensors: qwen3Audio(),
	Shapes:  shape.Rules{Tensors: qwen3AudioShapes},
}

var qwen2Audio = parts.Whisper{
	Classes: []string{"Qwen2AudioForConditionalGeneration"}, Part: "audio_config", Kind: "qwen2a",
	Conv:   gguf.TypeF16,
	MM:     []table.TensorRow{{HF: "multi_modal_projector.linear", GGUF: "mm.a.fc", Bias: table.NeedBias}},
	Shapes: shape.Table{"mm.a.fc": "a_embd, a_proj"},
}.Arch()

var audioFlamingo3 = parts.Whisper{
	Classes: []string{"AudioFlamingo3ForConditionalGeneration"}, Part: "audio_config", Kind: "musicflamingo",
	Conv:   gguf.TypeF32,
	Expect: []table.Expect{{Key: "projector_hidden_act", Values: []string{"gelu"}}},
	MM:     parts.TwoLayerProjector(table.MayBias),
	Shapes: shape.Table{"mm.a.mlp.1": "a_embd, ?mm_mid", "mm.a.mlp.2": "?mm_mid, a_proj"},
}.Arch()
