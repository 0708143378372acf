package arch

import (
	"encoding/json"
	"slices"
	"strings"

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

var _ = register(pocketTTS)

// pocketTTS is the transformer of Kyutai's Pocket TTS, which generates no tokens: the mmproj file decodes its outputs
// to audio. The embedding of text is followed by learned vectors. Source: PocketTTSModel of the reference.
var pocketTTS = &table.Arch{
	Name:      "pockettts",
	Classes:   []string{pocketClass},
	Config:    config.Rules{Shapes: pocketConfig},
	Tokenizer: tokenizer.PocketTTS{},
	Metadata:  parts.CommonRows,
	Special:   []table.Special{table.EncoderNames{}},
	Drop: []table.Drop{
		{Prefix: "mimi.", Why: table.OtherPart}, {Prefix: "flow_lm.flow_net.", Why: table.OtherPart},
		{Prefix: "flow_lm.out_eos.", Why: table.OtherPart},
		{Prefix: "flow_lm.emb_mean", Why: table.OtherPart}, {Prefix: "flow_lm.emb_std", Why: table.OtherPart},
		{Prefix: "flow_lm.speaker_proj_weight", Why: table.OtherPart},
	},
	Tensors: slices.Concat(pocketEmbedding(false), pocketEmbedding(true), []table.TensorRow{
		{HF: "flow_lm.out_norm", GGUF: "output_norm", Bias: table.NeedBias},
		{HF: "flow_lm.transformer.layers.{bid}.norm1", GGUF: "blk.{bid}.attn_norm", Bias: table.NeedBias},
		{HF: "flow_lm.transformer.layers.{bid}.norm2", GGUF: "blk.{bid}.ffn_norm", Bias: table.NeedBias},
		{HF: "flow_lm.transformer.layers.{bid}.self_attn.in_proj", Split: []table.Part{
			{GGUF: "blk.{bid}.attn_q", Transform: parts.Third(0)},
			{GGUF: "blk.{bid}.attn_k", Transform: parts.Third(1)},
			{GGUF: "blk.{bid}.attn_v", Transform: parts.Third(2)},
		}},
		{HF: "flow_lm.transformer.layers.{bid}.self_attn.out_proj", GGUF: "blk.{bid}.attn_output"},
		{HF: "flow_lm.transformer.layers.{bid}.linear1", GGUF: "blk.{bid}.ffn_up"},
		{HF: "flow_lm.transformer.layers.{bid}.linear2", GGUF: "blk.{bid}.ffn_down"},
	}),
	Shapes: shape.Rules{},
	Graph: &graph.Model{
		Norm: graph.LayerNorm, Final: parts.OutputNorm, Head: graph.Pool{},
		Layer: parts.PreNorm(parts.GQA(parts.Interleaved), parts.GELUMLP),
	},
}

// pocketEmbedding joins the embedding of text, the learned vector before a voice (if before), and the learned first
// frame of audio after its linear layer.
func pocketEmbedding(before bool) []table.TensorRow {
	from := []string{"bos_emb", "input_linear.weight", "conditioner.embed.weight"}
	if before {
		from = append(from, "bos_before_voice")
	}
	return []table.TensorRow{{HF: "flow_lm.{part}", Exact: true, Parts: from, GGUF: "token_embd.weight",
		Join: joinPocket,
		If:   func(l table.Layer) (bool, error) { return (l.Value(beforeVoice) == true) == before, nil }}}
}

func joinPocket(_ table.Layer, s []rows.Source) (rows.Source, error) {
	embed := s[2]
	t := gguf.TypeF32
	if embed.Type() == gguf.TypeF16 {
		t = embed.Type()
	}
	one := func(s rows.Source) (rows.Source, error) {
		n := gguf.Rows(s.NE()) * gguf.RowLen(s.NE())
		return rows.Reshape(s, []int64{n, 1})
	}
	frame, err := one(s[0])
	if err != nil {
		return nil, err
	}
	sound, err := rows.Linear(rows.Convert(frame, gguf.TypeF32), rows.Convert(s[1], gguf.TypeF32), nil)
	if err != nil {
		return nil, err
	}
	list := []rows.Source{rows.Convert(embed, t)}
	if len(s) > 3 {
		voice, err := one(s[3])
		if err != nil {
			return nil, err
		}
		if voice.NE()[0] != embed.NE()[0] {
			return nil, fault.Errorf(fault.Broken, "a vector before voices of %d elements, want %d", voice.NE()[0],
				embed.NE()[0])
		}
		list = append(list, rows.Convert(voice, t))
	}
	return rows.Concat(append(list, rows.Convert(sound, t)))
}

// pocketClass is the class of models without a config.json: the sizes follow from the shapes of the tensors.
const pocketClass = "PocketTTSModel"

// beforeVoice is the key that is true if a Pocket TTS has a learned vector before a voice.
const beforeVoice = "insert_bos_before_voice"

// pocketConfig makes a config.json from the shapes of tensors. Source: the loader of the reference's pockettts.py.
func pocketConfig(file string, shapes map[string][]int64) (_ []byte, ok bool, err error) {
	if shapes["flow_lm.bos_emb"] == nil {
		return nil, false, nil
	}
	size := func(name string, dims, dim int) int64 {
		shape := shapes[name]
		switch {
		case err != nil:
		case shape == nil:
			err = fault.Errorf(fault.Broken, "%s: has no tensor %q, whose shape gives the size of a Pocket TTS model",
				file, name)
		case len(shape) != dims:
			err = fault.Errorf(fault.Broken, "%s: tensor %q: shape %v, want %d dimensions", file, name, shape, dims)
		default:
			return shape[dim]
		}
		return 0
	}
	layers := func(prefix string) (n int64) {
		for name := range shapes {
			rest, ok := strings.CutPrefix(name, prefix)
			number, rest, _ := strings.Cut(rest, ".")
			if ok && rest == "norm1.weight" && number != "" && strings.Trim(number, "0123456789") == "" {
				n++
			}
		}
		return n
	}
	const text, audio, embedding = "flow_lm.transformer.layers.", "mimi.encoder_transformer.transformer.layers.",
		"flow_lm.conditioner.embed.weight"
	const headDim = 64 // in all models
	width, audioWidth := size(embedding, 2, 1), size(audio+"0.norm1.weight", 1, 0)
	own := int64(1) // learned rows after the embedding of text
	_, before := shapes["flow_lm.bos_before_voice"]
	if before {
		own++
	}
	values := map[string]any{
		"architectures": []string{pocketClass}, "model_type": "pockettts",
		"num_hidden_layers": layers(text), "hidden_size": width, "intermediate_size": size(text+"0.linear1.weight", 2,
			0), "num_attention_heads": width / headDim,
		"max_position_embeddings": 4096, // bounds the KV cache; the model has no limit
		"vocab_size":              size(embedding, 2, 0) + own, beforeVoice: before,
		"rope_theta": 10000.0, "layer_norm_eps": 1e-5,
		"audio_config": map[string]any{
			"num_hidden_layers": layers(audio), "hidden_size": audioWidth,
			"intermediate_size": size(audio+"0.linear1.weight", 2, 0), "num_attention_heads": audioWidth / headDim,
		},
	}
	if err != nil {
		return nil, true, err
	}
	for _, n := range []int64{width, audioWidth} {
		if n == 0 || n%headDim != 0 {
			return nil, true, fault.Errorf(fault.Unsupported,
				"%s: a Pocket TTS that is %d wide, want a multiple of %d, the size of a head", file, n, headDim)
		}
	}
	data, err := json.Marshal(values)
	return data, true, err
}
