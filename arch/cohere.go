package arch

import (
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

// commandR and cohere2 are Cohere's models: Command R and R+, Aya 23; Command R7B
// and A. Source: the classes of command_r.py of the reference's converter.
var (
	commandR = &Arch{
		Name:      "command-r",
		Classes:   []string{"CohereForCausalLM"},
		Tokenizer: tokenizer.ClassGPT2,
		Metadata: slices.Concat(with(commonRows,
			// max_position_embeddings is less than the model was trained with
			uintRow("context_length", "model_max_length", "max_position_embeddings"),
		), []Row{
			floatRow("logit_scale", "logit_scale"),
			noRopeScaling,
		}),
		Expect: []Expect{silu},
		Unused: slices.Concat(biasKeys, []string{"use_qk_norm", "max_position_embeddings"}),
		Tensors: slices.Concat(embedRows[:2], normRows[:1], attentionRows(MayBias, MayBias), mlpRows, []TensorRow{
			{HF: "model.layers.{bid}.self_attn.q_norm", GGUF: "blk.{bid}.attn_q_norm", Optional: true},
			{HF: "model.layers.{bid}.self_attn.k_norm", GGUF: "blk.{bid}.attn_k_norm", Optional: true},
		}),
	}
	cohere2 = &Arch{
		Name:      "cohere2",
		Classes:   []string{"Cohere2ForCausalLM"},
		Tokenizer: tokenizer.ClassGPT2,
		Metadata: slices.Concat(commonRows, []Row{
			floatRow("logit_scale", "logit_scale"),
			uintRow("attention.sliding_window", "sliding_window"),
			uintRow("vocab_size", "vocab_size"),
			{Key: "rope.dimension_count", Derive: cohere2RopeDims},
			noRopeScaling,
		}),
		Expect: append([]Expect{
			{"sliding_window_pattern", []string{"4"}},
			{"_sliding_window_pattern", []string{"4"}},
			{"position_embedding_type", []string{"rope_gptj"}},
			{"use_gated_activation", []string{"true"}},
			{"use_parallel_block", []string{"true"}},
			{"use_qk_norm", []string{"false"}},
			{"order_of_interleaved_layers", []string{"local_attn_first"}},
		}, silu),
		// of other loaders, or the same as a key above
		Unused:  slices.Concat(biasKeys, []string{"layer_switch", "layer_types", "use_embedding_sharing", "use_parallel_embedding", "cache_implementation"}),
		Tensors: slices.Concat(embedRows[:2], normRows[:1], attentionRows(NoBias, NoBias), mlpRows, zeroBiases),
	}
	// zeroBiases are biases that some checkpoints have all the same.
	zeroBiases = []TensorRow{
		{HF: "model.norm.bias", GGUF: "output_norm.bias", Exact: true, Optional: true, Zero: true},
		{HF: "model.layers.{bid}.input_layernorm.bias", GGUF: "blk.{bid}.attn_norm.bias", Exact: true, Optional: true, Zero: true},
		{HF: "model.layers.{bid}.self_attn.q_proj.bias", GGUF: "blk.{bid}.attn_q.bias", Exact: true, Optional: true, Zero: true},
		{HF: "model.layers.{bid}.self_attn.k_proj.bias", GGUF: "blk.{bid}.attn_k.bias", Exact: true, Optional: true, Zero: true},
		{HF: "model.layers.{bid}.self_attn.v_proj.bias", GGUF: "blk.{bid}.attn_v.bias", Exact: true, Optional: true, Zero: true},
		{HF: "model.layers.{bid}.self_attn.o_proj.bias", GGUF: "blk.{bid}.attn_output.bias", Exact: true, Optional: true, Zero: true},
	}
)

// cohere2RopeDims is the share rotary_pct of a head.
func cohere2RopeDims(c *Config) (v gguf.Value, ok bool, err error) {
	share, ok, err := c.Float("rotary_pct")
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: has no key \"rotary_pct\"", ConfigFile)
	}
	if err != nil {
		return v, false, err
	}
	hidden, heads, err := c.hiddenAndHeads()
	if err != nil {
		return v, false, err
	}
	n, err := truncate(share * float64(hidden/heads))
	return uint32Of(n, true, err)
}
