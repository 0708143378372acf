package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(gemma, gemma2, gemma3, embeddingGemma)

// Models of the Gemma family store norm weights minus 1 and use the embedding for the output. Source: the Gemma classes
// of the reference's converter.

// gemmaRows is the metadata that Gemma and Gemma 2 have instead of CommonRows.
var gemmaRows = []table.Row{
	parts.UintRow("context_length", "max_position_embeddings"),
	parts.UintRow("embedding_length", "hidden_size"),
	parts.BlockCountRow,
	parts.UintRow("feed_forward_length", "intermediate_size"),
	parts.UintRow(table.KeyHeadCount, "num_attention_heads"),
	parts.UintRow(table.KeyHeadCountKV, "num_key_value_heads", "num_attention_heads"),
	parts.FloatRow("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
	parts.UintRow("attention.key_length", "head_dim"),
	parts.UintRow("attention.value_length", "head_dim"),
	parts.FileTypeRow,
	{Key: "rope.freq_base", Derive: refuseRopeScaling},
}

// refuseRopeScaling writes nothing: runtimes load these models with rope base 10000 and no scaling.
func refuseRopeScaling(c *config.View) (v gguf.Value, ok bool, err error) {
	theta, ok, err := c.Rope().Float("rope_theta")
	if err == nil && ok && theta != 10000 {
		err = fault.Errorf(fault.Unsupported, "%s: rope base %v, want 10000: the file cannot hold another one",
			config.ConfigFile, theta)
	}
	if err != nil {
		return v, false, err
	}
	s, _, err := c.Rope().String("rope_type")
	if err == nil && s != "" && s != "default" {
		err = fault.Errorf(fault.Unsupported, "%s: rope type %q, want no scaling: the file cannot hold one",
			config.ConfigFile, s)
	}
	return v, false, err
}

// gemmaDrop drops lm_head, which some tools add: it equals the embedding.
var gemmaDrop = []table.Drop{{Prefix: "lm_head.weight", Why: table.Silent}}

var gemma = &table.Arch{
	Name:      "gemma",
	Classes:   []string{"GemmaForCausalLM"},
	Body:      table.Body{Classes: []string{"GemmaModel"}, Prefix: "model."},
	Tokenizer: gemmaTokens,
	Fused:     table.FusedQKV,
	Metadata:  gemmaRows,
	Expect: []table.Expect{parts.Expect("hidden_act", parts.GELUTanh...),
		parts.Expect("hidden_activation", parts.GELUTanh...)},
	Drop: gemmaDrop,
	Tensors: slices.Concat(
		parts.TransformBySuffix(slices.Concat(parts.EmbedRows, parts.NormRows), "norm", parts.PlusOne),
		parts.AttentionRows(table.NoBias, table.NoBias), parts.MLPRows),
	Graph: &graph.Model{
		Norm: graph.RMS, Embed: parts.ScaledEmbedding, Layer: parts.PreNorm(parts.GQA(parts.NeoX), parts.GeGLU),
		Final: parts.OutputNorm, Head: graph.LM{},
	},
}

// gemma2Norms are the norms before and after attention and FFN.
var gemma2Norms = parts.TransformBySuffix(parts.SandwichNorms, "norm", parts.PlusOne)

var gemma2 = &table.Arch{
	Name:      "gemma2",
	Classes:   []string{"Gemma2ForCausalLM"},
	Body:      table.Body{Classes: []string{"Gemma2Model"}, Prefix: "model."},
	Tokenizer: parts.GemmaSPM,
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(gemmaRows, []table.Row{
		parts.FloatRow("attn_logit_softcapping", "attn_logit_softcapping"),
		parts.FloatRow("final_logit_softcapping", "final_logit_softcapping"),
		parts.UintRow("attention.sliding_window", "sliding_window"),
	}),
	// runtimes derive the attention scale from the size of the model
	Unused: []string{"query_pre_attn_scalar", "layer_types", "sliding_window_size"},
	Expect: []table.Expect{parts.Expect("hidden_act", parts.GELUTanh...),
		parts.Expect("hidden_activation", parts.GELUTanh...), parts.Expect("cache_implementation", "hybrid")},
	Drop: gemmaDrop,
	Tensors: slices.Concat(parts.TransformBySuffix(parts.EmbedRows, "norm", parts.PlusOne), gemma2Norms,
		parts.AttentionRows(table.NoBias, table.NoBias), parts.MLPRows),
	Graph: &graph.Model{
		Dims: graph.Dims{"n_swa": "@attention.sliding_window or 4096"},
		Norm: graph.RMS, Embed: parts.ScaledEmbedding, Final: parts.OutputNorm,
		Head: graph.LM{SoftCap: "@final_logit_softcapping or 30"},
		Layer: parts.Sandwich(parts.LocalGlobal(graph.Sliding{N: 2},
			graph.Attention{Steps: []graph.HeadStep{parts.LocalNeoX}, Scores: gemma2SoftCap, Scale: gemma2Scale,
				Window: parts.Window},
			graph.Attention{Steps: []graph.HeadStep{parts.NeoX}, Scores: gemma2SoftCap, Scale: gemma2Scale},
		), parts.GeGLU),
	},
}

// gemma2Scale and gemma3Scale: no key has query_pre_attn_scalar, which is a special one in the models of 27B; the
// runtime recognizes them by their number of layers.
const (
	gemma2Scale graph.Num = "1 / sqrt(if(n_layer = 46, n_embd / n_head, n_embd_head_k))"
	gemma3Scale graph.Num = "1 / sqrt(if(n_layer = 62, n_embd / n_head, n_embd_head_k))"
)

var gemma2SoftCap = []graph.ScoreStep{graph.SoftCap{By: "@attn_logit_softcapping or 50"}}

// gemma3 is the language model of Gemma 3, alone or in a multimodal model.
var gemma3 = &table.Arch{
	Name:             "gemma3",
	Classes:          []string{"Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"},
	Config:           config.Rules{Types: []string{"gemma3_text"}, Rope: parts.Gemma3Rope},
	Tokenizer:        parts.Gemma3Tokens,
	Fused:            table.FusedQKV,
	RopePerAttention: true,
	Metadata:         parts.Gemma3Rows,
	Unused:           gemma3Unused,
	Expect:           append([]table.Expect{parts.Expect("use_bidirectional_attention", "false")}, gemma3Expect...),
	Rename:           parts.HeadlessNames,
	Tensors:          gemma3Tensors,
	Graph: &graph.Model{
		Norm: graph.RMS, Embed: parts.ScaledEmbedding, Final: parts.OutputNorm, Head: graph.LM{SoftCap: parts.LogitSoftCap},
		Layer: parts.Sandwich(parts.LocalGlobal(graph.Sliding{N: 6},
			graph.Attention{Steps: []graph.HeadStep{parts.QKNorm, parts.DefaultLocalNeoX}, Scale: gemma3Scale,
				Window: parts.Window},
			graph.Attention{Steps: []graph.HeadStep{parts.QKNorm, parts.NeoX}, Scale: gemma3Scale},
		), parts.GeGLU),
	},
}

// gemma3Unused: attention scale and sliding-window pattern are built into runtimes.
var gemma3Unused = []string{"query_pre_attn_scalar", "layer_types", "_sliding_window_pattern", "cache_implementation",
	"mm_tokens_per_image",
	"boi_token_index", "eoi_token_index", "image_token_index"}

var gemma3Expect = []table.Expect{parts.Expect("hidden_activation", parts.GELUTanh...),
	parts.Expect("sliding_window_pattern", "1", "6"), parts.Expect("attn_logit_softcapping")}

var gemma3Tensors = slices.Concat(
	parts.TransformBySuffix(parts.TransformBySuffix(parts.EmbedRows, "norm", parts.PlusOne), "embed_tokens",
		parts.VocabRows),
	gemma2Norms, parts.TransformBySuffix(parts.QKNormRows, "norm", parts.PlusOne),
	parts.AttentionRows(table.NoBias, table.NoBias), parts.MLPRows)

// embeddingGemma is the embedding model made of Gemma 3.
var embeddingGemma = &table.Arch{
	Name:             "gemma-embedding",
	Classes:          []string{"Gemma3TextModel"},
	Tokenizer:        parts.Gemma3Tokens,
	Fused:            table.FusedQKV,
	RopePerAttention: true,
	Metadata: slices.Concat(parts.Override(parts.Gemma3Rows,
		table.Row{Key: "attention.sliding_window", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			// transformers and runtimes halve the window of bidirectional attention themselves
			n, err := c.RawConfig().Require("sliding_window")
			return table.Uint32Of(n, true, err)
		}}), parts.DenseRows(), []table.Row{parts.PoolingRow}),
	Unused:  append([]string{"use_bidirectional_attention"}, gemma3Unused...),
	Expect:  gemma3Expect,
	Rename:  parts.HeadlessNames,
	Tensors: gemma3Tensors,
	Graph: &graph.Model{
		Reads: []string{"attention.sliding_window!"},
		Norm:  graph.RMS, Embed: parts.ScaledEmbedding, Final: parts.OutputNorm, Head: graph.Pool{},
		Layer: parts.Sandwich(parts.LocalGlobal(graph.Sliding{N: 6},
			graph.Attention{Steps: []graph.HeadStep{parts.QKNorm, parts.DefaultLocalNeoX}, Sees: graph.Both,
				Window: graph.Window{Tokens: "n_swa", Shape: graph.SymmetricWindow}},
			parts.Bidirectional(parts.QKNorm, parts.NeoX),
		), parts.GeGLU),
		Runtime: parts.EncoderRuntime,
	},
}

// gemmaTokens: the first Gemma's files get the end of a turn as CodeGemma has it, which no file names.
var gemmaTokens = tokenizer.SentencePiece{Then: tokenizer.Steps{tokenizer.EndOfTurn{Default: 107}, parts.NoSpacePrefix}}
