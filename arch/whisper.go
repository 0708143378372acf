package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/tokenizer"
)

var _ = register(whisper)

// whisper is OpenAI's Whisper, a speech recognition model that the reference does not convert. Sources: the keys of
// docs/gguf.md of ggml (commit 01f0d4d) and whisper.vocab_size, which readers of these keys require; the tensors keep
// their names, as in the files that candle loads (candle-transformers, models/whisper/quantized_model.rs).
var whisper = &table.Arch{
	Name:      "whisper",
	Shapes:    shape.Rules{Tensors: whisperShapes},
	Classes:   []string{"WhisperForConditionalGeneration"},
	Tokenizer: tokenizer.BPE{},
	BlockCount: func(c *config.View) (int64, error) {
		encoder, err := c.Require("encoder_layers")
		if err != nil {
			return 0, err
		}
		decoder, err := c.Require("decoder_layers")
		return max(encoder, decoder), err
	},
	Metadata: []table.Row{
		parts.UintRow("vocab_size", "vocab_size"),
		parts.UintRow("encoder.context_length", "max_source_positions"),
		parts.UintRow("encoder.embedding_length", "d_model"),
		parts.UintRow("encoder.feed_forward_length", "encoder_ffn_dim"),
		parts.UintRow("encoder.block_count", "encoder_layers"),
		parts.UintRow("encoder.mels_count", "num_mel_bins"),
		parts.UintRow("encoder.attention.head_count", "encoder_attention_heads"),
		parts.UintRow("decoder.context_length", "max_target_positions"),
		parts.UintRow("decoder.embedding_length", "d_model"),
		parts.UintRow("decoder.feed_forward_length", "decoder_ffn_dim"),
		parts.UintRow("decoder.block_count", "decoder_layers"),
		parts.UintRow("decoder.attention.head_count", "decoder_attention_heads"),
		parts.FileTypeRow,
	},
	Unused: []string{"apply_spec_augment", "classifier_proj_size", "decoder_layerdrop", "encoder_layerdrop",
		"forced_decoder_ids", "init_std", "mask_feature_length", "mask_feature_min_masks",
		"mask_feature_prob", "mask_time_length", "mask_time_min_masks", "mask_time_prob", "max_length",
		"median_filter_width", "num_hidden_layers", "suppress_tokens", "use_weighted_layer_sum"},
	Expect: []table.Expect{
		parts.Expect("activation_function", parts.GELU...),
		parts.Expect("scale_embedding", "false"),
	},
	Special: []table.Special{table.EncoderNames{}},
	Tensors: slices.Concat([]table.TensorRow{
		sameName("model.encoder.conv1", table.NeedBias),
		sameName("model.encoder.conv2", table.NeedBias),
		sameName("model.encoder.embed_positions", table.NoBias),
		sameName("model.encoder.layer_norm", table.NeedBias),
		sameName("model.decoder.embed_tokens", table.NoBias),
		sameName("model.decoder.embed_positions", table.NoBias),
		sameName("model.decoder.layer_norm", table.NeedBias),
		{HF: "proj_out", GGUF: "proj_out", Optional: true, Kind: table.SameAs("model.decoder.embed_tokens.weight")},
	},
		parts.Only(layersOf("encoder_layers"), whisperLayer("model.encoder.layers.{bid}.", "self_attn")),
		parts.Only(layersOf("decoder_layers"), whisperLayer("model.decoder.layers.{bid}.", "self_attn",
			"encoder_attn")),
	),
}

// sameName returns the row of a tensor that keeps its name.
func sameName(name string, bias table.Bias) table.TensorRow {
	return table.TensorRow{HF: name, GGUF: name, Bias: bias}
}

// whisperLayer returns the rows of a layer with the given attention blocks.
func whisperLayer(prefix string, attention ...string) []table.TensorRow {
	list := []table.TensorRow{
		sameName(prefix+"fc1", table.NeedBias),
		sameName(prefix+"fc2", table.NeedBias),
		sameName(prefix+"final_layer_norm", table.NeedBias),
	}
	for _, a := range attention {
		list = append(list,
			sameName(prefix+a+"_layer_norm", table.NeedBias),
			sameName(prefix+a+".q_proj", table.NeedBias),
			sameName(prefix+a+".k_proj", table.NoBias),
			sameName(prefix+a+".v_proj", table.NeedBias),
			sameName(prefix+a+".out_proj", table.NeedBias))
	}
	return list
}

// layersOf is the condition that a layer's number is below the value of a key.
func layersOf(key string) table.Cond {
	return func(l table.Layer) (bool, error) {
		n, err := l.Require(key)
		return l.Bid < n, err
	}
}

// whisperShapes are the dimensions of the tensors, under their own names.
var whisperShapes = func() shape.Table {
	t := shape.Table{
		"model.encoder.conv1":        "3, @encoder.mels_count, @encoder.embedding_length",
		"model.encoder.conv1.bias":   "@encoder.embedding_length",
		"model.encoder.conv2":        "3, @encoder.embedding_length, @encoder.embedding_length",
		"model.encoder.conv2.bias":   "@encoder.embedding_length",
		"model.decoder.embed_tokens": "@decoder.embedding_length, @vocab_size",
		"proj_out":                   "@decoder.embedding_length, @vocab_size",
	}
	for side, attention := range map[string][]string{"encoder": {"self_attn"},
		"decoder": {"self_attn", "encoder_attn"}} {
		embd, ff := "@"+side+".embedding_length", "@"+side+".feed_forward_length"
		p := "model." + side + "."
		t[p+"embed_positions"], t[p+"layer_norm"] = embd+", @"+side+".context_length", embd
		p += "layers.{bid}."
		t[p+"fc1"], t[p+"fc2"], t[p+"final_layer_norm"] = embd+", "+ff, ff+", "+embd, embd
		for _, a := range attention {
			t[p+a+"_layer_norm"] = embd
			for _, m := range []string{".q_proj", ".k_proj", ".v_proj", ".out_proj"} {
				t[p+a+m] = embd + ", " + embd
			}
		}
	}
	return t
}()
