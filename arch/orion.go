package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(orion, xverse, baichuan)

// orion, xverse, baichuan and plamo are Llama-like models of 2023. Source: their classes in the reference's converter.
var (
	orion = &table.Arch{
		Name:      "orion",
		Classes:   []string{"OrionForCausalLM"},
		Tokenizer: tokenizer.SentencePiece{},
		Fused:     table.FusedQKV,
		Metadata: []table.Row{
			parts.FileTypeRow,
			parts.MetaLayout,
			parts.UintRow("context_length", "max_sequence_length", "max_position_embeddings", "model_max_length"),
			parts.UintRow("embedding_length", "hidden_size"),
			parts.UintRow(table.KeyBlockCount, config.BlockCountKeys...),
			parts.UintRow("feed_forward_length", "intermediate_size"),
			parts.UintRow(table.KeyHeadCount, "num_attention_heads"),
			{Key: table.KeyHeadCountKV, Derive: keyHeadsOrHeads},
			// layer norms, despite the name of the key
			parts.FloatRow("attention.layer_norm_epsilon", "rms_norm_eps"),
		},
		Expect: []table.Expect{parts.SiLU},
		Unused: []string{"max_position_embeddings"},
		Tensors: slices.Concat(parts.EmbedRows[:1], parts.EmbedRows[2:],
			parts.WithBias(table.NeedBias, parts.EmbedRows[1:2]), parts.WithBias(table.NeedBias, parts.NormRows),
			parts.AttentionRows(table.NoBias, table.NoBias), parts.MLPRows),
		Graph: parts.Decoder(graph.LayerNorm, parts.GQA(parts.NeoX), parts.SwiGLU),
	}
	xverse = &table.Arch{
		Name:      "xverse",
		Classes:   []string{"XverseForCausalLM"},
		Tokenizer: tokenizer.Xverse{},
		Fused:     table.FusedQKV,
		Metadata: slices.Concat(parts.CommonRows,
			[]table.Row{parts.MetaLayout, {Key: "rope.dimension_count", Derive: parts.HiddenPerHead}}),
		Expect:  []table.Expect{parts.SiLU},
		Unused:  []string{"max_tokenizer_truncation"},
		Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.PermutedRows(table.NoBias), parts.MLPRows),
		Graph:   parts.Decoder(graph.RMS, parts.GQA(parts.Interleaved), parts.SwiGLU),
	}
	// baichuan: the reference's class recurses without end; these rows follow its rules.
	baichuan = &table.Arch{
		Name:      "baichuan",
		Classes:   []string{"BaichuanForCausalLM", "BaiChuanForCausalLM"},
		Tokenizer: tokenizer.SentencePiece{},
		Fused:     table.FusedQKV,
		Metadata: slices.Concat(parts.CommonRows,
			[]table.Row{parts.MetaLayout, {Key: "rope.dimension_count", Derive: parts.HiddenPerHead}}),
		Expect: []table.Expect{parts.SiLU},
		Unused: []string{"_from_model_config", "user_token_id", "assistant_token_id", "z_loss_weight",
			"model_max_length"},
		Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.MLPRows, []table.TensorRow{
			{HF: "model.layers.{bid}.self_attn.W_pack", Split: []table.Part{
				{GGUF: "blk.{bid}.attn_q", Transform: thirdOfRows("pack-q", 0, true)},
				{GGUF: "blk.{bid}.attn_k", Transform: thirdOfRows("pack-k", 1, true)},
				{GGUF: "blk.{bid}.attn_v", Transform: thirdOfRows("pack-v", 2, false)},
			}},
			{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output"},
		}),
		// the runtime recognizes the models of 7B and 13B by their number of layers
		Graph: parts.Decoder(graph.RMS, graph.Choose{
			{In: graph.Where("n_layer = 32"), Then: parts.GQA(parts.Interleaved)},
			{In: graph.Where("n_layer = 40"), Then: graph.Attention{Scores: parts.ALiBi}},
			{In: graph.Every{}, Then: graph.Attention{}},
		}, parts.SwiGLU),
	}
)

// keyHeadsOrHeads writes the number of key heads, by default the number of heads.
func keyHeadsOrHeads(c *config.View) (gguf.Value, bool, error) {
	n, err := c.Require("num_key_value_heads", "num_attention_heads")
	return table.Uint32Of(n, true, err)
}

// thirdOfRows takes the i-th third of the rows of a matrix, permuted to interleaved RoPE if permute is set.
func thirdOfRows(name string, i int64, permute bool) *table.Transform {
	return &table.Transform{Name: name, Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		ne := s.NE()
		if len(ne) != 2 || ne[1]%3 != 0 {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want three parts of as many rows", gguf.Shape(ne))
		}
		s, err := rows.Slice(s, 1, i*ne[1]/3, (i+1)*ne[1]/3)
		if err != nil || !permute {
			return s, err
		}
		heads, err := l.Require("num_attention_heads")
		if err != nil {
			return nil, err
		}
		return rows.PermuteRope(s, heads)
	}}
}
