package arch

import (
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

// orion, xverse, baichuan and plamo are models of the year 2023 that are built
// like Llama. Source: their classes in the reference's converter.
var (
	orion = &Arch{
		Name:      "orion",
		Classes:   []string{"OrionForCausalLM"},
		Tokenizer: tokenizer.ClassSentencePiece,
		Metadata: []Row{
			fileTypeRow,
			metaLayout,
			uintRow("context_length", "max_sequence_length", "max_position_embeddings", "model_max_length"),
			uintRow("embedding_length", "hidden_size"),
			uintRow(keyBlockCount, blockCountKeys...),
			uintRow("feed_forward_length", "intermediate_size"),
			uintRow(keyHeadCount, "num_attention_heads"),
			{Key: keyHeadCountKV, Derive: keyHeadsOrHeads},
			// the norms are layer norms, whatever the key says
			floatRow("attention.layer_norm_epsilon", "rms_norm_eps"),
		},
		Expect:  []Expect{silu},
		Unused:  []string{"max_position_embeddings"},
		Tensors: slices.Concat(embedRows[:1], embedRows[2:], withBias(NeedBias, embedRows[1:2]), withBias(NeedBias, normRows), attentionRows(NoBias, NoBias), mlpRows),
	}
	xverse = &Arch{
		Name:      "xverse",
		Classes:   []string{"XverseForCausalLM"},
		Tokenizer: tokenizer.ClassXverse,
		Metadata:  slices.Concat(commonRows, []Row{metaLayout, {Key: "rope.dimension_count", Derive: hiddenPerHead}}),
		Expect:    []Expect{silu},
		Unused:    []string{"max_tokenizer_truncation"},
		Tensors:   slices.Concat(embedRows, normRows, permutedRows(NoBias), mlpRows),
	}
	// baichuan: the reference's class calls itself without end; these are its rules.
	baichuan = &Arch{
		Name:      "baichuan",
		Classes:   []string{"BaichuanForCausalLM", "BaiChuanForCausalLM"},
		Tokenizer: tokenizer.ClassSentencePiece,
		Metadata:  slices.Concat(commonRows, []Row{metaLayout, {Key: "rope.dimension_count", Derive: hiddenPerHead}}),
		Expect:    []Expect{silu},
		Unused:    []string{"_from_model_config", "user_token_id", "assistant_token_id", "z_loss_weight", "model_max_length"},
		Tensors: slices.Concat(embedRows, normRows, mlpRows, []TensorRow{
			{HF: "model.layers.{bid}.self_attn.W_pack", Split: []Part{
				{GGUF: "blk.{bid}.attn_q", Transform: third("pack-q", 0, true)},
				{GGUF: "blk.{bid}.attn_k", Transform: third("pack-k", 1, true)},
				{GGUF: "blk.{bid}.attn_v", Transform: third("pack-v", 2, false)},
			}},
			{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output"},
		}),
	}
)

// keyHeadsOrHeads is the number of key heads, that of heads where the config has
// none.
func keyHeadsOrHeads(c *Config) (gguf.Value, bool, error) {
	n, err := c.Require("num_key_value_heads", "num_attention_heads")
	return uint32Of(n, true, err)
}

// third takes a third of the rows of a matrix; permute tells that the heads in it
// are rearranged for the rotation of neighbours.
func third(name string, i int64, permute bool) *Transform {
	return &Transform{Name: name, Forward: func(l Layer, s rows.Source) (rows.Source, error) {
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
