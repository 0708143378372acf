package arch

import (
	"fmt"
	"math"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	f16 "ggforge/internal/kernel/half"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(plamo, plamo2, plamo3)

// plamo is Preferred Networks' PLaMo 13B. Source: the Plamo class of the
// reference's converter. Query head i shares key head i%5 in the checkpoint,
// i/8 in the file.
var plamo = &table.Arch{
	Name:      "plamo",
	Classes:   []string{"PlamoForCausalLM"},
	Tokenizer: tokenizer.SentencePiece{},
	Fused:     table.FusedQKV,
	Metadata: []table.Row{
		{Key: "context_length", Const: gguf.Uint32(4096)}, // not in config.json
		parts.UintRow("embedding_length", "hidden_size"),
		parts.UintRow("feed_forward_length", "intermediate_size"),
		parts.UintRow(table.KeyBlockCount, config.BlockCountKeys...),
		parts.UintRow(table.KeyHeadCount, "num_attention_heads"),
		{Key: table.KeyHeadCountKV, Const: gguf.Uint32(plamoHeadsKV)}, // config.json has the number of query heads
		parts.FloatRow("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
		parts.FileTypeRow,
	},
	Expect: []table.Expect{parts.SiLU},
	Unused: []string{"n_shared_head", "num_key_value_heads", "max_position_embeddings"},
	Tensors: []table.TensorRow{
		{HF: "model.embed_tokens", GGUF: "token_embd"},
		{HF: "model.norm", GGUF: "output_norm"},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "model.layers.layers.{bid}.norm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "model.layers.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q", Transform: plamoQ},
		{HF: "model.layers.layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.attn_k"},
		{HF: "model.layers.layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.attn_v"},
		{HF: "model.layers.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output", Transform: plamoOutput},
		{HF: "model.layers.layers.{bid}.mlp.gate_proj", GGUF: "blk.{bid}.ffn_gate"},
		{HF: "model.layers.layers.{bid}.mlp.up_proj", GGUF: "blk.{bid}.ffn_up"},
		{HF: "model.layers.layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down"},
	},
	Graph: &graph.Model{
		Norm: graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: []graph.Step{parts.Parallel("attn_norm", parts.GQA(parts.NeoX), "attn_norm", parts.SwiGLU)},
	},
}

const plamoHeadsKV = 5

// plamoQ reorders the rows of Q so that query heads with the same key head are adjacent.
var plamoQ = &table.Transform{Name: "group-shared-heads", Forward: plamoGroup}

// plamoOutput reorders the columns of the attention output like plamoQ.
var plamoOutput = &table.Transform{Name: "group-shared-head-columns",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		s, err := rows.Transpose(s)
		if err != nil {
			return nil, err
		}
		if s, err = plamoGroup(l, s); err != nil {
			return nil, err
		}
		return rows.Transpose(s)
	}}

func plamoGroup(l table.Layer, s rows.Source) (rows.Source, error) {
	heads, err := l.Require("num_attention_heads")
	if err != nil {
		return nil, err
	}
	ne := s.NE()
	if len(ne) != 2 || heads <= 0 || heads%plamoHeadsKV != 0 || ne[1]%heads != 0 {
		return nil, fmt.Errorf("dimensions %s with %d heads, want %d for each key head", gguf.Shape(ne), heads,
			plamoHeadsKV)
	}
	dim, shared := ne[1]/heads, heads/plamoHeadsKV
	return rows.Regroup(s, func(i int64) int64 {
		head := i / dim
		return (head%shared*plamoHeadsKV+head/shared)*dim + i%dim
	})
}

// plamo2 is PLaMo 2, Mamba layers with attention layers in between. plamo3 is PLaMo 3. Both store norm weights minus a
// constant. Source: their classes in the reference's converter.
var (
	plamo2 = &table.Arch{
		Name:      "plamo2",
		Classes:   []string{"Plamo2ForCausalLM", "PLaMo2ForCausalLM"},
		Tokenizer: tokenizer.Plamo{EndOfTurn: "<|plamo:op|>"},
		Fused:     table.FusedQKV,
		Metadata: []table.Row{
			parts.UintRow("vocab_size", "vocab_size"),
			{Key: table.KeyHeadCountKV, Derive: plamo2Heads("num_key_value_heads", 4)},
			{Key: table.KeyHeadCount, Derive: plamo2Heads("num_attention_heads", 32)},
			{Key: "context_length", Derive: parts.IntOrDefault(2048, "max_position_embeddings")},
			{Key: "embedding_length", Derive: parts.IntOrDefault(4096, "hidden_size")},
			{Key: "attention.key_length", Derive: parts.IntOrDefault(128, "hidden_size_per_head")},
			{Key: "attention.value_length", Derive: parts.IntOrDefault(128, "hidden_size_per_head")},
			parts.UintRow(table.KeyBlockCount, config.BlockCountKeys...),
			{Key: "attention.layer_norm_rms_epsilon", Type: gguf.Float32Type, From: []string{"rms_norm_eps"},
				Const: gguf.Float32(1e-6)},
			{Key: "rope.freq_base", Derive: func(c *config.View) (gguf.Value, bool, error) {
				f, ok, err := c.Rope().Float("rope_theta")
				if !ok {
					f = 10000
				}
				return table.Float32Of(f, true, err)
			}},
			{Key: "ssm.state_size", Derive: parts.IntOrDefault(64, "mamba_d_state")},
			{Key: "ssm.conv_kernel", Derive: parts.IntOrDefault(4, "mamba_d_conv")},
			{Key: "ssm.time_step_rank", Derive: parts.IntOrDefault(64, "mamba_num_heads")},
			{Key: "ssm.inner_size", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
				heads, err := c.IntOr(64, "mamba_num_heads")
				if err != nil {
					return v, false, err
				}
				dim, err := c.IntOr(128, "hidden_size_per_head")
				if err == nil && (min(heads, dim) < 0 || max(heads, dim) > config.MaxHeadDim) {
					err = fault.Errorf(fault.Broken, "%s: %d heads of %d elements", config.ConfigFile, heads, dim)
				}
				return table.Uint32Of(heads*dim, true, err)
			}},
			{Key: "ssm.group_count", Const: gguf.Uint32(0)},
			{Key: "feed_forward_length", Derive: parts.IntOrDefault(13312, "intermediate_size")},
			parts.FileTypeRow,
		},
		Expect: []table.Expect{parts.SiLU, parts.Expect("mamba_chunk_size", "256"), parts.Expect("full_attention_idx"),
			parts.Expect("attention_window_size", "2048")},
		Unused: []string{"attention_window_size", "eval_attention_n_bit", "eval_mlp_n_bit", "fp8_accum_dtype",
			"linear_type", "sliding_window", "use_predefined_initial_state", "mamba_enabled",
			"image_feature_size", "image_proj_type", "image_token_id", "linear_bias", "eval_attention_fp8",
			"tokenizer_class"},
		Tensors: slices.Concat(plamo2Norms, []table.TensorRow{
			{HF: "model.embed_tokens", GGUF: "token_embd"},
			{HF: "lm_head", GGUF: "output", Optional: true},
			{HF: "model.layers.layers.{bid}.mlp.gate_up_proj", GGUF: "blk.{bid}.ffn_up"},
			{HF: "model.layers.layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down"},
		}, parts.Only(parts.Not(plamo2Mamba), []table.TensorRow{
			{HF: "model.layers.layers.{bid}.mixer.qkv_proj", GGUF: "blk.{bid}.attn_qkv"},
			{HF: "model.layers.layers.{bid}.mixer.o_proj", GGUF: "blk.{bid}.attn_output"},
			{HF: "model.layers.layers.{bid}.mixer.q_weight", GGUF: "blk.{bid}.attn_q_norm.weight", Exact: true},
			{HF: "model.layers.layers.{bid}.mixer.k_weight", GGUF: "blk.{bid}.attn_k_norm.weight", Exact: true},
		}), parts.Only(plamo2Mamba, []table.TensorRow{
			{HF: "model.layers.layers.{bid}.mixer.in_proj", GGUF: "blk.{bid}.ssm_in"},
			{HF: "model.layers.layers.{bid}.mixer.out_proj", GGUF: "blk.{bid}.ssm_out"},
			{HF: "model.layers.layers.{bid}.mixer.conv1d", GGUF: "blk.{bid}.ssm_conv1d",
				Transform: parts.SqueezeKernel},
			{HF: "model.layers.layers.{bid}.mixer.bcdt_proj", GGUF: "blk.{bid}.ssm_x"},
			{HF: "model.layers.layers.{bid}.mixer.dt_proj", GGUF: "blk.{bid}.ssm_dt"},
			{HF: "model.layers.layers.{bid}.mixer.dt_bias", GGUF: "blk.{bid}.ssm_dt.bias", Exact: true},
			{HF: "model.layers.layers.{bid}.mixer.A_log", GGUF: "blk.{bid}.ssm_a", Exact: true,
				Transform: parts.NegExp},
			{HF: "model.layers.layers.{bid}.mixer.D", GGUF: "blk.{bid}.ssm_d", Exact: true},
			{HF: "model.layers.layers.{bid}.mixer.dt_norm_weight", GGUF: "blk.{bid}.ssm_dt_norm", Exact: true},
			{HF: "model.layers.layers.{bid}.mixer.B_norm_weight", GGUF: "blk.{bid}.ssm_b_norm", Exact: true},
			{HF: "model.layers.layers.{bid}.mixer.C_norm_weight", GGUF: "blk.{bid}.ssm_c_norm", Exact: true},
		})),
		Graph: &graph.Model{
			Reads: []string{"ssm.group_count"},
			Norm:  graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
			Layer: parts.Sandwich(graph.Choose{
				{In: graph.Where("n_head_kv = 0"), Then: graph.ProjectedMamba2{}},
				{In: graph.Every{}, Then: parts.GQA(parts.QKNorm, parts.NeoX)},
			}, parts.SwiGLU),
		},
	}
	plamo3 = &table.Arch{
		Name:      "plamo3",
		Classes:   []string{"Plamo3ForCausalLM", "PLaMo3ForCausalLM"},
		Tokenizer: plamo3Tokens,
		Fused:     table.FusedQKV,

		RopePerAttention: true,
		Metadata: slices.Concat(parts.CommonRows, []table.Row{
			parts.UintRow("vocab_size", "vocab_size"),
			parts.Optional(parts.UintRow("attention.sliding_window", "window_size", "sliding_window")),
			{Key: "attention.sliding_window_pattern", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
				if _, ok, err := c.Int("window_size", "sliding_window"); err != nil || !ok {
					return v, false, err
				}
				n, err := c.Require("sliding_window_pattern")
				return table.Uint32Of(n, true, err)
			}},
		}),
		Expect: []table.Expect{parts.SiLU, parts.Expect("rope_scaling_factor", "1")},
		Unused: []string{"interleaved_sliding_window", "linear_bias", "linear_type", "fp8_accum_dtype",
			"eval_attention_n_bit", "eval_mlp_n_bit", "hidden_size_per_head", "layer_types", "rope_local_theta",
			"sliding_window_pattern", "initial_context_length",
			"image_feature_size", "image_proj_type", "image_token_id", "tokenizer_class", "sliding_window"},
		Tensors: slices.Concat(plamo2Norms, []table.TensorRow{
			{HF: "model.embed_tokens", GGUF: "token_embd"},
			{HF: "lm_head", GGUF: "output", Optional: true},
			{HF: "model.layers.layers.{bid}.mlp.gate_up_proj", GGUF: "blk.{bid}.ffn_up"},
			{HF: "model.layers.layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down"},
			{HF: "model.layers.layers.{bid}.mixer.qkv_proj", GGUF: "blk.{bid}.attn_qkv"},
			{HF: "model.layers.layers.{bid}.mixer.o_proj", GGUF: "blk.{bid}.attn_output"},
			{HF: "model.layers.layers.{bid}.mixer.q_norm", GGUF: "blk.{bid}.attn_q_norm", Transform: parts.PlusOne},
			{HF: "model.layers.layers.{bid}.mixer.k_norm", GGUF: "blk.{bid}.attn_k_norm", Transform: parts.PlusOne},
		}),
		Graph: &graph.Model{
			Norm: graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
			Layer: parts.Sandwich(parts.LocalGlobal(graph.Sliding{N: 8},
				graph.Attention{Steps: []graph.HeadStep{parts.QKNorm, parts.DefaultLocalNeoX}, Window: parts.Window},
				parts.GQA(parts.QKNorm, parts.NeoX),
			), parts.SwiGLU),
		},
	}
	plamo2Norms = []table.TensorRow{
		{HF: "model.norm", GGUF: "output_norm", Transform: parts.PlusOne},
		{HF: "model.layers.layers.{bid}.pre_mixer_norm", GGUF: "blk.{bid}.attn_norm", Transform: parts.PlusOne},
		{HF: "model.layers.layers.{bid}.pre_mlp_norm", GGUF: "blk.{bid}.ffn_norm", Transform: parts.PlusOne},
		// the names of these two have no suffix in the file
		{HF: "model.layers.layers.{bid}.post_mixer_norm.weight", GGUF: "blk.{bid}.post_attention_norm", Exact: true,
			Transform: addToNorm("plus-fifth", 1.0/5)},
		{HF: "model.layers.layers.{bid}.post_mlp_norm.weight", GGUF: "blk.{bid}.post_ffw_norm", Exact: true,
			Transform: addToNorm("plus-root", 1/math.Pow(5, 1.5))},
	}
)

// addToNorm adds a number to the weights of a norm. For F16 weights, PyTorch rounds the number to F16 first.
func addToNorm(name string, n float64) *table.Transform {
	return &table.Transform{Name: name, Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
		c := float32(n)
		if s.Type() == gguf.TypeF16 {
			c = f16.RoundF16(c)
		}
		return rows.Map(s, rows.Add(c)), nil
	}}
}

// plamo2Mamba is the condition of Mamba layers: the middle one of every mamba_step layers has attention; in a model of
// fewer layers, the last one.
func plamo2Mamba(l table.Layer) (bool, error) {
	if on, ok, err := l.Bool("mamba_enabled"); err != nil || ok && !on {
		return false, err
	}
	step, err := l.IntOr(2, "mamba_step")
	if err != nil {
		return false, err
	}
	if step <= 0 {
		return false, config.WrongType("mamba_step", "a positive integer", step)
	}
	n, err := l.BlockCount()
	if err != nil {
		return false, err
	}
	if n <= step/2 {
		return l.Bid != n-1, nil
	}
	return l.Bid%step != step/2, nil
}

// plamo2Heads writes the number of heads of each layer, 0 for Mamba layers; no value for models without Mamba.
func plamo2Heads(key string, standard int64) table.Derive {
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
		if on, ok, err := c.Bool("mamba_enabled"); err != nil || ok && !on {
			return v, false, err
		}
		heads, err := c.IntOr(standard, key)
		if err != nil {
			return v, false, err
		}
		n, err := (&table.Arch{}).Blocks(c)
		if err != nil {
			return v, false, err
		}
		list := make([]int64, n)
		for bid := range list {
			mamba, err := plamo2Mamba(table.Layer{View: c, Bid: int64(bid)})
			if err != nil {
				return v, false, err
			}
			if !mamba {
				list[bid] = heads
			}
		}
		return parts.PerLayer(list, nil)
	}
}

var plamo3Tokens = tokenizer.Plamo{EndOfTurn: "<|plamo:tag|>", Template: true,
	Normal: []string{"<|plamo:begin_", "<|plamo:end_", ":plamo|>"}}
