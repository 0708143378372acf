package arch

import (
	"io/fs"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

var _ = registerEncoder(mimoV2)

// Xiaomi's MiMo-V2.5 and its successors. An audio codec in audio_tokenizer, whose weights come first in the file, turns
// audio into codes; the model itself embeds these and has a few layers for them. Source: MiMoV2VisionAudioModel of the
// reference.

// inCodec returns the configuration of the audio codec.
var inCodec table.In = func(c *config.View) config.Object { return c.Facts.AudioTokenizer }

const (
	mimoCodec   = "audio_tokenizer."
	codecFolder = "audio_tokenizer"
)

// readCodec reads Facts.AudioTokenizer; without the file it is an error.
func readCodec(files config.Files, _ *config.View, f *config.Facts) error {
	const name = codecFolder + "/" + config.ConfigFile
	data, ok, err := config.ReadFile(files, name)
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: %w: it describes what makes codes of sound", name, fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	f.AudioTokenizer, err = config.ParseRecorded(name, data)
	return err
}

var mimoV2 = &table.Arch{
	Name:    parts.CLIP,
	Classes: []string{"MiMoV2ForCausalLM"},
	Encoder: &table.Encoder{Parts: []table.In{parts.InVision, parts.InAudio, inCodec},
		Facts: []*config.Source{{Read: readCodec}}},
	Special: []table.Special{table.ExtraFile{File: codecFolder + "/model.safetensors", Prefix: mimoCodec}},
	BlockCount: func(c *config.View) (most int64, err error) {
		for _, part := range []struct {
			in  table.In
			key string
		}{{parts.InVision, "depth"}, {inCodec, "encoder_layers"}, {parts.InAudio, mimoLocalLayers}} {
			n, err := part.in(c).Require(part.key)
			if err != nil {
				return 0, err
			}
			most = max(most, n)
		}
		return most, nil
	},
	Metadata: slices.Concat(parts.VisionRows(
		table.Row{Key: parts.KeyImageSize, Type: gguf.Uint32Type, In: parts.InVision, From: []string{"image_size"},
			Const: gguf.Uint32(560)},
		parts.RequiredUint32(parts.KeyVisionBlocks, parts.InVision, "depth"),
		parts.RequiredUint32(parts.KeyVisionHeads, parts.InVision, "num_heads"),
	), parts.WithRows(parts.AudioRows(inCodec)[1:], []table.Row{
		parts.RequiredUint32(parts.KeyAudioWidth, inCodec, "d_model"),
		parts.RequiredUint32("audio.feed_forward_length", inCodec, "encoder_ffn_dim"),
		parts.RequiredUint32("audio.block_count", inCodec, "encoder_layers"),
		parts.RequiredUint32("audio.attention.head_count", inCodec, "encoder_attention_heads"),
	}), []table.Row{
		{Key: parts.KeyVisionKind, Const: gguf.String("mimovl")}, parts.UseSiLU,
		parts.Uint32Row("vision.attention.head_count_kv", parts.InVision, "num_key_value_heads", 8),
		parts.RequiredUint32(parts.KeyVisionMerge, parts.InVision, "spatial_merge_size"),
		parts.RequiredUint32("vision.window_size", parts.InVision, "visual_token_window_size"),
		{Key: "vision.wa_pattern_mode", Derive: mimoFullAttention},
		parts.VisionEps("rms_norm_eps", 1e-6),
		parts.RequiredUint32("vision.image_min_pixels", parts.InProcessor, "min_pixels"),
		parts.RequiredUint32("vision.image_max_pixels", parts.InProcessor, "max_pixels"),
		{Key: parts.KeyAudioKind, Const: gguf.String("mimo_audio")},
		parts.RequiredUint32(parts.KeyMels, inCodec, "n_mels"),
		{Key: parts.KeyAudioEps, Type: gguf.Float32Type, In: inCodec, From: []string{"layer_norm_eps"},
			Const: gguf.Float32(1e-5)},
		{Key: "audio.rvq.num_quantizers", Derive: func(c *config.View) (gguf.Value, bool, error) {
			list, err := mimoCodebooks(c)
			return gguf.Uint32(uint32(len(list))), err == nil, err
		}},
		{Key: "audio.rvq.codebook_size", Derive: func(c *config.View) (gguf.Value, bool, error) {
			list, err := mimoCodebooks(c)
			return gguf.Int32s(list), err == nil, err
		}},
		{Key: "audio.wa_pattern_mode", Derive: mimoAudioWindows},
		{Key: "audio.window_size", Derive: func(c *config.View) (gguf.Value, bool, error) {
			const key = "encoder_attn_window_size"
			list, ok, err := inCodec(c).Ints(key)
			if err == nil && (!ok || len(list) == 0) {
				err = fault.Errorf(fault.Broken, "%s: key %q: want the numbers of positions before and after each",
					inCodec(c).FileName(), key)
			}
			if err != nil {
				return gguf.Value{}, false, err
			}
			return table.Uint32Of(list[0], true, nil)
		}},
		parts.RequiredUint32("audio.local_block_count", parts.InAudio, mimoLocalLayers),
		parts.RequiredUint32("audio.local_group_size", parts.InAudio, "group_size"),
	}),
	Expect: []table.Expect{
		parts.ExpectAct(parts.InVision, "silu"),
		{Key: "temporal_patch_size", In: parts.InVision, Values: []string{"2"}},
		{Key: "qk_channels", In: parts.InVision, Values: []string{"64"}},
		{Key: "input_full_attention", In: parts.InAudio, Values: []string{"true"}},
		{Key: "add_post_norm", In: parts.InAudio, Values: []string{"true"}},
		{Key: "partial_rotary_factor", In: parts.InAudio, Values: []string{"1"}},
		{Key: "projection_layers", In: parts.InAudio, Values: []string{"2"}},
		{Key: "rope_theta", In: parts.InAudio, Values: []string{"640000"}},
		{Key: "input_local_head_dim", In: parts.InAudio, Values: []string{"64"}},
		{Key: "activation_function", In: inCodec, Values: []string{"gelu"}},
		{Key: "scale_embedding", In: inCodec, Values: []string{"false"}},
		{Key: "encoder_causal", In: inCodec, Values: []string{"true"}},
		{Key: "encoder_skip_layer_id", In: inCodec, Values: []string{"3"}},
		{Key: "position_embedding_type", In: inCodec, Values: []string{"rope"}},
		{Key: "rope_type", In: inCodec, Values: []string{"default"}},
		{Key: "rope_theta", In: inCodec, Values: []string{"10000"}},
		{Key: "ln_type", In: inCodec, Values: []string{"LayerNorm"}},
		{Key: "stride_size", In: inCodec, Values: []string{"2"}},
		{Key: "avg_pooler", In: inCodec, Values: []string{"2"}},
		{Key: "sampling_rate", In: inCodec, Values: []string{"24000"}},
		{Key: "nfft", In: inCodec, Values: []string{"960"}}, {Key: "window_size", In: inCodec, Values: []string{"960"}},
		{Key: "hop_length", In: inCodec, Values: []string{"240"}}, {Key: "fmin", In: inCodec, Values: []string{"0"}},
		{Key: "fmax", In: inCodec},
	},
	Unused: slices.Concat(parts.QwenVLUnused, []string{"vision_config.model_type", "vision_config.num_query_groups",
		"vision_config.use_sink", "vision_config.window_size", "vision_config.kv_channels",
		"audio_config.audio_segment_size", "audio_config.input_local_attn_heads", "audio_config.input_local_dim",
		"audio_config.input_local_hidden_dropout", "audio_config.input_local_intermediate_size",
		"audio_config.out_hidden_size", "audio_config.speech_vocab_size", "audio_config.speech_zeroemb_idx",
		"audio_config.tokenizer_version"},
		config.InFile(codecFolder+"/"+config.ConfigFile, "model_type", "kernel_size", "max_audio_seconds",
			"hybrid_block_size", "threshold_ema_dead_code",
			"decoder_attention_heads", "decoder_attn_window_size", "decoder_causal", "decoder_ffn_dim",
			"decoder_kernel_size", "decoder_layers", "decoder_stride_size",
			"vocoder_attention_heads", "vocoder_attn_window_size", "vocoder_dim", "vocoder_intermediate_dim",
			"vocoder_num_layers", "vocoder_padding")),
	Drop: slices.Concat(parts.DropAll("of the part that speaks", mimoCodec+"decoder."),
		parts.DropAll("of the language model", "model.mtp."), parts.DropTextModel, []table.Drop{
			{Prefix: mimoBook, Suffix: "._codebook.cluster_size", Why: table.Silent},
			{Prefix: mimoBook, Suffix: "._codebook.embed_avg", Why: table.Silent},
			{Prefix: mimoBook, Suffix: "._codebook.inited", Why: table.Silent},
		}),
	Tensors: slices.Concat(withKind(table.First{}, mimoEncoder), []table.TensorRow{
		{HF: mimoBook + "{xid}._codebook.embed", Exact: true, Group: "codebooks", GGUF: "a.rvq.codebook.weight",
			Type: parts.AlwaysF32, Join: stackBooks, Experts: func(l table.Layer) (int64, error) {
				list, err := mimoCodebooks(l.View)
				return int64(len(list)), err
			}},
	}, withKind(table.Last{}, slices.Concat(mimoVision, mimoLocal))),
	Shapes: shape.Rules{Tensors: shape.Merge(parts.QwenMergerShapes, shape.Table{
		"v.blk.{bid}.attn_qkv":   "v_embd, 64 * (@vision.attention.head_count + 2 * @vision.attention.head_count_kv)",
		"v.blk.{bid}.attn_out":   "64 * @vision.attention.head_count, v_embd",
		"v.blk.{bid}.attn_sinks": "@vision.attention.head_count",
		"a.conv1d.1":             "3, @audio.num_mel_bins, a_embd", "a.conv1d.2": "3, a_embd, a_embd",
		"a.downsample.conv": "2, a_embd, a_embd", "a.downsample.norm": "a_embd",
		"a.rvq.codebook": "a_embd, ?codes, @audio.rvq.num_quantizers",
		"mm.a.code_embd": "?local, ?embeddings, ?channels", "mm.a.local_norm": "?local",
		"mm.a.mlp.1": "?local * @audio.local_group_size, ?between", "mm.a.mlp.2": "?between, a_proj",
		"mm.a.local_blk.{bid}.ln1": "?local", "mm.a.local_blk.{bid}.ln2": "?local",
		"mm.a.local_blk.{bid}.attn_q": "?local, ?local_attn", "mm.a.local_blk.{bid}.attn_k": "?local, ?local_attn",
		"mm.a.local_blk.{bid}.attn_v": "?local, ?local_attn", "mm.a.local_blk.{bid}.attn_out": "?local_attn, ?local",
		"mm.a.local_blk.{bid}.ffn_gate": "?local, ?local_ff", "mm.a.local_blk.{bid}.ffn_up": "?local, ?local_ff",
		"mm.a.local_blk.{bid}.ffn_down": "?local_ff, ?local",
	})},
}

const (
	mimoBook        = mimoCodec + "encoder.quantizer.vq.layers."
	mimoLayer       = mimoCodec + "encoder.layers.{bid}."
	mimoLocalLayer  = "audio_encoder.input_local_transformer.layers.{bid}."
	mimoLocalLayers = "input_local_layers"
)

// mimoEncoder are the tensors of the audio codec's encoder, codebooks excluded.
var mimoEncoder = slices.Concat([]table.TensorRow{
	{HF: mimoCodec + "encoder.conv1", GGUF: "a.conv1d.1", Type: parts.AlwaysF32},
	{HF: mimoCodec + "encoder.conv2", GGUF: "a.conv1d.2", Type: parts.AlwaysF32},
	{HF: mimoCodec + "encoder.conv1.bias", Exact: true, GGUF: "a.conv1d.1.bias", Transform: parts.BiasColumn},
	{HF: mimoCodec + "encoder.conv2.bias", Exact: true, GGUF: "a.conv1d.2.bias", Transform: parts.BiasColumn},
	{HF: mimoCodec + "encoder.layer_norm", GGUF: "a.post_ln", Bias: table.NeedBias},
	{HF: mimoCodec + "encoder.down_sample_layer.0", GGUF: "a.downsample.conv", Type: parts.AlwaysF32},
	{HF: mimoCodec + "encoder.down_sample_norm", GGUF: "a.downsample.norm", Bias: table.NeedBias},
}, parts.LayersOfPart(inCodec, []table.TensorRow{
	{HF: mimoLayer + "self_attn_layer_norm", GGUF: "a.blk.{bid}.ln1", Bias: table.NeedBias},
	{HF: mimoLayer + "self_attn.q_proj", GGUF: "a.blk.{bid}.attn_q", Bias: table.NeedBias},
	{HF: mimoLayer + "self_attn.k_proj", GGUF: "a.blk.{bid}.attn_k"},
	{HF: mimoLayer + "self_attn.v_proj", GGUF: "a.blk.{bid}.attn_v", Bias: table.NeedBias},
	{HF: mimoLayer + "self_attn.out_proj", GGUF: "a.blk.{bid}.attn_out", Bias: table.NeedBias},
	{HF: mimoLayer + "final_layer_norm", GGUF: "a.blk.{bid}.ln2", Bias: table.NeedBias},
	{HF: mimoLayer + "fc1", GGUF: "a.blk.{bid}.ffn_up", Bias: table.NeedBias},
	{HF: mimoLayer + "fc2", GGUF: "a.blk.{bid}.ffn_down", Bias: table.NeedBias},
}))

// mimoVision are the tensors of the vision encoder.
var mimoVision = slices.Concat([]table.TensorRow{
	parts.FramesRow("visual.patch_embed.proj"),
	{HF: "visual.merger.ln_q", GGUF: "v.post_ln"},
	{HF: "visual.merger.mlp.0", GGUF: "mm.0", Bias: table.MayBias},
	{HF: "visual.merger.mlp.2", GGUF: "mm.2", Bias: table.MayBias},
}, parts.LayersOfPart(parts.InVision, slices.Concat([]table.TensorRow{
	{HF: "visual.blocks.{bid}.norm1", GGUF: "v.blk.{bid}.ln1"},
	{HF: "visual.blocks.{bid}.norm2", GGUF: "v.blk.{bid}.ln2"},
	{HF: "visual.blocks.{bid}.attn.qkv", GGUF: "v.blk.{bid}.attn_qkv", Bias: table.NeedBias},
	{HF: "visual.blocks.{bid}.attn.proj", GGUF: "v.blk.{bid}.attn_out", Bias: table.NeedBias},
	{HF: "visual.blocks.{bid}.attn.sinks", Exact: true, GGUF: "v.blk.{bid}.attn_sinks", If: mimoSink},
}, parts.Qwen25VLFeedForward)))

// mimoLocal are the tensors from codes to embeddings for the language model.
var mimoLocal = slices.Concat([]table.TensorRow{
	{HF: "speech_embeddings.{xid}.weight", Exact: true, Group: "embeddings", GGUF: "mm.a.code_embd.weight",
		Type: parts.AlwaysF32, Experts: func(l table.Layer) (int64, error) {
			return parts.InAudio(l.View).Require("audio_channels")
		}},
	{HF: "audio_encoder.input_local_transformer.norm", GGUF: "mm.a.local_norm"},
	{HF: "audio_encoder.projection.mlp.0", GGUF: "mm.a.mlp.1"},
	{HF: "audio_encoder.projection.mlp.2", GGUF: "mm.a.mlp.2"},
}, parts.OnlyIf(func(l table.Layer) (bool, error) {
	n, err := parts.InAudio(l.View).Require(mimoLocalLayers)
	return l.Bid < n, err
}, []table.TensorRow{
	{HF: mimoLocalLayer + "input_layernorm", GGUF: "mm.a.local_blk.{bid}.ln1"},
	{HF: mimoLocalLayer + "post_attention_layernorm", GGUF: "mm.a.local_blk.{bid}.ln2"},
	{HF: mimoLocalLayer + "self_attn.q_proj", GGUF: "mm.a.local_blk.{bid}.attn_q", Bias: table.NeedBias},
	{HF: mimoLocalLayer + "self_attn.k_proj", GGUF: "mm.a.local_blk.{bid}.attn_k", Bias: table.NeedBias},
	{HF: mimoLocalLayer + "self_attn.v_proj", GGUF: "mm.a.local_blk.{bid}.attn_v", Bias: table.NeedBias},
	{HF: mimoLocalLayer + "self_attn.o_proj", GGUF: "mm.a.local_blk.{bid}.attn_out"},
	{HF: mimoLocalLayer + "mlp.gate_proj", GGUF: "mm.a.local_blk.{bid}.ffn_gate"},
	{HF: mimoLocalLayer + "mlp.up_proj", GGUF: "mm.a.local_blk.{bid}.ffn_up"},
	{HF: mimoLocalLayer + "mlp.down_proj", GGUF: "mm.a.local_blk.{bid}.ffn_down"},
}))

// withKind returns copies of rows with the kind set.
func withKind(kind table.Kind, list []table.TensorRow) []table.TensorRow {
	list = slices.Clone(list)
	for i := range list {
		list[i].Kind = kind
	}
	return list
}

// mimoCodebooks returns the codebook size of each quantizer.
func mimoCodebooks(c *config.View) ([]int32, error) {
	o := inCodec(c)
	n, err := o.Require("num_quantizers")
	if err != nil {
		return nil, err
	}
	sizes, _, err := o.Ints("codebook_size")
	if err == nil && (n < 1 || int64(len(sizes)) < n) {
		err = fault.Errorf(fault.Broken, "%s: key \"codebook_size\" has %d numbers, want one for each of %d quantizers",
			o.FileName(), len(sizes), n)
	}
	if err != nil {
		return nil, err
	}
	list := make([]int32, n)
	for i := range list {
		if sizes[i] < 1 || sizes[i] > 1<<20 {
			return nil, fault.Errorf(fault.Broken, "%s: key \"codebook_size\": %v, want numbers of codes",
				o.FileName(), sizes)
		}
		list[i] = int32(sizes[i])
	}
	return list, nil
}

// stackBooks stacks codebooks to one tensor; shorter ones are padded with zeros.
func stackBooks(l table.Layer, list []rows.Source) (rows.Source, error) {
	sizes, err := mimoCodebooks(l.View)
	if err != nil {
		return nil, err
	}
	list = slices.Clone(list)
	for i, s := range list {
		if ne := s.NE(); len(ne) != 2 || ne[1] != int64(sizes[i]) {
			return nil, fault.Errorf(fault.Broken,
				"table of codes %d has dimensions %s, want %d codes (key \"codebook_size\")", i,
				gguf.Shape(ne), sizes[i])
		}
		if list[i], err = rows.PadRows(s, int64(slices.Max(sizes))); err != nil {
			return nil, err
		}
	}
	return rows.Stack(list)
}

// mimoKinds returns the attention of each layer: full (-1), a band of rows (0) or of columns (1).
func mimoKinds(c *config.View) ([]int32, error) {
	const types, full = "vit_window_attn_types", "fullatt_block_indexes"
	o := parts.InVision(c)
	n, err := o.Require("depth")
	if err != nil {
		return nil, err
	}
	list, _, err := o.Ints(types)
	if err != nil {
		return nil, err
	}
	all, listed, err := o.Ints(full)
	if err != nil {
		return nil, err
	}
	if int64(len(list)) != n {
		return nil, fault.Errorf(fault.Broken, "%s: key %q has %d numbers, want one for each of %d layers",
			o.FileName(), o.Names([]string{types})[0], len(list), n)
	}
	kinds := make([]int32, n)
	for i, kind := range list {
		if kind < -1 || kind > 1 || listed && slices.Contains(all, int64(i)) != (kind == -1) {
			return nil, fault.Errorf(fault.Broken,
				"%s: keys %q: %v and %v, want -1 for layers that see all, 0 or 1 for others", o.FileName(),
				o.Names([]string{types, full}), list, all)
		}
		kinds[i] = int32(kind)
	}
	return kinds, nil
}

func mimoFullAttention(c *config.View) (gguf.Value, bool, error) {
	list, err := mimoKinds(c)
	return gguf.Int32s(list), err == nil, err
}

// mimoSink is the condition of window-attention layers, which have attention sinks.
func mimoSink(l table.Layer) (bool, error) {
	list, err := mimoKinds(l.View)
	if err != nil {
		return false, err
	}
	sinks, ok, err := parts.InVision(l.View).Bool("use_sink")
	return ok && sinks && list[l.Bid] >= 0, err
}

// mimoAudioWindows is -1 for full-attention layers and 0 for window-attention layers.
func mimoAudioWindows(c *config.View) (gguf.Value, bool, error) {
	o := inCodec(c)
	n, err := o.Require("encoder_layers")
	if err != nil {
		return gguf.Value{}, false, err
	}
	if n < 1 || n > config.MaxBlocks {
		return gguf.Value{}, false, fault.Errorf(fault.Broken, "%s: %d layers", o.FileName(), n)
	}
	hybrid, _, err := o.Bool("hybrid_attention")
	if err != nil {
		return gguf.Value{}, false, err
	}
	each, err := parts.IntOr(o, "swa_per_block", 1)
	if err != nil {
		return gguf.Value{}, false, err
	}
	list := make([]int32, n)
	for i := range list {
		if list[i] = -1; hybrid && each > 1 && int64(i)%each < each-1 {
			list[i] = 0
		}
	}
	return gguf.Int32s(list), true, nil
}
