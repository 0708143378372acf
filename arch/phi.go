package arch

import (
	"math"
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

// phi2, phi3 and phimoe are Microsoft's Phi family: Phi-1 to 2, Phi-3 to 4 and
// their relatives, Phi-3.5-MoE. Source: the classes of phi.py of the reference's
// converter.
var (
	phi2 = &Arch{
		Name:      "phi2",
		Classes:   []string{"PhiForCausalLM"},
		Tokenizer: tokenizer.ClassGPT2,
		Metadata: []Row{
			uintRow("context_length", "n_positions", "max_position_embeddings"),
			uintRow("embedding_length", "hidden_size", "n_embd"),
			{Key: "feed_forward_length", Derive: func(c *Config) (gguf.Value, bool, error) {
				n, err := c.Require("hidden_size", "n_embd")
				return uint32Of(4*min(n, math.MaxUint32), true, err)
			}},
			uintRow(keyBlockCount, blockCountKeys...),
			uintRow(keyHeadCount, "num_attention_heads", "n_head"),
			uintRow(keyHeadCountKV, "num_attention_heads", "n_head"),
			floatRow("attention.layer_norm_epsilon", "layer_norm_epsilon", "layer_norm_eps"),
			{Key: "rope.dimension_count", Derive: ropeShareOfHidden(0)},
			fileTypeRow,
			{Key: "tokenizer.ggml.add_bos_token", Const: gguf.Bool(false)},
		},
		Expect: []Expect{
			{"hidden_act", []string{"gelu_new", "gelu", "gelu_fast", "gelu_pytorch_tanh"}},
			{"qk_layernorm", []string{"false"}},
		},
		Unused: []string{"intermediate_size", "num_key_value_heads"}, // those of the weights are known
		Tensors: slices.Concat(embedRows[:1], withBias(NeedBias, []TensorRow{
			{HF: "model.final_layernorm", GGUF: "output_norm"},
			{HF: "lm_head", GGUF: "output"},
			{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
			{HF: "model.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q"},
			{HF: "model.layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.attn_k"},
			{HF: "model.layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.attn_v"},
			{HF: "model.layers.{bid}.self_attn.dense", GGUF: "blk.{bid}.attn_output"},
			{HF: "model.layers.{bid}.mlp.fc1", GGUF: "blk.{bid}.ffn_up"},
			{HF: "model.layers.{bid}.mlp.fc2", GGUF: "blk.{bid}.ffn_down"},
		})),
	}
	phi3 = &Arch{
		Name:      "phi3",
		Classes:   []string{"Phi3ForCausalLM", "Phi4ForCausalLMV"},
		Tokenizer: tokenizer.ClassPhi3,
		Early:     phi3Early,
		Metadata:  phi3Rows,
		Expect:    []Expect{silu},
		Unused:    biasKeys,
		Tensors: slices.Concat(embedRows, normRows, []TensorRow{
			{HF: "model.layers.{bid}.self_attn.qkv_proj", GGUF: "blk.{bid}.attn_qkv"},
			{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output"},
			{HF: "model.layers.{bid}.mlp.gate_up_proj", GGUF: "blk.{bid}.ffn_up"},
			{HF: "model.layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down"},
		}),
		Extra: longRopeFactors(phi3RopeDims),
	}
	phimoe = &Arch{
		Name:      "phimoe",
		Classes:   []string{"PhiMoEForCausalLM"},
		Tokenizer: tokenizer.ClassPhi3,
		Early:     phi3Early,
		Metadata: slices.Concat(phi3Rows, []Row{
			uintRow("expert_used_count", "num_experts_per_tok", "num_experts_per_token"),
			uintRow("expert_count", "num_local_experts", "num_experts"),
		}),
		Expect: []Expect{silu},
		Unused: append([]string{"input_jitter_noise"}, biasKeys...),
		Tensors: slices.Concat([]TensorRow{
			{HF: "model.embed_tokens", GGUF: "token_embd"},
			{HF: "model.norm", GGUF: "output_norm", Bias: NeedBias},
			{HF: "lm_head", GGUF: "output", Optional: true, Bias: MayBias},
		}, withBias(NeedBias, normRows), attentionRows(MayBias, MayBias), mixtralExperts),
		Extra: longRopeFactors(phi3RopeDims),
	}
)

// phi3Early is written when the factors are, before everything else.
var phi3Early = []Row{{Key: "rope.scaling.attn_factor", Derive: phi3AttnFactor}}

var phi3Rows = []Row{
	uintRow("context_length", "n_positions", "max_position_embeddings"),
	{Key: "rope.scaling.original_context_length", Derive: func(c *Config) (gguf.Value, bool, error) {
		n, err := c.originalLength()
		return uint32Of(n, true, err)
	}},
	uintRow("embedding_length", "hidden_size", "n_embd"),
	uintRow("feed_forward_length", "intermediate_size"),
	uintRow(keyBlockCount, blockCountKeys...),
	uintRow(keyHeadCount, "num_attention_heads", "n_head"),
	uintRow(keyHeadCountKV, "num_key_value_heads", "n_head_kv"),
	floatRow("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
	{Key: "rope.dimension_count", Derive: ropeShareOfHidden(1)},
	{Key: "rope.freq_base", Derive: ropeTheta},
	fileTypeRow,
	// 0 for no window: that is how the runtime knows Phi-4 from the others
	{Key: "attention.sliding_window", Type: gguf.Uint32Type, From: []string{"sliding_window"}, Const: gguf.Uint32(0)},
}

// originalLength returns the context length before it was extended.
func (c *Config) originalLength() (int64, error) {
	n, ok, err := c.Rope().Int("original_max_position_embeddings")
	if err == nil && (!ok || n <= 0) {
		err = fault.Errorf(fault.Broken, "%s: key \"original_max_position_embeddings\": want a positive number, found %v", ConfigFile, n)
	}
	return n, err
}

func phi3RopeDims(c *Config) (int64, error) {
	v, _, err := ropeShareOfHidden(1)(c)
	if err != nil {
		return 0, err
	}
	n, _ := v.Int()
	return n, nil
}

// phi3AttnFactor is by how much attention is sharpened for long texts. There is
// none without factors.
func phi3AttnFactor(c *Config) (v gguf.Value, ok bool, err error) {
	if list, _, err := c.Rope().Floats("long_factor"); err != nil || len(list) == 0 {
		return v, false, err
	}
	length, err := c.Require("n_positions", "max_position_embeddings")
	if err != nil {
		return v, false, err
	}
	original, err := c.originalLength()
	if err != nil {
		return v, false, err
	}
	ropeType, _, err := c.Rope().String("rope_type")
	if err != nil {
		return v, false, err
	}
	scale, factor := float64(length)/float64(original), 1.0
	switch ropeType {
	case "su", "longrope":
		if scale > 1 {
			factor = math.Sqrt(1 + math.Log(scale)/math.Log(float64(original)))
		}
	case "yarn":
		if scale > 1 {
			factor = float64(0.1*math.Log(scale)) + 1
		}
	default:
		return v, false, fault.Errorf(fault.Unsupported, "%s: rope type %q with factors, want longrope or yarn", ConfigFile, ropeType)
	}
	return float32Of(factor, true, nil)
}

// phi3Rope does what the configuration class of Phi-3 does: older names of the
// type mean longrope, and the original context length beside the settings counts
// before that within.
func phi3Rope(c *Config) error {
	s, ok := c.rope["rope_type"].(string)
	if !ok {
		s, _ = c.rope["type"].(string)
	}
	const length = "original_max_position_embeddings"
	switch s {
	case "yarn", "longrope":
		c.rope[length] = c.Value(length)
	case "su":
		if c.rope[length] == nil {
			c.rope[length] = c.Value(length)
		}
	default:
		return nil
	}
	c.rope["rope_type"] = "longrope"
	return nil
}
