package arch

import (
	"math"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(chatglm, glm)

// chatglm is Zhipu's ChatGLM 2 and 3 and GLM-4 of 2024. Source: the ChatGLM class of the reference's converter. glm.go
// has the models in the layout of the transformers library.
var (
	chatglm = &table.Arch{
		Name:      "chatglm",
		Classes:   []string{"ChatGLMModel", "ChatGLMForConditionalGeneration"},
		Tokenizer: chatglmTokens,
		VocabSize: chatglmVocabSize,
		Metadata:  chatglmRows,
		Expect: []table.Expect{
			parts.Expect("rmsnorm", "true"),
			parts.Expect("post_layer_norm", "true"),
			parts.Expect("apply_residual_connection_post_layernorm", "false"),
			parts.Expect("original_rope", "true"),
		},
		Unused: []string{"add_bias_linear", "add_qkv_bias", "apply_query_key_layer_scaling",
			"attention_softmax_in_fp32", "attn_implementation", "bias_dropout_fusion",
			"fp32_residual_connection", "kv_channels", "multi_query_attention", "vocab_size", "num_layers",
			"num_hidden_layers", "quantization_bit", "pre_seq_len", "prefix_projection"},
		Rename: []table.Rename{{Prefix: "transformer.", With: ""}},
		Tensors: []table.TensorRow{
			{HF: "embedding.word_embeddings", GGUF: "token_embd"},
			{HF: "encoder.final_layernorm", GGUF: "output_norm"},
			{HF: "output_layer", GGUF: "output", Optional: true},
			{HF: "encoder.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
			{HF: "encoder.layers.{bid}.self_attention.query_key_value", GGUF: "blk.{bid}.attn_qkv",
				Bias: table.MayBias},
			{HF: "encoder.layers.{bid}.self_attention.dense", GGUF: "blk.{bid}.attn_output", Bias: table.MayBias},
			{HF: "encoder.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.ffn_norm"},
			{HF: "encoder.layers.{bid}.mlp.dense_h_to_4h", GGUF: "blk.{bid}.ffn_up", Bias: table.MayBias},
			{HF: "encoder.layers.{bid}.mlp.dense_4h_to_h", GGUF: "blk.{bid}.ffn_down", Bias: table.MayBias},
			{HF: "rotary_pos_emb.inv_freq"},
		},
		Graph: chatglmGraph,
	}
	glm = &table.Arch{
		Name:      "chatglm",
		Classes:   []string{"GlmForCausalLM"},
		Body:      table.Body{Classes: []string{"GlmModel"}, Prefix: "model."},
		Tokenizer: chatglmTokens,
		VocabSize: chatglmVocabSize,
		Metadata:  chatglmRows,
		Expect:    []table.Expect{parts.SiLU},
		// ChatGLM has these values under other keys
		Unused: append([]string{"rms_norm_eps", "max_position_embeddings", "head_dim"}, parts.BiasKeys...),
		Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.MayBias, table.NoBias),
			[]table.TensorRow{
				{HF: "model.layers.{bid}.mlp.gate_up_proj", GGUF: "blk.{bid}.ffn_up"},
				{HF: "model.layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down"},
			}),
		Graph: chatglmGraph,
	}
	chatglmRows = []table.Row{
		parts.UintRow("context_length", "seq_length", "hidden_size", "n_embed"),
		parts.UintRow("embedding_length", "hidden_size", "n_embed"),
		{Key: "feed_forward_length", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, ok, err := c.Int("ffn_hidden_size", "intermediate_size")
			if err == nil && !ok {
				n, err = c.Require("hidden_size", "n_embed")
				n = 4 * min(n, math.MaxUint32)
			}
			return table.Uint32Of(n, true, err)
		}},
		parts.UintRow(table.KeyBlockCount, config.BlockCountKeys...),
		parts.UintRow(table.KeyHeadCount, "n_head", "num_attention_heads"),
		parts.UintRow(table.KeyHeadCountKV, "multi_query_group_num", "num_key_value_heads", "n_head",
			"num_attention_heads"),
		{Key: "attention.layer_norm_rms_epsilon", Type: gguf.Float32Type, From: []string{"layernorm_epsilon"},
			Const: gguf.Float32(1e-5)},
		parts.FileTypeRow,
		{Key: "rope.dimension_count", Derive: chatglmRopeDims},
		{Key: "tokenizer.ggml.add_bos_token", Const: gguf.Bool(false)},
		{Key: "rope.freq_base", Derive: func(c *config.View) (gguf.Value, bool, error) {
			ratio, ok, err := c.Float("rope_ratio")
			if !ok {
				ratio = 1
			}
			return table.Float32Of(10000*ratio, true, err)
		}},
	}
)

// chatglmGraph is a Llama without experts.
var chatglmGraph = parts.Decoder(graph.RMS, parts.GQA(parts.Interleaved), parts.SwiGLU)

func chatglmVocabSize(c *config.View) (int64, error) {
	return c.Require("padded_vocab_size", "vocab_size")
}

// chatglmRopeDims is the share of a head that rotates: half of it unless the config has another value.
func chatglmRopeDims(c *config.View) (v gguf.Value, ok bool, err error) {
	dim, ok, err := c.Int("attention_dim")
	if err == nil && !ok {
		hidden, heads, e := c.HiddenAndHeads()
		dim, err = hidden/max(heads, 1), e
	}
	if err != nil {
		return v, false, err
	}
	share, ok, err := c.Rope().Float("partial_rotary_factor")
	if !ok {
		share = 0.5
	}
	if err != nil {
		return v, false, err
	}
	n, err := config.Truncate(float64(dim) * share)
	return table.Uint32Of(n, true, err)
}

var chatglmTokens = tokenizer.ChatGLM{Named: []tokenizer.Named{{Kind: "eos", Text: "<|endoftext|>"},
	{Kind: "eot", Text: "<|user|>"}, {Kind: "unk", Text: "<|endoftext|>"}}}
