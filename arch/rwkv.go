package arch

import (
	"math"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(rwkv6, rwkv6qwen2, rwkv7, arwkv7)

// rwkv6 is RWKV 6, Finch. Source: rwkv.py of the reference.
var rwkv6 = &table.Arch{
	Name:      "rwkv6",
	Classes:   []string{"Rwkv6ForCausalLM"},
	Tokenizer: tokenizer.RWKVWorld{},
	Metadata: []table.Row{
		{Key: "context_length", Const: gguf.Uint32(1 << 20)}, // there is no bound
		parts.UintRow("embedding_length", "hidden_size"),
		parts.BlockCountRow,
		parts.FloatRow("attention.layer_norm_epsilon", "layer_norm_epsilon"),
		parts.UintRow("rescale_every_n_layers", "rescale_every"),
		parts.UintRow("wkv.head_size", "head_size"),
		{Key: "time_mix_extra_dim", Derive: ifWide("", 4096, 4096, 64, 32)},
		{Key: "time_decay_extra_dim", Derive: ifWide("", 4096, 4096, 128, 64)},
		{Key: "feed_forward_length", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			if n, ok, err := c.Int("intermediate_size"); err != nil || ok {
				return table.Uint32Of(n, ok, err)
			}
			n, err := c.Require("hidden_size")
			return table.Uint32Of(int64(math.Floor(float64(n)*3.5/32))*32, true, err)
		}},
		parts.FileTypeRow,
		{Key: table.KeyHeadCount, Const: gguf.Uint32(0)}, // meaningless, but required by runtimes
	},
	Unused: []string{"attention_hidden_size", "head_size_divisor", "num_attention_heads", "use_cache",
		"context_length"},
	Tensors: slices.Concat(rwkv6Mix("rwkv.blocks.{bid}.attention."), []table.TensorRow{
		{HF: "rwkv.embeddings", GGUF: "token_embd"},
		{HF: "rwkv.blocks.0.pre_ln", GGUF: "token_embd_norm", Bias: table.NeedBias},
		{HF: "rwkv.ln_out", GGUF: "output_norm", Bias: table.NeedBias},
		{HF: "head", GGUF: "output"},
		{HF: "rwkv.blocks.{bid}.ln1", GGUF: "blk.{bid}.attn_norm", Bias: table.NeedBias},
		{HF: "rwkv.blocks.{bid}.ln2", GGUF: "blk.{bid}.attn_norm_2", Bias: table.NeedBias},
		{HF: "rwkv.blocks.{bid}.attention.time_faaaa", GGUF: "blk.{bid}.time_mix_first.weight", Exact: true},
		{HF: "rwkv.blocks.{bid}.attention.key", GGUF: "blk.{bid}.time_mix_key"},
		{HF: "rwkv.blocks.{bid}.attention.value", GGUF: "blk.{bid}.time_mix_value"},
		{HF: "rwkv.blocks.{bid}.attention.receptance", GGUF: "blk.{bid}.time_mix_receptance"},
		{HF: "rwkv.blocks.{bid}.attention.gate", GGUF: "blk.{bid}.time_mix_gate"},
		{HF: "rwkv.blocks.{bid}.attention.ln_x", GGUF: "blk.{bid}.time_mix_ln", Bias: table.NeedBias},
		{HF: "rwkv.blocks.{bid}.attention.output", GGUF: "blk.{bid}.time_mix_output", Transform: rescale},
		{HF: "rwkv.blocks.{bid}.feed_forward.time_maa_k", GGUF: "blk.{bid}.channel_mix_lerp_k.weight", Exact: true,
			Transform: parts.Squeeze},
		{HF: "rwkv.blocks.{bid}.feed_forward.time_maa_r", GGUF: "blk.{bid}.channel_mix_lerp_r.weight", Exact: true,
			Transform: parts.Squeeze},
		{HF: "rwkv.blocks.{bid}.feed_forward.key", GGUF: "blk.{bid}.channel_mix_key"},
		{HF: "rwkv.blocks.{bid}.feed_forward.receptance", GGUF: "blk.{bid}.channel_mix_receptance"},
		{HF: "rwkv.blocks.{bid}.feed_forward.value", GGUF: "blk.{bid}.channel_mix_value", Transform: rescale},
	}),
	Graph: &graph.Model{
		Norm: rwkvNorm, Embed: graph.Embedding{Norm: parts.EmbeddingNorm}, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: []graph.Step{
			graph.Residual{Pre: graph.Norm{Name: "attn_norm"}, Part: graph.RWKV6{}},
			graph.Residual{Pre: graph.Norm{Name: "attn_norm_2"}, Part: graph.ChannelMix6{}},
			graph.ChooseStep{{
				In:    graph.Where("(@rescale_every_n_layers or 0) != 0 and (i + 1) mod @rescale_every_n_layers = 0"),
				Steps: []graph.Step{graph.ScaleStream{By: "0.5"}},
			}},
		},
		Unread: []string{table.KeyHeadCount},
	},
}

// rwkv6Mix returns the rows of the small weights of time mixing. The five token-shift weights become one tensor, in the
// order w, k, v, r, g.
func rwkv6Mix(attention string) []table.TensorRow {
	return []table.TensorRow{
		{HF: attention + "time_maa_x", GGUF: "blk.{bid}.time_mix_lerp_x.weight", Exact: true, Transform: parts.Squeeze},
		{HF: attention + "time_maa_{part}", GGUF: "blk.{bid}.time_mix_lerp_fused.weight", Exact: true,
			PerSource: parts.Squeeze, Parts: []string{"w", "k", "v", "r", "g"}, Join: stackLerps},
		{HF: attention + "time_maa_w1", GGUF: "blk.{bid}.time_mix_w1.weight", Exact: true, Transform: parts.Transpose},
		{HF: attention + "time_maa_w2", GGUF: "blk.{bid}.time_mix_w2.weight", Exact: true,
			Transform: parts.TransposeEach},
		{HF: attention + "time_decay", GGUF: "blk.{bid}.time_mix_decay.weight", Exact: true, Transform: parts.Squeeze},
		{HF: attention + "time_decay_w1", GGUF: "blk.{bid}.time_mix_decay_w1.weight", Exact: true,
			Transform: parts.Transpose},
		{HF: attention + "time_decay_w2", GGUF: "blk.{bid}.time_mix_decay_w2.weight", Exact: true,
			Transform: parts.Transpose},
	}
}

// rwkv6qwen2 is a Qwen 2 with time mixing instead of attention. Source: rwkv.py
// of the reference.
var rwkv6qwen2 = &table.Arch{
	Name:      "rwkv6qwen2",
	Classes:   []string{"RWKV6Qwen2ForCausalLM"},
	Tokenizer: parts.SPMOrBPE,
	Metadata: []table.Row{
		{Key: "context_length", Const: gguf.Uint32(1 << 20)},
		parts.UintRow("embedding_length", "hidden_size"),
		parts.BlockCountRow,
		{Key: "wkv.head_size", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			hidden, err := c.Require("hidden_size")
			if err != nil {
				return v, false, err
			}
			heads, err := c.Require("num_attention_heads")
			if err == nil && heads < 1 {
				err = config.WrongType("num_attention_heads", "a positive number", heads)
			}
			return table.Uint32Of(hidden/max(heads, 1), true, err)
		}},
		{Key: "time_mix_extra_dim", Derive: ifWide("lora_rank_tokenshift", 4096, math.MaxInt64, 64, 32)},
		{Key: "time_decay_extra_dim", Derive: ifWide("lora_rank_decay", 4096, math.MaxInt64, 128, 64)},
		parts.UintRow("feed_forward_length", "intermediate_size"),
		parts.FileTypeRow,
		parts.FloatRow("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
		{Key: "token_shift_count", Const: gguf.Uint32(1)},
		parts.UintRow(table.KeyHeadCountKV, "num_key_value_heads"),
		{Key: table.KeyHeadCount, Const: gguf.Uint32(0)},
	},
	Unused: []string{"max_position_embeddings", "max_window_layers", "rope_theta", "rope_scaling", "sliding_window",
		"use_sliding_window"},
	Expect: []table.Expect{parts.SiLU},
	Tensors: slices.Concat(reorderMix(rwkv6Mix("model.layers.{bid}.self_attn.")), []table.TensorRow{
		{HF: "model.embed_tokens", GGUF: "token_embd"},
		{HF: "model.norm", GGUF: "output_norm"},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "model.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.time_mix_receptance", Bias: table.MayBias},
		{HF: "model.layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.time_mix_key", Bias: table.MayBias},
		{HF: "model.layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.time_mix_value", Bias: table.MayBias},
		{HF: "model.layers.{bid}.self_attn.gate", GGUF: "blk.{bid}.time_mix_gate"},
		{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.time_mix_output"},
		{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.ffn_norm"},
		{HF: "model.layers.{bid}.mlp.gate_proj", GGUF: "blk.{bid}.ffn_gate"},
		{HF: "model.layers.{bid}.mlp.up_proj", GGUF: "blk.{bid}.ffn_up"},
		{HF: "model.layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down"},
	}),
	Graph: rwkvQwen2Graph(graph.QRWKV6{}),
}

// reorderMix changes rows of rwkv6Mix for checkpoints whose order of the five
// parts is r, k, v, w, g.
func reorderMix(list []table.TensorRow) []table.TensorRow {
	for i := range list {
		if t := list[i].Transform; strings.HasSuffix(list[i].HF, "time_maa_w1") ||
			strings.HasSuffix(list[i].HF, "time_maa_w2") {
			list[i].Transform = parts.Chain(t.Name+"-wkvrg", t, wkvrg)
		}
	}
	return list
}

// wkvrg exchanges the first and the fourth of five parts.
var wkvrg = &table.Transform{Name: "wkvrg", Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
	ne := s.NE()
	n := gguf.Rows(ne)
	if len(ne) < 2 || n%5 != 0 {
		return nil, fault.Errorf(fault.Broken, "dimensions %s, want five parts", gguf.Shape(ne))
	}
	part := n / 5
	return rows.Gather(s, ne, func(i int64) int64 {
		return []int64{3, 1, 2, 0, 4}[i/part]*part + i%part
	})
}}

// rwkv7 is RWKV 7, Goose, with the tensor names of package flash-linear-attention or the others that the reference
// accepts. Source: rwkv.py of the reference.
var rwkv7 = &table.Arch{
	Name:      "rwkv7",
	Classes:   []string{"Rwkv7ForCausalLM", "RWKV7ForCausalLM"},
	Tokenizer: tokenizer.RWKVWorld{},
	Metadata: []table.Row{
		{Key: "context_length", Const: gguf.Uint32(1 << 20)},
		parts.UintRow("embedding_length", "hidden_size"),
		parts.BlockCountRow,
		parts.FloatRow("attention.layer_norm_epsilon", "layer_norm_epsilon", "norm_eps"),
		parts.UintRow("wkv.head_size", "head_size", "head_dim"),
		{Key: "attention.decay_lora_rank", Derive: loraRank(0.5, 1.8, "lora_rank_decay", "decay_low_rank_dim")},
		{Key: "attention.iclr_lora_rank", Derive: loraRank(0.5, 1.8, "lora_rank_iclr", "a_low_rank_dim")},
		{Key: "attention.value_residual_mix_lora_rank", Derive: loraRank(0.5, 1.3, "lora_rank_value_residual_mix",
			"v_low_rank_dim")},
		{Key: "attention.gate_lora_rank", Derive: loraRank(0.8, 0.6, "lora_rank_gate", "gate_low_rank_dim")},
		{Key: "feed_forward_length", Derive: func(c *config.View) (gguf.Value, bool, error) {
			if n, ok, err := c.Int("intermediate_size"); err != nil || ok {
				return table.Uint32Of(n, ok, err)
			}
			return parts.Times(4, "hidden_size")(c)
		}},
		parts.FileTypeRow,
		{Key: table.KeyHeadCount, Const: gguf.Uint32(0)},
	},
	Unused: []string{"attn_mode", "fuse_cross_entropy", "fuse_linear_cross_entropy", "fuse_norm", "hidden_ratio",
		"max_position_embeddings", "norm_bias", "norm_first", "num_heads",
		"use_l2warp", "value_dim", "elementwise_affine", "num_attention_heads"},
	Expect: []table.Expect{
		parts.Expect("hidden_act", "sqrelu", "relu2"),
		parts.Expect("attn"),
		parts.Expect("norm_first", "true"),
		parts.Expect("norm_bias", "true"),
	},
	Tensors: slices.Concat([]table.TensorRow{
		{HF: "model.embeddings", GGUF: "token_embd"},
		{HF: "model.norm", GGUF: "output_norm", Bias: table.NeedBias},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "model.embed_tokens", GGUF: "token_embd", Optional: true},
		{HF: "model.ln_out", GGUF: "output_norm", Bias: table.NeedBias, Optional: true},
		{HF: "head", GGUF: "output", Optional: true},
	},
		rwkv7Layers("model.layers.", "attn", "ffn"),
		parts.OptionalRows(rwkv7Layers("model.layers.", "attention", "feed_forward")),
		parts.OptionalRows(rwkv7Layers("model.layers.", "self_attn", "ffn")),
		parts.OptionalRows(rwkv7Layers("model.blocks.", "attn", "ffn")),
		parts.OptionalRows(rwkv7Layers("model.blocks.", "attention", "feed_forward")),
	),
	Graph: &graph.Model{
		Norm: rwkvNorm, Embed: graph.Embedding{Norm: parts.EmbeddingNorm}, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: []graph.Step{
			graph.Residual{Pre: graph.Norm{Name: "attn_norm"}, Part: graph.RWKV7{}},
			graph.Residual{Pre: graph.Norm{Name: "attn_norm_2"}, Part: graph.ChannelMix7{}},
		},
		Unread: []string{table.KeyHeadCount},
	},
}

// arwkv7 is a Qwen 2 with the time mixing of RWKV 7 instead of attention. Source:
// rwkv.py of the reference.
var arwkv7 = &table.Arch{
	Name:      "arwkv7",
	Classes:   []string{"RwkvHybridForCausalLM"},
	Tokenizer: parts.SPMOrBPE,
	Metadata: []table.Row{
		{Key: "context_length", Const: gguf.Uint32(1 << 20)},
		parts.UintRow("embedding_length", "hidden_size"),
		parts.BlockCountRow,
		parts.FloatRow("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
		parts.UintRow("wkv.head_size", "head_size"),
		{Key: "attention.decay_lora_rank", Const: gguf.Uint32(64)},
		{Key: "attention.iclr_lora_rank", Const: gguf.Uint32(64)},
		{Key: "attention.value_residual_mix_lora_rank", Const: gguf.Uint32(32)},
		{Key: "attention.gate_lora_rank", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			gate, err := hasGate(table.Layer{View: c, Bid: -1})
			if gate {
				return gguf.Uint32(128), true, err
			}
			return gguf.Uint32(0), true, err
		}},
		parts.UintRow("feed_forward_length", "intermediate_size"),
		parts.FileTypeRow,
		{Key: "token_shift_count", Const: gguf.Uint32(1)},
		{Key: table.KeyHeadCount, Const: gguf.Uint32(0)},
	},
	Unused: []string{"max_position_embeddings", "max_window_layers", "rope_theta", "rope_scaling", "sliding_window",
		"use_sliding_window", "num_attention_heads", "num_key_value_heads",
		"num_wkv_heads", "num_wkv_layers", "wkv_layers", "kv_layers", "wkv_has_group_norm", "wkv_use_vfirst",
		"wkv_head_size", "is_rwkv"},
	Expect: []table.Expect{
		parts.SiLU,
		parts.Expect("wkv_version", "7"),
	},
	Tensors: slices.Concat([]table.TensorRow{
		{HF: "model.embed_tokens", GGUF: "token_embd"},
		{HF: "model.norm", GGUF: "output_norm"},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.ffn_norm"},
		{HF: "model.layers.{bid}.mlp.gate_proj", GGUF: "blk.{bid}.ffn_gate"},
		{HF: "model.layers.{bid}.mlp.up_proj", GGUF: "blk.{bid}.ffn_up"},
		{HF: "model.layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down"},
	},
		rwkv7Mix("model.layers.{bid}.self_attn.time_mixer.", table.MayBias),
		parts.OptionalRows(rwkv7Mix("model.layers.{bid}.self_attn.", table.MayBias)),
	),
	Graph: rwkvQwen2Graph(graph.RWKV7{}),
}

// rwkvNorm has an epsilon of 0 in files without the key.
var rwkvNorm = graph.NormKind{Centered: true, Eps: "@attention.layer_norm_epsilon or 0"}

// rwkvQwen2Graph is a Qwen 2 with that time mixing in place of attention. The epsilon is like rwkvNorm's.
func rwkvQwen2Graph(timeMix graph.Part) *graph.Model {
	return &graph.Model{
		Norm:  graph.NormKind{Eps: "@attention.layer_norm_rms_epsilon or 0"},
		Layer: parts.PreNorm(timeMix, parts.SwiGLU), Final: parts.OutputNorm, Head: graph.LM{},
		Unread: []string{table.KeyHeadCount},
	}
}

// rwkv7Layers returns the rows of the layers under a prefix, with the names of
// their two halves.
func rwkv7Layers(prefix, attention, ffn string) []table.TensorRow {
	p := prefix + "{bid}."
	return slices.Concat(rwkv7Mix(p+attention+".", table.NoBias), []table.TensorRow{
		{HF: prefix + "0.pre_norm", GGUF: "token_embd_norm", Bias: table.NeedBias},
		{HF: p + attention + "_norm", GGUF: "blk.{bid}.attn_norm", Bias: table.NeedBias},
		{HF: p + "ln1", GGUF: "blk.{bid}.attn_norm", Bias: table.NeedBias, Optional: true},
		{HF: p + ffn + "_norm", GGUF: "blk.{bid}.attn_norm_2", Bias: table.NeedBias},
		{HF: p + "ln2", GGUF: "blk.{bid}.attn_norm_2", Bias: table.NeedBias, Optional: true},
		{HF: p + ffn + ".x_k", GGUF: "blk.{bid}.channel_mix_lerp_k.weight", Exact: true, Transform: parts.Squeeze},
		{HF: p + ffn + ".key", GGUF: "blk.{bid}.channel_mix_key"},
		{HF: p + ffn + ".value", GGUF: "blk.{bid}.channel_mix_value"},
	})
}

// rwkv7Mix returns the rows of time mixing. Low-rank weights are stored transposed, except as linear layers.
func rwkv7Mix(p string, bias table.Bias) []table.TensorRow {
	list := []table.TensorRow{
		{HF: p + "x_{part}", GGUF: "blk.{bid}.time_mix_lerp_fused.weight", Exact: true, PerSource: parts.Squeeze,
			Parts: []string{"r", "w", "k", "v", "a", "g"}, Join: stackLerps, If: hasGate},
		{HF: p + "x_{part}", GGUF: "blk.{bid}.time_mix_lerp_fused.weight", Exact: true, PerSource: parts.Squeeze,
			Parts: []string{"r", "w", "k", "v", "a"}, Join: stackLerps, If: parts.Not(hasGate)},
		{HF: p + "x_x", GGUF: "blk.{bid}.time_mix_lerp_fused.weight", Exact: true, Transform: lerps, Optional: true},
		{HF: p + "k_k", GGUF: "blk.{bid}.time_mix_k_k.weight", Exact: true, Transform: parts.Squeeze},
		{HF: p + "k_a", GGUF: "blk.{bid}.time_mix_k_a.weight", Exact: true, Transform: parts.Squeeze},
		{HF: p + "r_k", GGUF: "blk.{bid}.time_mix_r_k.weight", Exact: true, Transform: flatten},
		{HF: p + "g_norm", GGUF: "blk.{bid}.time_mix_ln", Bias: table.NeedBias, Optional: bias == table.MayBias},
		{HF: p + "ln_x", GGUF: "blk.{bid}.time_mix_ln", Bias: table.NeedBias, Optional: true},
	}
	for _, w := range []struct{ names, gguf string }{
		{"r_proj receptance", "time_mix_receptance"}, {"k_proj key", "time_mix_key"},
		{"v_proj value", "time_mix_value"}, {"o_proj output", "time_mix_output"},
	} {
		for i, name := range strings.Fields(w.names) {
			list = append(list, table.TensorRow{HF: p + name, GGUF: "blk.{bid}." + w.gguf, Bias: bias, Optional: i > 0})
		}
	}
	for _, lora := range []string{"w", "a", "v", "g"} {
		for _, part := range []struct{ own, bare, n string }{
			{"_lora.lora.2.bias", "0", "0"}, {"_lora.lora.0.weight", "1", "1"}, {"_lora.lora.2.weight", "2", "2"},
		} {
			if lora == "g" && part.n == "0" {
				continue // has no bias
			}
			own := table.TensorRow{HF: p + lora + part.own, Exact: true, Transform: parts.Squeeze}
			bare := table.TensorRow{HF: p + lora + part.bare, Exact: true, Transform: parts.Squeeze, Optional: true}
			if part.n != "0" {
				bare.Transform = parts.Chain("squeeze-transpose", parts.Squeeze, parts.Transpose)
			}
			for _, row := range []table.TensorRow{own, bare} {
				name := func(s string) string { return "blk.{bid}.time_mix_" + s + part.n + ".weight" }
				switch row.GGUF = name(lora); lora {
				case "v": // unused in the first layer
					dropped := row
					dropped.GGUF, dropped.Transform, dropped.If = "", nil, parts.FirstLayer
					row.If = parts.Not(parts.FirstLayer)
					list = append(list, dropped)
				case "a": // also fills in v of the first layer, which runtimes require
					both := row
					both.GGUF, both.Transform, both.If = "", nil, parts.FirstLayer
					both.Split = []table.Part{{GGUF: name("v"), Transform: row.Transform},
						{GGUF: name("a"), Transform: row.Transform}}
					row.If = parts.Not(parts.FirstLayer)
					list = append(list, both)
				case "g":
					row.If = hasGate
				}
				list = append(list, row)
			}
		}
	}
	return list
}

// hasGate reports whether time mixing has a gate, by default true.
func hasGate(l table.Layer) (bool, error) {
	gate, ok, err := l.Bool("wkv_has_gate")
	return gate || !ok, err
}

// rescale divides the weights of later layers by a power of two, so that the sums
// of half-precision arithmetic stay in range; the runtime multiplies again.
var rescale = &table.Transform{Name: "rescale", Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
	every, ok, err := l.Int("rescale_every")
	if err != nil || !ok || every <= 0 {
		return s, err
	}
	n := l.Bid / every
	if n == 0 {
		return s, nil
	}
	return rows.Map(s, rows.Scale(float32(math.Ldexp(1, -int(n))))), nil
}}

// flatten makes a tensor one-dimensional.
var flatten = &table.Transform{Name: "flatten", Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
	return rows.Reshape(s, []int64{gguf.Rows(s.NE()) * s.NE()[0]})
}}

// lerps returns the parts of the joined mixing weights.
var lerps = &table.Transform{Name: "lerps", Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
	gate, err := hasGate(l)
	if err != nil {
		return nil, err
	}
	parts := int64(5)
	if gate {
		parts = 6
	}
	n := gguf.Rows(s.NE()) * s.NE()[0]
	if n%parts != 0 {
		return nil, fault.Errorf(fault.Broken, "dimensions %s, want %d parts", gguf.Shape(s.NE()), parts)
	}
	return rows.Reshape(s, []int64{n / parts, 1, 1, parts})
}}

// stackLerps stacks vectors with two dimensions of 1 between.
func stackLerps(_ table.Layer, parts []rows.Source) (rows.Source, error) {
	s, err := rows.Stack(parts)
	if err != nil {
		return nil, err
	}
	ne := s.NE()
	if len(ne) != 2 {
		return nil, fault.Errorf(fault.Broken, "dimensions %s, want vectors", gguf.Shape(parts[0].NE()))
	}
	return rows.Reshape(s, []int64{ne[0], 1, 1, ne[1]})
}

// ifWide returns the value of a key, else yes if hidden_size is from least to most, else no.
func ifWide(key string, least, most, yes, no int64) table.Derive {
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
		if key != "" {
			if n, ok, err := c.Int(key); err != nil || ok {
				return table.Uint32Of(n, ok, err)
			}
		}
		n, err := c.Require("hidden_size")
		if n >= least && n <= most {
			return table.Uint32Of(yes, true, err)
		}
		return table.Uint32Of(no, true, err)
	}
}

// loraRank returns a rank from the config, else multiplier * hidden_size^exponent, rounded to a multiple of 32.
func loraRank(exponent, multiplier float64, keys ...string) table.Derive {
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
		if n, ok, err := c.Int(keys...); err != nil || ok {
			return table.Uint32Of(n, ok, err)
		}
		n, err := c.Require("hidden_size")
		if err == nil && (n < 0 || n > config.MaxWidth) {
			err = config.WrongType("hidden_size", "a size", n)
		}
		rank := math.RoundToEven(math.Pow(float64(n), exponent) * multiplier / 32)
		return table.Uint32Of(int64(max(rank, 1))*32, true, err)
	}
}
