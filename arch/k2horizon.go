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

var _ = register(k2Horizon)

// k2Horizon is K2 Horizon: grouped norms, MoE layers after dense ones, experts for the values of attention, and an
// attention gate. Source: the K2Horizon class of the reference's converter.
var k2Horizon = &table.Arch{
	Name:      "k2-horizon",
	Classes:   []string{"K2HorizonForCausalLM"},
	Tokenizer: tokenizer.BPE{},
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		{Key: "attention.group_norm_groups", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, ok, err := c.Int("layernorm_num_groups")
			if !ok {
				n = 1
			}
			return table.Uint32Of(n, true, err)
		}},
		{Key: "rope.dimension_count", Type: gguf.Uint32Type, From: []string{"rope_head_dim"}},
		{Key: "expert_feed_forward_length", Derive: k2Experts(func(c *config.View) (gguf.Value, bool, error) {
			n, err := c.Require("moe_intermediate_size")
			return table.Uint32Of(n, true, err)
		})},
		{Key: "leading_dense_block_count", Derive: k2Experts(func(c *config.View) (gguf.Value, bool, error) {
			n, err := k2Dense(c)
			return table.Uint32Of(n, true, err)
		})},
		{Key: "moe_every_n_layers", Derive: k2Experts(func(c *config.View) (gguf.Value, bool, error) {
			n, err := k2Step(c)
			return table.Uint32Of(n, true, err)
		})},
		{Key: "expert_shared_count", Derive: k2Experts(func(c *config.View) (gguf.Value, bool, error) {
			n, _, err := c.Int("num_shared_experts")
			return table.Uint32Of(n, true, err)
		})},
		{Key: "expert_weights_norm", Derive: k2Experts(func(c *config.View) (gguf.Value, bool, error) {
			b, _, err := c.Bool("norm_topk_prob")
			return gguf.Bool(b), true, err
		})},
		{Key: "expert_shared_feed_forward_length", Derive: k2Experts(func(c *config.View) (gguf.Value, bool, error) {
			n, _, err := c.Int("num_shared_experts")
			if err != nil || n <= 0 {
				return gguf.Value{}, false, err
			}
			return parts.Times(n, "moe_intermediate_size")(c)
		})},
		{Key: "expert_weights_scale", Derive: k2Experts(func(c *config.View) (gguf.Value, bool, error) {
			return table.Float32Of(c.Float("router_scaling_factor"))
		})},
		{Key: "attention.value_expert_count", Derive: k2Values("mova_num_experts")},
		{Key: "attention.value_expert_used_count", Derive: k2Values("mova_num_experts_per_tok")},
	}),
	Expect: []table.Expect{parts.SiLU, parts.Expect("attention_gate_func", "softplus")},
	Unused: append([]string{"mlp_only_layers", "num_dense_layers", "decoder_sparse_step"}, parts.BiasKeys...),
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, []table.TensorRow{
		{HF: "model.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q"},
		{HF: "model.layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.attn_k"},
		{HF: "model.layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.attn_v", If: parts.Not(k2HasValues)},
		{HF: "model.layers.{bid}.self_attn.v_router", GGUF: "blk.{bid}.attn_v_gate", If: k2HasValues},
		{HF: "model.layers.{bid}.self_attn.v_experts.{xid}", GGUF: "blk.{bid}.attn_v_exps", If: k2HasValues,
			Group:   "values",
			Experts: func(l table.Layer) (int64, error) { return l.Require("mova_num_experts") }},
		{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output"},
		{HF: "model.layers.{bid}.self_attn.attn_gate_proj", GGUF: "blk.{bid}.attn_gate",
			If: parts.Has("attention_gate_func")},
		{HF: "model.layers.{bid}.self_attn.q_norm", GGUF: "blk.{bid}.attn_q_norm", Optional: true},
		{HF: "model.layers.{bid}.self_attn.k_norm", GGUF: "blk.{bid}.attn_k_norm", Optional: true},
	}, parts.Only(parts.Not(k2Sparse), parts.MLPRows),
		parts.Only(k2Sparse, slices.Concat(parts.ExpertRows, []table.TensorRow{
			{HF: "model.layers.{bid}.mlp.gate.bias", Exact: true, Optional: true, GGUF: "blk.{bid}.exp_probs_b.bias"},
		})), parts.Only(parts.Both(k2Sparse, func(l table.Layer) (bool, error) {
			n, _, err := l.Int("num_shared_experts")
			return n > 0, err
		}), parts.SharedExpertRows)),
	Graph: &graph.Model{
		Reads: slices.Concat(parts.RouterKeys, []string{"rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow"}),
		Norm:  graph.NormKind{Eps: graph.RMS.Eps, Groups: "@attention.group_norm_groups or 1"},
		Layer: parts.PreNorm(graph.Attention{
			QKV:   graph.ValueExperts{},
			Steps: []graph.HeadStep{parts.MayQKNorm, parts.NeoX},
			After: []graph.OutStep{graph.SoftplusGate{Binary: true, May: true}},
		}, parts.Sparse(graph.MoE{Router: graph.Router{Score: graph.Sigmoid, Bias: true}, Experts: parts.SwiGLU,
			Shared: graph.MayShared}, parts.SwiGLU)),
		Final: parts.OutputNorm, Head: graph.LM{},
		Unread: []string{"moe_every_n_layers"},
	},
}

// k2Experts returns d for models with experts, no value for others.
func k2Experts(d table.Derive) table.Derive {
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
		if n, _, err := c.Int("num_experts"); err != nil || n <= 0 {
			return v, false, err
		}
		return d(c)
	}
}

// k2Values writes a number of the value experts, for models that have them.
func k2Values(key string) table.Derive {
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
		n, err := k2ValueExperts(c)
		if err != nil || n == 0 {
			return v, false, err
		}
		return table.Uint32Of(c.Int(key))
	}
}

// k2ValueExperts returns the number of value experts, 0 for none.
func k2ValueExperts(c *config.View) (int64, error) {
	n, _, err := c.Int("mova_num_experts")
	if err != nil {
		return 0, err
	}
	used, _, err := c.Int("mova_num_experts_per_tok")
	if err == nil && used > n {
		err = fault.Errorf(fault.Broken, "%s: %d of %d experts among values are used", config.ConfigFile, used, n)
	}
	if err != nil || min(n, used) <= 0 {
		return 0, err
	}
	return n, nil
}

// k2HasValues is the condition of layers with value experts: MoE layers.
func k2HasValues(l table.Layer) (bool, error) {
	n, err := k2ValueExperts(l.View)
	if err != nil || n == 0 {
		return false, err
	}
	return k2Sparse(l)
}

// k2Dense returns the number of dense layers at the beginning, from the config or from the head of mlp_only_layers.
// Dense layers further on are refused: the file cannot hold them.
func k2Dense(c *config.View) (int64, error) {
	n, ok, err := c.Int("num_dense_layers")
	if err != nil || ok {
		return n, err
	}
	only, _, err := c.Ints("mlp_only_layers")
	if err != nil {
		return 0, err
	}
	for slices.Contains(only, n) {
		n++
	}
	for _, bid := range only {
		if bid >= n {
			return 0, parts.UnsupportedPattern("mlp_only_layers", "dense layers before those with experts only")
		}
	}
	return n, nil
}

// k2Step returns the period of MoE layers.
func k2Step(c *config.View) (int64, error) {
	n, ok, err := c.Int("decoder_sparse_step")
	if err == nil && !ok {
		n = 1
	}
	if err == nil && n < 1 {
		err = config.WrongType("decoder_sparse_step", "a positive integer", n)
	}
	return n, err
}

// k2Sparse is the condition of MoE layers.
func k2Sparse(l table.Layer) (bool, error) {
	if n, _, err := l.Int("num_experts"); err != nil || n <= 0 {
		return false, err
	}
	dense, err := k2Dense(l.View)
	if err != nil {
		return false, err
	}
	step, err := k2Step(l.View)
	return err == nil && l.Bid >= dense && (l.Bid+1)%step == 0, err
}
