package arch

import (
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/checkpoint/precision"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(mimo2)

// mimo2 is Xiaomi's MiMo V2: sliding-window layers have their own number of key heads, and learned attention sinks. All
// models have three MTP layers, which are counted even if the checkpoint lacks their tensors: runtimes load the file
// without them. Source: the MimoV2 class of the reference's converter.
var mimo2 = &table.Arch{
	Name:             "mimo2",
	Classes:          []string{"MiMoV2FlashForCausalLM", "MiMoV2ForCausalLM"},
	Special:          []table.Special{table.MXFP4{First: true}},
	Tokenizer:        tokenizer.BPE{},
	Fused:            table.FusedQKV,
	NextN:            &table.NextN{Layers: mimoNextN, Prefixes: []string{mimoDrafts}},
	RopePerAttention: true,
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		{Key: table.KeyHeadCountKV, Derive: func(c *config.View) (gguf.Value, bool, error) {
			windows, err := mimoWindows(c)
			if err != nil {
				return gguf.Value{}, false, err
			}
			heads := make([]int64, len(windows))
			for i, w := range windows {
				if heads[i], err = mimoKeyHeads(c, w == 1); err != nil {
					return gguf.Value{}, false, err
				}
			}
			return parts.PerLayer(heads, nil)
		}},
		parts.UintRow("attention.sliding_window", "sliding_window"),
		{Key: "attention.sliding_window_pattern",
			Derive: func(c *config.View) (gguf.Value, bool, error) { return parts.PerLayer(mimoWindows(c)) }},
		parts.UintRow("attention.value_length", "v_head_dim"),
		parts.UintRow("expert_count", "n_routed_experts"),
		parts.UintRow("expert_feed_forward_length", "moe_intermediate_size"),
		{Key: "rope.dimension_count", Derive: parts.PartialRope(1)},
		{Key: "attention.layer_norm_rms_epsilon", Type: gguf.Float32Type, From: []string{"layernorm_epsilon"},
			Const: gguf.Float32(1e-5)},
		parts.Optional(parts.FloatRow("attention.value_scale", "attention_value_scale")),
		{Key: "nextn_predict_layers", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := mimoNextN(c)
			return table.Uint32Of(n, n > 0, err)
		}},
	}),
	Expect: []table.Expect{parts.SiLU, parts.Expect("norm_topk_prob", "true"), parts.Expect("scoring_func", "sigmoid"),
		parts.Expect("topk_method", "noaux_tc"),
		parts.Expect("routed_scaling_factor", "1"), parts.Expect("n_shared_experts", "0")},
	Unused: []string{"moe_layer_freq", "attention_chunk_size", "attention_projection_layout", "hybrid_block_size",
		"sliding_window_size", "swa_head_dim", "swa_v_head_dim", "swa_num_attention_heads",
		"num_nextn_predict_layers", "add_full_attention_sink_bias", "add_swa_attention_sink_bias", "moe_router_dtype",
		"processor_config", "image_token_id", "video_token_id",
		"audio_token_id", "vision_start_token_id", "vision_end_token_id"},
	Rename: []table.Rename{{Prefix: mimoDrafts, With: "model.layers.{bid}.", AfterModel: true}},
	Tensors: slices.Concat(parts.EmbedRows, parts.Only(mimoHasLayer, slices.Concat([]table.TensorRow{
		{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.ffn_norm"},
		// of MTP layers
		{HF: "model.layers.{bid}.pre_mlp_layernorm", GGUF: "blk.{bid}.ffn_norm"},
		{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output"},
		{HF: "model.layers.{bid}.self_attn.attention_sink_bias", Exact: true, Optional: true,
			GGUF: "blk.{bid}.attn_sinks.weight"},
	})),
		parts.Only(parts.Both(mimoHasLayer, parts.Not(mimoJoined)),
			parts.AttentionRows(table.MayBias, table.NoBias)[:3]),
		parts.Only(parts.Both(mimoHasLayer, mimoJoined), []table.TensorRow{
			{HF: "model.layers.{bid}.self_attn.qkv_proj", GGUF: "blk.{bid}.attn_qkv", Transform: mimoQKV},
		}),
		parts.Only(parts.Both(mimoHasLayer, parts.Not(mimoHasExperts)), parts.MLPRows),
		parts.Only(mimoHasExperts, []table.TensorRow{
			{HF: "model.layers.{bid}.mlp.gate", GGUF: "blk.{bid}.ffn_gate_inp"},
			parts.CorrectionRow,
			{HF: "model.layers.{bid}.mlp.experts.{xid}.gate_proj", GGUF: "blk.{bid}.ffn_gate_exps"},
			{HF: "model.layers.{bid}.mlp.experts.{xid}.up_proj", GGUF: "blk.{bid}.ffn_up_exps"},
			{HF: "model.layers.{bid}.mlp.experts.{xid}.down_proj", GGUF: "blk.{bid}.ffn_down_exps"},
		}),
		parts.Only(parts.Both(mimoHasLayer, parts.NextN), append([]table.TensorRow{
			{HF: "model.layers.{bid}.final_layernorm", GGUF: "blk.{bid}.layer_output_norm", Optional: true},
			{HF: "model.layers.{bid}.shared_head.norm", GGUF: "blk.{bid}.nextn.shared_head_norm", Optional: true},
		}, slices.DeleteFunc(slices.Clone(parts.NextNRows),
			func(r table.TensorRow) bool { return strings.HasSuffix(r.HF, "shared_head.norm") })...))),
	Graph: &graph.Model{
		Reads: []string{"attention.sliding_window!", "attention.sliding_window_pattern!"},
		Norm:  graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: parts.PreNorm(parts.LocalGlobal(graph.Sliding{},
			graph.Attention{Steps: []graph.HeadStep{parts.LocalNeoX}, Scores: mimoScores, After: mimoScale,
				Window: parts.Window},
			graph.Attention{Steps: []graph.HeadStep{parts.NeoX}, Scores: mimoScores, After: mimoScale},
		), parts.Sparse(parts.Experts(graph.Router{Score: graph.Sigmoid, Bias: true, TopKNorm: true}, graph.NoShared),
			parts.SwiGLU)),
	},
}

// mimoScores are attention sinks in layers that have them. mimoScale is the factor of the attention output, which the
// runtime applies after attn_output; 0 is none.
var (
	mimoScores = []graph.ScoreStep{graph.OnScores{In: graph.Has("attn_sinks"),
		Steps: []graph.ScoreStep{graph.Sinks{}}}}
	mimoScale = []graph.OutStep{graph.OutFactor{By: "if(@attention.value_scale != 0, @attention.value_scale, 1)"}}
)

// mimoDrafts begins the names of MTP layers.
const mimoDrafts = "model.mtp.layers."

// mimoNextN is the number of MTP layers, which no config has.
func mimoNextN(c *config.View) (int64, error) {
	if c.Options.NextN == config.NoNextN {
		return 0, nil
	}
	return 3, nil
}

// mimoWindows returns 1 for layers with a window, 0 for others. MTP layers have one.
func mimoWindows(c *config.View) ([]int64, error) {
	const key = "hybrid_layer_pattern"
	list, err := c.LayerInts(key)
	if err != nil {
		return nil, err
	}
	n, err := c.BlockCount()
	if err == nil && (n != int64(len(list)) ||
		slices.ContainsFunc(list, func(w int64) bool { return w != 0 && w != 1 })) {
		err = fault.Errorf(fault.Broken, "%s: key %q: want 0 or 1 for each of %d layers, found %d numbers",
			config.ConfigFile, key, n, len(list))
	}
	more, _ := mimoNextN(c)
	for range more {
		list = append(list, 1)
	}
	return list, err
}

// mimoKeyHeads returns the number of key heads of sliding-window or of full-attention layers. Their head sizes and
// numbers of heads must be equal.
func mimoKeyHeads(c *config.View, window bool) (int64, error) {
	for _, key := range []string{"head_dim", "v_head_dim", "num_attention_heads"} {
		n, err := c.Require(key)
		if err != nil {
			return 0, err
		}
		if other, err := c.Require("swa_" + key); err != nil {
			return 0, err
		} else if other != n {
			return 0, fault.Errorf(fault.Unsupported,
				"%s: swa_%s is %d, but %s %d: the architecture has one for all layers", config.ConfigFile, key,
				other, key, n)
		}
	}
	if window {
		return c.Require("swa_num_key_value_heads")
	}
	return c.Require("num_key_value_heads")
}

// mimoHasExperts is the condition of layers with experts.
func mimoHasExperts(l table.Layer) (bool, error) {
	if next, err := parts.NextN(l); err != nil || next {
		return false, err
	}
	n, ok, err := l.IntAt("moe_layer_freq", l.Bid)
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: has no key \"moe_layer_freq\"", config.ConfigFile)
	}
	return n != 0, err
}

// mimoHasLayer is the condition of the model's layers, and of MTP layers if the checkpoint has any.
func mimoHasLayer(l table.Layer) (bool, error) {
	next, err := parts.NextN(l)
	return !next || mimoHas(l.View, func(name string) bool { return strings.HasPrefix(name, mimoDrafts) }), err
}

// mimoJoined is the condition that queries, keys and values are one projection.
func mimoJoined(l table.Layer) (bool, error) {
	return mimoHas(l.View, func(name string) bool { return strings.Contains(name, ".self_attn.qkv_proj.") }), nil
}

func mimoHas(c *config.View, is func(name string) bool) bool {
	return slices.ContainsFunc(c.Facts.Tensors, is)
}

// mimoQKV brings the rows of a joined projection that is stored in ranks, each with its
// share of queries, keys and values, into the order of all queries, all keys, all values.
var mimoQKV = &table.Transform{Name: "ranks-of-qkv", Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
	ranks := precision.Ranks(s)
	if ranks == 1 {
		return s, nil
	}
	windows, err := mimoWindows(l.View)
	if err != nil {
		return nil, err
	}
	if l.Bid < 0 || l.Bid >= int64(len(windows)) {
		return nil, fault.Errorf(fault.Broken, "layer %d of %d", l.Bid, len(windows))
	}
	keyHeads, err := mimoKeyHeads(l.View, windows[l.Bid] == 1)
	if err != nil {
		return nil, err
	}
	var heads, dim, valueDim int64
	for _, v := range []struct {
		to  *int64
		key string
	}{{&heads, "num_attention_heads"}, {&dim, "head_dim"}, {&valueDim, "v_head_dim"}} {
		if *v.to, err = l.Require(v.key); err != nil {
			return nil, err
		}
	}
	if min(heads, keyHeads, dim, valueDim) < 1 || max(heads, keyHeads, dim, valueDim) > config.MaxHeadDim {
		return nil, fault.Errorf(fault.Broken, "%s: %d heads and %d key heads of %d and %d elements", config.ConfigFile,
			heads, keyHeads, dim, valueDim)
	}
	sizes := []int64{heads * dim, keyHeads * dim, keyHeads * valueDim}
	ne := s.NE()
	if all := sizes[0] + sizes[1] + sizes[2]; len(ne) != 2 || ne[1] != all || sizes[0]%ranks != 0 ||
		sizes[1]%ranks != 0 || sizes[2]%ranks != 0 {
		return nil, fault.Errorf(fault.Broken, "dimensions %s, want %d+%d+%d rows in %d ranks", gguf.Shape(ne),
			sizes[0], sizes[1], sizes[2], ranks)
	}
	perRank := ne[1] / ranks
	return rows.Gather(s, ne, func(i int64) int64 {
		at := int64(0) // offset of the part within a rank
		for _, n := range sizes {
			share := n / ranks
			if i < n {
				return i/share*perRank + at + i%share
			}
			i -= n
			at += share
		}
		panic("arch: a row beyond the last")
	})
}}
