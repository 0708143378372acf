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

var _ = register(glm4, glm4v, glmOCR, glm4moe, solarOpen, glm4MoELite, glmDSA)

// glm4 is GLM-4 of April 2025, glm4v the language model of its vision models, glmOCR the one of GLM-OCR, with MTP
// layers after the others. Source: the GLM classes of the reference's converter.
var (
	glm4 = &table.Arch{
		Name:      "glm4",
		Classes:   []string{"Glm4ForCausalLM"},
		Body:      table.Body{Classes: []string{"Glm4Model"}, Prefix: "model."},
		Tokenizer: glm4Tokens,
		Metadata: slices.Concat(parts.CommonRows,
			[]table.Row{{Key: "rope.dimension_count", Derive: parts.PartialRope(0.5)}}),
		Expect:  []table.Expect{parts.SiLU},
		Tensors: slices.Concat(parts.EmbedRows, parts.AttentionRows(table.MayBias, table.NoBias), glm4Layer),
		Graph:   glm4Graph,
	}
	glm4v = &table.Arch{
		Name:         "glm4",
		Classes:      []string{"Glm4vForConditionalGeneration"},
		Tokenizer:    glm4Tokens,
		RopeSections: true,
		Metadata:     glm4.Metadata,
		Unused:       glmMultimodalKeys,
		Expect:       []table.Expect{parts.SiLU},
		Tensors:      glm4vTensors,
		Graph:        glm4Graph,
	}
	glmOCR = &table.Arch{
		Name:         "glm4",
		Classes:      []string{"GlmOcrForConditionalGeneration"},
		Tokenizer:    glm4Tokens,
		RopeSections: true,
		BlockCount:   parts.BlocksWithNextN,
		Metadata:     append(parts.Override(glm4.Metadata, parts.BlocksRow), parts.NextNRow),
		Unused:       glmMultimodalKeys,
		Expect:       []table.Expect{parts.SiLU},
		Tensors:      slices.Concat(glm4vTensors, parts.Only(parts.NextN, parts.NextNRows)),
		Graph:        glm4Graph,
	}
)

// glm4Graph is that of all tables named glm4.
var glm4Graph = &graph.Model{
	Reads: []string{"rope.dimension_sections"},
	Norm:  graph.RMS, Layer: parts.Sandwich(parts.GQA(parts.Interleaved), parts.SwiGLU), Final: parts.OutputNorm,
	Head: graph.LM{},
}

// glmMultimodalKeys are ids of tokens for images and videos.
var glmMultimodalKeys = slices.Concat(parts.MultimodalKeys,
	[]string{"image_start_token_id", "image_end_token_id", "video_start_token_id", "video_end_token_id"})

var glm4vTensors = slices.Concat(parts.EmbedRows, []table.TensorRow{
	{HF: "model.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q", Bias: table.MayBias, Transform: ropeHalves},
	{HF: "model.layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.attn_k", Bias: table.MayBias, Transform: ropeHalves},
}, parts.AttentionRows(table.MayBias, table.NoBias)[2:], glm4Layer)

// glm4Layer are the rows of a layer except attention.
var glm4Layer = []table.TensorRow{
	{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
	{HF: "model.layers.{bid}.post_self_attn_layernorm", GGUF: "blk.{bid}.post_attention_norm"},
	{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.ffn_norm"},
	{HF: "model.layers.{bid}.post_mlp_layernorm", GGUF: "blk.{bid}.post_ffw_norm"},
	{HF: "model.layers.{bid}.mlp.gate_up_proj", GGUF: "blk.{bid}.ffn_up"}, // the gate first
	{HF: "model.layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down"},
}

// ropeHalves permutes the rotary dimensions of each head from interleaved RoPE (neighbours) to NeoX order (halves):
// the even ones first. The runtime supports M-RoPE sections in that order only.
var ropeHalves = &table.Transform{Name: "halves-of-rope",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		if l.RopeRoot().Members()["mrope_section"] == nil {
			return s, nil
		}
		head, err := l.HeadDim()
		if err != nil {
			return nil, err
		}
		part, ok, err := l.Rope().Float("partial_rotary_factor")
		if !ok {
			part = 0.5
		}
		if err == nil && (!(part >= 0 && part <= 1) || head < 1 || head > config.MaxHeadDim) {
			err = config.WrongType("partial_rotary_factor", "a part of a head", part)
		}
		if err != nil {
			return nil, err
		}
		rotating := int64(float64(head) * part)
		ne := s.NE()
		if n := ne[len(ne)-1]; len(ne) > 2 || n%head != 0 || rotating%2 != 0 {
			return nil, fault.Errorf(fault.Broken,
				"dimensions %s, want heads of %d with an even number of rotating dimensions, found %d", gguf.Shape(ne),
				head, rotating)
		}
		return rows.Regroup(s, func(i int64) int64 {
			in := i % head
			switch {
			case in >= rotating:
				return i
			case in < rotating/2:
				return i - in + 2*in
			}
			return i - in + 2*(in-rotating/2) + 1
		})
	}}

// glm4moe is GLM-4.5 and its successors. The MTP layers follow the others. solarOpen is Upstage's Solar Open, which
// differs in the vocabulary.
var (
	glm4moe = completeGLM4MoE(&table.Arch{
		Classes:   []string{"Glm4MoeForCausalLM", "Glm4vMoeForConditionalGeneration"},
		Body:      table.Body{Classes: []string{"Glm4MoeModel"}, Prefix: "model."},
		Tokenizer: parts.GLMTokens,
		NextN:     parts.NumberedNextN,
		Metadata:  parts.CommonRows,
	})
	solarOpen = completeGLM4MoE(&table.Arch{
		Classes:    []string{"SolarOpenForCausalLM"},
		Tokenizer:  solarTokens,
		BlockCount: parts.BlocksWithNextN,
		Metadata:   parts.Override(parts.CommonRows, parts.BlocksRow),
	})
)

var glm4MoEGraph = &graph.Model{
	Reads: []string{"expert_gating_func", "expert_weights_norm", "expert_weights_scale", "rope.dimension_sections"},
	Dims:  graph.Dims{"n_ff_exp": parts.SharedWidth},
	Norm:  graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
	Layer: parts.PreNormAs("post_attention_norm", parts.GQA(parts.MayQKNorm, parts.NeoX),
		parts.Sparse(parts.Experts(graph.Router{Score: graph.Sigmoid, Bias: true, Groups: true}, graph.MayShared),
			parts.SwiGLU)),
}

// completeGLM4MoE completes a table.
func completeGLM4MoE(a *table.Arch) *table.Arch {
	a.Name = "glm4moe"
	a.Fused = table.FusedQKV
	a.RopeSections = true
	a.Metadata = slices.Concat(a.Metadata, []table.Row{
		{Key: "rope.dimension_count", Derive: parts.PartialRope(0.5)},
		parts.Optional(parts.UintRow("expert_count", "n_routed_experts")),
		parts.Optional(parts.UintRow("expert_feed_forward_length", "moe_intermediate_size")),
		parts.Optional(parts.UintRow("expert_shared_count", "n_shared_experts")),
		parts.Optional(parts.UintRow("leading_dense_block_count", "first_k_dense_replace")),
		{Key: "expert_gating_func", Const: gguf.Uint32(parts.GatingFuncs["sigmoid"])},
		parts.Optional(parts.FloatRow("expert_weights_scale", "routed_scaling_factor")),
		parts.Optional(parts.BoolRow("expert_weights_norm", "norm_topk_prob")),
		parts.NextNRow,
	})
	a.Unused = append([]string{"use_qk_norm"}, glmMultimodalKeys...) // follows from the norms
	a.Expect = []table.Expect{parts.SiLU}
	a.Graph = glm4MoEGraph
	a.Tensors = slices.Concat(parts.EmbedRows, parts.AttentionRows(table.MayBias, table.NoBias), []table.TensorRow{
		{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.post_attention_norm"},
	}, parts.Only(parts.IsTrue("use_qk_norm"), parts.QKNormRows),
		parts.Only(parts.DenseFirst, parts.MLPRows),
		parts.Only(parts.MoEAfter, slices.Concat(parts.ExpertRows, []table.TensorRow{parts.CorrectionRow})),
		parts.Only(parts.SharedAfter, parts.SharedExpertRows),
		parts.Only(parts.NextN, parts.NextNRows))
	return a
}

// glm4MoELite is GLM-4.7 Flash: DeepSeek's attention and experts with the vocabulary
// of GLM.
var glm4MoELite = &table.Arch{
	Name:      "deepseek2",
	Classes:   []string{"Glm4MoeLiteForCausalLM"},
	Body:      table.Body{Classes: []string{"Glm4MoeLiteModel"}, Prefix: "model."},
	Tokenizer: parts.GLMTokens,
	NextN:     parts.NumberedNextN,
	Metadata:  append(slices.Clone(parts.MLAMetadata), parts.NextNSome),
	Unused:    append([]string{"mlp_layer_types", "pretraining_tp"}, parts.MLAUnused...),
	Expect:    append([]table.Expect{parts.Expect("attention_bias", "false")}, parts.MLAExpect...),
	Drop:      []table.Drop{parts.TiedHead, parts.BeyondNextN},
	Tensors:   slices.Concat(parts.MLATensors, parts.Only(parts.NextN, parts.NextNRows)),
	Graph:     parts.DeepSeek2Graph,
}

// glmDSA is GLM-5: DeepSeek V3.2 with the vocabulary of GLM. Layers without an indexer use the tokens selected by an
// earlier layer's.
var glmDSA = &table.Arch{
	Name:    "glm-dsa",
	Classes: []string{"GlmMoeDsaForCausalLM"},
	Body:    table.Body{Classes: []string{"GlmMoeDsaModel"}, Prefix: "model."},
	Config: config.Rules{Types: []string{"glm_moe_dsa"}, Derived: config.DerivedKeys{
		"head_dim": parts.RotaryHeadDim["head_dim"], "indexer_types": glmIndexerTypes}},
	Tokenizer: parts.GLMTokens,
	NextN:     parts.NumberedNextN,
	Metadata: slices.Concat(parts.Override(parts.MLAMetadata,
		table.Row{Key: "rope.dimension_count", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			dims, err := c.Require("qk_rope_head_dim")
			if err != nil {
				return v, false, err
			}
			share, ok, err := c.Rope().Float("partial_rotary_factor")
			if !ok {
				share = 1
			}
			if err != nil {
				return v, false, err
			}
			n, err := config.Truncate(float64(dims) * share)
			return table.Uint32Of(n, true, err)
		}}), []table.Row{parts.NextNRow}, parts.IndexerMetadata, []table.Row{
		{Key: "attention.indexer.types", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			full, ok, err := fullIndexers(c)
			if err != nil || !ok {
				return v, false, err
			}
			return gguf.Bools(full), true, nil
		}},
	}),
	Unused: append([]string{"num_experts", "layer_types", "mlp_layer_types", "index_topk_pattern", "index_topk_freq",
		"index_skip_topk_offset",
		"index_share_for_mtp_iteration", "moe_router_dtype"}, parts.MLAUnused...),
	Expect: append([]table.Expect{parts.Expect("attention_bias", "false"), parts.Expect("mlp_bias", "false"),
		parts.Expect("indexer_rope_interleave", "true")}, parts.MLAExpect...),
	Drop: []table.Drop{parts.TiedHead},
	Tensors: slices.Concat(parts.MLATensors, parts.Only(func(l table.Layer) (bool, error) {
		full, ok, err := fullIndexers(l.View)
		return err != nil || !ok || l.Bid >= int64(len(full)) || full[max(l.Bid, 0)], err
	}, parts.IndexerTensors), parts.Only(parts.NextN, parts.NextNRows)),
	Graph: &graph.Model{
		Reads: slices.Concat(parts.RouterKeys, parts.NeedsMLA, []string{"rope.dimension_sections"}),
		Norm:  graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: parts.PreNorm(graph.MLA{Steps: []graph.HeadStep{graph.RoPE{Pairs: graph.Interleaved, Scaling: graph.MScaleEq}},
			Scores: []graph.ScoreStep{
				graph.OnScores{In: glmIndexed, Steps: []graph.ScoreStep{graph.Indexer{Pairs: graph.Interleaved, Eps: "0"}}},
				graph.OnScores{In: graph.Not{Layers: glmIndexed}, Steps: []graph.ScoreStep{graph.SharedIndexer{}}},
			}},
			parts.Sparse(parts.Experts(graph.Router{Score: graph.Sigmoid, Bias: true, Groups: true}, graph.MayShared),
				parts.SwiGLU)),
		Unread:  parts.MLAUnread,
		Runtime: []graph.Quirk{graph.DraftsRead{"exp_probs_b."}},
	},
}

// glmIndexed are the layers with an indexer: those of a list, all in files without it.
const glmIndexed graph.Where = "(@attention.indexer.types or 1) != 0"

// fullIndexers reports for each layer whether it has an indexer; ok is false if config.json has no such key.
func fullIndexers(c *config.View) (full []bool, ok bool, err error) {
	const key = "indexer_types"
	kinds, ok, err := c.Strings(key)
	for _, k := range kinds {
		if k != "full" && k != "shared" {
			return nil, false, fault.Errorf(fault.Unsupported, "%s: key %q holds %q, want full or shared",
				c.FileName(), key, k)
		}
		full = append(full, k == "full")
	}
	return full, ok, err
}

// glm4Tokens are those of GLM 4 and GLM-Edge, solarTokens those of Solar Open.
var (
	glm4Tokens = tokenizer.BPE{Named: []tokenizer.Named{{Kind: "eos", Text: "<|endoftext|>"},
		{Kind: "eot", Text: "<|user|>"}, {Kind: "unk", Text: "<|endoftext|>"}, {Kind: "bos", Text: "<|endoftext|>"}}}
	solarTokens = tokenizer.BPE{Named: []tokenizer.Named{{Kind: "eos", Text: "<|endoftext|>"},
		{Kind: "eot", Text: "<|endoftext|>"}, {Kind: "unk", Text: "<unk>"}, {Kind: "bos", Text: "<|startoftext|>"}}}
)

// glmIndexerTypes is the default of indexer_types: from a string with a letter per layer, else from an offset and a
// period.
func glmIndexerTypes(v config.Values) (any, error) {
	c := v.Object()
	const pattern = "index_topk_pattern"
	switch p := c.Value(pattern).(type) {
	case nil:
	case string:
		letters := map[rune]string{'F': "full", 'S': "shared"}
		list := []any{}
		for _, letter := range p {
			kind, ok := letters[letter]
			if !ok {
				return nil, config.WrongType(pattern, "F or S for each layer", p)
			}
			list = append(list, kind)
		}
		return list, nil
	default:
		return p, nil
	}
	every, ok, err := c.Int("index_topk_freq")
	if err != nil {
		return nil, err
	}
	if !ok {
		every = 1
	}
	from, ok, err := c.Int("index_skip_topk_offset")
	if err != nil {
		return nil, err
	}
	if !ok {
		from = 2
	}
	return config.LayerKinds(v, func(bid int64) string {
		if from <= bid && (bid-from+1)%max(every, 1) != 0 {
			return "shared"
		}
		return "full"
	})
}
