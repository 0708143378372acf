package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(laguna)

// laguna is poolside's Laguna: MoE layers after some dense ones, gates on the output of attention, and in most models
// sliding windows in three of four layers, which have more heads than the others. Source: the Laguna class of the
// reference's converter.
var laguna = &table.Arch{
	Name:    "laguna",
	Classes: []string{"LagunaForCausalLM"},
	Body:    table.Body{Classes: []string{"LagunaModel"}, Prefix: "model."},
	Config: config.Rules{Types: []string{"laguna"},
		Derived: config.DerivedKeys{"layer_types": config.AllFull,
			"mlp_layer_types": lagunaMLPTypes}},
	Tokenizer: tokenizer.BPE{Then: tokenizer.Steps{tokenizer.ChatTemplateFile{}, tokenizer.SecondEOS{}}},
	Metadata: slices.Concat(parts.Override(parts.CommonRows,
		table.Row{Key: table.KeyHeadCount, Derive: func(c *config.View) (gguf.Value, bool, error) {
			heads, err := lagunaHeads(c)
			if err != nil {
				return gguf.Value{}, false, err
			}
			return parts.PerLayer(heads, nil)
		}}), []table.Row{
		parts.UintRow("vocab_size", "vocab_size"),
		{Key: "attention.sliding_window", Derive: lagunaWindow},
		parts.UintRow("expert_feed_forward_length", "moe_intermediate_size"),
		parts.UintRow("expert_shared_feed_forward_length", "shared_expert_intermediate_size"),
		{Key: "expert_weights_norm", Const: gguf.Bool(true)},
		parts.FloatRow("expert_weights_scale", "moe_routed_scaling_factor"),
		{Key: "expert_gating_func", Const: gguf.Uint32(parts.GatingFuncs["sigmoid"])},
		{Key: "leading_dense_block_count", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := lagunaDense(c)
			return table.Uint32Of(n, true, err)
		}},
		{Key: "rope.dimension_count", Derive: parts.PartialRope(1)},
		{Key: "rope.dimension_count_swa", Derive: lagunaSlidingRope},
	}),
	RopePerAttention: true,
	Expect: []table.Expect{parts.SiLU, parts.Expect("norm_topk_prob", "true"), parts.Expect("decoder_sparse_step", "1"),
		parts.Expect("moe_router_logit_softcapping", "0"), parts.Expect("moe_apply_router_weight_on_input", "false")},
	Unused: []string{"mlp_only_layers", "rope_scaling.sliding_attention.partial_rotary_factor"},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.NoBias, table.NoBias),
		parts.QKNormRows, []table.TensorRow{
			{HF: "model.layers.{bid}.self_attn.g_proj", GGUF: "blk.{bid}.attn_gate", Transform: lagunaGate},
		}, parts.Only(lagunaIsDense, parts.MLPRows), parts.Only(parts.Not(lagunaIsDense), []table.TensorRow{
			{HF: "model.layers.{bid}.mlp.gate", GGUF: "blk.{bid}.ffn_gate_inp"},
			{HF: "model.layers.{bid}.mlp.experts.e_score_correction_bias", Exact: true,
				GGUF: "blk.{bid}.exp_probs_b.bias"},
			{HF: "model.layers.{bid}.mlp.experts.{xid}.gate_proj", GGUF: "blk.{bid}.ffn_gate_exps"},
			{HF: "model.layers.{bid}.mlp.experts.{xid}.up_proj", GGUF: "blk.{bid}.ffn_up_exps"},
			{HF: "model.layers.{bid}.mlp.experts.{xid}.down_proj", GGUF: "blk.{bid}.ffn_down_exps"},
			{HF: "model.layers.{bid}.mlp.shared_expert.gate_proj", GGUF: "blk.{bid}.ffn_gate_shexp"},
			{HF: "model.layers.{bid}.mlp.shared_expert.up_proj", GGUF: "blk.{bid}.ffn_up_shexp"},
			{HF: "model.layers.{bid}.mlp.shared_expert.down_proj", GGUF: "blk.{bid}.ffn_down_shexp"},
		})),
	Graph: &graph.Model{
		Reads: slices.Concat(parts.RouterKeys, []string{"rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow"}),
		Dims: graph.Dims{
			"n_rot_full": "@rope.dimension_count or n_embd_head_k",
			"n_rot":      "if(n_swa != 0 and i mod 4 != 0, @rope.dimension_count_swa or n_rot_full, n_rot_full)",
		},
		Norm: graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: parts.PreNorm(parts.LocalGlobal(graph.Sliding{N: 4, First: true},
			graph.Attention{Steps: []graph.HeadStep{parts.QKNorm, parts.DefaultLocalNeoX},
				After: []graph.OutStep{graph.SoftplusGate{}}, Window: parts.Window},
			graph.Attention{Steps: []graph.HeadStep{parts.QKNorm, parts.NeoX}, After: []graph.OutStep{graph.SoftplusGate{}}},
		), parts.Sparse(parts.Experts(graph.Router{Score: graph.Sigmoid, Bias: true}, graph.HasShared), parts.SwiGLU)),
	},
}

// lagunaHeads returns the number of query heads of each layer.
func lagunaHeads(c *config.View) ([]int64, error) {
	n, err := c.BlockCount()
	if err != nil {
		return nil, err
	}
	heads, _, err := c.Ints("num_attention_heads_per_layer")
	if err == nil && len(heads) == 0 {
		all, err := c.Require("num_attention_heads")
		if err == nil && (n < 0 || n > config.MaxBlocks) {
			err = config.WrongType("num_hidden_layers", "a number of layers", n)
		}
		if err != nil {
			return nil, err
		}
		return slices.Repeat([]int64{all}, int(n)), nil
	}
	if err == nil && int64(len(heads)) != n {
		err = fault.Errorf(fault.Broken, "%s: %d layers, but %d in num_attention_heads_per_layer", config.ConfigFile,
			n, len(heads))
	}
	return heads, err
}

// lagunaWindow writes the window. With this key, runtimes use it in all layers except every fourth one, starting with
// the first: other patterns are refused. The reference also writes it for models without sliding-window layers.
func lagunaWindow(c *config.View) (v gguf.Value, ok bool, err error) {
	window, _, err := c.Int("sliding_window")
	if err != nil || window <= 0 {
		return v, false, err
	}
	kinds, said, err := c.LayerTypes()
	if err != nil {
		return v, false, err
	}
	regular := !slices.ContainsFunc(kinds, func(k string) bool { return k != parts.Sliding && k != "full_attention" })
	for i, kind := range kinds {
		regular = regular && (kind == parts.Sliding) == (i%4 != 0)
	}
	if !said || regular || c.Options.Reference {
		return table.Uint32Of(window, true, nil)
	}
	if !slices.Contains(kinds, parts.Sliding) {
		return v, false, nil
	}
	return v, false, parts.UnsupportedPattern("layer_types",
		"full attention in each fourth layer from the first on, or in all")
}

// lagunaDense returns the number of dense layers before the first MoE layer; no layer after it may be dense.
func lagunaDense(c *config.View) (int64, error) {
	const key = "mlp_layer_types"
	kinds, ok, err := c.Strings(key)
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: has no key %q", config.ConfigFile, key)
	}
	if err != nil {
		return 0, err
	}
	n := slices.IndexFunc(kinds, func(k string) bool { return k != "dense" })
	if n < 0 {
		return int64(len(kinds)), nil
	}
	if slices.Contains(kinds[n:], "dense") {
		return 0, parts.UnsupportedPattern(key, "no dense layers after the first with experts")
	}
	return int64(n), nil
}

func lagunaIsDense(l table.Layer) (bool, error) {
	n, err := lagunaDense(l.View)
	return l.Bid < n, err
}

// lagunaSlidingRope writes the number of rotary dimensions of sliding-window layers.
func lagunaSlidingRope(c *config.View) (v gguf.Value, ok bool, err error) {
	if c.RopeRoot().Members()["sliding_attention"] == nil {
		return v, false, nil
	}
	part, ok, err := c.RopeRoot().Sub("sliding_attention").Float("partial_rotary_factor")
	if err != nil {
		return v, false, err
	}
	if !ok {
		part = 1
	}
	dim, err := c.Require("head_dim")
	if err == nil && (!(part >= 0 && part <= 1) || dim < 0 || dim > config.MaxHeadDim) {
		err = config.WrongType("partial_rotary_factor", "a part of a head", part)
	}
	return table.Uint32Of(int64(float64(dim)*part), true, err)
}

// lagunaGate checks the number of rows against config.json: a gate for each head, or for each element of a head.
var lagunaGate = &table.Transform{Name: "attention-gate",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		heads, err := lagunaHeads(l.View)
		if err != nil {
			return nil, err
		}
		if l.Bid < 0 || l.Bid >= int64(len(heads)) {
			return nil, fault.Errorf(fault.Broken, "layer %d of %d", l.Bid, len(heads))
		}
		kind, err := lagunaGateKind(l)
		if err != nil {
			return nil, err
		}
		want := heads[l.Bid]
		if kind == "per_element" {
			dim, err := l.Require("head_dim")
			if err != nil {
				return nil, err
			}
			want *= dim
		}
		if ne := s.NE(); len(ne) != 2 || ne[1] != want {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want %d rows (%s has %s gates)",
				gguf.Shape(ne), want,
				config.ConfigFile, kind)
		}
		return s, nil
	}}

// lagunaGateKind returns "per_head" or "per_element". The list per layer overrides the key "gating", which other
// programs read alone.
func lagunaGateKind(l table.Layer) (kind string, err error) {
	normal := func(s string) string {
		if s == "per-head" || s == "per-element" {
			return s[:3] + "_" + s[4:]
		}
		return s
	}
	all := ""
	switch v := l.Value("gating").(type) {
	case string:
		all = normal(v)
	case bool:
		if v {
			all = "per_head"
		}
	}
	kind = all
	if list, ok, err := l.Strings("gating_types"); err != nil {
		return "", err
	} else if ok && len(list) > 0 {
		if kind, _, err = l.StringAt("gating_types", l.Bid); err != nil {
			return "", err
		}
		kind = normal(kind)
	}
	switch {
	case kind != "per_head" && kind != "per_element":
		return "", fault.Errorf(fault.Broken,
			"%s: gates of attention are %q, want \"gating\" or \"gating_types\" to say \"per-head\" or \"per-element\"",
			config.ConfigFile, kind)
	case kind == "per_element" && all != kind:
		return "", fault.Errorf(fault.Broken,
			"%s: gates of attention are %q by gating_types but not by \"gating\", which other programs go by",
			config.ConfigFile, kind)
	}
	return kind, nil
}

// lagunaMLPTypes is the default of mlp_layer_types: experts after the first layer.
func lagunaMLPTypes(v config.Values) (any, error) {
	return config.LayerKinds(v, func(bid int64) string {
		if bid == 0 {
			return "dense"
		}
		return "sparse"
	})
}
