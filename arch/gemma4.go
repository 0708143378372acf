package arch

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
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

var _ = register(gemma4, gemma4Unified, gemma4Assistant, embeddingGemma2, gemma4DSpark)

// Gemma 4: sliding-window and full-attention layers have heads of different sizes, and in some models the last layers
// reuse keys and values of earlier ones (shared KV). Source: the Gemma 4 classes of the reference's converter.

// gemma4 is the language model of Gemma 4, alone or in a multimodal model.
var gemma4 = &table.Arch{
	Name:    "gemma4",
	Classes: []string{"Gemma4ForCausalLM", "Gemma4ForConditionalGeneration"},
	Config: config.Rules{Types: []string{"gemma4_text", "gemma4_unified_text"},
		Derived: config.DerivedKeys{"layer_types": gemma4LayerTypes}},
	Tokenizer:        tokenizer.Gemma4{},
	Fused:            table.FusedQKV | table.FusedGateUp,
	RopePerAttention: true,
	Metadata:         gemma4Rows(gemma4Shared),
	Unused:           gemma4Unused,
	Expect:           gemma4Expect,
	Tensors: slices.Concat(
		parts.TransformBySuffix(parts.EmbedRows, "embed_tokens", parts.VocabRows), gemma4Norms, gemma4QueryRows,
		parts.Only(parts.Not(gemma4Shares), gemma4KeyRows), parts.Only(gemma4Shares, parts.OptionalRows(gemma4KeyRows)),
		gemma4ValueRows,
		parts.MLPRows,
		parts.Only(gemma4HasPerLayer, append([]table.TensorRow{
			{HF: "model.embed_tokens_per_layer", GGUF: "per_layer_token_embd"},
		}, parts.PerLayerRows("model.", "model.layers.{bid}.")...)),
		parts.Only(parts.IsTrue("enable_moe_block"), []table.TensorRow{
			{HF: "model.layers.{bid}.pre_feedforward_layernorm_2", GGUF: "blk.{bid}.pre_ffw_norm_2"},
			{HF: "model.layers.{bid}.post_feedforward_layernorm_1", GGUF: "blk.{bid}.post_ffw_norm_1"},
			{HF: "model.layers.{bid}.post_feedforward_layernorm_2", GGUF: "blk.{bid}.post_ffw_norm_2"},
			{HF: "model.layers.{bid}.router.proj", GGUF: "blk.{bid}.ffn_gate_inp"},
			{HF: "model.layers.{bid}.router.scale", Exact: true, GGUF: "blk.{bid}.ffn_gate_inp.scale"},
			{HF: "model.layers.{bid}.router.per_expert_scale", Exact: true, GGUF: "blk.{bid}.ffn_down_exps.scale",
				Kind: table.FactorOf("blk.{bid}.ffn_down_exps.weight")},
		}),
		parts.Only(parts.Both(parts.IsTrue("enable_moe_block"), parts.Not(gemma4Apart)), []table.TensorRow{
			{HF: "model.layers.{bid}.experts.gate_up_proj", Exact: true, GGUF: "blk.{bid}.ffn_gate_up_exps.weight"},
			{HF: "model.layers.{bid}.experts.down_proj", Exact: true, GGUF: "blk.{bid}.ffn_down_exps.weight"},
		}),
		parts.Only(parts.Both(parts.IsTrue("enable_moe_block"), gemma4Apart), []table.TensorRow{
			{HF: "model.layers.{bid}.experts.{xid}.gate_proj", GGUF: "blk.{bid}.ffn_gate_exps"},
			{HF: "model.layers.{bid}.experts.{xid}.up_proj", GGUF: "blk.{bid}.ffn_up_exps"},
			{HF: "model.layers.{bid}.experts.{xid}.down_proj", GGUF: "blk.{bid}.ffn_down_exps"},
		}),
	),
	Extra: gemma4Factors,
	Graph: gemma4Graph,
}

// gemma4Apart is the condition that every expert has its own tensors, as in quantized checkpoints.
func gemma4Apart(l table.Layer) (bool, error) {
	return slices.ContainsFunc(l.Facts.Tensors,
		func(name string) bool { return strings.Contains(name, ".experts.0.") }), nil
}

// gemma4Unified is gemma4 in multimodal models without vision and audio encoders, see gemma4UnifiedVision.
var gemma4Unified = &table.Arch{
	Name:             gemma4.Name,
	Classes:          []string{"Gemma4UnifiedForConditionalGeneration"},
	Tokenizer:        gemma4.Tokenizer,
	Fused:            gemma4.Fused,
	RopePerAttention: true,
	Metadata:         slices.Concat(gemma4Rows(gemma4Shared), []table.Row{parts.SuppressRow}),
	Unused:           gemma4.Unused,
	Expect:           gemma4.Expect,
	Tensors:          gemma4.Tensors,
	Extra:            gemma4.Extra,
	Graph:            gemma4Graph,
}

// gemma4Assistant is the draft model of a Gemma 4; all its layers use keys and values of the target model.
var gemma4Assistant = &table.Arch{
	Name:             "gemma4-assistant",
	Classes:          []string{"Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM"},
	Tokenizer:        tokenizer.Gemma4{},
	RopePerAttention: true,
	Metadata: slices.Concat(gemma4Rows(gemma4AllShared), []table.Row{
		parts.UintRow("embedding_length_out", "backbone_hidden_size"),
		{Key: "nextn_predict_layers", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := c.BlockCount()
			return table.Uint32Of(n, true, err)
		}},
	}),
	// ordered embeddings only speed up the choice of tokens; the file has none
	Unused: append([]string{"use_ordered_embeddings", "num_centroids", "centroid_intermediate_top_k"}, gemma4Unused...),
	Expect: append([]table.Expect{parts.Expect("hidden_size_per_layer_input", "0"),
		parts.Expect("vocab_size_per_layer_input", "0"),
		parts.Expect("enable_moe_block", "false"), parts.Expect("use_double_wide_mlp", "false")}, gemma4Expect...),
	Drop: []table.Drop{{Prefix: "masked_embedding.", Why: "of the search among ordered embeddings"}},
	Shapes: shape.Rules{Dims: gemma4Dims, Tensors: shape.Table{
		"rope_freqs": "@rope.dimension_count / 2", "layer_output_scale": "1",
		"nextn.pre_projection":  "2 * @embedding_length_out, n_embd",
		"nextn.post_projection": "n_embd, @embedding_length_out",
	}},
	Tensors: slices.Concat([]table.TensorRow{
		{HF: "model.embed_tokens", GGUF: "token_embd", Transform: parts.VocabRows},
		{HF: "model.norm", GGUF: "output_norm"},
		{HF: "lm_head", GGUF: "output", Optional: true, Kind: table.SameAs("token_embd.weight")},
		{HF: "pre_projection", GGUF: "nextn.pre_projection"},
		{HF: "post_projection", GGUF: "nextn.post_projection"},
	}, gemma4Norms, gemma4QueryRows, parts.MLPRows),
	Extra: gemma4Factors,
}

// embeddingGemma2 is the embedding model made of Gemma 4; it has no table of per-layer embeddings, its layers compute
// the per-layer inputs.
var embeddingGemma2 = &table.Arch{
	Name:             "gemma-embedding2",
	Classes:          []string{"EmbeddingGemma2Model"},
	Tokenizer:        tokenizer.Gemma4{},
	RopePerAttention: true,
	Metadata: slices.Concat(parts.Override(gemma4Rows(func(*config.View) (int64, error) { return 0, nil }),
		table.Row{Key: "attention.sliding_window", Derive: func(c *config.View) (gguf.Value, bool, error) {
			// the config counts the positions on one side, the runtime on both sides
			n, err := c.Require("sliding_window")
			return table.Uint32Of(2*n, true, err)
		}},
	), []table.Row{
		parts.UintRow("embedding_length_out", "embedding_dim"),
		{Key: "attention.causal", Const: gguf.Bool(false)},
		parts.PoolingRow,
	}),
	Unused: gemma4Unused,
	Expect: gemma4Expect,
	Rename: parts.HeadlessNames,
	Tensors: slices.Concat(
		[]table.TensorRow{
			{HF: "model.embed_tokens", GGUF: "token_embd", Transform: parts.VocabRows},
			{HF: "model.norm", GGUF: "output_norm"},
			{HF: "embedding_projection", GGUF: "output"},
		}, gemma4Norms, gemma4QueryRows, gemma4KeyRows, gemma4ValueRows, parts.MLPRows,
		parts.PerLayerRows("ple.", "model.layers.{bid}.ple_block."),
	),
	Graph: &graph.Model{
		Dims: gemma4Sizes,
		Norm: graph.RMS, Embed: parts.ScaledEmbedding, Final: parts.OutputNorm, Head: graph.Pool{Projected: true},
		Layer:   gemma4Layer(graph.SymmetricWindow, graph.Both, graph.PerLayerEmbedding{Act: graph.GELU, Computed: true}),
		Runtime: parts.EncoderRuntime,
	},
}

// gemma4Graph is Gemma 4, with experts or without.
var gemma4Graph = &graph.Model{
	Reads: []string{"attention.sliding_window!", "attention.sliding_window_pattern!"},
	Dims:  gemma4Sizes,
	Norm:  graph.RMS, Embed: parts.ScaledEmbedding, Final: parts.OutputNorm, Head: graph.LM{SoftCap: parts.LogitSoftCap},
	Layer: gemma4Layer(graph.SlidingWindow, graph.CausalWhole, graph.PerLayerEmbedding{Act: graph.GELU}),
}

// gemma4Sizes: sliding-window layers (swa) have heads of another size. The first n_own layers have keys and values of
// their own.
var gemma4Sizes = graph.Dims{
	"swa":           "if(n_swa != 0 and @attention.sliding_window_pattern != 0, 1, 0)",
	"n_own":         "n_layer - (@attention.shared_kv_layers or 0)",
	"n_head_size":   "@attention.key_length or n_embd / n_head",
	"n_embd_head_k": "if(swa, @attention.key_length_swa or n_head_size, n_head_size)",
	"n_embd_head_v": "if(swa, @attention.value_length_swa or n_head_size_v, n_head_size_v)",
	"n_head_size_v": "@attention.value_length or n_embd / n_head",
	"n_rot_full":    "@rope.dimension_count or n_head_size",
	"n_rot":         "if(swa, @rope.dimension_count_swa or n_rot_full, n_rot_full)",
}

// gemma4Layer is a layer of a model with windows of that shape. Scores have no factor. The last layers with windows use
// the keys and values of the last layer before them that has a window, and likewise those without.
func gemma4Layer(window graph.WindowShape, sees graph.Direction, further graph.PerLayerEmbedding) []graph.Step {
	attention := func(source graph.Num, rope graph.RoPE) graph.Attention {
		return graph.Attention{
			QKV:   graph.SharedKV{From: "n_own", Layer: source, Own: graph.KeysAsValues{}},
			Steps: []graph.HeadStep{parts.QKNorm, rope, graph.ValueNorm{}},
			Scale: "1", Sees: sees,
		}
	}
	local, global := attention("n_own - 2", parts.DefaultLocalNeoX), attention("n_own - 1", parts.NeoX)
	local.Window = graph.Window{Tokens: "n_swa", Shape: window}
	dense := parts.Sandwich(parts.LocalGlobal(graph.Sliding{}, local, global), parts.GeGLU)
	return []graph.Step{
		dense[0],
		graph.ChooseStep{
			{In: graph.Has("ffn_gate_inp"), Steps: []graph.Step{gemma4Experts}},
			{In: graph.Every{}, Steps: dense[1:]},
		},
		further, graph.LearnedScale{Tensor: "layer_output_scale"},
	}
}

// gemma4Experts has experts next to the dense network, each with norms of its own.
var gemma4Experts = graph.Residual{
	Part: graph.Sum{
		graph.Normed{Pre: graph.Norm{Name: "ffn_norm"}, Part: parts.GeGLU, Post: graph.Norm{Name: "post_ffw_norm_1"}},
		graph.Normed{Part: graph.MoE{Router: parts.RouterTopK, Experts: parts.GeGLU,
			With: []graph.MoEOption{graph.RouterNorm{Experts: graph.Norm{Name: "pre_ffw_norm_2"}}}},
			Post: graph.Norm{Name: "post_ffw_norm_2"}},
	},
	Post: graph.Norm{Name: "post_ffw_norm"},
}

// gemma4Rows are the rows of Gemma 3 and the rows with a value per layer. shared returns the number of layers with
// shared KV.
func gemma4Rows(shared func(*config.View) (int64, error)) []table.Row {
	return slices.Concat(parts.Override(parts.Gemma3Rows,
		table.Row{Key: "feed_forward_length", Derive: gemma4Widths(shared)},
		table.Row{Key: table.KeyHeadCountKV, Derive: gemma4KeyHeads},
		table.Row{Key: "attention.causal", Derive: gemma4Causal},
		table.Row{Key: "rope.scaling.type", Derive: gemma4RopeType},
		table.Row{Key: "attention.key_length", Derive: gemma4FullHead},
		table.Row{Key: "attention.value_length", Derive: gemma4FullHead},
		table.Row{Key: "attention.sliding_window", Derive: gemma4Window},
	), []table.Row{
		{Key: "attention.shared_kv_layers", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := shared(c)
			return table.Uint32Of(n, true, err)
		}},
		{Key: "embedding_length_per_layer_input", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, _, err := c.Int("hidden_size_per_layer_input")
			return table.Uint32Of(n, true, err)
		}},
		{Key: "attention.sliding_window_pattern", Derive: func(c *config.View) (gguf.Value, bool, error) {
			windows, err := gemma4Windows(c)
			return gguf.Bools(windows), len(windows) > 0, err
		}},
		parts.UintRow("attention.key_length_swa", "head_dim"),
		parts.UintRow("attention.value_length_swa", "head_dim"),
		parts.Optional(parts.UintRow("expert_feed_forward_length", "expert_intermediate_size",
			"moe_intermediate_size")),
		{Key: "rope.dimension_count", Derive: gemma4FullHead}, // the whole head, see gemma4Factors
		{Key: "rope.dimension_count_swa", Derive: gemma4WindowRope},
	})
}

// gemma4Unused are keys whose settings follow from the tensors or from the tokenizer.
var gemma4Unused = []string{"layer_types", "enable_moe_block", "attention_k_eq_v", "per_layer_config",
	"vocab_size_per_layer_input", "sliding_window_pattern", "cache_implementation",
	"audio_token_id", "boa_token_id", "boi_token_id", "eoa_token_id", "eoa_token_index", "eoi_token_id",
	"image_token_id", "video_token_id",
	"vision_soft_tokens_per_image", "audio_soft_tokens_per_image"}

// gemma4Expect: bidirectional attention "vision" is for the tokens of images only; for "all" see gemma4Causal.
var gemma4Expect = []table.Expect{parts.Expect("hidden_activation", parts.GELUTanh...),
	parts.Expect("attn_logit_softcapping"),
	parts.Expect("use_bidirectional_attention", "vision", "all")}

// gemma4Dims: sliding_window_pattern is 1 for a layer with a window, else 0.
var gemma4Dims = shape.Table{
	"n_embd_head_k": "@attention.sliding_window_pattern * @attention.key_length_swa + (1 - " +
		"@attention.sliding_window_pattern) * @attention.key_length",
	"n_embd_head_v": "@attention.sliding_window_pattern * @attention.value_length_swa + (1 - " +
		"@attention.sliding_window_pattern) * @attention.value_length",
	"n_rot": "@attention.sliding_window_pattern * @rope.dimension_count_swa + (1 - " +
		"@attention.sliding_window_pattern) * @rope.dimension_count",
}

// gemma4Norms are the norms around attention and FFN, and the scale of the layer's output.
var gemma4Norms = append(slices.Clone(parts.SandwichNorms),
	table.TensorRow{HF: "model.layers.{bid}.layer_scalar", Exact: true, GGUF: "blk.{bid}.layer_output_scale.weight"})

var gemma4QueryRows = []table.TensorRow{
	{HF: "model.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q"},
	{HF: "model.layers.{bid}.self_attn.q_norm", GGUF: "blk.{bid}.attn_q_norm"},
	{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output"},
}

// gemma4KeyRows are the keys of layers without shared KV; published models have unused ones in some other layers, too.
var gemma4KeyRows = []table.TensorRow{
	{HF: "model.layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.attn_k"},
	{HF: "model.layers.{bid}.self_attn.k_norm", GGUF: "blk.{bid}.attn_k_norm"},
}

// gemma4ValueRows are optional in layers that use their keys as values.
var gemma4ValueRows = []table.TensorRow{
	{HF: "model.layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.attn_v", If: parts.Not(gemma4NoValues)},
	{HF: "model.layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.attn_v", If: gemma4NoValues, Optional: true},
}

// gemma4Shares is the condition of the last layers, which reuse keys and values of earlier ones (shared KV).
func gemma4Shares(l table.Layer) (bool, error) {
	blocks, err := l.BlockCount()
	if err != nil {
		return false, err
	}
	n, err := gemma4Shared(l.View)
	return l.Bid >= blocks-n, err
}

// gemma4NoValues is the condition of layers without a value projection: layers with shared KV and, with
// attention_k_eq_v, full-attention layers.
func gemma4NoValues(l table.Layer) (bool, error) {
	if shares, err := gemma4Shares(l); err != nil || shares {
		return shares, err
	}
	same, _, err := l.Bool("attention_k_eq_v")
	if err != nil || !same {
		return false, err
	}
	blocks, err := l.BlockCount()
	if err != nil {
		return false, err
	}
	kind, err := l.LayerType(l.Bid)
	return kind != parts.Sliding || l.Bid == blocks-1 && l.KnownType() != "", err
}

// gemma4HasPerLayer is the condition that the model has per-layer inputs.
func gemma4HasPerLayer(l table.Layer) (bool, error) {
	n, _, err := l.Int("hidden_size_per_layer_input")
	return n > 0, err
}

// gemma4Shared returns the number of layers that reuse keys and values of earlier ones (shared KV).
func gemma4Shared(c *config.View) (int64, error) {
	blocks, err := c.BlockCount()
	if err != nil {
		return 0, err
	}
	n, err := c.Require("num_kv_shared_layers")
	if err == nil && (n < 0 || n > blocks) {
		err = config.WrongType("num_kv_shared_layers", "a number of layers", n)
	}
	return n, err
}

// gemma4AllShared is gemma4Shared for an assistant, whose layers all use keys and values of the target model.
func gemma4AllShared(c *config.View) (int64, error) {
	blocks, err := c.BlockCount()
	if err != nil {
		return 0, err
	}
	n, err := c.IntOr(blocks, "num_kv_shared_layers")
	if err == nil && n != blocks {
		err = fault.Errorf(fault.Unsupported,
			"%s: key \"num_kv_shared_layers\" is %d, want all %d layers of an assistant", c.FileName(), n, blocks)
	}
	return n, err
}

// gemma4Windows reports for each layer whether it has a sliding window. In transformers the last layer is a
// full-attention layer, regardless of the config.
func gemma4Windows(c *config.View) ([]bool, error) {
	kinds, ok, err := c.LayerTypes()
	if err == nil && !ok {
		_, err = c.LayerType(0) // an error that names the key
	}
	if err != nil {
		return nil, err
	}
	windows := make([]bool, len(kinds))
	for i, kind := range kinds {
		if kind != parts.Sliding && kind != "full_attention" {
			return nil, parts.UnsupportedPattern("layer_types",
				"layers of the kinds sliding_attention and full_attention")
		}
		windows[i] = kind == parts.Sliding && (i < len(kinds)-1 || c.KnownType() == "")
	}
	return windows, nil
}

// gemma4OfFull returns a size of full-attention layers: the value of key, else of inLayer in per_layer_config.
func gemma4OfFull(c *config.View, key, inLayer string) (n int64, ok bool, err error) {
	if n, ok, err = c.Int(key); err != nil || ok {
		return n, ok, err
	}
	const list = "per_layer_config"
	layers, isObject := c.Value(list).(map[string]any)
	if !isObject {
		return 0, false, nil
	}
	windows, err := gemma4Windows(c)
	if err != nil {
		return 0, false, err
	}
	for _, name := range slices.Sorted(maps.Keys(layers)) {
		o, isObject := config.ObjectIn(list+"."+name, layers[name])
		bid, err := strconv.ParseUint(name, 10, 31)
		if err != nil || !isObject {
			return 0, false, config.WrongType(list, "objects by numbers of layers", layers)
		}
		if bid >= uint64(len(windows)) || windows[bid] {
			continue
		}
		m, there, err := o.Int(inLayer)
		if err == nil && there && ok && m != n {
			err = fault.Errorf(fault.Unsupported,
				"%s: %s has %d and %d for %q in layers without a window, want one size", c.FileName(), list,
				n, m, inLayer)
		}
		if err != nil {
			return 0, false, err
		}
		if there {
			n, ok = m, true
		}
	}
	return n, ok, nil
}

// gemma4FullHead writes the size of a head in full-attention layers.
func gemma4FullHead(c *config.View) (gguf.Value, bool, error) {
	n, err := gemma4FullDim(c)
	return table.Uint32Of(n, true, err)
}

func gemma4FullDim(c *config.View) (int64, error) {
	const key = "global_head_dim"
	n, ok, err := gemma4OfFull(c, key, "head_dim")
	if err == nil && !ok {
		_, err = c.Require(key)
	}
	if err == nil && (n < 1 || n > config.MaxHeadDim) {
		err = config.WrongType(key, "a size of heads", n)
	}
	return n, err
}

// gemma4KeyHeads writes the number of key heads of each layer: sliding-window and full-attention layers may differ.
func gemma4KeyHeads(c *config.View) (v gguf.Value, ok bool, err error) {
	all, given, err := c.Int("num_key_value_heads")
	if err != nil {
		return v, false, err
	}
	full, ok, err := gemma4OfFull(c, "num_global_key_value_heads", "num_key_value_heads")
	if err != nil {
		return v, false, err
	}
	if !given {
		return gguf.Uint32(4), true, nil
	}
	if !ok {
		return table.Uint32Of(all, true, nil)
	}
	windows, err := gemma4Windows(c)
	list := make([]int64, len(windows))
	for i, window := range windows {
		list[i] = full
		if window {
			list[i] = all
		}
	}
	return parts.PerLayer(list, err)
}

// gemma4Widths writes the FFN width of each layer, which may be twice as large in layers with shared KV.
func gemma4Widths(shared func(*config.View) (int64, error)) table.Derive {
	const key = "intermediate_size"
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
		width, err := c.Require(key)
		if err != nil {
			return v, false, err
		}
		wide, _, err := c.Bool("use_double_wide_mlp")
		if err != nil || !wide {
			return table.Uint32Of(width, true, err)
		}
		blocks, err := (&table.Arch{}).Blocks(c)
		if err != nil {
			return v, false, err
		}
		n, err := shared(c)
		if err == nil && (width < 0 || width > config.MaxWidth) {
			err = config.WrongType(key, "a number of elements", width)
		}
		list := make([]int64, blocks)
		for i := range list {
			list[i] = width
			if int64(i) >= blocks-n {
				list[i] = 2 * width
			}
		}
		return parts.PerLayer(list, err)
	}
}

// gemma4Causal writes attention.causal = false if use_bidirectional_attention is "all", as in transformers.
func gemma4Causal(c *config.View) (v gguf.Value, ok bool, err error) {
	all, err := gemma4Bidirectional(c)
	if err != nil {
		return v, false, err
	}
	causal, isBool := c.Value("is_causal").(bool)
	return gguf.Bool(false), all || isBool && !causal, nil
}

func gemma4Bidirectional(c *config.View) (bool, error) {
	s, _, err := c.String("use_bidirectional_attention")
	return s == "all" && c.KnownType() != "", err
}

// gemma4Window writes the window n; n/2 + 1 in bidirectional models, as in transformers.
func gemma4Window(c *config.View) (v gguf.Value, ok bool, err error) {
	n, err := c.Require("sliding_window")
	if err != nil {
		return v, false, err
	}
	all, err := gemma4Bidirectional(c)
	if all {
		n = n/2 + 1
	}
	return table.Uint32Of(n, true, err)
}

// gemma4RopeType writes nothing for the proportional type, see gemma4Factors.
func gemma4RopeType(c *config.View) (v gguf.Value, ok bool, err error) {
	s, _, err := c.Rope().String("rope_type")
	if err == nil && s != "" && s != "default" && s != "proportional" {
		err = fault.Errorf(fault.Unsupported,
			"%s: rope type %q, want \"proportional\" or \"default\": the file cannot hold another one", c.FileName(), s)
	}
	return v, false, err
}

// gemma4WindowRope writes the number of rotary dimensions of a head in layers with a window: all of them.
func gemma4WindowRope(c *config.View) (gguf.Value, bool, error) {
	sliding := c.RopeRoot().Sub(parts.Sliding)
	s, _, err := sliding.String("rope_type")
	if err == nil && s != "" && s != "default" {
		err = fault.Errorf(fault.Unsupported, "%s: rope type %q of layers with a window, want \"default\"",
			c.FileName(), s)
	}
	if err != nil {
		return gguf.Value{}, false, err
	}
	part, ok, err := sliding.Float("partial_rotary_factor")
	if err == nil && ok && part != 1 {
		err = fault.Errorf(fault.Unsupported, "%s: a part of %v of a head rotates in layers with a window, want 1",
			c.FileName(), part)
	}
	if err != nil {
		return gguf.Value{}, false, err
	}
	n, err := c.Require("head_dim")
	return table.Uint32Of(n, true, err)
}

// gemma4Factors divide the RoPE frequencies of full-attention layers. Only the first pairs of dimensions of a head
// rotate; a huge factor makes the frequency of the others nearly 0.
var gemma4Factors = []table.ExtraTensor{{GGUF: "rope_freqs.weight", Make: func(c *config.View) (rows.Source, error) {
	if s, _, err := c.Rope().String("rope_type"); err != nil || s != "proportional" {
		if err == nil {
			err = fault.Errorf(fault.Unsupported, "%s: rope type %q of layers without a window, want \"proportional\"",
				c.FileName(), s)
		}
		return nil, err
	}
	part, err := c.Rope().RequireFloat("partial_rotary_factor")
	if err != nil {
		return nil, err
	}
	dim, err := gemma4FullDim(c)
	if err == nil && !(part >= 0 && part <= 1) {
		err = config.WrongType("partial_rotary_factor", "a part of a head", part)
	}
	if err != nil {
		return nil, err
	}
	factors := make([]float32, dim/2)
	for i := range factors {
		factors[i] = 1e30
		if i < int(float64(dim)*part/2) {
			factors[i] = 1
		}
	}
	return parts.RopeFactors(c, factors)
}}}

// gemma4DSpark is dspark with layers of Gemma 4, all with full attention and with keys that are the values, too.
// Source: the Gemma 4 DSpark class of the reference's converter.
var gemma4DSpark = func() *table.Arch {
	a := *parts.DFlash(&table.Arch{Classes: []string{"Gemma4DSparkModel"}},
		table.Row{Key: table.KeyHeadCountKV, Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := c.Require("num_global_key_value_heads")
			return table.Uint32Of(n, true, err)
		}},
		table.Row{Key: "attention.key_length", Derive: gemma4FullHead},
		table.Row{Key: "attention.value_length", Derive: gemma4FullHead},
		table.Row{Key: "rope.dimension_count", Derive: gemma4FullHead}, // the whole head, see gemma4Factors
		table.Row{Key: "embedding_scale", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := c.Require("hidden_size")
			return table.Float32Of(math.Sqrt(float64(n)), true, err)
		}},
		table.Row{Key: "attention.scale", Const: gguf.Float32(1)},
		table.Row{Key: "hidden_activation", Derive: gemma4DSparkActivation},
		table.Row{Key: "sample_from_anchor", Derive: func(c *config.View) (gguf.Value, bool, error) {
			b, ok, err := c.Bool("sample_from_anchor")
			return gguf.Bool(b || !ok), err == nil, err
		}},
		parts.ConfidenceRow,
	)
	a.RopePerAttention, a.RopeSections = true, false
	a.Metadata = parts.Override(parts.WithoutKeys(a.Metadata, "rope.freq_base_swa"),
		table.Row{Key: "rope.scaling.type", Derive: gemma4RopeType})
	a.Special = []table.Special{table.Draft{MaskToken: func(c *config.View) (int64, bool, error) {
		n, ok, err := parts.DFlashConfig(c).Int("mask_token_id")
		if !ok && err == nil {
			n, err = c.Require("mask_token_id")
		}
		return n, true, err
	}}}
	a.Expect = []table.Expect{parts.Expect("hidden_activation", "gelu_pytorch_tanh"),
		parts.Expect("attention_bias", "false"), parts.Expect("enable_moe_block", "false"),
		parts.Expect("markov_head_type", "vanilla"), parts.Expect("final_logit_softcapping", "0"),
		{Key: "markov_head_type", In: parts.DFlashConfig, Values: []string{"vanilla"}}}
	a.Unused = slices.Concat(a.Unused, gemma4Unused)
	a.Rename = slices.Concat([]table.Rename{{Prefix: "model.confidence_proj.", With: parts.ConfidenceHead},
		{Prefix: "confidence_proj.", With: parts.ConfidenceHead}}, a.Rename)
	a.Tensors = slices.Concat(parts.DFlashOutsideLayers(table.TensorRow{HF: "model.lm_head", GGUF: "output"}),
		gemma4Norms,
		gemma4QueryRows, gemma4KeyRows, parts.MLPRows, parts.DSparkHeads)
	a.Extra = gemma4Factors
	return &a
}()

// gemma4DSparkActivation writes the activation, and refuses configurations that the runtime cannot compute.
func gemma4DSparkActivation(c *config.View) (v gguf.Value, ok bool, err error) {
	if same, _, err := c.Bool("attention_k_eq_v"); err != nil || !same {
		return v, false, cmp.Or(err, fault.Errorf(fault.Unsupported,
			"%s: key %q is not true, but drafts of architecture dflash for Gemma 4 have no values besides their keys",
			c.FileName(), "attention_k_eq_v"))
	}
	kinds, _, err := c.LayerTypes()
	if err != nil {
		return v, false, err
	}
	if len(kinds) == 0 || slices.ContainsFunc(kinds, func(kind string) bool { return kind != "full_attention" }) {
		return v, false, parts.UnsupportedPattern("layer_types", "full_attention in all layers")
	}
	if few, err := parts.HasDraftVocabulary(table.Layer{View: c, Bid: -1}); err != nil || few {
		return v, false, cmp.Or(err, fault.Errorf(fault.Unsupported,
			"%s: key %q differs from %q, but drafts for Gemma 4 have all tokens of the model", c.FileName(),
			"draft_vocab_size", "vocab_size"))
	}
	return gguf.String("gelu_pytorch_tanh"), true, nil
}

// gemma4LayerTypes is the default of layer_types: every sixth layer and the last one have full attention.
func gemma4LayerTypes(v config.Values) (any, error) {
	last, err := v.Int("num_hidden_layers")
	if err != nil {
		return nil, err
	}
	return config.LayerKinds(v, func(bid int64) string {
		if (bid+1)%6 == 0 || bid+1 == last {
			return "full_attention"
		}
		return "sliding_attention"
	})
}
