package arch

import (
	"math"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(phi2, phi3, phimoe)

// phi2, phi3 and phimoe are Microsoft's Phi family: Phi-1 to 2, Phi-3 to 4 and
// their relatives, Phi-3.5-MoE. Source: the classes of phi.py of the reference's
// converter.
var (
	phi2 = &table.Arch{
		Name:      "phi2",
		Classes:   []string{"PhiForCausalLM"},
		Tokenizer: tokenizer.BPE{},
		Fused:     table.FusedQKV,
		Metadata: []table.Row{
			parts.UintRow("context_length", "n_positions", "max_position_embeddings"),
			parts.UintRow("embedding_length", "hidden_size", "n_embd"),
			{Key: "feed_forward_length", Derive: func(c *config.View) (gguf.Value, bool, error) {
				n, err := c.Require("hidden_size", "n_embd")
				return table.Uint32Of(4*min(n, math.MaxUint32), true, err)
			}},
			parts.UintRow(table.KeyBlockCount, config.BlockCountKeys...),
			parts.UintRow(table.KeyHeadCount, "num_attention_heads", "n_head"),
			parts.UintRow(table.KeyHeadCountKV, "num_attention_heads", "n_head"),
			parts.FloatRow("attention.layer_norm_epsilon", "layer_norm_epsilon", "layer_norm_eps"),
			{Key: "rope.dimension_count", Derive: parts.RopeShareOfHidden(0)},
			parts.FileTypeRow,
			{Key: "tokenizer.ggml.add_bos_token", Const: gguf.Bool(false)},
		},
		Expect: []table.Expect{
			parts.Expect("hidden_act", parts.GELU...),
			parts.Expect("qk_layernorm", "false"),
		},
		Unused: []string{"intermediate_size", "num_key_value_heads"}, // they follow from the weights
		Tensors: slices.Concat(parts.EmbedRows[:1], parts.WithBias(table.NeedBias, []table.TensorRow{
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
		Graph: &graph.Model{
			Norm: graph.LayerNorm, Final: parts.OutputNorm, Head: graph.LM{},
			Layer: []graph.Step{parts.Parallel("attn_norm", parts.GQA(parts.NeoX), "attn_norm", parts.GELUMLP)},
		},
	}
	phi3 = &table.Arch{
		Name:        "phi3",
		Classes:     []string{"Phi3ForCausalLM", "Phi4ForCausalLMV"},
		Body:        table.Body{Classes: []string{"Phi3Model"}, Prefix: "model."},
		Config:      config.Rules{Types: []string{"phi3"}, Rope: phi3Rope},
		Tokenizer:   phi3Tokens,
		Fused:       table.FusedQKV,
		HeaderFirst: phi3Early,
		Metadata:    phi3Rows,
		Expect:      []table.Expect{parts.SiLU},
		Unused:      parts.BiasKeys,
		Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, []table.TensorRow{
			{HF: "model.layers.{bid}.self_attn.qkv_proj", GGUF: "blk.{bid}.attn_qkv"},
			{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output"},
			{HF: "model.layers.{bid}.mlp.gate_up_proj", GGUF: "blk.{bid}.ffn_up"},
			{HF: "model.layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down"},
		}),
		Extra: parts.LongRopeFactors(phi3RopeDims),
		Graph: &graph.Model{
			Norm: graph.RMS, Layer: parts.PreNorm(parts.GQA(parts.NeoX), parts.SwiGLU), Final: parts.OutputNorm,
			Head: graph.LM{}, Unread: []string{"attention.sliding_window"},
		},
	}
	phimoe = &table.Arch{
		Name:        "phimoe",
		Classes:     []string{"PhiMoEForCausalLM"},
		Tokenizer:   phi3Tokens,
		Fused:       table.FusedQKV,
		HeaderFirst: phi3Early,
		Metadata: slices.Concat(phi3Rows, []table.Row{
			parts.UintRow("expert_used_count", "num_experts_per_tok", "num_experts_per_token"),
			parts.UintRow("expert_count", "num_local_experts", "num_experts"),
		}),
		Expect: []table.Expect{parts.SiLU},
		Unused: append([]string{"input_jitter_noise"}, parts.BiasKeys...),
		Tensors: slices.Concat([]table.TensorRow{
			{HF: "model.embed_tokens", GGUF: "token_embd"},
			{HF: "model.norm", GGUF: "output_norm", Bias: table.NeedBias},
			{HF: "lm_head", GGUF: "output", Optional: true, Bias: table.MayBias},
		}, parts.WithBias(table.NeedBias, parts.NormRows), parts.AttentionRows(table.MayBias, table.MayBias),
			parts.MixtralExperts),
		Extra: parts.LongRopeFactors(phi3RopeDims),
		Graph: &graph.Model{
			Norm:  graph.RMS,
			Layer: parts.PreNorm(parts.GQA(parts.NeoX), parts.Experts(parts.RouterTopK, graph.NoShared)),
			Final: parts.OutputNorm, Head: graph.LM{}, Unread: []string{"attention.sliding_window"},
		},
	}
)

// phi3Early is written with the RoPE factors, before everything else.
var phi3Early = []table.Row{{Key: "rope.scaling.attn_factor", Derive: phi3AttnFactor}}

var phi3Rows = []table.Row{
	parts.UintRow("context_length", "n_positions", "max_position_embeddings"),
	{Key: "rope.scaling.original_context_length", Derive: func(c *config.View) (gguf.Value, bool, error) {
		n, err := originalLength(c)
		return table.Uint32Of(n, true, err)
	}},
	parts.UintRow("embedding_length", "hidden_size", "n_embd"),
	parts.UintRow("feed_forward_length", "intermediate_size"),
	parts.UintRow(table.KeyBlockCount, config.BlockCountKeys...),
	parts.UintRow(table.KeyHeadCount, "num_attention_heads", "n_head"),
	parts.UintRow(table.KeyHeadCountKV, "num_key_value_heads", "n_head_kv"),
	parts.FloatRow("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
	{Key: "rope.dimension_count", Derive: parts.RopeShareOfHidden(1)},
	{Key: "rope.freq_base", Derive: parts.RopeTheta},
	parts.FileTypeRow,
	// 0 for no window, by which the runtime recognizes Phi-4
	{Key: "attention.sliding_window", Type: gguf.Uint32Type, From: []string{"sliding_window"}, Const: gguf.Uint32(0)},
}

// originalLength returns the context length before RoPE scaling.
func originalLength(c *config.View) (int64, error) {
	n, ok, err := c.Rope().Int("original_max_position_embeddings")
	if err == nil && (!ok || n <= 0) {
		err = fault.Errorf(fault.Broken,
			"%s: key \"original_max_position_embeddings\": want a positive number, found %v", config.ConfigFile, n)
	}
	return n, err
}

func phi3RopeDims(c *config.View) (int64, error) {
	v, _, err := parts.RopeShareOfHidden(1)(c)
	if err != nil {
		return 0, err
	}
	n, _ := v.Int()
	return n, nil
}

// phi3AttnFactor writes the attention factor of longrope or YaRN; no value without RoPE factors.
func phi3AttnFactor(c *config.View) (v gguf.Value, ok bool, err error) {
	if list, _, err := c.Rope().Floats("long_factor"); err != nil || len(list) == 0 {
		return v, false, err
	}
	length, err := c.Require("n_positions", "max_position_embeddings")
	if err != nil {
		return v, false, err
	}
	original, err := originalLength(c)
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
		return v, false, fault.Errorf(fault.Unsupported, "%s: rope type %q with factors, want longrope or yarn",
			config.ConfigFile, ropeType)
	}
	return table.Float32Of(factor, true, nil)
}

// phi3Tokens: Phi-4 has byte-level BPE.
var phi3Tokens = tokenizer.ByClass{Classes: []tokenizer.NamedRules{{Name: "GPT2Tokenizer", Rules: tokenizer.BPE{}}},
	Else: tokenizer.SentencePiece{AllAdded: true}}

// phi3Rope follows the configuration class of Phi-3: older names of the type become longrope, and the original context
// length of the root overrides the one in the settings.
func phi3Rope(s *config.RopeSettings) error {
	kind, ok := s.Members["rope_type"].(string)
	if !ok {
		kind, _ = s.Members["type"].(string)
	}
	const length = "original_max_position_embeddings"
	switch kind {
	case "yarn", "longrope":
		_, s.Members[length] = s.Use(length)
	case "su":
		if s.Members[length] == nil {
			_, s.Members[length] = s.Use(length)
		}
	default:
		return nil
	}
	s.Members["rope_type"] = "longrope"
	return nil
}
