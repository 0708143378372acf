package arch

import (
	"fmt"
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

var _ = registerEncoderOf(qwen3TTS)

// Qwen 3 TTS: the speaker encoder (ECAPA-TDNN), the code predictor (the other codes of a frame from the first one), and
// the audio decoder. The audio decoder's weights are in a separate file. Source: Qwen3TTSSpeakerEncoderModel of the
// reference.

var (
	inSpeaker   table.In = func(c *config.View) config.Object { return c.Sub("speaker_encoder_config") }
	inPredictor table.In = func(c *config.View) config.Object {
		return c.Sub("talker_config").Sub(
			"code_predictor_config")
	}
	inSpeech table.In = func(c *config.View) config.Object { return c.Facts.Speech }
)

// Sizes that are fixed in the runtime and in the names of tensors.
const (
	furtherCodes = 15 // codes of a frame besides the first
	resParts     = 7  // convolved parts of a Res2Net block
	waveLayers   = 8  // layers of the audio decoder's transformer
	dacBlocks    = 4
)

func qwen3TTS() *table.Arch {
	return &table.Arch{
		Name:    parts.CLIP,
		Classes: []string{"Qwen3TTSForConditionalGeneration"},
		Config:  config.Rules{Text: "talker_config"},
		Encoder: &table.Encoder{Parts: []table.In{inSpeaker, inPredictor, inSpeech},
			Facts: []*config.Source{{Read: readSpeech}}},
		BlockCount: parts.LayersIn(inPredictor, "num_hidden_layers"),
		Metadata: []table.Row{
			{Key: gguf.KeyFileType},
			{Key: "has_audio_encoder", Derive: hasSpeaker},
			{Key: "audio.projector_type", Const: gguf.String("qwen3tts_spkenc")},
			{Key: "audio.projection_dim", Derive: parts.TextWidth},
			{Key: parts.KeyMels, Const: gguf.Uint32(128)},
			// the speaker encoder has no attention layers: runtimes ignore these keys
			{Key: "audio.block_count", Const: gguf.Uint32(3)},
			{Key: parts.KeyAudioWidth, Const: gguf.Uint32(1536)},
			{Key: "audio.attention.head_count", Const: gguf.Uint32(1)},
			{Key: "audio.feed_forward_length", Const: gguf.Uint32(1536)},
			{Key: parts.KeyAudioEps, Const: gguf.Float32(1e-5)},
			{Key: "has_gen_audio_encoder", Const: gguf.Bool(true)},
			{Key: "gen.audio.projector_type", Const: gguf.String("qwen3tts_gen")},
			{Key: "gen.audio.projection_dim", Derive: parts.TextWidth},
			parts.RequiredUint32("gen.audio.embedding_length", inPredictor, "hidden_size"),
			parts.RequiredUint32("gen.audio.feed_forward_length", inPredictor, "intermediate_size"),
			parts.RequiredUint32("gen.audio.block_count", inPredictor, "num_hidden_layers"),
			parts.RequiredUint32("gen.audio.attention.head_count", inPredictor, "num_attention_heads"),
			parts.RequiredUint32("gen.audio.attention.head_count_kv", inPredictor, "num_key_value_heads"),
			{Key: "gen.audio.attention.layer_norm_epsilon", Type: gguf.Float32Type, In: inPredictor,
				From: []string{"rms_norm_eps"}, Required: true},
		},
		// The values that runtimes have built in.
		Expect: []table.Expect{
			{Key: "mel_dim", In: inSpeaker, Values: []string{"128"}},
			{Key: "sample_rate", In: inSpeaker, Values: []string{"24000"}},
			{Key: "enc_kernel_sizes", In: inSpeaker, Values: []string{"[5 3 3 3 1]"}},
			{Key: "enc_dilations", In: inSpeaker, Values: []string{"[1 2 3 4 1]"}},
			{Key: "enc_res2net_scale", In: inSpeaker, Values: []string{"8"}},
			parts.ExpectAct(inPredictor, "silu"), {Key: "num_code_groups", In: inPredictor, Values: []string{"16"}},
			{Key: "rope_theta", In: inPredictor, Values: []string{"1000000"}},
			{Key: "rope_scaling", In: inPredictor},
			{Key: "use_sliding_window", In: inPredictor, Values: []string{"false"}},
			parts.ExpectAct(inSpeech, "silu"), {Key: "num_quantizers", In: inSpeech, Values: []string{"16"}},
			{Key: "num_semantic_quantizers", In: inSpeech, Values: []string{"1"}},
			{Key: "num_hidden_layers", In: inSpeech, Values: []string{"8"}},
			{Key: "num_attention_heads", In: inSpeech, Values: []string{"16"}},
			{Key: "num_key_value_heads", In: inSpeech, Values: []string{"16"}},
			{Key: "head_dim", In: inSpeech, Values: []string{"64"}},
			{Key: "rms_norm_eps", In: inSpeech, Values: []string{"1e-05"}},
			{Key: "rope_theta", In: inSpeech, Values: []string{"10000"}},
			{Key: "sliding_window", In: inSpeech, Values: []string{"72"}},
			{Key: "upsample_rates", In: inSpeech, Values: []string{"[8 5 4 3]"}},
			{Key: "upsampling_ratios", In: inSpeech, Values: []string{"[2 2]"}},
		},
		Unused: []string{"speaker_encoder_config.enc_dim", "speaker_encoder_config.enc_channels",
			"speaker_encoder_config.enc_attention_channels", "speaker_encoder_config.enc_se_channels",
			"talker_config.code_predictor_config.head_dim",
			"talker_config.code_predictor_config.max_position_embeddings",
			"talker_config.code_predictor_config.max_window_layers",
			"talker_config.code_predictor_config.layer_types", "talker_config.code_predictor_config.vocab_size",
			"talker_config.code_predictor_config.sliding_window",
			"decoder_config.codebook_dim", "decoder_config.codebook_size", "decoder_config.decoder_dim",
			"decoder_config.hidden_size", "decoder_config.intermediate_size",
			"decoder_config.latent_dim", "decoder_config.layer_scale_initial_scale",
			"decoder_config.max_position_embeddings", "decoder_config.semantic_codebook_size",
			"decoder_config.vector_quantization_hidden_dimension"},
		Drop: slices.Concat(parts.DropAll("of the language model", "talker.model.layers.", "talker.model.norm.",
			"talker.model.text_embedding.", "talker.text_projection.", "talker.codec_head."),
			parts.DropAll("of what makes codes of sound", "speech_tokenizer.encoder.")),
		Tensors: slices.Concat(waveRows(), speakerRows(), predictorRows),
		Shapes: shape.Rules{Dims: shape.Table{"g_embd": "@gen.audio.embedding_length"},
			Tensors: shape.Merge(speakerShapes, predictorShapes, waveShapes())},
		Special: []table.Special{table.ExtraFile{File: "speech_tokenizer/model.safetensors", Prefix: "speech_tokenizer.",
			Generated: true}},
	}
}

// hasSpeaker writes true for models with a speaker encoder and refuses others (models with built-in voices), which no
// runtime loads.
func hasSpeaker(c *config.View) (gguf.Value, bool, error) {
	if inSpeaker(c).Members() == nil {
		return gguf.Value{}, false, fault.Errorf(fault.Unsupported,
			"%s: has no \"speaker_encoder_config\": runtimes load a speech model only with its speaker encoder",
			c.FileName())
	}
	return gguf.Bool(true), true, nil
}

// speakerRows are the tensors of the speaker encoder.
func speakerRows() []table.TensorRow {
	const p = "speaker_encoder."
	list := []table.TensorRow{
		{HF: p + "blocks.0.conv", GGUF: "a.conv1d.0", Bias: table.NeedBias},
		{HF: p + "mfa.conv", GGUF: "a.conv_out", Bias: table.NeedBias},
		{HF: p + "asp.tdnn.conv", GGUF: "a.asp_tdnn", Bias: table.NeedBias},
		{HF: p + "asp.conv", GGUF: "a.asp_attn", Bias: table.NeedBias},
		{HF: p + "fc", GGUF: "mm.a.fc", Bias: table.NeedBias},
	}
	for bid := 1; bid <= 3; bid++ {
		hf, to := fmt.Sprintf("%sblocks.%d.", p, bid), fmt.Sprintf("a.blk.%d.", bid)
		list = append(list,
			table.TensorRow{HF: hf + "tdnn1.conv", GGUF: to + "conv_pw1", Bias: table.NeedBias},
			table.TensorRow{HF: hf + "tdnn2.conv", GGUF: to + "conv_pw2", Bias: table.NeedBias},
			table.TensorRow{HF: hf + "se_block.conv1", GGUF: to + "se_conv1", Bias: table.NeedBias},
			table.TensorRow{HF: hf + "se_block.conv2", GGUF: to + "se_conv2", Bias: table.NeedBias})
		for i := range resParts {
			list = append(list,
				table.TensorRow{HF: fmt.Sprintf("%sres2net_block.blocks.%d.conv", hf, i),
					GGUF: fmt.Sprintf("%sres2.%d", to, i), Bias: table.NeedBias})
		}
	}
	return list
}

var speakerShapes = func() shape.Table {
	t := shape.Table{
		"a.conv1d.0": "5, @audio.num_mel_bins, ?spk", "a.conv1d.0.bias": "?spk", "a.conv_out": "1, ?mfa, ?mfa",
		"a.conv_out.bias": "?mfa",
		"a.asp_tdnn":      "1, ?asp, ?att", "a.asp_tdnn.bias": "?att", "a.asp_attn": "1, ?att, ?mfa",
		"a.asp_attn.bias": "?mfa", "mm.a.fc": "1, ?pooled, a_proj", "mm.a.fc.bias": "a_proj",
		"a.blk.{bid}.conv_pw1": "1, ?spk, ?spk", "a.blk.{bid}.conv_pw1.bias": "?spk",
		"a.blk.{bid}.conv_pw2": "1, ?spk, ?spk", "a.blk.{bid}.conv_pw2.bias": "?spk",
		"a.blk.{bid}.se_conv1": "1, ?spk, ?se", "a.blk.{bid}.se_conv1.bias": "?se",
		"a.blk.{bid}.se_conv2": "1, ?se, ?spk", "a.blk.{bid}.se_conv2.bias": "?spk",
	}
	for i := range resParts {
		part := fmt.Sprintf("a.blk.{bid}.res2.%d", i)
		t[part], t[part+".bias"] = "3, ?part, ?part", "?part"
	}
	return t
}()

// predictorRows are the code predictor, with an embedding and a head for each further code of a frame.
var predictorRows = func() []table.TensorRow {
	const p, l, g = "talker.code_predictor.", "talker.code_predictor.model.layers.{bid}.", "a.gen.code.blk.{bid}."
	return []table.TensorRow{
		{HF: "talker.model.codec_embedding", GGUF: "a.gen.code.out_embd"},
		{HF: p + "model.codec_embedding.{xid}", GGUF: "a.gen.code.embd", Experts: extraCodes, Group: "embeddings"},
		{HF: p + "lm_head.{xid}", GGUF: "a.gen.code.head", Experts: extraCodes, Group: "heads"},
		{HF: p + "model.norm", GGUF: "a.gen.code.output_norm"},
		{HF: p + "small_to_mtp_projection", GGUF: "a.gen.code.proj_in", Bias: table.NeedBias, Optional: true},
		{HF: l + "input_layernorm", GGUF: g + "ln1"},
		{HF: l + "post_attention_layernorm", GGUF: g + "ln2"},
		{HF: l + "self_attn.q_proj", GGUF: g + "attn_q"},
		{HF: l + "self_attn.k_proj", GGUF: g + "attn_k"},
		{HF: l + "self_attn.v_proj", GGUF: g + "attn_v"},
		{HF: l + "self_attn.o_proj", GGUF: g + "attn_out"},
		{HF: l + "self_attn.q_norm", GGUF: g + "attn_q_norm"},
		{HF: l + "self_attn.k_norm", GGUF: g + "attn_k_norm"},
		{HF: l + "mlp.gate_proj", GGUF: g + "ffn_gate"},
		{HF: l + "mlp.up_proj", GGUF: g + "ffn_up"},
		{HF: l + "mlp.down_proj", GGUF: g + "ffn_down", Type: parts.AlwaysF32}, // its inputs exceed the range of F16
	}
}()

var predictorShapes = shape.Table{
	"a.gen.code.out_embd": "a_proj, ?first", "a.gen.code.embd": "a_proj, ?codes, 15",
	"a.gen.code.head": "g_embd, ?codes, 15", "a.gen.code.output_norm": "g_embd", "a.gen.code.proj_in": "a_proj, g_embd",
	"a.gen.code.blk.{bid}.ln1": "g_embd", "a.gen.code.blk.{bid}.ln2": "g_embd",
	"a.gen.code.blk.{bid}.attn_q": "g_embd, ?g_q", "a.gen.code.blk.{bid}.attn_k": "g_embd, ?g_k",
	"a.gen.code.blk.{bid}.attn_v": "g_embd, ?g_k", "a.gen.code.blk.{bid}.attn_out": "?g_q, g_embd",
	"a.gen.code.blk.{bid}.attn_q_norm": "?g_head", "a.gen.code.blk.{bid}.attn_k_norm": "?g_head",
	"a.gen.code.blk.{bid}.ffn_gate": "g_embd, @gen.audio.feed_forward_length",
	"a.gen.code.blk.{bid}.ffn_up":   "g_embd, @gen.audio.feed_forward_length",
	"a.gen.code.blk.{bid}.ffn_down": "@gen.audio.feed_forward_length, g_embd",
}

// waveRows are the audio decoder: codebooks, a transformer, two upsampling steps to frames (ConvNeXt), and four from
// frames to samples (DAC). They come before all other tensors, in this order. Kernels are F16, of transposed
// convolutions F32, as runtimes expect.
func waveRows() []table.TensorRow {
	const p, g = "speech_tokenizer.decoder.", "a.gen.wav."
	var list []table.TensorRow
	add := func(rows ...table.TensorRow) {
		for _, r := range rows {
			r.HF, r.GGUF, r.Kind = p+r.HF, g+r.GGUF, table.FirstByLayer(0)
			list = append(list, r)
		}
	}
	with := func(hf, to string, t table.TypeOf) table.TensorRow {
		return table.TensorRow{HF: hf, GGUF: to, Bias: table.NeedBias, Type: t}
	}
	always16 := table.Always(gguf.TypeF16)
	book := []string{"embedding_sum", "cluster_usage"}
	add(
		table.TensorRow{HF: "quantizer.rvq_first.input_proj", GGUF: "quant.first.in_proj", Transform: parts.OneFrame},
		table.TensorRow{HF: "quantizer.rvq_first.output_proj", GGUF: "quant.first.out_proj", Transform: parts.OneFrame},
		table.TensorRow{HF: "quantizer.rvq_first.vq.layers.0._codebook.{part}", Exact: true, Parts: book,
			GGUF: "quant.first.codebook.weight", Join: codebook},
		table.TensorRow{HF: "quantizer.rvq_rest.input_proj", GGUF: "quant.rest.in_proj", Transform: parts.OneFrame},
		table.TensorRow{HF: "quantizer.rvq_rest.output_proj", GGUF: "quant.rest.out_proj", Transform: parts.OneFrame},
		table.TensorRow{HF: "quantizer.rvq_rest.vq.layers.{xid}._codebook.{part}", Exact: true, Parts: book,
			GGUF: "quant.rest.codebook.weight", Join: codebooks, Experts: extraCodes},
		with("pre_conv.conv", "pre_conv", always16),
		with("pre_transformer.input_proj", "tfm.in_proj", nil),
		with("pre_transformer.output_proj", "tfm.out_proj", nil),
		table.TensorRow{HF: "pre_transformer.norm", GGUF: "tfm.output_norm"},
	)
	for i := range waveLayers {
		hf, to := fmt.Sprintf("pre_transformer.layers.%d.", i), fmt.Sprintf("tfm.blk.%d.", i)
		add(
			table.TensorRow{HF: hf + "input_layernorm", GGUF: to + "ln1"},
			table.TensorRow{HF: hf + "self_attn.q_proj", GGUF: to + "attn_q"},
			table.TensorRow{HF: hf + "self_attn.k_proj", GGUF: to + "attn_k"},
			table.TensorRow{HF: hf + "self_attn.v_proj", GGUF: to + "attn_v"},
			table.TensorRow{HF: hf + "self_attn.o_proj", GGUF: to + "attn_out"},
			table.TensorRow{HF: hf + "self_attn_layer_scale.scale", Exact: true, GGUF: to + "ls1.weight"},
			table.TensorRow{HF: hf + "post_attention_layernorm", GGUF: to + "ln2"},
			table.TensorRow{HF: hf + "mlp.gate_proj", GGUF: to + "ffn_gate"},
			table.TensorRow{HF: hf + "mlp.up_proj", GGUF: to + "ffn_up"},
			table.TensorRow{HF: hf + "mlp.down_proj", GGUF: to + "ffn_down"},
			table.TensorRow{HF: hf + "mlp_layer_scale.scale", Exact: true, GGUF: to + "ls2.weight"},
		)
	}
	for i := range 2 {
		hf, to := fmt.Sprintf("upsample.%d.", i), fmt.Sprintf("up.blk.%d.", i)
		add(
			with(hf+"0.conv", to+"conv", parts.AlwaysF32),
			with(hf+"1.dwconv.conv", to+"dwconv", always16),
			with(hf+"1.norm", to+"norm", nil),
			with(hf+"1.pwconv1", to+"pw1", nil),
			with(hf+"1.pwconv2", to+"pw2", nil),
			table.TensorRow{HF: hf + "1.gamma", Exact: true, GGUF: to + "gamma"},
		)
	}
	add(with("decoder.0.conv", "dac.entry", always16))
	for i := range dacBlocks {
		hf, to := fmt.Sprintf("decoder.%d.block.", i+1), fmt.Sprintf("dac.blk.%d.", i)
		add(snake(hf+"0", to+"snake")...)
		add(with(hf+"1.conv", to+"conv", parts.AlwaysF32))
		for r := range 3 {
			hf, to := fmt.Sprintf("%s%d.", hf, r+2), fmt.Sprintf("%sres.%d.", to, r)
			for n := 1; n <= 2; n++ {
				add(snake(fmt.Sprintf("%sact%d", hf, n), fmt.Sprintf("%sact%d", to, n))...)
				add(with(fmt.Sprintf("%sconv%d.conv", hf, n), fmt.Sprintf("%sconv%d", to, n), always16))
			}
		}
	}
	add(snake("decoder.5", "dac.post_snake")...)
	add(with("decoder.6.conv", "dac.post_conv", always16))
	return list
}

// extraCodes returns the number of codes of a frame besides the first.
func extraCodes(table.Layer) (int64, error) { return furtherCodes, nil }

// snake are the parameters of the snake activation, x + sin²(αx) / β. Checkpoints have log α and log β.
func snake(hf, to string) []table.TensorRow {
	return []table.TensorRow{
		{HF: hf + ".alpha", Exact: true, GGUF: to + ".alpha", Transform: elementwise("exponential", torchmath.Exp)},
		{HF: hf + ".beta", Exact: true, GGUF: to + ".beta",
			Transform: elementwise("reciprocal-exponential", torchmath.Exp,
				rows.Add(1e-9), func(x []float32) {
					for i := range x {
						x[i] = 1 / x[i]
					}
				})},
	}
}

// elementwise applies functions to the elements of a tensor, each rounded to its type.
func elementwise(name string, steps ...func([]float32)) *table.Transform {
	return &table.Transform{Name: name, Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
		t := s.Type()
		for _, f := range steps {
			s = rows.Convert(rows.Map(s, f), t)
		}
		return s, nil
	}}
}

// codebook returns the vectors of a codebook: the sums that the checkpoint has, divided by their counts.
func codebook(_ table.Layer, s []rows.Source) (rows.Source, error) {
	return rows.DivideRows(s[0], s[1], 1e-5)
}

// codebooks is codebook for several codebooks, stacked.
func codebooks(l table.Layer, s []rows.Source) (rows.Source, error) {
	var books []rows.Source
	for pair := range slices.Chunk(s, 2) {
		book, err := codebook(l, pair)
		if err != nil {
			return nil, err
		}
		books = append(books, book)
	}
	return rows.Stack(books)
}

// waveShapes are the dimensions of waveRows: an upsampling kernel is twice as long as its rate.
func waveShapes() shape.Table {
	t := shape.Table{
		"a.gen.wav.quant.first.in_proj": "?code, ?book", "a.gen.wav.quant.first.out_proj": "?book, ?code",
		"a.gen.wav.quant.first.codebook": "?book, ?meanings",
		"a.gen.wav.quant.rest.in_proj":   "?code, ?book", "a.gen.wav.quant.rest.out_proj": "?book, ?code",
		"a.gen.wav.quant.rest.codebook": "?book, ?sounds, 15",
		"a.gen.wav.pre_conv":            "3, ?code, ?latent", "a.gen.wav.pre_conv.bias": "?latent",
		"a.gen.wav.tfm.in_proj": "?latent, ?tfm", "a.gen.wav.tfm.out_proj": "?tfm, ?latent",
		"a.gen.wav.tfm.output_norm":   "?tfm",
		"a.gen.wav.tfm.blk.{bid}.ln1": "?tfm", "a.gen.wav.tfm.blk.{bid}.ln2": "?tfm",
		"a.gen.wav.tfm.blk.{bid}.ls1": "?tfm", "a.gen.wav.tfm.blk.{bid}.ls2": "?tfm",
		"a.gen.wav.tfm.blk.{bid}.attn_q": "?tfm, 1024", "a.gen.wav.tfm.blk.{bid}.attn_k": "?tfm, 1024",
		"a.gen.wav.tfm.blk.{bid}.attn_v": "?tfm, 1024", "a.gen.wav.tfm.blk.{bid}.attn_out": "1024, ?tfm",
		"a.gen.wav.tfm.blk.{bid}.ffn_gate": "?tfm, ?tfm_ff", "a.gen.wav.tfm.blk.{bid}.ffn_up": "?tfm, ?tfm_ff",
		"a.gen.wav.tfm.blk.{bid}.ffn_down": "?tfm_ff, ?tfm",
		"a.gen.wav.up.blk.{bid}.conv":      "2, ?latent, ?latent", "a.gen.wav.up.blk.{bid}.conv.bias": "?latent",
		"a.gen.wav.up.blk.{bid}.dwconv": "7, 1, ?latent", "a.gen.wav.up.blk.{bid}.dwconv.bias": "?latent",
		"a.gen.wav.up.blk.{bid}.norm": "?latent", "a.gen.wav.up.blk.{bid}.pw1": "?latent, ?up_ff",
		"a.gen.wav.up.blk.{bid}.pw2": "?up_ff, ?latent", "a.gen.wav.up.blk.{bid}.gamma": "?latent",
		"a.gen.wav.dac.entry": "7, ?latent, ?dac0", "a.gen.wav.dac.entry.bias": "?dac0",
		"a.gen.wav.dac.post_snake.alpha": "?dac4", "a.gen.wav.dac.post_snake.beta": "?dac4",
		"a.gen.wav.dac.post_conv": "7, ?dac4, 1", "a.gen.wav.dac.post_conv.bias": "1",
	}
	for i, rate := range []int{8, 5, 4, 3} {
		p, in, out := fmt.Sprintf("a.gen.wav.dac.blk.%d.", i), fmt.Sprintf("?dac%d", i), fmt.Sprintf("?dac%d", i+1)
		t[p+"snake.alpha"], t[p+"snake.beta"], t[p+"conv"], t[p+"conv.bias"] = in, in,
			fmt.Sprintf("%d, %s, %s", 2*rate, out, in), out
		for r := range 3 {
			p := fmt.Sprintf("%sres.%d.", p, r)
			for _, act := range []string{"act1", "act2"} {
				t[p+act+".alpha"], t[p+act+".beta"] = out, out
			}
			t[p+"conv1"], t[p+"conv1.bias"] = "7, "+out+", "+out, out
			t[p+"conv2"], t[p+"conv2.bias"] = "1, "+out+", "+out, out
		}
	}
	return t
}

// speechConfig is the configuration of the speech tokenizer, which encodes audio to codes and decodes codes.
const speechConfig = "speech_tokenizer/config.json"

// readSpeech reads Facts.Speech: decoder_config of speechConfig. Reads of its keys are recorded with the model's.
func readSpeech(files config.Files, v *config.View, f *config.Facts) error {
	data, err := config.ReadConfig(files, speechConfig)
	if err != nil {
		return err
	}
	root, err := v.ParseWith(speechConfig, data)
	if err != nil {
		return err
	}
	if f.Speech = root.Sub("decoder_config"); f.Speech.Members() == nil {
		return root.WrongType("decoder_config", "an object", root.Value("decoder_config"))
	}
	return nil
}
