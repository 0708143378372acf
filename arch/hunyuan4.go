package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

var _ = register(hyV4)

// hyV4 is Tencent's Hunyuan 4: DeepSeek's MLA with an indexer, a gate and attention sinks, hyper-connections (several
// mixed residual streams), and experts that are stacked in the checkpoint. Source: the reference's HYV4Model.
var hyV4 = &table.Arch{
	Name:      "hy_v4",
	Classes:   []string{"HYV4ForCausalLM"},
	Tokenizer: parts.KimiTokens,
	Shapes: shape.Rules{
		Dims: shape.Merge(parts.IndexerShapes.Dims, shape.Table{"n_hc": "@hyper_connection.count"}),
		Tensors: shape.Merge(parts.IndexerShapes.Tensors, shape.Table{
			"attn_gate": "n_embd, n_head * n_embd_head_v_mla", "output_hc_fn": "n_hc * n_embd, n_hc",
			"output_hc_base": "n_hc", "output_hc_scale": "1",
			"hc_attn_fn": "n_hc * n_embd, 2 * n_hc", "hc_attn_base": "2 * n_hc", "hc_attn_scale": "2",
			"hc_ffn_fn": "n_hc * n_embd, 2 * n_hc", "hc_ffn_base": "2 * n_hc", "hc_ffn_scale": "2",
		}),
	},
	Metadata: slices.Concat(parts.Override(parts.MLAMetadata,
		table.Row{Key: "expert_group_count", Derive: hyGroups("n_group")},
		table.Row{Key: "expert_group_used_count", Derive: hyGroups("topk_group")},
		table.Row{Key: "leading_dense_block_count", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := hyDense(c)
			return table.Uint32Of(n, true, err)
		}},
	), []table.Row{
		{Key: "expert_gating_func", Const: gguf.Uint32(parts.GatingFuncs["sigmoid"])},
		{Key: "swiglu_clamp_exp", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			limit, _, err := c.Float("swiglu_limit")
			if err != nil || !(limit > 0) {
				return v, false, err
			}
			n, err := c.BoundedBlockCount(0)
			if err != nil {
				return v, false, err
			}
			return gguf.Float32s(slices.Repeat([]float32{float32(limit)}, int(n))), true, nil
		}},
		parts.UintRow("hyper_connection.count", "hc_mult"),
		parts.FloatRow("hyper_connection.epsilon", "hc_eps"),
		parts.FloatRow("hyper_connection.magnitude", "hc_magnitude"),
	}, hyIndexed(parts.IndexerMetadata), []table.Row{
		{Key: "attention.indexer.types", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			full, err := hyIndexers(c)
			return gguf.Bools(full), full != nil, err
		}},
	}),
	Unused: append([]string{"layer_types", "indexer_types", "mlp_layer_types", "num_key_value_heads", "num_experts",
		"enable_moe_fp32_combine"}, parts.MLAUnused...),
	Expect: append([]table.Expect{parts.Expect("attention_bias", "false"), parts.Expect("mlp_bias", "false")},
		parts.MLAExpect...),
	Drop: []table.Drop{parts.TiedHead, parts.BeyondNextN, {Prefix: "model.mtp_layers.", Why: parts.MTP}},
	Tensors: slices.Concat(parts.EmbedRows[:2], []table.TensorRow{
		{HF: "lm_head", GGUF: "output", Optional: true, Type: table.Always(gguf.TypeF32),
			If: parts.IsTrue("enable_lm_head_fp32")},
		{HF: "lm_head", GGUF: "output", Optional: true, If: parts.Not(parts.IsTrue("enable_lm_head_fp32"))},
	}, parts.NormRows, hyHeads(parts.MLARows), parts.Only(hyHasIndexer, parts.IndexerTensors), []table.TensorRow{
		{HF: "model.layers.{bid}.self_attn.linear_gate", GGUF: "blk.{bid}.attn_gate"},
		{HF: "model.layers.{bid}.self_attn.learnable_sink_param", GGUF: "blk.{bid}.attn_sinks.weight", Exact: true},
		{HF: "model.hc_head.hc_head_fn", GGUF: "output_hc_fn.weight", Exact: true, Type: table.Always(gguf.TypeF32)},
		{HF: "model.hc_head.hc_head_base", GGUF: "output_hc_base.weight", Exact: true},
		{HF: "model.hc_head.hc_head_scale", GGUF: "output_hc_scale.weight", Exact: true},
		{HF: "model.layers.{bid}.hc_attn_layer.hc_pre.hc_fn", GGUF: "blk.{bid}.hc_attn_fn.weight", Exact: true,
			Type: table.Always(gguf.TypeF32)},
		{HF: "model.layers.{bid}.hc_attn_layer.hc_pre.hc_base", GGUF: "blk.{bid}.hc_attn_base.weight", Exact: true},
		{HF: "model.layers.{bid}.hc_attn_layer.hc_pre.hc_scale", GGUF: "blk.{bid}.hc_attn_scale.weight", Exact: true},
		{HF: "model.layers.{bid}.hc_mlp_layer.hc_pre.hc_fn", GGUF: "blk.{bid}.hc_ffn_fn.weight", Exact: true,
			Type: table.Always(gguf.TypeF32)},
		{HF: "model.layers.{bid}.hc_mlp_layer.hc_pre.hc_base", GGUF: "blk.{bid}.hc_ffn_base.weight", Exact: true},
		{HF: "model.layers.{bid}.hc_mlp_layer.hc_pre.hc_scale", GGUF: "blk.{bid}.hc_ffn_scale.weight", Exact: true},
	}, parts.Only(parts.Not(hyExperts), parts.MLPRows),
		parts.Only(hyExperts, slices.Concat(parts.ExpertRows[:1], parts.SharedExpertRows, []table.TensorRow{
			parts.CorrectionRow,
			{HF: "model.layers.{bid}.mlp.experts.down_proj", GGUF: "blk.{bid}.ffn_down_exps.weight", Exact: true},
			{HF: "model.layers.{bid}.mlp.experts.gate_up_proj", Exact: true, Split: parts.GateUp},
		}))),
	Graph: &graph.Model{
		Reads: parts.RouterKeys, Streams: graph.HyperConnections{},
		Norm: graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: []graph.Step{
			graph.Connected{Name: "attn", Residual: graph.Residual{Pre: graph.Norm{Name: "attn_norm"}, Part: graph.MLA{
				Steps: []graph.HeadStep{parts.Interleaved},
				Scores: []graph.ScoreStep{
					graph.Sinks{},
					graph.OnScores{In: graph.Where("(@attention.indexer.types or 0) != 0"),
						Steps: []graph.ScoreStep{graph.Indexer{Pairs: graph.Interleaved, Last: true,
							Eps: "@attention.layer_norm_rms_epsilon"}}},
					graph.OnScores{In: graph.Where("(@attention.indexer.types or 1) = 0"),
						Steps: []graph.ScoreStep{graph.SharedIndexer{}}},
				},
				After: []graph.OutStep{graph.OutGate{}},
			}}},
			graph.Connected{Name: "ffn", Residual: graph.Residual{Pre: graph.Norm{Name: "ffn_norm"}, Part: parts.Sparse(graph.MoE{
				Router:  parts.RouterGroups,
				Experts: graph.FFN{Act: graph.LimitedSwiGLU{Limit: "@swiglu_clamp_exp or 0"}},
				Shared:  graph.MayShared, With: []graph.MoEOption{graph.SharedFFN{FFN: parts.SwiGLU}},
			}, parts.SwiGLU)}},
		},
		Unread: parts.MLAUnread,
	},
}

// hyHeads makes attention rows use num_attention_heads: num_key_value_heads of published configs does not fit the
// weights.
func hyHeads(list []table.TensorRow) []table.TensorRow {
	list = slices.Clone(list)
	for i := range list {
		if list[i].Split != nil {
			list[i].Split = []table.Part{{GGUF: list[i].Split[0].GGUF,
				Transform: parts.MLAKeysOf("num_attention_heads")},
				{GGUF: list[i].Split[1].GGUF, Transform: parts.MLAValuesOf("num_attention_heads")}}
		}
	}
	return list
}

// hyGroups writes a number of expert groups; no value for one group.
func hyGroups(key string) table.Derive {
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
		groups, _, err := c.Int("n_group")
		if err != nil {
			return v, false, err
		}
		used, _, err := c.Int("topk_group")
		if err != nil || groups == 1 && used == 1 {
			return v, false, err
		}
		n, ok, err := c.Int(key)
		return table.Uint32Of(n, ok, err)
	}
}

// hyDense returns the number of dense layers before the first MoE layer.
func hyDense(c *config.View) (int64, error) {
	const number, list = "first_k_dense_replace", "mlp_layer_types"
	n, ok, err := c.Int(number)
	if err != nil {
		return 0, err
	}
	kinds, listed, err := c.Strings(list)
	if err != nil {
		return 0, err
	}
	lead := int64(0)
	for lead < int64(len(kinds)) && kinds[lead] == "dense" {
		lead++
	}
	switch {
	case listed && slices.Contains(kinds[lead:], "dense"):
		return 0, parts.UnsupportedPattern(list, "dense layers before all others only")
	case ok && listed && n != lead:
		return 0, fault.Errorf(fault.Broken, "%s: key %q is %d, but %q has %d dense layers", c.FileName(), number,
			n, list, lead)
	case !ok && !listed:
		return 0, fault.Errorf(fault.Broken, "%s: keys %q and %q are missing", c.FileName(), number, list)
	case !ok:
		return lead, nil
	}
	return n, nil
}

func hyExperts(l table.Layer) (bool, error) {
	n, err := hyDense(l.View)
	return l.Bid >= n, err
}

// hyIndexers reports for each layer whether it has an indexer; nil for models without indexers.
func hyIndexers(c *config.View) ([]bool, error) {
	n, err := c.BoundedBlockCount(1)
	if err != nil {
		return nil, err
	}
	key, full := "indexer_types", []string{"full"}
	kinds, ok, err := c.Strings(key)
	if err == nil && !ok {
		key, full = "layer_types", []string{"sparse_attention", "deepseek_sparse_attention"}
		kinds, _, err = c.Strings(key)
		if !slices.ContainsFunc(kinds, func(k string) bool { return slices.Contains(full, k) }) {
			return nil, err
		}
	}
	if err == nil && int64(len(kinds)) < n {
		err = fault.Errorf(fault.Broken, "%s: key %q has %d kinds, want one for each of %d layers", c.FileName(), key,
			len(kinds), n)
	}
	if err != nil {
		return nil, err
	}
	is := make([]bool, n)
	for i := range is {
		is[i] = slices.Contains(full, kinds[i])
		if key == "indexer_types" && !is[i] && kinds[i] != "shared" {
			return nil, fault.Errorf(fault.Unsupported, "%s: key %q holds %q, want full or shared", c.FileName(),
				key, kinds[i])
		}
	}
	if key == "indexer_types" && !is[0] {
		return nil, fault.Errorf(fault.Broken, "%s: key %q: the first layer has none before it to share",
			c.FileName(), key)
	}
	return is, nil
}

func hyHasIndexer(l table.Layer) (bool, error) {
	is, err := hyIndexers(l.View)
	return err == nil && l.Bid >= 0 && l.Bid < int64(len(is)) && is[l.Bid], err
}

// hyIndexed returns rows without a value in models without indexers.
func hyIndexed(list []table.Row) []table.Row {
	list = slices.Clone(list)
	for i, row := range list {
		list[i] = table.Row{Key: row.Key, Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			if is, err := hyIndexers(c); err != nil || is == nil {
				return v, false, err
			}
			return row.Value(c)
		}}
	}
	return list
}
