package arch

import (
	"slices"

	"ggforge/arch/hparams"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

// commandR and cohere2 are Cohere's models: Command R and R+, Aya 23; Command R7B
// and A. Source: the classes of command_r.py of the reference's converter.
var (
	commandR = &table.Arch{
		Name:      "command-r",
		Shapes:    shape.Rules{Tensors: shape.NormsPerHead},
		Classes:   []string{"CohereForCausalLM"},
		Body:      table.Body{Classes: []string{"CohereModel"}, Prefix: "model."},
		Tokenizer: tokenizer.ClassGPT2,
		Fused:     table.FusedQKV,
		Metadata: slices.Concat(parts.With(parts.CommonRows,
			// max_position_embeddings is less than the model was trained with
			parts.UintRow("context_length", "model_max_length", "max_position_embeddings"),
		), []table.Row{
			parts.FloatRow("logit_scale", "logit_scale"),
			parts.NoRopeScaling,
		}),
		Expect: []table.Expect{parts.SiLU},
		Unused: slices.Concat(parts.BiasKeys, []string{"use_qk_norm", "max_position_embeddings"}),
		Tensors: slices.Concat(parts.EmbedRows[:2], parts.NormRows[:1], parts.AttentionRows(table.MayBias, table.MayBias), parts.MLPRows, []table.TensorRow{
			{HF: "model.layers.{bid}.self_attn.q_norm", GGUF: "blk.{bid}.attn_q_norm", Optional: true},
			{HF: "model.layers.{bid}.self_attn.k_norm", GGUF: "blk.{bid}.attn_k_norm", Optional: true},
		}),
	}
	cohere2 = &table.Arch{
		Name:      "cohere2",
		Shapes:    shape.Rules{Relations: []string{"n_embd_q = n_embd"}},
		Classes:   []string{"Cohere2ForCausalLM"},
		Body:      table.Body{Classes: []string{"Cohere2Model"}, Prefix: "model."},
		Tokenizer: tokenizer.ClassGPT2,
		Fused:     table.FusedQKV,
		Metadata: slices.Concat(parts.CommonRows, []table.Row{
			parts.FloatRow("logit_scale", "logit_scale"),
			parts.UintRow("attention.sliding_window", "sliding_window"),
			parts.UintRow("vocab_size", "vocab_size"),
			{Key: "rope.dimension_count", Derive: cohere2RopeDims},
			parts.NoRopeScaling,
		}),
		Expect: append([]table.Expect{
			parts.Expect("sliding_window_pattern", "4"),
			parts.Expect("_sliding_window_pattern", "4"),
			parts.Expect("position_embedding_type", "rope_gptj"),
			parts.Expect("use_gated_activation", "true"),
			parts.Expect("use_parallel_block", "true"),
			parts.Expect("use_qk_norm", "false"),
			parts.Expect("order_of_interleaved_layers", "local_attn_first"),
		}, parts.SiLU),
		// of other loaders, or the same as a key above
		Unused:  slices.Concat(parts.BiasKeys, []string{"layer_switch", "layer_types", "use_embedding_sharing", "use_parallel_embedding", "cache_implementation"}),
		Tensors: slices.Concat(parts.EmbedRows[:2], parts.NormRows[:1], parts.AttentionRows(table.NoBias, table.NoBias), parts.MLPRows, zeroBiases),
	}
	// zeroBiases are biases that some checkpoints have anyway.
	zeroBiases = []table.TensorRow{
		{HF: "model.norm.bias", GGUF: "output_norm.bias", Exact: true, Optional: true, Kind: table.Zero{}},
		{HF: "model.layers.{bid}.input_layernorm.bias", GGUF: "blk.{bid}.attn_norm.bias", Exact: true, Optional: true, Kind: table.Zero{}},
		{HF: "model.layers.{bid}.self_attn.q_proj.bias", GGUF: "blk.{bid}.attn_q.bias", Exact: true, Optional: true, Kind: table.Zero{}},
		{HF: "model.layers.{bid}.self_attn.k_proj.bias", GGUF: "blk.{bid}.attn_k.bias", Exact: true, Optional: true, Kind: table.Zero{}},
		{HF: "model.layers.{bid}.self_attn.v_proj.bias", GGUF: "blk.{bid}.attn_v.bias", Exact: true, Optional: true, Kind: table.Zero{}},
		{HF: "model.layers.{bid}.self_attn.o_proj.bias", GGUF: "blk.{bid}.attn_output.bias", Exact: true, Optional: true, Kind: table.Zero{}},
	}
)

// cohere2RopeDims is the share rotary_pct of a head, the whole of it without the key,
// which newer versions of the transformers library do not save.
func cohere2RopeDims(c *hparams.View) (v gguf.Value, ok bool, err error) {
	share, ok, err := c.Float("rotary_pct")
	if err != nil {
		return v, false, err
	}
	if !ok {
		n, err := c.HeadDim()
		return table.Uint32Of(n, true, err)
	}
	hidden, heads, err := c.HiddenAndHeads()
	if err != nil {
		return v, false, err
	}
	n, err := hparams.Truncate(share * float64(hidden/heads))
	return table.Uint32Of(n, true, err)
}
