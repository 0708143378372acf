package arch

import (
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(deepseek4, v4DSpark)

// deepseek4 is DeepSeek V4 with the tensor names of its own code: hyper-connections (several mixed residual streams),
// most layers compress keys and values along the sequence, and the first MoE layers route by a table of tokens. FP8
// matrices become Q8_0; the codes of FP4 experts are kept. Source: the reference's DeepseekV4Model.
var deepseek4 = &table.Arch{
	Name:      "deepseek4",
	Classes:   []string{"DeepseekV4ForCausalLM"},
	Special:   []table.Special{table.DSpark("DeepseekV4DSparkModel"), table.MXFP4{}},
	Tokenizer: tokenizer.BPE{},
	NextN: &table.NextN{Layers: v4NextN, Prefixes: []string{"mtp."},
		Shared: []string{"embed.weight", "norm.weight", "head.weight"}},
	Shapes: shape.Rules{
		Dims: shape.Merge(parts.V4Shapes.Dims, shape.Table{"n_idx": "@attention.indexer.head_count",
			"n_idx_head": "@attention.indexer.key_length"}),
		Tensors: shape.Merge(parts.V4Shapes.Tensors, shape.Table{
			// layers that compress blocks of 4 positions have overlapping blocks
			"attn_compressor_kv":   "n_embd, 2 * n_embd_head_k | n_embd, n_embd_head_k",
			"attn_compressor_gate": "n_embd, 2 * n_embd_head_k | n_embd, n_embd_head_k",
			"attn_compressor_ape":  "2 * n_embd_head_k, 4 | n_embd_head_k, 128",
			"attn_compressor_norm": "n_embd_head_k",
			"indexer.proj":         "n_embd, n_idx", "indexer.attn_q_b": "n_lora_q, n_idx * n_idx_head",
			"indexer_compressor_kv": "n_embd, 2 * n_idx_head", "indexer_compressor_gate": "n_embd, 2 * n_idx_head",
			"indexer_compressor_ape": "2 * n_idx_head, 4", "indexer_compressor_norm": "n_idx_head",
			"ffn_gate_tid2eid": "@expert_used_count, n_vocab", "exp_probs_b_vl.bias": "n_expert",
		}),
	},
	Metadata: slices.Concat(v4Metadata(v4Blocks, v4Ratios), []table.Row{
		{Key: "embedding_length_out", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			n, err := c.Require("hc_mult")
			if err == nil && (n < 1 || n > config.MaxParts) {
				err = config.WrongType("hc_mult", "a number of residual streams", n)
			}
			if err != nil {
				return v, false, err
			}
			return parts.Times(n, "hidden_size")(c)
		}},
		{Key: "nextn_predict_layers", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := v4NextN(c)
			return table.Uint32Of(n, n > 0, err)
		}},
	}),
	Unused: slices.Concat(v4Unused, v4DraftKeys, []string{"num_nextn_predict_layers"}),
	Expect: v4Expect,
	// in a file of MTP layers alone, the first layer's head takes the place of the model's
	Rename: []table.Rename{{Prefix: "mtp.0.hc_head_", With: "hc_head_", If: v4NextNOnly},
		{Prefix: "mtp.", With: "layers.{bid}.", AfterModel: true}},
	Drop: []table.Drop{
		{Prefix: "aligner.", Why: table.Silent}, {Prefix: "image_", Why: table.Silent},
		{Prefix: "layers.", AfterModel: true, Why: parts.MTP},
	},
	Tensors: v4StoredTypes(slices.Concat([]table.TensorRow{
		{HF: "layers.{bid}.ffn.gate.tid2eid", GGUF: "blk.{bid}.ffn_gate_tid2eid.weight", Exact: true,
			Kind: table.FirstByLayer(0), Type: table.Always(gguf.TypeI32), If: v4Hashed},
		{HF: "layers.{bid}.{part}_proj", GGUF: "blk.{bid}.nextn.eh_proj", Parts: []string{"e", "h"},
			Kind: table.FirstByLayer(2), Type: table.Always(gguf.TypeQ8_0), If: parts.NextN,
			Join: func(_ table.Layer, s []rows.Source) (rows.Source, error) { return rows.ConcatColumns(s) }},

		{HF: "embed", GGUF: "token_embd"},
		{HF: "norm", GGUF: "output_norm"},
		{HF: "head", GGUF: "output"},
		{HF: "hc_head_fn", GGUF: "output_hc_fn.weight", Exact: true},
		{HF: "hc_head_base", GGUF: "output_hc_base.weight", Exact: true},
		{HF: "hc_head_scale", GGUF: "output_hc_scale.weight", Exact: true},
		{HF: "layers.{bid}.enorm", GGUF: "blk.{bid}.nextn.enorm", If: parts.NextN},
		{HF: "layers.{bid}.hnorm", GGUF: "blk.{bid}.nextn.hnorm", If: parts.NextN},
		{HF: "layers.{bid}.norm", GGUF: "blk.{bid}.nextn.shared_head_norm", If: parts.NextN},

		{HF: "layers.{bid}.attn.compressor.ape", GGUF: "blk.{bid}.attn_compressor_ape.weight", Exact: true,
			If: v4Compressed},
		{HF: "layers.{bid}.attn.compressor.wkv", GGUF: "blk.{bid}.attn_compressor_kv", If: v4Compressed},
		{HF: "layers.{bid}.attn.compressor.wgate", GGUF: "blk.{bid}.attn_compressor_gate", If: v4Compressed},
		{HF: "layers.{bid}.attn.compressor.norm", GGUF: "blk.{bid}.attn_compressor_norm", If: v4Compressed},
		{HF: "layers.{bid}.attn.indexer.wq_b", GGUF: "blk.{bid}.indexer.attn_q_b", If: v4Indexed},
		{HF: "layers.{bid}.attn.indexer.weights_proj", GGUF: "blk.{bid}.indexer.proj", If: v4Indexed},
		{HF: "layers.{bid}.attn.indexer.compressor.ape", GGUF: "blk.{bid}.indexer_compressor_ape.weight", Exact: true,
			If: v4Indexed},
		{HF: "layers.{bid}.attn.indexer.compressor.wkv", GGUF: "blk.{bid}.indexer_compressor_kv", If: v4Indexed},
		{HF: "layers.{bid}.attn.indexer.compressor.wgate", GGUF: "blk.{bid}.indexer_compressor_gate", If: v4Indexed},
		{HF: "layers.{bid}.attn.indexer.compressor.norm", GGUF: "blk.{bid}.indexer_compressor_norm", If: v4Indexed},

		{HF: "layers.{bid}.ffn.gate.bias", GGUF: "blk.{bid}.exp_probs_b.bias", Exact: true, If: parts.Not(v4Hashed)},
		// unused in layers with a token table; bias_vl is for image positions, which have no token
		{HF: "layers.{bid}.ffn.gate.bias", Exact: true, If: v4Hashed},
		{HF: "layers.{bid}.ffn.gate.bias_vl", GGUF: "blk.{bid}.exp_probs_b_vl.bias", Exact: true, Optional: true},
	}, v4Layer("layers.{bid}."))),
	Graph: &graph.Model{
		Reads: parts.RouterKeys, Streams: graph.HyperConnections{},
		Norm: graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: []graph.Step{
			graph.Mixed{Name: "attn", Residual: graph.Residual{Pre: graph.Norm{Name: "attn_norm"},
				Part: graph.CompressedAttention{
					Local: graph.RoPE{Pairs: graph.Interleaved, Scaling: graph.NoScale},
					Compressed: graph.RoPE{Pairs: graph.Interleaved, Scaling: graph.UnitScale,
						Base: "@attention.compress_rope_freq_base"},
					Window: "n_swa",
				}}},
			graph.Mixed{Name: "ffn", Residual: graph.Residual{Pre: graph.Norm{Name: "ffn_norm"},
				Part: graph.Choose{
					{In: graph.Where("i < @hash_layer_count"), Then: v4MoE(false, graph.TokenTable{})},
					{In: graph.Every{}, Then: v4MoE(true)},
				}}},
		},
		Unread: []string{"exp_probs_b_vl.bias"},
	},
}

// v4MoE are the experts of a layer. bias: the choice is by scores to which a bias is added.
func v4MoE(bias bool, more ...graph.MoEOption) graph.MoE {
	return graph.MoE{
		Router:  graph.Router{Score: graph.SqrtSoftplus, Bias: bias},
		Experts: graph.FFN{Act: graph.LimitedSwiGLU{Limit: "@swiglu_clamp_exp or 0"}},
		Shared:  graph.HasShared,
		With: append([]graph.MoEOption{graph.SharedFFN{FFN: graph.FFN{
			Act: graph.LimitedSwiGLU{Limit: "@swiglu_clamp_shexp or @swiglu_clamp_exp or 0"}}}}, more...),
	}
}

// v4DSpark is the DSpark draft model of DeepSeek V4: layers like the target model's, without compression, under the
// names of MTP layers and mostly in the model's own checkpoint. Vocabulary, embedding and output matrix are the target
// model's. Source: the DSpark class of the reference's converter.
var v4DSpark = &table.Arch{
	Name:    "dflash",
	Classes: []string{"DeepseekV4DSparkModel"},
	Special: []table.Special{table.MXFP4{}, table.Draft{MaskToken: func(c *config.View) (int64, bool, error) {
		n, err := c.Require("dspark_noise_token_id")
		return n, true, err
	}}},
	Tokenizer:  tokenizer.Target{},
	BlockCount: v4Stages,
	Shapes:     parts.DFlashShapes,
	Metadata: slices.Concat(parts.Override(v4Metadata(v4Stages, func(c *config.View) ([]int64, error) {
		n, err := v4Stages(c)
		return make([]int64, n), err
	}),
		table.Row{Key: table.KeyBlockCount, Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := v4Stages(c)
			return table.Uint32Of(n, true, err)
		}},
		table.Row{Key: "hash_layer_count", Const: gguf.Uint32(0)},
	), []table.Row{
		{Key: "block_size", Type: gguf.Uint32Type, From: []string{"dspark_block_size"}, Required: true},
		{Key: "target_layers", Derive: func(c *config.View) (gguf.Value, bool, error) {
			layers, _, err := c.Ints("dspark_target_layer_ids")
			if err == nil && len(layers) == 0 {
				err = fault.Errorf(fault.Broken, "%s: key %q is missing", c.FileName(), "dspark_target_layer_ids")
			}
			for i := range layers {
				layers[i]++ // the output of layer i is the input of layer i+1
			}
			return parts.PerLayer(layers, err)
		}},
	}),
	Unused: slices.Concat(v4Unused, v4DraftKeys, []string{"num_nextn_predict_layers", "num_hash_layers",
		"compress_ratios"}),
	Expect: v4Expect,
	Rename: []table.Rename{
		{Prefix: "mtp.{bid}.main_", With: "mtp.main_"},
		{Prefix: "mtp.{bid}.norm.", With: "mtp.norm."},
		{Prefix: "mtp.{bid}.hc_head_", With: "mtp.hc_head_"},
		{Prefix: "mtp.{bid}.markov_head.", With: "mtp.markov_head."},
		{Prefix: "mtp.{bid}.confidence_head.", With: "mtp.confidence_head."},
	},
	Drop: []table.Drop{
		{Prefix: "embed.", Why: v4Model}, {Prefix: "layers.", Why: v4Model}, {Prefix: "norm.", Why: v4Model},
		{Prefix: "head.", Why: v4Model}, {Prefix: "hc_head_", Why: v4Model},
		{Prefix: "aligner.", Why: table.OtherPart}, {Prefix: "image_", Why: table.OtherPart},
	},
	Tensors: v4StoredTypes(slices.Concat([]table.TensorRow{
		{HF: "mtp.main_proj", GGUF: "fc"},
		{HF: "mtp.main_norm", GGUF: "enc.output_norm"},
		{HF: "mtp.norm", GGUF: "output_norm"},
		{HF: "mtp.hc_head_fn", GGUF: "output_hc_fn.weight", Exact: true},
		{HF: "mtp.hc_head_base", GGUF: "output_hc_base.weight", Exact: true},
		{HF: "mtp.hc_head_scale", GGUF: "output_hc_scale.weight", Exact: true},
		{HF: "mtp.markov_head.markov_w1", GGUF: "markov_w1"},
		{HF: "mtp.markov_head.markov_w2", GGUF: "markov_w2"},
		{HF: "mtp.confidence_head.proj", GGUF: "conf_proj", Optional: true},
		{HF: "mtp.{bid}.ffn.gate.bias", GGUF: "blk.{bid}.exp_probs_b.bias", Exact: true},
		{HF: "mtp.{bid}.ffn.gate.bias_vl", Exact: true}, // for images; drafts are text
	}, v4Layer("mtp.{bid}."))),
}

// v4Model is the reason to drop tensors of the target model from the draft's file.
const v4Model = "of the model that the drafts are for"

// v4Stages returns the draft's number of layers, counted by tensor names; 1 without names.
func v4Stages(c *config.View) (int64, error) {
	if c.Facts.Tensors == nil {
		return 1, nil
	}
	var n int64
	for _, name := range c.Facts.Tensors {
		rest, ok := strings.CutPrefix(name, "mtp.")
		number, part, dot := strings.Cut(rest, ".")
		if !ok || !dot || slices.ContainsFunc(v4NextNOutside,
			func(end string) bool { return strings.HasPrefix(part, end) }) ||
			table.IsLayerBelow(number, n) {
			continue
		}
		if !table.IsLayerBelow(number, config.MaxBlocks) {
			return 0, fault.Errorf(fault.Broken, "tensor %q: want the number of a layer below %d after mtp", name,
				config.MaxBlocks)
		}
		for !table.IsLayerBelow(number, n) {
			n++
		}
	}
	if n == 0 {
		return 0, fault.Errorf(fault.Broken, "the checkpoint has no layers of drafts, whose tensors begin with mtp.")
	}
	return n, nil
}

// v4NextNOutside are prefixes of the tensors that the draft has once, in one of its layers.
var v4NextNOutside = []string{"main_", "norm.", "hc_head_", "markov_head.", "confidence_head."}

// v4Unused and v4Expect are keys of models and drafts, v4DraftKeys keys of drafts only.
var (
	v4Unused = []string{"topk_method", "ep_size", "expert_dtype", "compress_rates", "layer_types", "mlp_layer_types",
		"o_groups", "partial_rotary_factor",
		"rope_parameters", "rope_scaling.mscale", "rope_scaling.mscale_all_dim", "aligner_dim"}
	v4DraftKeys = []string{"dspark_block_size", "dspark_target_layer_ids", "dspark_noise_token_id",
		"dspark_markov_rank"}
	v4Expect = []table.Expect{parts.SiLU, parts.Expect("attention_bias", "false"), parts.Expect("mlp_bias", "false"),
		parts.Expect("num_key_value_heads", "1")}
)

// v4Metadata is the metadata of models and drafts; blocks returns the number of layers.
func v4Metadata(blocks func(*config.View) (int64, error), ratios func(*config.View) ([]int64, error)) []table.Row {
	return slices.Concat(parts.CommonRows, []table.Row{
		parts.UintRow("rope.dimension_count", "qk_rope_head_dim"),
		parts.UintRow("attention.q_lora_rank", "q_lora_rank"),
		parts.UintRow("attention.sliding_window", "sliding_window"),
		parts.UintRow("expert_feed_forward_length", "moe_intermediate_size"),
		parts.UintRow("expert_shared_count", "n_shared_experts"),
		parts.FloatRow("expert_weights_scale", "routed_scaling_factor"),
		parts.BoolRow("expert_weights_norm", "norm_topk_prob"),
		{Key: "swiglu_clamp_exp", Derive: v4Clamp(blocks)},
		{Key: "swiglu_clamp_shexp", Derive: v4Clamp(blocks)},
	}, parts.IndexerMetadata, []table.Row{
		parts.UintRow("attention.output_group_count", "o_groups"),
		parts.UintRow("attention.output_lora_rank", "o_lora_rank"),
		{Key: "attention.compress_ratios", Derive: func(c *config.View) (gguf.Value, bool,
			error) {
			return parts.PerLayer(ratios(c))
		}},
		parts.FloatRow("attention.compress_rope_freq_base", "compress_rope_theta"),
		parts.UintRow("hyper_connection.count", "hc_mult"),
		parts.UintRow("hyper_connection.sinkhorn_iterations", "hc_sinkhorn_iters"),
		parts.FloatRow("hyper_connection.epsilon", "hc_eps"),
		parts.UintRow("hash_layer_count", "num_hash_layers"),
	})
}

// v4Layer are the rows of layers of models and of drafts; layer is the prefix of names in the checkpoint.
func v4Layer(layer string) []table.TensorRow {
	return []table.TensorRow{
		{HF: layer + "ffn.experts.{xid}.w1", GGUF: "blk.{bid}.ffn_gate_exps", Kind: table.FirstByLayer(1),
			Experts: v4Experts},
		{HF: layer + "ffn.experts.{xid}.w2", GGUF: "blk.{bid}.ffn_down_exps", Kind: table.FirstByLayer(1),
			Experts: v4Experts},
		{HF: layer + "ffn.experts.{xid}.w3", GGUF: "blk.{bid}.ffn_up_exps", Kind: table.FirstByLayer(1),
			Experts: v4Experts},

		{HF: layer + "attn_norm", GGUF: "blk.{bid}.attn_norm"},
		{HF: layer + "ffn_norm", GGUF: "blk.{bid}.ffn_norm"},
		{HF: layer + "hc_attn_fn", GGUF: "blk.{bid}.hc_attn_fn.weight", Exact: true},
		{HF: layer + "hc_attn_base", GGUF: "blk.{bid}.hc_attn_base.weight", Exact: true},
		{HF: layer + "hc_attn_scale", GGUF: "blk.{bid}.hc_attn_scale.weight", Exact: true},
		{HF: layer + "hc_ffn_fn", GGUF: "blk.{bid}.hc_ffn_fn.weight", Exact: true},
		{HF: layer + "hc_ffn_base", GGUF: "blk.{bid}.hc_ffn_base.weight", Exact: true},
		{HF: layer + "hc_ffn_scale", GGUF: "blk.{bid}.hc_ffn_scale.weight", Exact: true},

		{HF: layer + "attn.attn_sink", GGUF: "blk.{bid}.attn_sinks.weight", Exact: true},
		{HF: layer + "attn.wq_a", GGUF: "blk.{bid}.attn_q_a"},
		{HF: layer + "attn.q_norm", GGUF: "blk.{bid}.attn_q_a_norm"},
		{HF: layer + "attn.wq_b", GGUF: "blk.{bid}.attn_q_b"},
		{HF: layer + "attn.wkv", GGUF: "blk.{bid}.attn_kv"},
		{HF: layer + "attn.kv_norm", GGUF: "blk.{bid}.attn_kv_a_norm"},
		{HF: layer + "attn.wo_a", GGUF: "blk.{bid}.attn_output_a"},
		{HF: layer + "attn.wo_b", GGUF: "blk.{bid}.attn_output_b"},

		{HF: layer + "ffn.gate", GGUF: "blk.{bid}.ffn_gate_inp"},
		{HF: layer + "ffn.shared_experts.w1", GGUF: "blk.{bid}.ffn_gate_shexp"},
		{HF: layer + "ffn.shared_experts.w2", GGUF: "blk.{bid}.ffn_down_shexp"},
		{HF: layer + "ffn.shared_experts.w3", GGUF: "blk.{bid}.ffn_up_shexp"},
	}
}

// v4StoredTypes sets the type of rows from the stored type: F32 and BF16 stay, FP8 becomes Q8_0.
func v4StoredTypes(list []table.TensorRow) []table.TensorRow {
	for i := range list {
		if list[i].Type == nil {
			list[i].Type = func(out gguf.Type, from table.Stored) gguf.Type {
				switch {
				case from.Scheme != "":
					return gguf.TypeQ8_0
				case from.Type == gguf.TypeF32, from.Type == gguf.TypeBF16:
					return from.Type
				}
				return out
			}
		}
	}
	return list
}

// v4NextN returns the number of MTP layers, which are written to a separate file only.
func v4NextN(c *config.View) (int64, error) {
	if c.Options.NextN != config.OnlyNextN {
		return 0, nil
	}
	return parts.NextNLayers(c)
}

// v4NextNOnly is the condition that only the MTP layers are converted.
func v4NextNOnly(l table.Layer) (bool, error) { return l.Options.NextN == config.OnlyNextN, nil }

func v4Experts(l table.Layer) (int64, error) { return l.Require("n_routed_experts") }

// v4Hashed is the condition of layers that route tokens to experts by a table.
func v4Hashed(l table.Layer) (bool, error) {
	n, err := l.Require("num_hash_layers")
	return l.Bid < n, err
}

// v4Compressed is the condition of layers that compress keys and values, v4Indexed of layers whose indexer selects
// among these.
func v4Compressed(l table.Layer) (bool, error) { r, err := v4Ratio(l); return r != 0, err }
func v4Indexed(l table.Layer) (bool, error)    { r, err := v4Ratio(l); return r == 4, err }

func v4Ratio(l table.Layer) (int64, error) {
	list, err := v4Ratios(l.View)
	if err == nil && (l.Bid < 0 || l.Bid >= int64(len(list))) {
		err = fault.Errorf(fault.Broken, "%s: key %q has %d numbers, want one for layer %d", l.FileName(),
			"compress_ratios", len(list), l.Bid)
	}
	if err != nil {
		return 0, err
	}
	return list[l.Bid], nil
}

// v4Ratios returns the compression ratio of each layer (positions per compressed one), 0 for none.
func v4Ratios(c *config.View) ([]int64, error) {
	const key = "compress_ratios"
	list, ok, err := c.Ints(key)
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: key %q is missing", c.FileName(), key)
	}
	for _, n := range list {
		if err == nil && n != 0 && n != 4 && n != 128 {
			err = fault.Errorf(fault.Unsupported, "%s: key %q holds %d, want 0, 4 or 128", c.FileName(), key, n)
		}
	}
	return list, err
}

// v4Clamp writes the limit at which each layer clamps the experts' gates.
func v4Clamp(blocks func(*config.View) (int64, error)) table.Derive {
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
		limit, ok, err := c.Float("swiglu_limit")
		if err == nil && !ok {
			err = fault.Errorf(fault.Broken, "%s: key %q is missing", c.FileName(), "swiglu_limit")
		}
		if err != nil {
			return v, false, err
		}
		n, err := blocks(c)
		if err == nil && (n < 0 || n > 2*config.MaxBlocks) {
			err = config.WrongType("num_hidden_layers", "a number of layers", n)
		}
		if err != nil {
			return v, false, err
		}
		return gguf.Float32s(slices.Repeat([]float32{float32(limit)}, int(n))), true, nil
	}
}

// v4Blocks returns the number of layers of a model.
func v4Blocks(c *config.View) (int64, error) {
	n, err := c.BoundedBlockCount(0)
	if err != nil {
		return 0, err
	}
	more, err := v4NextN(c)
	return n + more, err
}
