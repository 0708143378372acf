package arch

import (
	"cmp"
	"math"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
	"ggforge/tokenizer"
)

var _ = register(lfm2, lfm2Embed, lfm2Audio, d1, d1Omni, lfm2moe)

// lfm2 and lfm2moe are Liquid AI's LFM2: short-convolution layers and attention layers. Source: the classes of lfm2.py
// of the reference's converter.
var (
	lfm2 = &table.Arch{
		Name:    "lfm2",
		Classes: []string{"Lfm2ForCausalLM", "LFM2ForCausalLM"},
		Config: config.Rules{Types: []string{"lfm2"},
			Derived: config.DerivedKeys{"layer_types": lfm2LayerTypes}},
		Tokenizer: tokenizer.BPE{},
		Fused:     table.FusedQKV,
		Metadata: slices.Concat(parts.Override(parts.CommonRows,
			table.Row{Key: "feed_forward_length", Derive: lfm2FeedForward},
			table.Row{Key: table.KeyHeadCountKV, Derive: lfm2HeadsKV},
		), []table.Row{
			parts.UintRow("vocab_size", "vocab_size"),
			parts.UintRow("shortconv.l_cache", "conv_L_cache"),
		}),
		Expect: []table.Expect{parts.Expect("conv_bias", "false")},
		Unused: slices.Concat(parts.MultimodalKeys, lfm2VisionKeys,
			[]string{"block_dim", "block_mlp_init_scale", "block_norm_eps", "block_out_init_scale", "block_use_swiglu",
				"block_use_xavier_init", "conv_dim",
				"conv_dim_out", "conv_use_xavier_init", "full_attn_idxs", "intermediate_size", "num_heads",
				"use_pos_enc",
				"theta", "tie_embedding"}),
		Rename: []table.Rename{{Prefix: "lfm.", With: "model."}}, // inside LFM2-Audio
		Drop: []table.Drop{
			{Prefix: "depthformer.", Why: table.OtherPart}, {Prefix: "depth_embedding", Why: table.OtherPart},
			{Prefix: "depth_linear.", Why: table.OtherPart},
			{Prefix: "codebook", Why: table.OtherPart},
		},
		Tensors: slices.Concat(lfm2Tensors, lfm2MLP),
		Graph:   lfm2Graph,
	}
	// lfm2Embed is LFM2 without its head, for embeddings or for late interaction, with a dense module after it; the
	// Bidirectional classes have bidirectional attention. ForMaskedLM classes have other tensor names.
	lfm2Embed = &table.Arch{
		Name:      "lfm2",
		Classes:   []string{"Lfm2Model", "Lfm2BidirectionalModel", "Lfm2BidirectionalForMaskedLM"},
		Tokenizer: tokenizer.BPE{},
		Fused:     table.FusedQKV,
		HeaderFirst: []table.Row{{Key: "embedding_length_out", Facts: config.FirstDenseFiles,
			Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
				if len(c.Facts.Dense) == 0 || c.Facts.Tensors == nil {
					return v, false, nil
				}
				return table.Uint32Of(c.Facts.Dense[0].Out, true, nil)
			}}},
		Metadata: slices.Concat(lfm2.Metadata, []table.Row{
			{Key: "attention.causal", Derive: func(c *config.View) (gguf.Value, bool, error) {
				return gguf.Bool(false),
					c.Class != "Lfm2Model", nil
			}},
			parts.PoolingRow,
		}),
		Expect: lfm2.Expect,
		Unused: lfm2.Unused,
		Rename: []table.Rename{
			{Prefix: "lfm2.", With: "model."},
			{Prefix: "embed_tokens.", With: "model.embed_tokens."},
			{Prefix: "embedding_norm.", With: "model.embedding_norm."},
			{Prefix: "layers.", With: "model.layers."},
		},
		Tensors: lfm2.Tensors,
		Graph:   lfm2Graph,
	}
	// lfm2Audio is the audio decoder of LFM2.5-Audio: an LFM2 and a linear layer from codes to spectra.
	lfm2Audio = &table.Arch{
		Name:      "lfm2",
		Classes:   []string{"Lfm25AudioTokenizer"},
		Tokenizer: tokenizer.None{},
		Fused:     table.FusedQKV,
		Metadata: slices.Concat(lfm2.Metadata, []table.Row{
			parts.UintRow("attention.sliding_window", "sliding_window"),
			parts.UintRow("embedding_length_out", "output_size"),
		}),
		Expect: lfm2.Expect,
		Unused: lfm2.Unused,
		Rename: lfm2.Rename,
		Drop: []table.Drop{
			{Prefix: "istft.window", Why: table.Silent}, // computed by runtimes
			{Prefix: "emb.emb", Why: "of the embedding of codes, which is part of the file for sound"},
		},
		Tensors: slices.Concat([]table.TensorRow{{HF: "lin", GGUF: "dense_2", Bias: table.MayBias}}, lfm2.Tensors),
		Graph:   lfm2Graph,
	}
	// d1 is Liquid AI's d1, a decision model made of LFM2-VL, which scores options by the logits of their labels.
	d1 = &table.Arch{
		Name:      "lfm2",
		Classes:   []string{"D1Model"},
		Config:    config.Rules{Auto: true},
		Tokenizer: parts.Asking(d1Prompt),
		Fused:     table.FusedQKV,
		Metadata:  slices.Concat(lfm2.Metadata, []table.Row{{Key: "decision.type", Const: gguf.String("lfm2-d1")}}),
		Expect:    lfm2.Expect,
		Unused:    lfm2.Unused,
		Tensors:   lfm2.Tensors,
		Graph:     lfm2Graph,
	}
	// lfm2VisionKeys are keys about the vision encoder of LFM2-VL.
	lfm2VisionKeys = []string{"do_image_splitting", "downsample_factor", "encoder_patch_size", "max_image_tokens",
		"max_num_patches", "max_pixels_tolerance", "max_tiles",
		"min_image_tokens", "min_tiles", "projector_hidden_size", "projector_use_layernorm", "tile_size",
		"use_image_special_tokens", "use_thumbnail"}
	// d1Omni is Liquid AI's d1-omni: an LFM2 with bidirectional attention, followed by head layers that score the state
	// of each option's marker.
	d1Omni = &table.Arch{
		Name:       "lfm2",
		Classes:    []string{"D1OmniModel"},
		Tokenizer:  d1OmniTokens,
		Fused:      table.FusedQKV,
		BlockCount: d1Layers,
		Metadata: slices.Concat(parts.Override(parts.CommonRows,
			table.Row{Key: table.KeyBlockCount, Derive: func(c *config.View) (gguf.Value, bool, error) {
				n, err := d1Layers(c)
				return table.Uint32Of(n, true, err)
			}},
			table.Row{Key: "feed_forward_length", Derive: d1FeedForward},
			table.Row{Key: table.KeyHeadCountKV, Derive: d1HeadsKV},
		), []table.Row{
			parts.UintRow("vocab_size", "vocab_size"),
			parts.UintRow("shortconv.l_cache", "conv_L_cache"),
			{Key: "attention.layer_norm_epsilon", Const: gguf.Float32(1e-5)},
			{Key: "attention.causal", Const: gguf.Bool(false)},
			{Key: "decision.type", Const: gguf.String("lfm2-d1-omni")},
			parts.UintRow("decision.block_count", "head_layers"),
			{Key: "decision.temperature", Facts: d1Temperatures, Many: parts.Temperatures},
		}),
		Expect: slices.Concat(lfm2.Expect, []table.Expect{ // the lengths to which programs truncate text
			parts.Expect("max_length", "16384"), parts.Expect("image_text_length", "896"),
			parts.Expect("audio_text_length", "15360"),
		}),
		Unused: slices.Concat(lfm2.Unused, []string{"temperatures", "block_auto_adjust_ff_dim"}),
		Rename: []table.Rename{
			{Prefix: "encoder.", With: "model."},
			{Prefix: "head.head.layers.", With: "head.layers.{bid}.",
				Number: parts.NumberAfter((*config.View).BlockCount)},
			{Prefix: "head.type_emb", With: "type_emb"},
			{Prefix: "head.scorer", With: "scorer"},
		},
		Drop: []table.Drop{{Prefix: "vision.", Why: table.OtherPart}, {Prefix: "audio.", Why: table.OtherPart}},
		Tensors: slices.Concat(parts.Restrict(parts.BeforeNextN, lfm2.Tensors),
			parts.DeciderLayers(parts.Not(parts.BeforeNextN))),
		Graph: lfm2Graph,
	}
	lfm2moe = &table.Arch{
		Name:      "lfm2moe",
		Classes:   []string{"Lfm2MoeForCausalLM"},
		Tokenizer: tokenizer.BPE{},
		Fused:     table.FusedQKV,
		Metadata: slices.Concat(parts.Override(parts.CommonRows,
			table.Row{Key: table.KeyHeadCountKV, Derive: lfm2HeadsKV},
		), []table.Row{
			parts.UintRow("expert_feed_forward_length", "moe_intermediate_size"),
			parts.UintRow("leading_dense_block_count", "num_dense_layers"),
			{Key: "expert_gating_func", Const: gguf.Uint32(parts.GatingFuncs["sigmoid"])},
			parts.UintRow("vocab_size", "vocab_size"),
			parts.UintRow("shortconv.l_cache", "conv_L_cache"),
		}),
		Expect: []table.Expect{
			parts.Expect("conv_bias", "false"),
			parts.Expect("norm_topk_prob", "true"),
			parts.Expect("routed_scaling_factor", "1"),
		},
		Unused: []string{"use_expert_bias", "tie_embedding", "conv_dim", "num_heads", "use_pos_enc"},
		Tensors: slices.Concat(lfm2Tensors, parts.Only(lfm2Dense, lfm2MLP), parts.Only(lfm2Sparse, []table.TensorRow{
			{HF: "model.layers.{bid}.feed_forward.gate", GGUF: "blk.{bid}.ffn_gate_inp"},
			{HF: "model.layers.{bid}.feed_forward.expert_bias", GGUF: "blk.{bid}.exp_probs_b.bias", Exact: true,
				Optional: true},
			{HF: "model.layers.{bid}.feed_forward.experts.{xid}.w1", GGUF: "blk.{bid}.ffn_gate_exps"},
			{HF: "model.layers.{bid}.feed_forward.experts.{xid}.w2", GGUF: "blk.{bid}.ffn_down_exps"},
			{HF: "model.layers.{bid}.feed_forward.experts.{xid}.w3", GGUF: "blk.{bid}.ffn_up_exps"},
		})),
		Graph: &graph.Model{
			Reads: []string{"expert_gating_func!"},
			Norm:  graph.RMS, Final: lfm2Final, Head: graph.LM{},
			Layer: parts.PreNorm(parts.RecurrentOr(graph.ShortConv{}, parts.GQA(parts.QKNorm, parts.NeoX)),
				parts.Sparse(parts.Experts(parts.RouterBiasTopK, graph.NoShared), parts.SwiGLU)),
		},
	}
	lfm2Tensors = slices.Concat([]table.TensorRow{
		{HF: "model.embed_tokens", GGUF: "token_embd"},
		{HF: "model.embedding_norm", GGUF: "token_embd_norm"},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "model.layers.{bid}.operator_norm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "model.layers.{bid}.ffn_norm", GGUF: "blk.{bid}.ffn_norm"},
	}, parts.Only(parts.LayerTypeIs("conv"), []table.TensorRow{
		{HF: "model.layers.{bid}.conv.conv", GGUF: "blk.{bid}.shortconv.conv", Transform: parts.SqueezeKernel},
		{HF: "model.layers.{bid}.conv.in_proj", GGUF: "blk.{bid}.shortconv.in_proj"},
		{HF: "model.layers.{bid}.conv.out_proj", GGUF: "blk.{bid}.shortconv.out_proj"},
	}), parts.Only(parts.Not(parts.LayerTypeIs("conv")), []table.TensorRow{
		{HF: "model.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q"},
		{HF: "model.layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.attn_k"},
		{HF: "model.layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.attn_v"},
		{HF: "model.layers.{bid}.self_attn.out_proj", GGUF: "blk.{bid}.attn_output"},
		{HF: "model.layers.{bid}.self_attn.q_layernorm", GGUF: "blk.{bid}.attn_q_norm"},
		{HF: "model.layers.{bid}.self_attn.k_layernorm", GGUF: "blk.{bid}.attn_k_norm"},
	}))
	lfm2MLP = []table.TensorRow{
		{HF: "model.layers.{bid}.feed_forward.w1", GGUF: "blk.{bid}.ffn_gate"},
		{HF: "model.layers.{bid}.feed_forward.w2", GGUF: "blk.{bid}.ffn_down"},
		{HF: "model.layers.{bid}.feed_forward.w3", GGUF: "blk.{bid}.ffn_up"},
	}
)

// lfm2Graph: if the file has a window, all attention layers have it.
var lfm2Graph = &graph.Model{
	Norm: graph.RMS, Final: lfm2Final, Head: graph.LM{},
	Layer: parts.PreNorm(parts.RecurrentOr(graph.ShortConv{}, graph.Attention{
		Steps: []graph.HeadStep{parts.QKNorm, parts.NeoX}, Window: parts.Window}), parts.SwiGLU),
	Second:  parts.DecisionHead,
	Unread:  parts.DecisionKeys,
	Runtime: []graph.Quirk{graph.NoCache{If: lfm2Decides}, graph.NoLogits{If: lfm2Decides}},
}

// lfm2Decides is whether a file has layers of a decision model, whose attention is bidirectional.
const lfm2Decides graph.Cond = "@decision.block_count != 0"

// lfm2Final is the last norm, whose name in files is that of a norm of embeddings.
var lfm2Final = []graph.Step{graph.Normalize{Norm: parts.EmbeddingNorm}}

func lfm2Dense(l table.Layer) (bool, error) {
	n, err := l.Require("num_dense_layers")
	return l.Bid < n, err
}

func lfm2Sparse(l table.Layer) (bool, error) {
	dense, err := lfm2Dense(l)
	return !dense, err
}

// lfm2HeadsKV writes the number of key heads of each layer, 0 for convolution layers.
func lfm2HeadsKV(c *config.View) (v gguf.Value, ok bool, err error) {
	types, _, err := c.LayerTypes()
	if err != nil {
		return v, false, err
	}
	n, err := c.Require(config.HeadKVKeys...)
	if err == nil && (n < 0 || n > math.MaxInt32 || len(types) == 0) {
		err = fault.Errorf(fault.Broken, "%s: %d key heads for the layers of \"layer_types\", of which there are %d",
			config.ConfigFile, n, len(types))
	}
	if err != nil {
		return v, false, err
	}
	list := make([]int32, len(types))
	for i, t := range types {
		if t != "conv" {
			list[i] = int32(n)
		}
	}
	return gguf.Int32s(list), true, nil
}

// lfm2FeedForward writes the FFN width; the config has it before or after its adjustment.
func lfm2FeedForward(c *config.View) (v gguf.Value, ok bool, err error) {
	n, err := c.Require("block_ff_dim", "intermediate_size")
	if err != nil {
		return v, false, err
	}
	adjust, ok, err := c.Bool("block_auto_adjust_ff_dim")
	if err != nil || !ok {
		if err == nil {
			err = fault.Errorf(fault.Broken, "%s: has no key \"block_auto_adjust_ff_dim\"", config.ConfigFile)
		}
		return v, false, err
	}
	if !adjust {
		return table.Uint32Of(n, true, nil)
	}
	multiple, err := c.Require("block_multiple_of")
	if err == nil && (multiple <= 0 || multiple > math.MaxInt32 || n > math.MaxInt32) {
		err = fault.Errorf(fault.Broken, "%s: width %d of the MLP in multiples of %d", config.ConfigFile, n, multiple)
	}
	if err != nil {
		return v, false, err
	}
	n = int64(2 * float64(n) / 3)
	factor, ok, err := c.Float("block_ffn_dim_multiplier")
	if err == nil && ok {
		n, err = config.Truncate(factor * float64(n))
	}
	return table.Uint32Of((n+multiple-1)/multiple*multiple, true, err)
}

// d1HeadLayers returns the number of head layers after the language model.
func d1HeadLayers(c *config.View) (int64, error) {
	n, err := c.Require("head_layers")
	if err == nil && (n < 0 || n > config.MaxBlocks) {
		err = config.WrongType("head_layers", "a number of layers", n)
	}
	return n, err
}

// d1Layers returns the number of all layers.
func d1Layers(c *config.View) (int64, error) {
	n, err := c.BoundedBlockCount(0)
	if err != nil {
		return 0, err
	}
	head, err := d1HeadLayers(c)
	return n + head, err
}

// perD1Layer returns a list per layer: trunk for the language model, head for each head layer.
func perD1Layer(c *config.View, trunk []int64, head int64, err error) (gguf.Value, bool, error) {
	if err != nil {
		return gguf.Value{}, false, err
	}
	n, err := d1HeadLayers(c)
	return parts.PerLayer(append(trunk, slices.Repeat([]int64{head}, int(n))...), err)
}

// d1FeedForward writes the FFN width of each layer.
func d1FeedForward(c *config.View) (v gguf.Value, ok bool, err error) {
	n, err := c.Require("intermediate_size")
	if err != nil {
		return v, false, err
	}
	factor, ok, err := c.Float("block_ffn_dim_multiplier")
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: has no key \"block_ffn_dim_multiplier\"", config.ConfigFile)
	}
	if err != nil {
		return v, false, err
	}
	multiple, err := c.Require("block_multiple_of")
	if err == nil && (min(multiple, n) <= 0 || max(multiple, n) > math.MaxInt32) {
		err = fault.Errorf(fault.Broken, "%s: width %d of the MLP in multiples of %d", config.ConfigFile, n, multiple)
	}
	if err != nil {
		return v, false, err
	}
	width, err := config.Truncate(factor * float64(int64(2*float64(n)/3)))
	if err != nil {
		return v, false, err
	}
	hidden, err := c.Require("hidden_size")
	if err != nil {
		return v, false, err
	}
	layers, err := c.BlockCount()
	if err != nil || layers < 0 || layers > config.MaxBlocks {
		return v, false, cmp.Or(err, config.WrongType("num_hidden_layers", "a number of layers", layers))
	}
	width = (width + multiple - 1) / multiple * multiple
	return perD1Layer(c, slices.Repeat([]int64{width}, int(layers)), 4*hidden, nil)
}

// d1HeadsKV writes the number of key heads of each layer, 0 for convolution layers; head layers have no GQA.
func d1HeadsKV(c *config.View) (v gguf.Value, ok bool, err error) {
	types, _, err := c.LayerTypes()
	if err != nil {
		return v, false, err
	}
	n, err := c.Require(config.HeadKVKeys...)
	if err != nil {
		return v, false, err
	}
	list := make([]int64, len(types))
	for i, t := range types {
		if t != "conv" {
			list[i] = n
		}
	}
	heads, err := c.Heads()
	return perD1Layer(c, list, heads, err)
}

// lfm2LayerTypes is the default of layer_types: attention in the layers of
// full_attn_idxs, or in all.
func lfm2LayerTypes(v config.Values) (any, error) {
	list, ok, err := v.Object().Ints("full_attn_idxs")
	if err != nil {
		return nil, err
	}
	return config.LayerKinds(v, func(bid int64) string {
		if !ok || slices.Contains(list, bid) {
			return "full_attention"
		}
		return "conv"
	})
}

// d1Temperatures is the source of Facts.Temperatures: temperatures of config.json, in their order.
var d1Temperatures = &config.Source{Read: readD1Temperatures}

func readD1Temperatures(files config.Files, _ *config.View, f *config.Facts) error {
	const key = "temperatures"
	data, err := config.ReadConfig(files, config.ConfigFile)
	if err != nil {
		return err
	}
	v, err := pyjson.Parse(data)
	if err != nil {
		return fault.Errorf(fault.Broken, "%s: %w", config.ConfigFile, err)
	}
	root, _ := v.(*pyjson.Object)
	list, ok := root.Get(key).(*pyjson.Object)
	if !ok {
		return config.WrongType(key, "an object", root.Get(key))
	}
	for _, name := range list.Names {
		if err := f.AddTemperature(name, list.Values[name]); err != nil {
			return err
		}
	}
	return nil
}
