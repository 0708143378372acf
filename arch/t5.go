package arch

import (
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(t5, t5encoder)

// t5 is T5 and its relatives with encoder and decoder. Source: t5.py of the reference.
var t5 = &table.Arch{
	Name: "t5",
	Classes: []string{"T5WithLMHeadModel", "T5ForConditionalGeneration", "MT5ForConditionalGeneration",
		"UMT5ForConditionalGeneration", "UMT5Model"},
	Tokenizer: tokenizer.Unigram{},
	Metadata: t5Rows([]table.Row{
		parts.Optional(parts.UintRow("decoder_block_count", "num_decoder_layers")),
	}, []table.Row{
		{Key: "decoder_start_token_id", Type: gguf.Uint32Type, From: []string{"decoder_start_token_id"},
			Const: gguf.Uint32(0)},
	}),
	BlockCount: t5Blocks,
	Unused:     t5Unused,
	Expect:     t5Expect,
	Tensors: slices.Concat(t5Layers(t5Encoder), []table.TensorRow{
		{HF: "decoder.embed_tokens", GGUF: "token_embd", Optional: true, Kind: table.SameAs("token_embd.weight")},
		{HF: "decoder.final_layer_norm", GGUF: "dec.output_norm"},
		{HF: "decoder.block.{bid}.layer.0.layer_norm", GGUF: "dec.blk.{bid}.attn_norm", If: t5Decoder},
		{HF: "decoder.block.{bid}.layer.0.SelfAttention.q", GGUF: "dec.blk.{bid}.attn_q", If: t5Decoder},
		{HF: "decoder.block.{bid}.layer.0.SelfAttention.k", GGUF: "dec.blk.{bid}.attn_k", If: t5Decoder},
		{HF: "decoder.block.{bid}.layer.0.SelfAttention.v", GGUF: "dec.blk.{bid}.attn_v", If: t5Decoder},
		{HF: "decoder.block.{bid}.layer.0.SelfAttention.o", GGUF: "dec.blk.{bid}.attn_o", If: t5Decoder},
		{HF: "decoder.block.0.layer.0.SelfAttention.relative_attention_bias", GGUF: "dec.blk.0.attn_rel_b"},
		{HF: "decoder.block.{bid}.layer.0.SelfAttention.relative_attention_bias", GGUF: "dec.blk.{bid}.attn_rel_b",
			If: t5LaterDecoder, Optional: true},
		{HF: "decoder.block.{bid}.layer.1.layer_norm", GGUF: "dec.blk.{bid}.cross_attn_norm", If: t5Decoder},
		{HF: "decoder.block.{bid}.layer.1.EncDecAttention.q", GGUF: "dec.blk.{bid}.cross_attn_q", If: t5Decoder},
		{HF: "decoder.block.{bid}.layer.1.EncDecAttention.k", GGUF: "dec.blk.{bid}.cross_attn_k", If: t5Decoder},
		{HF: "decoder.block.{bid}.layer.1.EncDecAttention.v", GGUF: "dec.blk.{bid}.cross_attn_v", If: t5Decoder},
		{HF: "decoder.block.{bid}.layer.1.EncDecAttention.o", GGUF: "dec.blk.{bid}.cross_attn_o", If: t5Decoder},
		{HF: "decoder.block.{bid}.layer.1.EncDecAttention.relative_attention_bias",
			GGUF: "dec.blk.{bid}.cross_attn_rel_b", If: t5Decoder, Optional: true},
		{HF: "decoder.block.{bid}.layer.2.layer_norm", GGUF: "dec.blk.{bid}.ffn_norm", If: t5Decoder},
		{HF: "decoder.block.{bid}.layer.2.DenseReluDense.wi", GGUF: "dec.blk.{bid}.ffn_up", If: t5Decoder},
		{HF: "decoder.block.{bid}.layer.2.DenseReluDense.wi_0", GGUF: "dec.blk.{bid}.ffn_gate",
			If: parts.Both(t5Decoder, t5Gated)},
		{HF: "decoder.block.{bid}.layer.2.DenseReluDense.wi_0", GGUF: "dec.blk.{bid}.ffn_gate",
			If: parts.Both(t5Decoder, parts.Not(t5Gated)), Optional: true},
		{HF: "decoder.block.{bid}.layer.2.DenseReluDense.wi_1", GGUF: "dec.blk.{bid}.ffn_up", If: t5Decoder,
			Optional: true},
		{HF: "decoder.block.{bid}.layer.2.DenseReluDense.wo", GGUF: "dec.blk.{bid}.ffn_down", If: t5Decoder},
	}),
	Graph: &graph.Model{
		Prefix: "enc.", Norm: graph.RMS, Layer: t5EncoderLayer, Final: t5Final, Head: graph.Pool{},
		Second: graph.Decoder{
			Prefix: "dec.", Layers: "@decoder_block_count or n_layer", Layer: t5DecoderLayer,
			Final: []graph.Step{graph.Normalize{Norm: graph.Norm{Name: "dec.output_norm"}}}, Head: graph.LM{},
		},
		Unread:  []string{"attention.layer_norm_epsilon", "decoder_start_token_id"},
		Runtime: []graph.Quirk{graph.NotLoaded{"dec.blk.0.cross_attn_rel_b.weight"}},
	},
}

// t5encoder is a T5 encoder without decoder.
var t5encoder = &table.Arch{
	Name:      "t5encoder",
	Classes:   []string{"T5EncoderModel", "MT5EncoderModel", "UMT5EncoderModel"},
	Tokenizer: tokenizer.Unigram{},
	Metadata:  t5Rows(nil, nil),
	Unused:    slices.Concat(t5Unused, []string{"num_decoder_layers"}),
	Expect:    t5Expect,
	Tensors:   t5Encoder,
	Graph: &graph.Model{
		Prefix: "enc.", Norm: graph.RMS, Layer: t5EncoderLayer, Final: t5Final, Head: graph.Pool{},
		Unread: []string{"attention.layer_norm_epsilon"},
	},
}

// t5EncoderLayer is a layer of the encoder, t5Final the norm after the last one; t5DecoderLayer is a layer of the
// decoder.
var (
	t5EncoderLayer = parts.PreNorm(t5Attention(graph.Both), t5FFN)
	t5Final        = []graph.Step{graph.Normalize{Norm: graph.Norm{Name: "enc.output_norm"}}}
	t5DecoderLayer = []graph.Step{
		graph.Residual{Pre: graph.Norm{Name: "attn_norm"}, Part: t5Attention(graph.Causal)},
		graph.Residual{Pre: graph.Norm{Name: "cross_attn_norm"}, Part: graph.CrossAttention{Scale: "1"}},
		graph.Residual{Pre: graph.Norm{Name: "ffn_norm"}, Part: t5FFN},
	}
	t5FFN = graph.Choose{
		{In: graph.Has("ffn_gate"), Then: parts.GeGLU},
		{In: graph.Every{}, Then: graph.FFN{Act: graph.ReLU, Gate: graph.NoGate}},
	}
)

// t5Attention is attention among the tokens of one text.
func t5Attention(sees graph.Direction) graph.Attention {
	return graph.Attention{Sees: sees, Scale: "1", Scores: []graph.ScoreStep{graph.RelativeBias{}}, Out: "attn_o"}
}

// t5Blocks returns the larger number of layers of encoder and decoder.
func t5Blocks(c *config.View) (int64, error) {
	n, err := c.BlockCount()
	if err != nil {
		return 0, err
	}
	decoder, _, err := c.Int("num_decoder_layers")
	return max(n, decoder), err
}

// t5Layers restricts rows to the encoder's layers.
func t5Layers(list []table.TensorRow) []table.TensorRow {
	list = slices.Clone(list)
	for i := range list {
		if cond := list[i].If; cond == nil {
			list[i].If = t5InEncoder
		} else {
			list[i].If = parts.Both(t5InEncoder, cond)
		}
	}
	return list
}

// t5InEncoder is the condition of the encoder's layers; the decoder may have more.
func t5InEncoder(l table.Layer) (bool, error) {
	n, err := l.BlockCount()
	return l.Bid < n, err
}

// t5Rows returns the metadata, with the decoder's rows after the number of blocks and at the end.
func t5Rows(decoder, start []table.Row) []table.Row {
	return slices.Concat([]table.Row{
		{Key: "context_length", Type: gguf.Uint32Type, From: []string{"n_positions"}, Const: gguf.Uint32(512)},
		parts.UintRow("embedding_length", "d_model"),
		parts.UintRow("feed_forward_length", "d_ff"),
		parts.BlockCountRow,
	}, decoder, []table.Row{
		parts.UintRow(table.KeyHeadCount, "num_heads"),
		parts.UintRow("attention.key_length", "d_kv"),
		parts.UintRow("attention.value_length", "d_kv"),
		parts.FloatRow("attention.layer_norm_epsilon", "layer_norm_epsilon"),
		parts.UintRow("attention.relative_buckets_count", "relative_attention_num_buckets"),
		parts.FloatRow("attention.layer_norm_rms_epsilon", "layer_norm_epsilon"),
	}, start, []table.Row{
		parts.FileTypeRow,
	})
}

var t5Unused = []string{"dense_act_fn", "is_gated_act", "n_positions", "output_past", "scale_decoder_outputs",
	"scalable_attention", "decoder_start_token_id"}

var t5Expect = []table.Expect{
	parts.Expect("feed_forward_proj", "relu", "gated-gelu"),
	parts.Expect("relative_attention_max_distance", "128"),
}

// t5Encoder are the rows of the encoder, and of the embedding, which may have several names.
var t5Encoder = []table.TensorRow{
	{HF: "shared", GGUF: "token_embd", Kind: table.SameAs("token_embd.weight")},
	{HF: "encoder.embed_tokens", GGUF: "token_embd", Optional: true, Kind: table.SameAs("token_embd.weight")},
	{HF: "lm_head", GGUF: "output", Optional: true},
	{HF: "encoder.final_layer_norm", GGUF: "enc.output_norm"},
	{HF: "encoder.block.{bid}.layer.0.layer_norm", GGUF: "enc.blk.{bid}.attn_norm"},
	{HF: "encoder.block.{bid}.layer.0.SelfAttention.q", GGUF: "enc.blk.{bid}.attn_q"},
	{HF: "encoder.block.{bid}.layer.0.SelfAttention.k", GGUF: "enc.blk.{bid}.attn_k"},
	{HF: "encoder.block.{bid}.layer.0.SelfAttention.v", GGUF: "enc.blk.{bid}.attn_v"},
	{HF: "encoder.block.{bid}.layer.0.SelfAttention.o", GGUF: "enc.blk.{bid}.attn_o"},
	{HF: "encoder.block.0.layer.0.SelfAttention.relative_attention_bias", GGUF: "enc.blk.0.attn_rel_b"},
	// UMT5
	{HF: "encoder.block.{bid}.layer.0.SelfAttention.relative_attention_bias", GGUF: "enc.blk.{bid}.attn_rel_b",
		If: parts.Not(parts.FirstLayer), Optional: true},
	{HF: "encoder.block.{bid}.layer.1.layer_norm", GGUF: "enc.blk.{bid}.ffn_norm"},
	{HF: "encoder.block.{bid}.layer.1.DenseReluDense.wi", GGUF: "enc.blk.{bid}.ffn_up"},
	{HF: "encoder.block.{bid}.layer.1.DenseReluDense.wi_0", GGUF: "enc.blk.{bid}.ffn_gate", If: t5Gated},
	// the activation follows from the weights
	{HF: "encoder.block.{bid}.layer.1.DenseReluDense.wi_0", GGUF: "enc.blk.{bid}.ffn_gate", If: parts.Not(t5Gated),
		Optional: true},
	{HF: "encoder.block.{bid}.layer.1.DenseReluDense.wi_1", GGUF: "enc.blk.{bid}.ffn_up", Optional: true},
	{HF: "encoder.block.{bid}.layer.1.DenseReluDense.wo", GGUF: "enc.blk.{bid}.ffn_down"},
}

// t5Gated reports whether the MLP has a gate.
func t5Gated(l table.Layer) (bool, error) {
	s, _, err := l.String("feed_forward_proj")
	return strings.HasPrefix(s, "gated-"), err
}

// t5Decoder is the condition of the decoder's layers; the encoder may have more.
func t5Decoder(l table.Layer) (bool, error) {
	n, ok, err := l.Int("num_decoder_layers")
	return !ok || l.Bid < n, err
}

func t5LaterDecoder(l table.Layer) (bool, error) {
	ok, err := t5Decoder(l)
	return ok && l.Bid > 0, err
}
