package encoders

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/torchmath"
	"ggforge/rows"
)

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
	return withRows(audioRows(inAudio)[1:], []table.Row{
		required(uint32Row(keyAudioWidth, inAudio, "d_model", 0)),
		required(uint32Row("audio.feed_forward_length", inAudio, "encoder_ffn_dim", 0)),
		required(uint32Row("audio.attention.head_count", inAudio, "encoder_attention_heads", 0)),
		required(uint32Row(keyMels, inAudio, "num_mel_bins", 0)),
		{Key: keyAudioEps, Type: gguf.Float32Type, In: inAudio, From: []string{"layer_norm_eps"},
			Const: gguf.Float32(1e-5)},
	})
}

// omniExpect are settings of the audio encoder with one value in runtimes; window is n_window, half the length of a
// chunk of audio for the convolutions.
func omniExpect(window string, list ...table.Expect) []table.Expect {
	return append([]table.Expect{
		{Key: "activation_function", In: inAudio, Values: []string{"gelu"}},
		{Key: "scale_embedding", In: inAudio, Values: []string{"false"}},
		{Key: "max_source_positions", In: inAudio, Values: []string{"1500"}},
		{Key: "n_window", In: inAudio, Values: []string{window}},
	}, list...)
}

// omniUnused are keys in thinker_config without effect on the file.
func omniUnused(lists ...[]string) []string {
	var list []string
	for _, key := range slices.Concat(lists...) {
		list = append(list, "thinker_config."+key)
	}
	for _, key := range slices.Concat(whisperUnused, []string{"output_dim", "downsample_hidden_size", "conv_chunksize",
		"model_type"}) {
		list = append(list, "thinker_config.audio_config."+key)
	}
	return list
}

// omniDrop drops the talker and the language model.
var omniDrop = slices.Concat(dropAll("of the language model", "thinker.model.", "thinker.lm_head."),
	dropAll("of the part that speaks", "talker.", "token2wav.", "code2wav."), dropTextModel)

// omniLayers are the layers of the audio encoder and the norm after them.
var omniLayers = append(layersOfPart(inAudio, whisperLayers),
	table.TensorRow{HF: "audio_tower.ln_post", GGUF: "a.post_ln",
		Bias: table.NeedBias})

var qwen25Omni = &table.Arch{
	Name:       name,
	Classes:    []string{"Qwen2_5OmniModel"},
	Encoder:    encoderOf(inVision, inAudio),
	BlockCount: maxLayers,
	Metadata: slices.Concat(qwenVLKeys(
		table.Row{Key: keyWidth, Type: gguf.Uint32Type, In: inVision, From: []string{"embed_dim", "hidden_size"},
			Required: true},
		table.Row{Key: keyFF, Derive: qwen25OmniWidth},
	), omniAudio(), []table.Row{projector("qwen2.5o"), useSiLU,
		{Key: "vision.n_wa_pattern", Derive: windowPattern}, qwenVLEps}),
	Unused: omniUnused([]string{"vision_config.model_type"}, qwenVLUnused),
	Expect: omniExpect("100", qwen25VL.Expect...),
	Rename: []table.Rename{{Prefix: "thinker.visual.", With: "visual."},
		{Prefix: "thinker.audio_tower.", With: "audio_tower."}},
	Drop:  append(dropAll("that transformers does not use either", "audio_tower.audio_bos_eos_token."), omniDrop...),
	Extra: omniPositions,
	Tensors: slices.Concat(layersOfPart(inVision, qwen25OmniVision), omniLayers, whisperConv(gguf.TypeF16),
		[]table.TensorRow{{HF: "audio_tower.proj", GGUF: "mm.a.fc", Bias: table.NeedBias}}),
	Shapes: shape.Rules{Tensors: shape.Merge(mergerShapes, shape.Table{"mm.a.fc": "a_embd, a_proj",
		"v.blk.{bid}.ffn_gate": "v_embd, ?v_wide", "v.blk.{bid}.ffn_up": "v_embd, ?v_wide",
		"v.blk.{bid}.ffn_down": "?v_wide, v_embd"})},
}

// qwen25OmniVision are Qwen2.5-VL's rows with separate Q, K and V.
var qwen25OmniVision = slices.Concat(slices.DeleteFunc(slices.Clone(qwenVLRows),
	func(r table.TensorRow) bool { return len(r.Split) == len(qkvThirds) }), qwen25VLFeedForward, []table.TensorRow{
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
		list = append(list, table.TensorRow{HF: "audio_tower.conv2d" + i, GGUF: "a.conv2d." + i,
			Type: table.Always(gguf.TypeF16)},
			table.TensorRow{HF: "audio_tower.conv2d" + i + ".bias", Exact: true, GGUF: "a.conv2d." + i + ".bias",
				Transform: channelsAsPlane})
	}
	return append(list, table.TensorRow{HF: "audio_tower.conv_out", GGUF: "a.conv_out",
		Type: table.Always(gguf.TypeF16)},
		table.TensorRow{HF: "audio_tower.proj1", GGUF: "mm.a.mlp.1", Bias: table.NeedBias},
		table.TensorRow{HF: "audio_tower.proj2", GGUF: "mm.a.mlp.2", Bias: table.NeedBias})
}

var qwen3AudioShapes = shape.Table{
	"a.conv2d.1": "3, 3, 1, ?a_sub", "a.conv2d.2": "3, 3, ?a_sub, ?a_sub", "a.conv2d.3": "3, 3, ?a_sub, ?a_sub",
	"a.conv2d.1.bias": "1, 1, ?a_sub", "a.conv2d.2.bias": "1, 1, ?a_sub", "a.conv2d.3.bias": "1, 1, ?a_sub",
	"a.conv_out": "?a_flat, a_embd", "mm.a.mlp.1": "a_embd, ?a_between", "mm.a.mlp.2": "?a_between, a_proj",
}

var qwen3AudioExpect = omniExpect("50", table.Expect{Key: "n_window_infer", In: inAudio, Values: []string{"800"}})

// qwen3Omni has Qwen3-VL's vision encoder.
var qwen3Omni = &table.Arch{
	Name:       name,
	Classes:    []string{"Qwen3OmniMoeForConditionalGeneration"},
	Encoder:    encoderOf(inVision, inAudio),
	BlockCount: maxLayers,
	Metadata: slices.Concat(vision(
		table.Row{Key: keyImageSize, Derive: sizeOfPositions},
		table.Row{Key: keyBlocks, Type: gguf.Uint32Type, In: inVision, From: []string{"depth"}, Required: true},
		table.Row{Key: keyHeads, Type: gguf.Uint32Type, In: inVision, From: []string{"num_heads"}, Required: true},
	), omniAudio(), []table.Row{
		useGELU, {Key: keyMerge, Type: gguf.Uint32Type, In: inVision, From: []string{"spatial_merge_size"}},
		{Key: keyNormEps, Type: gguf.Float32Type, In: inText, From: []string{"rms_norm_eps"},
			Const: gguf.Float32(1e-6)},
		{Key: "vision.is_deepstack_layers", Derive: deepstackLayers},
		{Key: keyVisionKind, Const: gguf.String("qwen3vl_merger")}, {Key: keyAudioKind, Const: gguf.String("qwen3a")},
	}),
	Unused: omniUnused(qwen3VL.Unused),
	Expect: append(slices.Clone(qwen3VL.Expect),
		append(qwen3AudioExpect, table.Expect{Key: "apply_vit_abs_pos_embed", In: inVision,
			Values: []string{"true"}})...),
	Rename: slices.Concat(qwen3OmniNames("thinker.visual."), qwen3OmniNames("model.visual."),
		[]table.Rename{{Prefix: "thinker.audio_tower.", With: "audio_tower."}}),
	Drop:    omniDrop,
	Extra:   omniPositions,
	Tensors: slices.Concat(layersOfPart(inVision, qwen3OmniVision), qwen3Audio()),
	Shapes:  shape.Rules{Tensors: shape.Merge(qwen3VL.Shapes.Tensors, qwen3AudioShapes)},
}

// qwen3OmniVision are Qwen3-VL's rows with other names of mergers.
var qwen3OmniVision = slices.Concat(qwen3VLRows, []table.TensorRow{
	{HF: "visual.merger.ln_q", GGUF: "v.post_ln", Bias: table.NeedBias},
	{HF: "visual.merger.mlp.0", GGUF: "mm.0", Bias: table.NeedBias},
	{HF: "visual.merger.mlp.2", GGUF: "mm.2", Bias: table.NeedBias},
	{HF: "visual.deepstack.{bid}.ln_q", GGUF: "v.deepstack.{bid}.norm", Bias: table.NeedBias, If: isDeepstack},
	{HF: "visual.deepstack.{bid}.mlp.0", GGUF: "v.deepstack.{bid}.fc1", Bias: table.NeedBias, If: isDeepstack},
	{HF: "visual.deepstack.{bid}.mlp.2", GGUF: "v.deepstack.{bid}.fc2", Bias: table.NeedBias, If: isDeepstack},
})

// qwen3OmniNames rename tensors under a prefix to Qwen3-VL's names.
func qwen3OmniNames(prefix string) []table.Rename {
	return []table.Rename{{Prefix: prefix + "merger_list.", With: "visual.deepstack.{bid}.", Number: deepstackLayer},
		{Prefix: prefix, With: "visual."}}
}

var qwen3ASR = &table.Arch{
	Name:       name,
	Classes:    []string{"Qwen3ASRForConditionalGeneration"},
	Encoder:    encoderOf(inAudio),
	BlockCount: layers(inAudio, blockKeys...),
	Metadata: slices.Concat([]table.Row{{Key: gguf.KeyFileType}}, omniAudio(),
		[]table.Row{{Key: keyAudioKind, Const: gguf.String("qwen3a")}}),
	Unused:  omniUnused(),
	Expect:  qwen3AudioExpect,
	Rename:  []table.Rename{{Prefix: "thinker.audio_tower.", With: "audio_tower."}},
	Drop:    omniDrop,
	Extra:   omniPositions,
	Tensors: qwen3Audio(),
	Shapes:  shape.Rules{Tensors: qwen3AudioShapes},
}
