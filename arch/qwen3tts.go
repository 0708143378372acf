package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(qwen3tts)

// qwen3tts is the language model of Qwen 3 TTS, whose vocabulary has the text tokens, then the audio codes; it
// generates codes only. The two layers that project text embeddings are folded into the embedding. Source:
// Qwen3TTSTalkerModel of the reference.
var qwen3tts = &table.Arch{
	Name:      "qwen3tts",
	Classes:   []string{"Qwen3TTSForConditionalGeneration"},
	Config:    config.Rules{Text: "talker_config"},
	Tokenizer: tokenizer.Qwen3TTS{},
	VocabSize: func(c *config.View) (int64, error) { return c.Require("text_vocab_size") },
	// the runtime supports this number of codes only
	Shapes: shape.Rules{Tensors: shape.Table{"output": "n_embd, 3072"}},
	// the runtime interleaves the sections
	RopeSections: true,
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		{Key: "tokenizer.ggml.suppress_tokens", Derive: speechSuppress},
		{Key: "tokenizer.ggml.eos_token_id", Derive: func(c *config.View) (gguf.Value, bool, error) {
			_, _, end, err := speechVocab(c)
			return table.Uint32Of(end, true, err)
		}},
		{Key: "tokenizer.ggml.add_eos_token", Const: gguf.Bool(false)},
	}),
	Expect: []table.Expect{parts.SiLU},
	Unused: slices.Concat([]string{"rope_scaling.interleaved", "rope_scaling.mrope_interleaved"},
		qwen3ttsKeys),
	Special: []table.Special{table.EncoderNames{}},
	Rename:  []table.Rename{{Prefix: "talker.", With: ""}},
	Drop: []table.Drop{
		{Prefix: "code_predictor.", Why: table.OtherPart}, {Prefix: "speaker_encoder.", Why: table.OtherPart},
	},
	Tensors: slices.Concat([]table.TensorRow{
		{HF: "{part}", Exact: true, GGUF: "token_embd.weight", Join: projectTextEmbedding, Parts: []string{
			"text_projection.linear_fc1.weight", "text_projection.linear_fc1.bias", "text_projection.linear_fc2.weight",
			"text_projection.linear_fc2.bias",
			"model.text_embedding.weight", "model.codec_embedding.weight",
		}},
		{HF: "codec_head", GGUF: "output"},
		{HF: "model.norm", GGUF: "output_norm"},
	}, parts.NormRows, parts.AttentionRows(table.NoBias, table.NoBias), parts.QKNormRows, parts.MLPRows),
	Graph: &graph.Model{
		Reads: []string{"rope.dimension_sections"},
		Norm:  graph.RMS, Final: parts.OutputNorm, Head: graph.LM{Codes: true},
		Layer: parts.PreNorm(parts.GQA(parts.QKNorm, graph.RoPE{Sections: graph.TakingTurn}), parts.SwiGLU),
	},
}

// qwen3ttsKeys are the keys of the speaker encoder and of the code predictor, ids of tokens, which the vocabulary has
// by name, and sizes that the tensors have.
var qwen3ttsKeys = []string{"speaker_encoder_config", "code_predictor_config", "tokenizer_type", "tts_model_size",
	"tts_model_type",
	"assistant_token_id", "im_end_token_id", "im_start_token_id", "tts_bos_token_id", "tts_eos_token_id",
	"tts_pad_token_id",
	"codec_bos_id", "codec_language_id", "codec_nothink_id", "codec_pad_id", "codec_think_bos_id", "codec_think_eos_id",
	"codec_think_id", "spk_id", "spk_is_dialect",
	"num_code_groups", "position_id_per_seconds", "text_hidden_size"}

// speechVocab returns the numbers of tokens of text and of codes, and the id of the code
// that ends the speech.
func speechVocab(c *config.View) (text, codes, end int64, err error) {
	for _, s := range []struct {
		to    *int64
		key   string
		least int64
	}{{&text, "text_vocab_size", 1}, {&codes, "vocab_size", speechMarks}, {&end, "codec_eos_token_id", 0}} {
		if *s.to, err = c.Require(s.key); err != nil {
			return 0, 0, 0, err
		}
		if *s.to < s.least || *s.to > 1<<30 {
			return 0, 0, 0, fault.Errorf(fault.Broken, "%s: key %q: %d, want %d to %d", c.FileName(), s.key, *s.to,
				s.least, 1<<30)
		}
	}
	if end >= codes {
		err = fault.Errorf(fault.Broken, "%s: key \"codec_eos_token_id\": %d, want one of %d codes",
			c.FileName(), end, codes)
	}
	return text, codes, text + end, err
}

// speechMarks is the number of control tokens, which are the last of the codes.
const speechMarks = 1024

// speechSuppress lists the control tokens except the one that ends the speech.
func speechSuppress(c *config.View) (gguf.Value, bool, error) {
	text, codes, end, err := speechVocab(c)
	if err != nil {
		return gguf.Value{}, false, err
	}
	var list []int32
	for id := text + codes - speechMarks; id < text+codes; id++ {
		if id != end {
			list = append(list, int32(id))
		}
	}
	return gguf.Int32s(list), true, nil
}

// projectTextEmbedding projects the embedding of text by its two layers and appends the embedding of the codes.
func projectTextEmbedding(_ table.Layer, s []rows.Source) (rows.Source, error) {
	hidden, err := rows.Linear(s[4], s[0], s[1])
	if err != nil {
		return nil, err
	}
	text, err := rows.Linear(rows.SiLU(hidden), s[2], s[3])
	if err != nil {
		return nil, err
	}
	return rows.Concat([]rows.Source{text, s[5]})
}
