package arch

import (
	"fmt"
	"maps"
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

var _ = registerEncoderOf(gemma3nVision)

// gemma3nVision has a MobileNet of fixed structure for vision and a conformer for audio. Source:
// Gemma3nVisionAudioModel of the reference; the structure is that of timm's
// mobilenetv5_300m_enc.
func gemma3nVision() *table.Arch {
	return &table.Arch{
		Name:       parts.CLIP,
		Classes:    []string{"Gemma3nForConditionalGeneration"},
		Encoder:    parts.EncoderOf(parts.InVision, parts.InAudio),
		BlockCount: parts.LayersIn(parts.InAudio, "conf_num_hidden_layers"),
		Metadata: slices.Concat(
			parts.VisionRows(
				table.Row{Key: parts.KeyImageSize, Derive: gemma3nSize, Facts: config.ProcessorFiles},
				table.Row{Key: parts.KeyPatchSize, Derive: gemma3nPatch, Facts: config.ProcessorFiles},
				// not read by runtimes
				table.Row{Key: parts.KeyVisionFF, Derive: gemma3nWidth},
				table.Row{Key: parts.KeyVisionBlocks, Const: gguf.Uint32(128)},
				parts.Uint32Row(parts.KeyVisionHeads, parts.InVision, "num_attention_heads", 8),
				table.Row{Key: "vision.image_mean", Const: gguf.Float32s([]float32{0, 0, 0})},
				table.Row{Key: "vision.image_std", Const: gguf.Float32s([]float32{1, 1, 1})},
			),
			parts.WithRows(parts.AudioRows(parts.InAudio)[1:], []table.Row{
				parts.Uint32Row("audio.feed_forward_length", parts.InAudio, "intermediate_size", 6144),
				parts.RequiredUint32("audio.block_count", parts.InAudio, "conf_num_hidden_layers"),
				parts.RequiredUint32("audio.attention.head_count", parts.InAudio, "conf_num_attention_heads"),
			}),
			[]table.Row{
				{Key: "vision.projector_type", Const: gguf.String("gemma3nv")}, parts.VisionEps("layer_norm_eps", 1e-6),
				{Key: "audio.projector_type", Const: gguf.String("gemma3na")},
				parts.RequiredUint32(parts.KeyMels, parts.InAudio, "input_feat_size"),
				{Key: parts.KeyAudioEps, Const: gguf.Float32(1e-5)},
			},
		),
		Expect: []table.Expect{
			{Key: "architecture", In: parts.InVision, Values: []string{"mobilenetv5_300m_enc"}},
			{Key: "model_args", In: parts.InVision}, {Key: "do_pooling", In: parts.InVision, Values: []string{"false"}},
			{Key: "rms_norm_eps", In: parts.InVision, Values: []string{"1e-06"}},
			{Key: "rms_norm_eps", In: parts.InAudio, Values: []string{"1e-06"}},
			{Key: "conf_attention_chunk_size", In: parts.InAudio, Values: []string{"12"}},
			{Key: "conf_attention_context_left", In: parts.InAudio, Values: []string{"13"}},
			{Key: "conf_attention_context_right", In: parts.InAudio, Values: []string{"0"}},
			{Key: "conf_attention_logit_cap", In: parts.InAudio, Values: []string{"50"}},
			{Key: "conf_reduction_factor", In: parts.InAudio, Values: []string{"4"}},
			{Key: "conf_residual_weight", In: parts.InAudio, Values: []string{"0.5"}},
			{Key: "sscp_conv_group_norm_eps", In: parts.InAudio, Values: []string{"0.001"}},
			{Key: "sscp_conv_eps", In: parts.InAudio, Values: []string{"0.001"}},
			{Key: "sscp_conv_stride_size", In: parts.InAudio, Values: []string{"[[2 2] [2 2]]"}},
		},
		// The sizes of token tables follow from their tensors.
		Unused: []string{"vision_config.model_type", "vision_config.label_names", "vision_config.num_classes",
			"vision_config.vocab_size", "vision_config.vocab_offset",
			"audio_config.model_type", "audio_config.conf_attention_invalid_logits_value",
			"audio_config.conf_conv_kernel_size", "audio_config.conf_positional_bias_size",
			"audio_config.gradient_clipping", "audio_config.sscp_conv_channel_size",
			"audio_config.sscp_conv_kernel_size", "audio_config.vocab_size", "audio_config.vocab_offset"},
		Drop: parts.DropTextModel,
		Tensors: slices.Concat(mobileNetRows(), []table.TensorRow{
			{HF: "model.embed_vision.embedding", GGUF: "mm.embedding"},
			{HF: "model.embed_vision.hard_embedding_norm", GGUF: "mm.hard_emb_norm"},
			{HF: "model.embed_vision.soft_embedding_norm", GGUF: "mm.soft_emb_norm"},
			{HF: "model.embed_vision.embedding_projection", GGUF: "mm.input_projection"},
			{HF: "model.embed_audio.embedding", GGUF: "mm.a.embedding"},
			{HF: "model.embed_audio.hard_embedding_norm", GGUF: "mm.a.hard_emb_norm"},
			{HF: "model.embed_audio.soft_embedding_norm", GGUF: "mm.a.soft_emb_norm"},
			{HF: "model.embed_audio.embedding_projection", GGUF: "mm.a.input_projection"},
			{HF: gemma3nSub + "conv_0.conv", GGUF: "a.conv1d.0", Type: table.Always(gguf.TypeF32)},
			{HF: gemma3nSub + "conv_0.norm", GGUF: "a.conv1d.0.norm", Optional: true},
			{HF: gemma3nSub + "conv_1.conv", GGUF: "a.conv1d.1", Type: table.Always(gguf.TypeF32)},
			{HF: gemma3nSub + "conv_1.norm", GGUF: "a.conv1d.1.norm", Optional: true},
			{HF: gemma3nSub + "input_proj_linear", GGUF: "a.pre_encode.out", Type: table.Always(gguf.TypeF16)},
			{HF: gemma3nHeard + "attention.pre_attn_norm", GGUF: "a.blk.{bid}.ln1"},
			{HF: gemma3nHeard + "attention.attn.per_dim_scale", Exact: true, GGUF: "a.blk.{bid}.per_dim_scale"},
			{HF: gemma3nHeard + "attention.attn.q_proj", GGUF: "a.blk.{bid}.attn_q"},
			{HF: gemma3nHeard + "attention.attn.k_proj", GGUF: "a.blk.{bid}.attn_k"},
			{HF: gemma3nHeard + "attention.attn.v_proj", GGUF: "a.blk.{bid}.attn_v"},
			{HF: gemma3nHeard + "attention.attn.relative_position_embedding.pos_proj", GGUF: "a.blk.{bid}.linear_pos"},
			{HF: gemma3nHeard + "attention.post", GGUF: "a.blk.{bid}.attn_out"},
			{HF: gemma3nHeard + "attention.post_norm", GGUF: "a.blk.{bid}.ln2"},
			{HF: gemma3nHeard + "ffw_layer_start.pre_layer_norm", GGUF: "a.blk.{bid}.ffn_norm"},
			{HF: gemma3nHeard + "ffw_layer_start.ffw_layer_1", GGUF: "a.blk.{bid}.ffn_up"},
			{HF: gemma3nHeard + "ffw_layer_start.ffw_layer_2", GGUF: "a.blk.{bid}.ffn_down"},
			{HF: gemma3nHeard + "ffw_layer_start.post_layer_norm", GGUF: "a.blk.{bid}.ffn_post_norm"},
			{HF: gemma3nHeard + "lconv1d.pre_layer_norm", GGUF: "a.blk.{bid}.conv_norm"},
			{HF: gemma3nHeard + "lconv1d.linear_start", GGUF: "a.blk.{bid}.conv_pw1"},
			{HF: gemma3nHeard + "lconv1d.depthwise_conv1d", GGUF: "a.blk.{bid}.conv_dw",
				Type: table.Always(gguf.TypeF32)},
			{HF: gemma3nHeard + "lconv1d.conv_norm", GGUF: "a.blk.{bid}.norm_conv"},
			{HF: gemma3nHeard + "lconv1d.linear_end", GGUF: "a.blk.{bid}.conv_pw2"},
			{HF: gemma3nHeard + "ffw_layer_end.pre_layer_norm", GGUF: "a.blk.{bid}.ffn_norm_1"},
			{HF: gemma3nHeard + "ffw_layer_end.ffw_layer_1", GGUF: "a.blk.{bid}.ffn_up_1"},
			{HF: gemma3nHeard + "ffw_layer_end.ffw_layer_2", GGUF: "a.blk.{bid}.ffn_down_1"},
			{HF: gemma3nHeard + "ffw_layer_end.post_layer_norm", GGUF: "a.blk.{bid}.ffn_post_norm_1"},
			{HF: gemma3nHeard + "norm", GGUF: "a.blk.{bid}.layer_pre_norm"},
		}),
		Shapes: shape.Rules{Tensors: shape.Merge(mobileNetShapes(), shape.Table{
			"mm.embedding": "v_embd, ?seen", "mm.hard_emb_norm": "v_embd", "mm.soft_emb_norm": "v_embd",
			"mm.input_projection": "v_embd, v_proj",
			"mm.a.embedding":      "a_embd, ?heard", "mm.a.hard_emb_norm": "a_embd", "mm.a.soft_emb_norm": "a_embd",
			"mm.a.input_projection": "a_embd, a_proj",
			"a.conv1d.0":            "3, 3, 1, ?first", "a.conv1d.0.norm": "?first",
			"a.conv1d.1":      "3, 3, ?first, ?second",
			"a.conv1d.1.norm": "?second", "a.pre_encode.out": "?spectra, a_embd",
			"a.blk.{bid}.per_dim_scale": "a_embd / @audio.attention.head_count",
			"a.blk.{bid}.linear_pos":    "a_embd, a_embd", "a.blk.{bid}.layer_pre_norm": "a_embd",
			"a.blk.{bid}.ffn_up": "a_embd, ?wide", "a.blk.{bid}.ffn_down": "?wide, a_embd",
			"a.blk.{bid}.ffn_up_1": "a_embd, ?wide", "a.blk.{bid}.ffn_down_1": "?wide, a_embd",
			"a.blk.{bid}.ffn_norm": "a_embd", "a.blk.{bid}.ffn_post_norm": "a_embd", "a.blk.{bid}.ffn_norm_1": "a_embd",
			"a.blk.{bid}.ffn_post_norm_1": "a_embd",
			"a.blk.{bid}.conv_norm":       "a_embd", "a.blk.{bid}.norm_conv": "a_embd",
			"a.blk.{bid}.conv_dw":  "?kernel, 1, a_embd",
			"a.blk.{bid}.conv_pw1": "a_embd, 2 * a_embd", "a.blk.{bid}.conv_pw2": "a_embd, a_embd",
		})},
	}
}

const (
	gemma3nSeen  = "model.vision_tower.timm_model."
	gemma3nHeard = "model.audio_tower.conformer.{bid}."
	gemma3nSub   = "model.audio_tower.subsample_conv_projection."
)

// mobileNet has the blocks of each stage of mobilenetv5_300m_enc.
var mobileNet = [][]string{
	strings.Fields("edge edge edge"),
	strings.Fields("ib35 ib5 ib3 ib5 ib3"),
	strings.Fields("ib55" + strings.Repeat(" ib5", 7) + " ib" + strings.Repeat(" pool ib", 14)),
	strings.Fields("ib55" + strings.Repeat(" att ib", 19)),
}

// mobileNetParts has the tensors of each kind of block and their dimensions: in and out are its channels, ?e the
// expanded channels, ?q and ?k the widths of queries and keys, equal in the blocks of a stage.
var mobileNetParts = map[string]shape.Table{
	"edge": {"conv_exp.weight": "3, 3, in, ?e", "bn1.weight": "?e", "conv_pwl.weight": "1, 1, ?e, out",
		"bn2.weight": "out"},
	"ib":   invertedBottleneck,
	"ib3":  shape.Merge(invertedBottleneck, startKernel("3")),
	"ib5":  shape.Merge(invertedBottleneck, startKernel("5")),
	"ib35": shape.Merge(invertedBottleneck, startKernel("3"), midKernel("5")),
	"ib55": shape.Merge(invertedBottleneck, startKernel("5"), midKernel("5")),
	"att":  mobileAttention,
	"pool": shape.Merge(mobileAttention, shape.Table{
		"attn.key.down_conv.weight": "3, 3, 1, in", "attn.key.norm.weight": "in",
		"attn.value.down_conv.weight": "3, 3, 1, in", "attn.value.norm.weight": "in",
	}),
}

var (
	invertedBottleneck = shape.Table{"pw_exp.conv.weight": "1, 1, in, ?e", "pw_exp.bn.weight": "?e",
		"pw_proj.conv.weight": "1, 1, ?e, out", "pw_proj.bn.weight": "out", "layer_scale.gamma": "1, 1, out | out"}
	mobileAttention = shape.Table{"norm.weight": "in", "attn.query.proj.weight": "1, 1, in, ?q",
		"attn.key.proj.weight": "1, 1, in, ?k", "attn.value.proj.weight": "1, 1, in, ?k",
		"attn.output.proj.weight": "1, 1, ?q, out", "layer_scale.gamma": "1, 1, out | out"}
)

// startKernel is a depthwise convolution before a bottleneck.
func startKernel(side string) shape.Table {
	return shape.Table{"dw_start.conv.weight": side + ", " + side + ", 1, in", "dw_start.bn.weight": "in"}
}

// midKernel is a depthwise convolution inside a bottleneck.
func midKernel(side string) shape.Table {
	return shape.Table{"dw_mid.conv.weight": side + ", " + side + ", 1, ?e", "dw_mid.bn.weight": "?e"}
}

// mobileNetBlocks calls f with the name, below "blocks.", of each tensor of a block, and
// its dimensions.
func mobileNetBlocks(f func(tensor, dims string)) {
	in := "?stem"
	for stage, kinds := range mobileNet {
		out := fmt.Sprintf("?stage%d", stage)
		for i, kind := range kinds {
			dims := strings.NewReplacer("in", in, "out", out, "?e", fmt.Sprintf("?e%d_%d", stage, i), "?q",
				fmt.Sprintf("?q%d", stage), "?k", fmt.Sprintf("?k%d", stage))
			parts := mobileNetParts[kind]
			for _, part := range slices.Sorted(maps.Keys(parts)) {
				f(fmt.Sprintf("%d.%d.%s", stage, i, part), dims.Replace(parts[part]))
			}
			in = out
		}
	}
}

func mobileNetRows() []table.TensorRow {
	list := []table.TensorRow{
		{HF: gemma3nSeen + "conv_stem.conv", GGUF: "v.conv_stem.conv", Type: table.Always(gguf.TypeF32)},
		{HF: gemma3nSeen + "conv_stem.conv.bias", Exact: true, GGUF: "v.conv_stem.conv.bias",
			Transform: parts.ChannelsAsImage},
		{HF: gemma3nSeen + "conv_stem.bn", GGUF: "v.conv_stem.bn"},
		{HF: gemma3nSeen + "msfa.ffn.pw_exp.conv", GGUF: "v.msfa.ffn.pw_exp.conv"},
		{HF: gemma3nSeen + "msfa.ffn.pw_exp.bn", GGUF: "v.msfa.ffn.pw_exp.bn"},
		{HF: gemma3nSeen + "msfa.ffn.pw_proj.conv", GGUF: "v.msfa.ffn.pw_proj.conv"},
		{HF: gemma3nSeen + "msfa.ffn.pw_proj.bn", GGUF: "v.msfa.ffn.pw_proj.bn"},
		{HF: gemma3nSeen + "msfa.norm", GGUF: "v.msfa.norm"},
	}
	mobileNetBlocks(func(tensor, _ string) {
		row := table.TensorRow{HF: gemma3nSeen + "blocks." + tensor, Exact: true, GGUF: "v.blk." + tensor}
		if strings.HasSuffix(tensor, ".gamma") {
			row.Transform = scaleOfPicture
		}
		list = append(list, row)
	})
	return list
}

func mobileNetShapes() shape.Table {
	t := shape.Table{
		"v.conv_stem.conv": "3, 3, 3, ?stem", "v.conv_stem.conv.bias": "1, 1, ?stem", "v.conv_stem.bn": "?stem",
		"v.msfa.ffn.pw_exp.conv": "1, 1, ?fused, ?msfa", "v.msfa.ffn.pw_exp.bn": "?msfa",
		"v.msfa.ffn.pw_proj.conv": "1, 1, ?msfa, v_embd", "v.msfa.ffn.pw_proj.bn": "v_embd", "v.msfa.norm": "v_embd",
	}
	mobileNetBlocks(func(tensor, dims string) { t["v.blk."+strings.TrimSuffix(tensor, ".weight")] = dims })
	return t
}

// scaleOfPicture is channelsAsImage for layer scales. The reference writes a vector, with which the runtime fails.
var scaleOfPicture = &table.Transform{Name: "picture",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		if l.Options.Reference {
			return s, nil
		}
		return parts.ChannelsAsImage.Forward(l, s)
	}}

// gemma3nSize writes the side of the image.
func gemma3nSize(c *config.View) (gguf.Value, bool, error) {
	n, err := gemma3nSide(c)
	return table.Uint32Of(n, true, err)
}

func gemma3nSide(c *config.View) (int64, error) {
	if !c.Processor().Present("size") {
		return 768, nil
	}
	return c.Processor().Sub("size").Require("height")
}

// gemma3nPatch writes the side divided by the number of tokens, as the reference does.
func gemma3nPatch(c *config.View) (gguf.Value, bool, error) {
	n, err := gemma3nSide(c)
	if err != nil {
		return gguf.Value{}, false, err
	}
	tokens, err := parts.IntOr(c.Processor(), "image_seq_length", 256)
	if err == nil && tokens == 0 {
		err = fault.Errorf(fault.Broken, "%s: key \"image_seq_length\": 0, want a number of tokens",
			c.Processor().FileName())
	}
	if err != nil {
		return gguf.Value{}, false, err
	}
	return table.Uint32Of(n/tokens, true, nil)
}

// gemma3nWidth writes four times intermediate_size, which published configurations lack.
func gemma3nWidth(c *config.View) (gguf.Value, bool, error) {
	n, err := parts.IntOr(c.Vision(), "intermediate_size", 2048)
	if err == nil && n > math.MaxInt32 {
		err = fault.Errorf(fault.Broken, "%s: key \"vision_config.intermediate_size\": %d, want a width",
			c.FileName(), n)
	}
	return table.Uint32Of(4*n, true, err)
}
