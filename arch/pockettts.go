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

var _ = register(pocketTTS)

// pocketTTS is the transformer of Kyutai's Pocket TTS, which generates no tokens: the mmproj file decodes its outputs
// to audio. The embedding of text is followed by learned vectors. Source: PocketTTSModel of the reference.
var pocketTTS = &table.Arch{
	Name:      "pockettts",
	Classes:   []string{config.PocketTTS},
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
		If:   func(l table.Layer) (bool, error) { return (l.Value(config.BeforeVoice) == true) == before, nil }}}
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
