package arch

import (
	"fmt"
	"slices"

	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
)

// parakeet are the rows of a FastConformer, with the transformers library's names, and of a projector.
var parakeet = slices.Concat(subsampling("sound_encoder.encoder.subsampling.layers."),
	parts.LayersOfPart(inSoundConfig, []table.TensorRow{
		{HF: "sound_encoder.encoder.feature_extractor.featurizer.fb", Exact: true, GGUF: "a.mel_filters"},
		{HF: "sound_encoder.encoder.feature_extractor.featurizer.window", Exact: true, GGUF: "a.window"},
		{HF: "sound_encoder.encoder.subsampling.linear", GGUF: "a.pre_encode.out", Bias: table.NeedBias},
		{HF: heardLayer + "norm_feed_forward1", GGUF: "a.blk.{bid}.ffn_norm", Bias: table.NeedBias},
		{HF: heardLayer + "feed_forward1.linear1", GGUF: "a.blk.{bid}.ffn_up", Bias: table.MayBias},
		{HF: heardLayer + "feed_forward1.linear2", GGUF: "a.blk.{bid}.ffn_down", Bias: table.MayBias},
		{HF: heardLayer + "norm_self_att", GGUF: "a.blk.{bid}.ln1", Bias: table.NeedBias},
		{HF: heardLayer + "self_attn.q_proj", GGUF: "a.blk.{bid}.attn_q", Bias: table.MayBias},
		{HF: heardLayer + "self_attn.k_proj", GGUF: "a.blk.{bid}.attn_k", Bias: table.MayBias},
		{HF: heardLayer + "self_attn.v_proj", GGUF: "a.blk.{bid}.attn_v", Bias: table.MayBias},
		{HF: heardLayer + "self_attn.o_proj", GGUF: "a.blk.{bid}.attn_out", Bias: table.MayBias},
		{HF: heardLayer + "self_attn.relative_k_proj", GGUF: "a.blk.{bid}.linear_pos"},
		{HF: heardLayer + "self_attn.bias_u", Exact: true, GGUF: "a.blk.{bid}.pos_bias_u"},
		{HF: heardLayer + "self_attn.bias_v", Exact: true, GGUF: "a.blk.{bid}.pos_bias_v"},
		{HF: heardLayer + "norm_conv", GGUF: "a.blk.{bid}.norm_conv", Bias: table.NeedBias},
		{HF: heardLayer + "conv.pointwise_conv1", GGUF: "a.blk.{bid}.conv_pw1", Type: parts.AlwaysF32,
			Transform: parts.OneFrame},
		{HF: heardLayer + "conv.pointwise_conv1.bias", Exact: true, GGUF: "a.blk.{bid}.conv_pw1.bias",
			Transform: parts.ChannelsAsImage,
			Optional:  true},
		{HF: heardLayer + "conv.depthwise_conv", GGUF: "a.blk.{bid}.conv_dw", Bias: table.MayBias,
			Type:      parts.AlwaysF32,
			Transform: kernelAsImage},
		{HF: heardLayer + "conv.norm", GGUF: "a.blk.{bid}.conv_norm", Bias: table.NeedBias},
		{HF: heardLayer + "conv.norm.running_mean", Exact: true, GGUF: "a.blk.{bid}.conv_norm_mean"},
		{HF: heardLayer + "conv.norm.running_var", Exact: true, GGUF: "a.blk.{bid}.conv_norm_var"},
		{HF: heardLayer + "conv.pointwise_conv2", GGUF: "a.blk.{bid}.conv_pw2", Type: parts.AlwaysF32,
			Transform: parts.OneFrame},
		{HF: heardLayer + "conv.pointwise_conv2.bias", Exact: true, GGUF: "a.blk.{bid}.conv_pw2.bias",
			Transform: parts.ChannelsAsImage,
			Optional:  true},
		{HF: heardLayer + "norm_feed_forward2", GGUF: "a.blk.{bid}.ffn_norm_1", Bias: table.NeedBias},
		{HF: heardLayer + "feed_forward2.linear1", GGUF: "a.blk.{bid}.ffn_up_1", Bias: table.MayBias},
		{HF: heardLayer + "feed_forward2.linear2", GGUF: "a.blk.{bid}.ffn_down_1", Bias: table.MayBias},
		{HF: heardLayer + "norm_out", GGUF: "a.blk.{bid}.ln2", Bias: table.NeedBias},
		{HF: "sound_projection.norm", GGUF: "mm.a.norm_pre"},
		{HF: "sound_projection.linear1", GGUF: "mm.a.mlp.1", Bias: table.MayBias},
		{HF: "sound_projection.linear2", GGUF: "mm.a.mlp.2", Bias: table.MayBias},
	}))

// subsampling are the rows of the convolutions over the spectrum.
func subsampling(hf string) []table.TensorRow {
	var list []table.TensorRow
	for _, i := range []int{0, 2, 3, 5, 6} {
		name, to := fmt.Sprintf("%s%d", hf, i), fmt.Sprintf("a.conv1d.%d", i)
		list = append(list, table.TensorRow{HF: name, GGUF: to, Type: parts.AlwaysF32},
			table.TensorRow{HF: name + ".bias", Exact: true, GGUF: to + ".bias", Transform: parts.ChannelsAsImage})
	}
	return list
}

var parakeetShapes = shape.Merge(parts.FastConformerShapes, shape.Table{
	"a.mel_filters": "?spectrum, @audio.num_mel_bins", "a.window": "?window",
	"a.blk.{bid}.ffn_up": "a_embd, a_ff", "a.blk.{bid}.ffn_down": "a_ff, a_embd",
	"a.blk.{bid}.ffn_up_1": "a_embd, a_ff", "a.blk.{bid}.ffn_down_1": "a_ff, a_embd",
	"a.blk.{bid}.conv_dw": "@audio.conv_kernel_size, a_embd", "a.blk.{bid}.conv_pw1.bias": "1, 1, 2 * a_embd",
	"a.blk.{bid}.conv_pw2.bias":  "1, 1, a_embd",
	"a.blk.{bid}.conv_norm_mean": "a_embd", "a.blk.{bid}.conv_norm_var": "a_embd",
	"mm.a.norm_pre": "a_embd", "mm.a.mlp.1": "a_embd, ?a_between", "mm.a.mlp.2": "?a_between, a_proj",
})
