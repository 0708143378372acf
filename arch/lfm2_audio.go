package arch

import (
	"fmt"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/gguf"
)

var _ = registerEncoder(d1OmniEncoders, lfm2AudioEncoder)

// Liquid AI's audio encoders: a FastConformer and an adapter.

var inLFM table.In = func(c *config.View) config.Object { return c.Sub("encoder") }

// fastConformer are the rows of NeMo's FastConformer. Its convolutions over the spectrum reduce the frames to an
// eighth.
func fastConformer() []table.TensorRow {
	const c, l, g = "conformer.pre_encode.conv.", "conformer.layers.{bid}.", "a.blk.{bid}."
	var list []table.TensorRow
	for _, i := range []int{0, 2, 3, 5, 6} {
		hf, to := fmt.Sprintf("%s%d", c, i), fmt.Sprintf("a.conv1d.%d", i)
		list = append(list, table.TensorRow{HF: hf, GGUF: to, Type: parts.AlwaysF32},
			table.TensorRow{HF: hf + ".bias", Exact: true, GGUF: to + ".bias", Transform: parts.ChannelsAsPlane})
	}
	return append(list, []table.TensorRow{
		{HF: "conformer.pre_encode.out", GGUF: "a.pre_encode.out", Bias: table.NeedBias},
		{HF: l + "norm_feed_forward1", GGUF: g + "ffn_norm", Bias: table.NeedBias},
		{HF: l + "feed_forward1.linear1", GGUF: g + "ffn_up", Bias: table.NeedBias},
		{HF: l + "feed_forward1.linear2", GGUF: g + "ffn_down", Bias: table.NeedBias},
		{HF: l + "norm_self_att", GGUF: g + "ln1", Bias: table.NeedBias},
		{HF: l + "self_attn.linear_q", GGUF: g + "attn_q", Bias: table.NeedBias},
		{HF: l + "self_attn.linear_k", GGUF: g + "attn_k", Bias: table.NeedBias},
		{HF: l + "self_attn.linear_v", GGUF: g + "attn_v", Bias: table.NeedBias},
		{HF: l + "self_attn.linear_out", GGUF: g + "attn_out", Bias: table.NeedBias},
		{HF: l + "self_attn.linear_pos", GGUF: g + "linear_pos"},
		{HF: l + "self_attn.pos_bias_u", Exact: true, GGUF: g + "pos_bias_u"},
		{HF: l + "self_attn.pos_bias_v", Exact: true, GGUF: g + "pos_bias_v"},
		{HF: l + "norm_conv", GGUF: g + "norm_conv", Bias: table.NeedBias},
		{HF: l + "conv.pointwise_conv1", GGUF: g + "conv_pw1", Bias: table.NeedBias, Transform: parts.OneFrame,
			Type: parts.AlwaysF32},
		{HF: l + "conv.depthwise_conv", GGUF: g + "conv_dw", Bias: table.NeedBias, Transform: parts.EachChannel,
			Type: parts.AlwaysF32},
		parts.BatchNorm(l+"conv.batch_norm", g+"conv_norm", nil),
		{HF: l + "conv.pointwise_conv2", GGUF: g + "conv_pw2", Bias: table.NeedBias, Transform: parts.OneFrame,
			Type: parts.AlwaysF32},
		{HF: l + "norm_feed_forward2", GGUF: g + "ffn_norm_1", Bias: table.NeedBias},
		{HF: l + "feed_forward2.linear1", GGUF: g + "ffn_up_1", Bias: table.NeedBias},
		{HF: l + "feed_forward2.linear2", GGUF: g + "ffn_down_1", Bias: table.NeedBias},
		{HF: l + "norm_out", GGUF: g + "ln2", Bias: table.NeedBias},
		{HF: "audio_adapter.model.0", GGUF: "mm.a.mlp.0", Bias: table.NeedBias},
		{HF: "audio_adapter.model.1", GGUF: "mm.a.mlp.1", Bias: table.NeedBias},
		{HF: "audio_adapter.model.3", GGUF: "mm.a.mlp.3", Bias: table.NeedBias},
	}...)
}

// lfmAdapterShapes are the dimensions of the adapter.
var lfmAdapterShapes = shape.Table{"mm.a.mlp.0": "a_embd", "mm.a.mlp.1": "a_embd, ?a_between",
	"mm.a.mlp.3": "?a_between, a_proj"}

// fastConformerExpect are settings with one value in runtimes.
func fastConformerExpect(in table.In) []table.Expect {
	return []table.Expect{
		{Key: "subsampling", In: in, Values: []string{"dw_striding"}},
		{Key: "subsampling_factor", In: in, Values: []string{"8"}},
		{Key: "causal_downsampling", In: in, Values: []string{"false"}},
		{Key: "self_attention_model", In: in, Values: []string{"rel_pos"}},
		{Key: "att_context_size", In: in, Values: []string{"[-1 -1]"}},
		{Key: "att_context_style", In: in, Values: []string{"regular"}},
		{Key: "xscaling", In: in, Values: []string{"false"}}, {Key: "conv_kernel_size", In: in, Values: []string{"9"}},
		{Key: "conv_norm_type", In: in, Values: []string{"batch_norm"}}, {Key: "conv_context_size", In: in},
		{Key: "reduction", In: in}, {Key: "use_bias", In: in, Values: []string{"true"}},
		{Key: "feat_out", In: in, Values: []string{"-1"}},
	}
}

// fastConformerUnused are settings of training, and settings that follow from the tensors.
func fastConformerUnused(part string) []string {
	var list []string
	for _, key := range []string{"dropout", "dropout_att", "dropout_emb", "dropout_pre_encoder", "ff_expansion_factor",
		"pos_emb_max_len", "reduction_factor", "reduction_position",
		"subsampling_conv_channels", "subsampling_conv_chunking_factor", "untie_biases", "sync_max_audio_length",
		"stochastic_depth_drop_prob", "stochastic_depth_mode",
		"stochastic_depth_start_layer", "model_type", "n_layers"} {
		list = append(list, part+"."+key)
	}
	return list
}

// fastConformerRows are the keys of the audio encoder; ff is the row of the width of its FFNs.
func fastConformerRows(in table.In, ff table.Row) []table.Row {
	ff.Key = "audio.feed_forward_length"
	return []table.Row{
		{Key: "has_audio_encoder", Const: gguf.Bool(true)},
		{Key: "audio.projection_dim", Derive: parts.TextWidth},
		parts.RequiredUint32(parts.KeyAudioWidth, in, "d_model"), ff,
		{Key: "audio.block_count", Type: gguf.Uint32Type, In: in, From: parts.BlockKeys, Required: true},
		parts.RequiredUint32("audio.attention.head_count", in, "n_heads"),
	}
}

var lfm2AudioEncoder = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"Lfm2AudioForConditionalGeneration"},
	Encoder:    parts.EncoderOf(inLFM),
	BlockCount: parts.LayersIn(inLFM, parts.BlockKeys...),
	// The file has the layers' width as feed_forward_length, which runtimes do not read.
	Metadata: slices.Concat([]table.Row{{Key: gguf.KeyFileType}},
		fastConformerRows(inLFM, parts.RequiredUint32("", inLFM, "d_model")), []table.Row{
			parts.ProjectorType("lfm2a"), parts.RequiredUint32(parts.KeyMels, inLFM, "feat_in"),
			{Key: parts.KeyAudioEps, Const: gguf.Float32(1e-5)},
		}),
	Expect: fastConformerExpect(inLFM),
	Unused: fastConformerUnused("encoder"),
	Drop: slices.Concat([]table.Drop{parts.DropBatchCounters("conformer.layers.")},
		parts.DropAll("of the language model", "lfm."),
		parts.DropAll("of the part that speaks", "codebook_offsets", "depth_embeddings.", "depth_linear.",
			"depthformer."),
		parts.DropAll("of training", "audio_loss_weight"), parts.DropTextModel),
	Tensors: append(fastConformer(),
		table.TensorRow{HF: "audio_embedding.embedding", GGUF: "a.position_embd"},
		table.TensorRow{HF: "audio_embedding.embedding_norm", GGUF: "a.position_embd_norm"},
		table.TensorRow{HF: "audio_embedding.to_logits", GGUF: "a.embd_to_logits"}),
	Shapes: shape.Rules{Tensors: shape.Merge(parts.FastConformerShapes, lfmAdapterShapes,
		shape.Table{"a.position_embd": "a_proj, ?codes", "a.position_embd_norm": "a_proj",
			"a.embd_to_logits": "a_proj, ?codes"})},
}

// d1OmniEncoders has LFM2-VL's vision encoder and LFM2-Audio's audio encoder.
var d1OmniEncoders = &table.Arch{
	Name:    parts.CLIP,
	Classes: []string{"D1OmniModel"},
	Encoder: parts.EncoderOf(parts.InVision, parts.InAudio),
	BlockCount: func(c *config.View) (int64, error) {
		visionLayers, err := parts.InVision(c).Require(parts.BlockKeys...)
		if err != nil {
			return 0, err
		}
		audioLayers, err := parts.InAudio(c).Require(parts.BlockKeys...)
		return max(visionLayers, audioLayers), err
	},
	Metadata: slices.Concat(parts.VisionRows(table.Row{Key: parts.KeyImageSize, Const: gguf.Uint32(256)},
		table.Row{Key: "vision.image_mean", Const: gguf.Float32s([]float32{0.5, 0.5, 0.5})},
		table.Row{Key: "vision.image_std", Const: gguf.Float32s([]float32{0.5, 0.5, 0.5})}),
		fastConformerRows(parts.InAudio,
			table.Row{Derive: parts.ProductOf(parts.InAudio, "d_model", "ff_expansion_factor")}),
		[]table.Row{
			{Key: "vision.projector_type", Const: gguf.String("d1omni_v")}, parts.VisionEps("layer_norm_eps", 0),
			parts.Uint32Row(parts.KeyVisionScale, nil, "downsample_factor", 2),
			parts.UseGELU,
			{Key: "audio.projector_type", Const: gguf.String("d1omni_a")},
			parts.RequiredUint32(parts.KeyMels, parts.InAudio, "feat_in"),
			{Key: parts.KeyAudioEps, Const: gguf.Float32(1e-5)},
		}),
	Expect: append(fastConformerExpect(parts.InAudio), parts.ExpectAct(parts.InVision, "gelu_pytorch_tanh"),
		table.Expect{Key: "patch_size", In: parts.InVision, Values: []string{"16"}}),
	Unused: append(fastConformerUnused("audio_config"), lfm2VL.Unused...),
	Rename: []table.Rename{
		{Prefix: "vision.tower.vision_model.", With: "vision_tower."}, {Prefix: "vision.tower.", With: "vision_tower."},
		{Prefix: "vision.projector.", With: "multi_modal_projector."},
		{Prefix: "audio.encoder.", With: "conformer."},
		{Prefix: "audio.adapter.norm.", With: "audio_adapter.model.0."},
		{Prefix: "audio.adapter.linear_1.", With: "audio_adapter.model.1."},
		{Prefix: "audio.adapter.linear_2.", With: "audio_adapter.model.3."},
		{Prefix: "audio.residual.ln.", With: "audio_adapter.model.4."},
		{Prefix: "audio.residual.down.", With: "audio_adapter.model.5."},
		{Prefix: "audio.residual.up.", With: "audio_adapter.model.6."},
	},
	Drop: slices.Concat([]table.Drop{parts.DropBatchCounters("conformer.layers.")},
		parts.DropAll("of the language model", "encoder.", "head."), parts.DropTextModel),
	Tensors: slices.Concat(parts.LayersOfPart(parts.InVision, lfm2VL.Tensors),
		parts.LayersOfPart(parts.InAudio, fastConformer()),
		[]table.TensorRow{
			{HF: "audio_adapter.model.4", GGUF: "mm.a.mlp.4", Bias: table.NeedBias},
			{HF: "audio_adapter.model.5", GGUF: "mm.a.mlp.5", Bias: table.NeedBias},
			{HF: "audio_adapter.model.6", GGUF: "mm.a.mlp.6", Bias: table.NeedBias},
		}),
	Shapes: shape.Rules{Tensors: shape.Merge(lfm2VL.Shapes.Tensors, parts.FastConformerShapes, lfmAdapterShapes,
		shape.Table{"mm.a.mlp.4": "a_proj", "mm.a.mlp.5": "a_proj, ?a_low", "mm.a.mlp.6": "?a_low, a_proj"})},
}
