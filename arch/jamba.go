package arch

import (
	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(jamba, falconH1)

// jamba is AI21's Jamba: Mamba and attention layers, with an MLP or experts. Source: jamba.py of the reference.
var jamba = &table.Arch{
	Name:      "jamba",
	Classes:   []string{"JambaForCausalLM"},
	Body:      table.Body{Classes: []string{"JambaModel"}, Prefix: "model."},
	Tokenizer: jambaTokens,
	Fused:     table.FusedQKV,
	Metadata: []table.Row{
		parts.BlockCountRow,
		parts.UintRow("context_length", "max_position_embeddings", "n_ctx"),
		parts.UintRow("embedding_length", jambaWidth...),
		parts.UintRow("feed_forward_length", "intermediate_size"),
		parts.UintRow(table.KeyHeadCount, "num_attention_heads"),
		{Key: table.KeyHeadCountKV, Derive: jambaHeadsKV},
		{Key: "ssm.conv_kernel", Derive: parts.IntOrDefault(4, "mamba_d_conv")},
		{Key: "ssm.inner_size", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			expand, err := c.Require("mamba_expand")
			if err != nil {
				return v, false, err
			}
			model, err := c.Require(jambaWidth...)
			if err == nil && (expand < 0 || expand > config.MaxWidth || model < 0 || model > config.MaxWidth) {
				err = config.WrongType("mamba_expand", "a factor", expand)
			}
			return table.Uint32Of(expand*model, true, err)
		}},
		{Key: "ssm.state_size", Derive: parts.IntOrDefault(16, "mamba_d_state")},
		{Key: "ssm.time_step_rank", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			if c.Value("mamba_dt_rank") != "auto" {
				if n, ok, err := c.Int("mamba_dt_rank"); err != nil || ok && n != 0 {
					return table.Uint32Of(n, ok, err)
				}
			}
			model, err := c.Require(jambaWidth...)
			return table.Uint32Of((model+15)/16, true, err)
		}},
		{Key: "attention.layer_norm_rms_epsilon", Derive: parts.FloatOrDefault(1e-6, "layer_norm_epsilon",
			"rms_norm_eps")},
		parts.UintRow("expert_count", jambaExperts...),
		parts.UintRow("expert_used_count", "num_experts_per_tok", "num_experts_per_token"),
		parts.FileTypeRow,
	},
	Unused: []string{"attn_layer_offset", "attn_layer_period", "calc_logits_for_entire_prompt", "expert_layer_offset",
		"expert_layer_period", "mamba_inner_layernorms",
		"num_logits_to_keep", "use_mamba_kernels", "n_ctx"},
	Expect: []table.Expect{
		parts.SiLU,
		parts.Expect("mamba_proj_bias", "false"),
		parts.Expect("mamba_conv_bias", "true"),
		parts.Expect("sliding_window"),
		parts.DefaultRopeType, parts.UnitRopeFactor,
	},
	Tensors: []table.TensorRow{
		{HF: "model.embed_tokens", GGUF: "token_embd"},
		{HF: "model.final_layernorm", GGUF: "output_norm"},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},

		{HF: "model.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q", If: jambaAttention},
		{HF: "model.layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.attn_k", If: jambaAttention},
		{HF: "model.layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.attn_v", If: jambaAttention},
		{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output", If: jambaAttention},

		{HF: "model.layers.{bid}.mamba.in_proj", GGUF: "blk.{bid}.ssm_in", If: parts.Not(jambaAttention)},
		{HF: "model.layers.{bid}.mamba.conv1d", GGUF: "blk.{bid}.ssm_conv1d", Bias: table.NeedBias,
			Transform: parts.Squeeze, If: parts.Not(jambaAttention)},
		{HF: "model.layers.{bid}.mamba.x_proj", GGUF: "blk.{bid}.ssm_x", If: parts.Not(jambaAttention)},
		{HF: "model.layers.{bid}.mamba.dt_proj", GGUF: "blk.{bid}.ssm_dt", Bias: table.NeedBias,
			If: parts.Not(jambaAttention)},
		{HF: "model.layers.{bid}.mamba.A_log", GGUF: "blk.{bid}.ssm_a", Exact: true, Transform: parts.NegExp,
			If: parts.Not(jambaAttention)},
		{HF: "model.layers.{bid}.mamba.D", GGUF: "blk.{bid}.ssm_d", Exact: true, If: parts.Not(jambaAttention)},
		{HF: "model.layers.{bid}.mamba.dt_layernorm", GGUF: "blk.{bid}.ssm_dt_norm", If: parts.Not(jambaAttention)},
		{HF: "model.layers.{bid}.mamba.b_layernorm", GGUF: "blk.{bid}.ssm_b_norm", If: parts.Not(jambaAttention)},
		{HF: "model.layers.{bid}.mamba.B_layernorm", GGUF: "blk.{bid}.ssm_b_norm", If: parts.Not(jambaAttention),
			Optional: true},
		{HF: "model.layers.{bid}.mamba.c_layernorm", GGUF: "blk.{bid}.ssm_c_norm", If: parts.Not(jambaAttention)},
		{HF: "model.layers.{bid}.mamba.C_layernorm", GGUF: "blk.{bid}.ssm_c_norm", If: parts.Not(jambaAttention),
			Optional: true},
		{HF: "model.layers.{bid}.mamba.out_proj", GGUF: "blk.{bid}.ssm_out", If: parts.Not(jambaAttention)},

		{HF: "model.layers.{bid}.pre_ff_layernorm", GGUF: "blk.{bid}.ffn_norm"},
		{HF: "model.layers.{bid}.pre_moe_layernorm", GGUF: "blk.{bid}.ffn_norm", Optional: true}, // Mini-Jamba
		{HF: "model.layers.{bid}.feed_forward.gate_proj", GGUF: "blk.{bid}.ffn_gate", If: parts.Not(jambaSparse)},
		{HF: "model.layers.{bid}.feed_forward.up_proj", GGUF: "blk.{bid}.ffn_up", If: parts.Not(jambaSparse)},
		{HF: "model.layers.{bid}.feed_forward.down_proj", GGUF: "blk.{bid}.ffn_down", If: parts.Not(jambaSparse)},
		{HF: "model.layers.{bid}.moe.experts.0.gate_proj", GGUF: "blk.{bid}.ffn_gate", If: parts.Not(jambaSparse),
			Optional: true},
		{HF: "model.layers.{bid}.moe.experts.0.up_proj", GGUF: "blk.{bid}.ffn_up", If: parts.Not(jambaSparse),
			Optional: true},
		{HF: "model.layers.{bid}.moe.experts.0.down_proj", GGUF: "blk.{bid}.ffn_down", If: parts.Not(jambaSparse),
			Optional: true},
		{HF: "model.layers.{bid}.feed_forward.router", GGUF: "blk.{bid}.ffn_gate_inp", If: jambaSparse},
		{HF: "model.layers.{bid}.moe.router", GGUF: "blk.{bid}.ffn_gate_inp", If: jambaSparse, Optional: true},
		{HF: "model.layers.{bid}.feed_forward.experts.{xid}.down_proj", GGUF: "blk.{bid}.ffn_down_exps",
			If: jambaSparse, Experts: jambaExpertCount},
		{HF: "model.layers.{bid}.feed_forward.experts.{xid}.gate_proj", GGUF: "blk.{bid}.ffn_gate_exps",
			If: jambaSparse, Experts: jambaExpertCount},
		{HF: "model.layers.{bid}.feed_forward.experts.{xid}.up_proj", GGUF: "blk.{bid}.ffn_up_exps", If: jambaSparse,
			Experts: jambaExpertCount},
		{HF: "model.layers.{bid}.moe.experts.{xid}.down_proj", GGUF: "blk.{bid}.ffn_down_exps", If: jambaSparse,
			Experts: jambaExpertCount, Optional: true},
		{HF: "model.layers.{bid}.moe.experts.{xid}.gate_proj", GGUF: "blk.{bid}.ffn_gate_exps", If: jambaSparse,
			Experts: jambaExpertCount, Optional: true},
		{HF: "model.layers.{bid}.moe.experts.{xid}.up_proj", GGUF: "blk.{bid}.ffn_up_exps", If: jambaSparse,
			Experts: jambaExpertCount, Optional: true},
	},
	Graph: parts.Decoder(graph.RMS, parts.RecurrentOr(graph.Mamba1{}, graph.Attention{}),
		parts.Sparse(parts.Experts(parts.Router, graph.NoShared), parts.SwiGLU)),
}

var (
	jambaWidth   = []string{"hidden_size", "mamba_d_model"}
	jambaExperts = []string{"num_local_experts", "num_experts"}
)

func jambaExpertCount(l table.Layer) (int64, error) { return l.Require(jambaExperts...) }

// jambaAttention and jambaSparse are the conditions of attention layers and of MoE layers, each one layer of a period.
// A single expert counts as a dense MLP.
var (
	jambaAttention = everyNth("attn_layer_period", "attn_layer_offset")
	jambaSparse    = parts.Both(jambaHasExperts, everyNth("expert_layer_period", "expert_layer_offset"))
)

func jambaHasExperts(l table.Layer) (bool, error) {
	n, err := jambaExpertCount(l)
	return n != 1, err
}

func everyNth(period, offset string) table.Cond {
	return func(l table.Layer) (bool, error) {
		n, err := l.Require(period)
		if err != nil {
			return false, err
		}
		if n < 1 {
			return false, config.WrongType(period, "a positive number", n)
		}
		first, err := l.Require(offset)
		return l.Bid >= first && (l.Bid-first)%n == 0, err
	}
}

// jambaHeadsKV writes the number of key heads of each layer, 0 for Mamba layers.
func jambaHeadsKV(c *config.View) (v gguf.Value, ok bool, err error) {
	heads, err := c.Require("num_key_value_heads")
	if err == nil && (heads < 0 || heads > config.MaxWidth) {
		err = config.WrongType("num_key_value_heads", "a number of heads", heads)
	}
	if err != nil {
		return v, false, err
	}
	blocks, err := c.BlockCount()
	if err != nil || blocks > config.MaxBlocks {
		return v, false, err
	}
	var list []int32
	for bid := range blocks {
		attention, err := jambaAttention(table.Layer{View: c, Bid: bid})
		if err != nil {
			return v, false, err
		}
		n := int32(0)
		if attention {
			n = int32(heads)
		}
		list = append(list, n)
	}
	return gguf.Int32s(list), len(list) > 0, nil
}

// falconH1 is Falcon-H1: each layer has a Mamba-2 mixer and attention in parallel. The converter multiplies the model's
// scalars into the weights. The reference reads config.json without defaults. Source: falcon_h1.py of the reference.
var falconH1 = &table.Arch{
	Name:      "falcon-h1",
	Classes:   []string{"FalconH1ForCausalLM"},
	Body:      table.Body{Classes: []string{"FalconH1Model"}, Prefix: "model."},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Config:    config.Rules{Raw: true},
	Metadata: []table.Row{
		{Key: "context_length", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, _, err := c.Int("max_position_embeddings")
			return table.Uint32Of(n, true, err)
		}},
		parts.UintRow("embedding_length", "hidden_size"),
		parts.UintRow("feed_forward_length", "intermediate_size"),
		parts.UintRow(table.KeyHeadCount, "num_attention_heads"),
		parts.BlockCountRow,
		{Key: "ssm.conv_kernel", Derive: parts.IntOrDefault(4, "conv_kernel", "d_conv", "mamba_conv_kernel",
			"mamba_d_conv")},
		parts.UintRow("ssm.inner_size", "mamba_d_ssm"),
		{Key: "ssm.state_size", Derive: parts.IntOrDefault(128, "state_size", "d_state", "mamba_state_size",
			"mamba_d_state")},
		{Key: "ssm.time_step_rank", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			inner, err := c.Require("mamba_d_ssm")
			if err != nil {
				return v, false, err
			}
			head, err := c.IntOr(64, "mamba_d_head", "head_dim")
			if err == nil && inner%head != 0 {
				err = fault.Errorf(fault.Broken, "%s: mamba_d_ssm is %d, want a multiple of mamba_d_head, which is %d",
					config.ConfigFile, inner, head)
			}
			return table.Uint32Of(inner/max(head, 1), true, err)
		}},
		{Key: "ssm.group_count", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := falconH1Groups(c)
			return table.Uint32Of(n, true, err)
		}},
		{Key: "attention.layer_norm_rms_epsilon", Derive: parts.FloatOrDefault(1e-5, "layer_norm_epsilon",
			"rms_norm_eps")},
		parts.FileTypeRow,
		parts.UintRow("vocab_size", "vocab_size"),
		parts.UintRow(table.KeyHeadCountKV, "num_key_value_heads"),
		parts.UintRow("attention.key_length", "head_dim"),
		parts.UintRow("attention.value_length", "head_dim"),
		{Key: "rope.freq_base", Derive: func(c *config.View) (gguf.Value, bool, error) {
			theta, ok, err := c.Rope().Float("rope_theta")
			if err == nil && !ok {
				err = fault.Errorf(fault.Broken, "%s: has no key %q", config.ConfigFile, "rope_theta")
			}
			return table.Float32Of(theta, ok, err)
		}},
	},
	Unused: []string{"attn_layer_indices", "mamba_chunk_size", "mamba_expand", "mamba_n_heads", "mamba_use_mlp",
		"mlp_expansion_factor", "num_logits_to_keep", "projectors_bias",
		"time_step_floor", "time_step_max", "time_step_min", "time_step_rank", "mamba_rms_norm"},
	Expect: []table.Expect{
		parts.SiLU,
		parts.Expect("attention_bias", "false"), parts.Expect("mlp_bias", "false"),
		parts.Expect("mamba_proj_bias", "false"),
		parts.Expect("mamba_conv_bias", "true"),
		{Key: "mamba_norm_before_gate", Values: []string{"false"}, With: "mamba_rms_norm"},
		parts.Expect("sliding_window"),
		parts.DefaultRopeType, parts.UnitRopeFactor,
		parts.Expect("time_step_limit", parts.AnyTimeStep...),
	},
	Tensors: []table.TensorRow{
		{HF: "model.embed_tokens", GGUF: "token_embd", Transform: multiplyBy("embedding_multiplier")},
		{HF: "model.final_layernorm", GGUF: "output_norm"},
		{HF: "lm_head", GGUF: "output", Optional: true, Transform: multiplyBy("lm_head_multiplier")},
		{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "model.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q",
			Transform: multiplyBy("attention_in_multiplier")},
		{HF: "model.layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.attn_k",
			Transform: parts.Chain("key", multiplyBy("key_multiplier"), multiplyBy("attention_in_multiplier"))},
		{HF: "model.layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.attn_v",
			Transform: multiplyBy("attention_in_multiplier")},
		{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output",
			Transform: multiplyBy("attention_out_multiplier")},
		{HF: "model.layers.{bid}.mamba.in_proj", GGUF: "blk.{bid}.ssm_in",
			Transform: parts.Chain("mixer-in", multiplyBy("ssm_in_multiplier"), ssmMultipliers)},
		{HF: "model.layers.{bid}.mamba.conv1d", GGUF: "blk.{bid}.ssm_conv1d", Bias: table.NeedBias,
			Transform: parts.Squeeze},
		{HF: "model.layers.{bid}.mamba.dt_bias", GGUF: "blk.{bid}.ssm_dt.bias", Exact: true},
		{HF: "model.layers.{bid}.mamba.A_log", GGUF: "blk.{bid}.ssm_a", Exact: true, Transform: parts.NegExpColumn},
		{HF: "model.layers.{bid}.mamba.D", GGUF: "blk.{bid}.ssm_d", Exact: true, Transform: parts.Column},
		{HF: "model.layers.{bid}.mamba.norm", GGUF: "blk.{bid}.ssm_norm", Transform: parts.GroupNorm(falconH1Groups),
			Optional: true},
		{HF: "model.layers.{bid}.mamba.out_proj", GGUF: "blk.{bid}.ssm_out",
			Transform: multiplyBy("ssm_out_multiplier")},
		// the runtime has this norm's name without a suffix
		{HF: "model.layers.{bid}.pre_ff_layernorm.weight", GGUF: "blk.{bid}.ffn_norm", Exact: true},
		{HF: "model.layers.{bid}.feed_forward.gate_proj", GGUF: "blk.{bid}.ffn_gate",
			Transform: scaledByElement("mlp_multipliers", 0)},
		{HF: "model.layers.{bid}.feed_forward.up_proj", GGUF: "blk.{bid}.ffn_up"},
		{HF: "model.layers.{bid}.feed_forward.down_proj", GGUF: "blk.{bid}.ffn_down",
			Transform: scaledByElement("mlp_multipliers", 1)},
	},
	Graph: parts.Decoder(graph.RMS, graph.Sum{parts.GQA(parts.NeoX), graph.Mamba2{}}, parts.SwiGLU).Reading("ssm.group_count!"),
}

func falconH1Groups(c *config.View) (int64, error) { return c.Require("n_groups", "mamba_n_groups") }

// multiplyBy multiplies a tensor by the value of a key.
func multiplyBy(key string) *table.Transform {
	return &table.Transform{Name: key, Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		f, ok, err := l.Float(key)
		if err == nil && !ok {
			err = fault.Errorf(fault.Broken, "%s: has no key %q", config.ConfigFile, key)
		}
		if err != nil {
			return nil, err
		}
		return rows.Map(s, rows.Scale(float32(f))), nil
	}}
}

// scaledByElement is multiplyBy for an element of a key's list.
func scaledByElement(key string, i int) *table.Transform {
	return &table.Transform{Name: key, Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		list, err := factors(l.View, key, i+1)
		if err != nil {
			return nil, err
		}
		return rows.Map(s, rows.Scale(float32(list[i]))), nil
	}}
}

// factors returns a key's list, which must have at least n numbers.
func factors(c *config.View, key string, n int) ([]float64, error) {
	list, _, err := c.Floats(key)
	if err == nil && len(list) < n {
		err = fault.Errorf(fault.Broken, "%s: key %q: %d numbers, want %d", config.ConfigFile, key, len(list), n)
	}
	return list, err
}

// ssmMultipliers multiplies each part of the mixer's input projection (gate, x, B, C, dt) by its factor.
var ssmMultipliers = &table.Transform{Name: "ssm_multipliers",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		list, err := factors(l.View, "ssm_multipliers", 5)
		if err != nil {
			return nil, err
		}
		inner, err := l.Require("mamba_d_ssm")
		if err != nil {
			return nil, err
		}
		groups, err := l.Require("mamba_n_groups")
		if err != nil {
			return nil, err
		}
		state, err := l.Require("mamba_d_state")
		if err != nil {
			return nil, err
		}
		ne := s.NE()
		if len(ne) != 2 || inner < 1 || inner > ne[1] || groups < 1 || state < 1 || groups > ne[1] || state > ne[1] ||
			2*inner+2*groups*state >= ne[1] {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want more than 2*%d + 2*%d*%d rows", gguf.Shape(ne),
				inner, groups, state)
		}
		var parts []rows.Source
		first := int64(0)
		for i, n := range []int64{inner, inner, groups * state, groups * state, ne[1] - 2*inner - 2*groups*state} {
			part, err := rows.Slice(s, 1, first, first+n)
			if err != nil {
				return nil, err
			}
			parts = append(parts, rows.Map(part, rows.Scale(float32(list[i]))))
			first += n
		}
		return rows.Concat(parts)
	}}

var jambaTokens = tokenizer.Either{First: tokenizer.SentencePiece{},
	Else: tokenizer.ByteFallbackBPE{Then: tokenizer.Steps{parts.NoSpacePrefix}}}
