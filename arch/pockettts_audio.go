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

var _ = registerEncoderOf(pocketTTSAudio)

// Kyutai's Pocket TTS: the speaker encoder, and the decoder of the language model's outputs: first to frames (flow
// matching), then to audio. Speaker encoder and audio decoder are Mimi's: convolutions (SEANet) and two transformers of
// the same size. Source: PocketTTSMmprojModel of the reference.

func pocketTTSAudio() *table.Arch {
	return &table.Arch{
		Name:    parts.CLIP,
		Classes: []string{pocketClass},
		Encoder: parts.EncoderOf(parts.InAudio),
		BlockCount: func(c *config.View) (int64, error) {
			n, err := parts.InAudio(c).Require("num_hidden_layers")
			return max(n, flowBlocks), err
		},
		Metadata: slices.Concat([]table.Row{
			{Key: gguf.KeyFileType},
			{Key: "has_audio_encoder", Const: gguf.Bool(true)},
			{Key: "audio.projector_type", Const: gguf.String("pockettts_spkenc")},
			{Key: "audio.projection_dim", Derive: parts.TextWidth},
		}, mimiSizes("audio.", "block_count", "embedding_length", "feed_forward_length", "attention.head_count"),
			[]table.Row{
				{Key: parts.KeyAudioEps, Const: gguf.Float32(1e-5)},
				{Key: parts.KeyMels, Const: gguf.Uint32(1)}, // the input is raw samples
				{Key: "has_gen_audio_encoder", Const: gguf.Bool(true)},
				{Key: "gen.audio.projector_type", Const: gguf.String("pockettts_gen")},
				{Key: "gen.audio.projection_dim", Derive: parts.TextWidth},
			}, mimiSizes("gen.audio.", "embedding_length", "feed_forward_length", "block_count",
				"attention.head_count"),
			[]table.Row{
				{Key: "gen.audio.attention.layer_norm_epsilon", Const: gguf.Float32(1e-5)},
				// the runtime has the settings of each variant by the name of its folder
				{Key: "gen.audio.model_variant", Derive: func(c *config.View) (gguf.Value, bool,
					error) {
					return gguf.String(c.Facts.Dir), true, nil
				}},
			}),
		Drop: append(parts.DropAll("of the language model", "flow_lm.transformer.", "flow_lm.out_norm.",
			"flow_lm.conditioner."),
			parts.DropAll("which are in the embedding of the language model", "flow_lm.bos_emb",
				"flow_lm.bos_before_voice")...),
		Tensors: slices.Concat([]table.TensorRow{
			{HF: "flow_lm.speaker_proj_weight", Exact: true, GGUF: "a.speaker_proj.weight"},
			{HF: "flow_lm.input_linear", GGUF: "a.gen.input_linear"},
			{HF: "flow_lm.emb_mean", Exact: true, GGUF: "a.gen.emb_mean"},
			{HF: "flow_lm.emb_std", Exact: true, GGUF: "a.gen.emb_std"},
			{HF: "flow_lm.out_eos", GGUF: "a.gen.out_eos", Bias: table.NeedBias},
			{HF: "mimi.downsample.conv.conv", GGUF: "a.downsample.conv", Type: table.Always(gguf.TypeF16)},
			{HF: "mimi.upsample.convtr.convtr", GGUF: "a.gen.wav.upsample", Type: table.Always(gguf.TypeF16)},
			{HF: "mimi.quantizer.output_proj", GGUF: "a.gen.wav.quant_out", Transform: parts.OneFrame},
		}, flowRows(), parts.LayersOfPart(parts.InAudio, mimiRows("mimi.encoder_transformer.", "a.blk.{bid}.")),
			parts.LayersOfPart(parts.InAudio, mimiRows("mimi.decoder_transformer.", "a.gen.wav.tfm.blk.{bid}.")),
			seanetRows("mimi.encoder.model.", "a.seanet.", []int{1, 4, 7}, []int{3, 6, 9}, "conv"),
			seanetRows("mimi.decoder.model.", "a.gen.wav.seanet.", []int{3, 6, 9}, []int{2, 5, 8}, "convtr")),
		Shapes: shape.Rules{Tensors: pocketShapes()},
	}
}

// mimiSizes are rows of sizes of a Mimi transformer, in the order of keys.
func mimiSizes(prefix string, keys ...string) (list []table.Row) {
	from := map[string]string{"block_count": "num_hidden_layers", "embedding_length": "hidden_size",
		"feed_forward_length": "intermediate_size", "attention.head_count": "num_attention_heads"}
	for _, key := range keys {
		list = append(list, parts.RequiredUint32(prefix+key, parts.InAudio, from[key]))
	}
	return list
}

// Sizes that are fixed in the runtime.
const (
	flowBlocks  = 6 // residual blocks of the frame decoder
	flowTimes   = 2 // time embeddings of the frame decoder
	seanetSteps = 3
)

// flowRows are the frame decoder.
func flowRows() []table.TensorRow {
	const p, g = "flow_lm.flow_net.", "a.gen.flow."
	list := []table.TensorRow{
		{HF: p + "input_proj", GGUF: g + "input_proj", Bias: table.NeedBias},
		{HF: p + "cond_embed", GGUF: g + "cond_embd", Bias: table.NeedBias},
		{HF: p + "final_layer.linear", GGUF: g + "final.proj", Bias: table.NeedBias},
		{HF: p + "final_layer.adaLN_modulation.1", GGUF: g + "final.ada", Bias: table.NeedBias},
	}
	for i := range flowTimes {
		hf, to := fmt.Sprintf("%stime_embed.%d.", p, i), fmt.Sprintf("%stime.%d.", g, i)
		list = append(list,
			table.TensorRow{HF: hf + "freqs", Exact: true, GGUF: to + "freqs"},
			table.TensorRow{HF: hf + "mlp.0", GGUF: to + "up", Bias: table.NeedBias},
			table.TensorRow{HF: hf + "mlp.2", GGUF: to + "down", Bias: table.NeedBias},
			table.TensorRow{HF: hf + "mlp.3.alpha", Exact: true, GGUF: to + "norm"})
	}
	for i := range flowBlocks {
		hf, to := fmt.Sprintf("%sres_blocks.%d.", p, i), fmt.Sprintf("%sblk.%d.", g, i)
		list = append(list,
			table.TensorRow{HF: hf + "in_ln", GGUF: to + "norm", Bias: table.NeedBias},
			table.TensorRow{HF: hf + "mlp.0", GGUF: to + "up", Bias: table.NeedBias},
			table.TensorRow{HF: hf + "mlp.2", GGUF: to + "down", Bias: table.NeedBias},
			table.TensorRow{HF: hf + "adaLN_modulation.1", GGUF: to + "ada", Bias: table.NeedBias})
	}
	return list
}

// mimiRows are a Mimi transformer.
func mimiRows(p, g string) []table.TensorRow {
	p += "transformer.layers.{bid}."
	return []table.TensorRow{
		{HF: p + "norm1", GGUF: g + "ln1", Bias: table.NeedBias},
		{HF: p + "norm2", GGUF: g + "ln2", Bias: table.NeedBias},
		{HF: p + "self_attn.in_proj", Split: []table.Part{
			{GGUF: g + "attn_q", Transform: parts.Third(0)}, {GGUF: g + "attn_k", Transform: parts.Third(1)},
			{GGUF: g + "attn_v", Transform: parts.Third(2)},
		}},
		{HF: p + "self_attn.out_proj", GGUF: g + "attn_out"},
		{HF: p + "linear1", GGUF: g + "ffn_up"},
		{HF: p + "linear2", GGUF: g + "ffn_down"},
		{HF: p + "layer_scale_1.scale", Exact: true, GGUF: g + "ls1.weight"},
		{HF: p + "layer_scale_2.scale", Exact: true, GGUF: g + "ls2.weight"},
	}
}

// seanetRows are SEANet's steps: a convolution called scaling, which changes the length, and two of a residual block.
// Kernels are F16, as runtimes expect.
func seanetRows(p, g string, res, scale []int, scaling string) []table.TensorRow {
	conv := func(hf, to string) table.TensorRow {
		return table.TensorRow{HF: p + hf, GGUF: g + to, Bias: table.NeedBias, Type: table.Always(gguf.TypeF16)}
	}
	list := []table.TensorRow{conv("0.conv", "conv_in"), conv("11.conv", "conv_out")}
	for i := range seanetSteps {
		list = append(list,
			conv(fmt.Sprintf("%d.%s", scale[i], scaling), fmt.Sprintf("blk.%d.scale_conv", i)),
			conv(fmt.Sprintf("%d.block.1.conv", res[i]), fmt.Sprintf("blk.%d.res_conv1", i)),
			conv(fmt.Sprintf("%d.block.3.conv", res[i]), fmt.Sprintf("blk.%d.res_conv2", i)))
	}
	return list
}

func pocketShapes() shape.Table {
	t := shape.Table{
		"a.gen.input_linear": "?latent, a_proj", "a.gen.emb_mean": "?latent", "a.gen.emb_std": "?latent",
		"a.gen.out_eos": "a_proj, 1", "a.speaker_proj": "?latent, a_proj",
		"a.downsample.conv": "?down, a_embd, ?latent", "a.gen.wav.upsample": "?down, 1, a_embd",
		"a.gen.wav.quant_out":   "?latent, a_embd",
		"a.gen.flow.input_proj": "?latent, ?flow", "a.gen.flow.cond_embd": "a_proj, ?flow",
		"a.gen.flow.final.proj": "?flow, ?latent", "a.gen.flow.final.ada": "?flow, ?flow_2",
		"a.gen.flow.time.{bid}.freqs": "?freqs", "a.gen.flow.time.{bid}.up": "?freqs_2, ?flow",
		"a.gen.flow.time.{bid}.down": "?flow, ?flow", "a.gen.flow.time.{bid}.norm": "?flow",
		"a.gen.flow.blk.{bid}.norm": "?flow", "a.gen.flow.blk.{bid}.up": "?flow, ?flow",
		"a.gen.flow.blk.{bid}.down": "?flow, ?flow", "a.gen.flow.blk.{bid}.ada": "?flow, ?flow_3",
		"a.blk.{bid}.ls1": "a_embd", "a.blk.{bid}.ls2": "a_embd",
	}
	for name, dims := range map[string]string{"ln1": "a_embd", "ln2": "a_embd", "ls1": "a_embd", "ls2": "a_embd",
		"attn_q": "a_embd, a_embd", "attn_k": "a_embd, a_embd", "attn_v": "a_embd, a_embd",
		"attn_out": "a_embd, a_embd", "ffn_up": "a_embd, @gen.audio.feed_forward_length",
		"ffn_down": "@gen.audio.feed_forward_length, a_embd"} {
		t["a.gen.wav.tfm.blk.{bid}."+name] = dims
	}
	// kernel length n, input and output channels
	conv := func(name string, n int, in, out string) {
		t[name], t[name+".bias"] = fmt.Sprintf("%d, %s, %s", n, in, out), out
	}
	width := func(i int) string { return fmt.Sprintf("?wide%d", i) } // channels after i steps of the encoder
	for i, rate := range []int{4, 5, 6} {
		e, d := fmt.Sprintf("a.seanet.blk.%d.", i), fmt.Sprintf("a.gen.wav.seanet.blk.%d.", seanetSteps-1-i)
		conv(e+"scale_conv", 2*rate, width(i), width(i+1))
		// transposed
		t[d+"scale_conv"], t[d+"scale_conv.bias"] = fmt.Sprintf("%d, %s, %s", 2*rate, width(i), width(i+1)), width(i)
		for _, p := range []string{e, d} {
			conv(p+"res_conv1", 3, width(i), fmt.Sprintf("?half%d", i))
			conv(p+"res_conv2", 1, fmt.Sprintf("?half%d", i), width(i))
		}
	}
	conv("a.seanet.conv_in", 7, "1", width(0))
	conv("a.seanet.conv_out", 3, width(3), "a_embd")
	conv("a.gen.wav.seanet.conv_in", 7, "a_embd", width(3))
	conv("a.gen.wav.seanet.conv_out", 3, width(0), "1")
	return t
}
