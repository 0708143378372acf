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

var _ = register(qwen4exp)

// qwen4exp is Qwen 3.8 Flash Next: Qwen 3.5 MoE with hyper-connections (several mixed residual streams) in place of
// norms, an indexer for full attention, and one layer that adds rows of a large n-gram table, found by hashes of the
// last tokens. Source: the Qwen4Exp class of the reference's converter.
var qwen4exp = &table.Arch{
	Name:         "qwen4exp",
	Classes:      []string{"Qwen4ExpForConditionalGeneration", "Qwen4ExpForCausalLM"},
	Tokenizer:    tokenizer.BPE{},
	RopeSections: true,
	Fused:        table.FusedQKV | table.FusedGateUp,
	NextN:        parts.QwenNextN,
	Metadata: slices.Concat(parts.DeltaMetadata, []table.Row{
		parts.Qwen35Sections,
		{Key: "hyper_connection.count", Type: gguf.Uint32Type, From: []string{"hc_count"}, Required: true},
		{Key: "hyper_connection.low_rank", Type: gguf.Uint32Type, From: []string{"hc_lowrank"}, Required: true},
		{Key: "attention.indexer.head_count", Type: gguf.Uint32Type, From: []string{"indexer_n_heads"}, Required: true},
		{Key: "attention.indexer.key_length", Type: gguf.Uint32Type, From: []string{"indexer_head_dim"},
			Required: true},
		{Key: "attention.indexer.top_k", Type: gguf.Uint32Type, From: []string{"indexer_budget"}, Required: true},
		{Key: "attention.compress_ratios", Derive: indexerRatios},
		pleRow("ple.layers", func(_ *config.View, layer int64) (gguf.Value, bool, error) {
			return gguf.Int32s([]int32{int32(layer)}), true, nil
		}),
		pleUint("ple.ngram_size", "ngram_size"),
		pleUint("ple.heads_per_ngram", "heads_per_ngram"),
		pleUint("ple.conv_kernel", "ple_conv_kernel_size"),
		pleRow("ple.eos_token_id", func(c *config.View, _ int64) (gguf.Value, bool, error) {
			const key = "eos_token_id"
			if _, list := c.Value(key).([]any); !list {
				n, err := c.Require(key)
				return table.Uint32Of(n, true, err)
			}
			ids, _, err := c.Ints(key)
			if err == nil && len(ids) == 0 {
				err = fault.Errorf(fault.Broken, "%s: key %q: an empty list, want the token that ends an n-gram",
					config.ConfigFile, key)
			}
			if err != nil {
				return gguf.Value{}, false, err
			}
			return table.Uint32Of(ids[len(ids)-1], true, nil)
		}),
		// stands for an image among the hashed tokens
		pleRow("ple.image_token_id", func(c *config.View, _ int64) (gguf.Value, bool, error) {
			return table.Uint32Of(c.Int("image_token_id"))
		}),
		pleRow("embedding_length_per_layer_input", func(c *config.View, _ int64) (v gguf.Value, ok bool, err error) {
			n, err := ngramWidth(c)
			return table.Uint32Of(n, c.Facts.Integers != nil, err)
		}),
		pleIntegers("ple.layer_multipliers", "multipliers"),
		pleIntegers("ple.head_offsets", "offsets"),
		pleIntegers("ple.head_vocab_sizes", "sizes"),
	}),
	// the table's size and hashes, and the settings of draft layers, follow from tensors
	Unused: slices.Concat(parts.Qwen35Unused, []string{"ngram_vocab_size_base", "make_ngram_vocab_size_divisible_by",
		"seed", "ple_offload_embedding", "ple_embedding_dtype",
		"index_share_for_mtp_iteration", "mtp", "partial_rotary_factor", "split_ngram_parts", "ple_embed_dim",
		"ple_conv_kernel_size", "heads_per_ngram", "ngram_size"}),
	Expect: slices.Concat(parts.Qwen35Expect, []table.Expect{parts.Expect("output_gate_type", "sigmoid"),
		parts.Expect("indexer_kv_heads", "1")}),
	Rename: slices.Concat([]table.Rename{
		{Prefix: "model.layers.{bid}.ple.ple_embedding.", With: "ngrams.", If: hasNgrams},
		{Prefix: "mtp.fc_", With: "model.layers.{bid}.nextn_fc_", AfterModel: true},
		{Prefix: "mtp.hyper_connection_mixer.", With: "model.layers.{bid}.nextn_hc_head.", AfterModel: true},
	}, parts.MTPNames),
	Tensors: slices.Concat(parts.Only(parts.LinearAttention, parts.DeltaRows),
		parts.TransformBySuffix(slices.Concat([]table.TensorRow{
			{HF: "model.embed_tokens", GGUF: "token_embd"},
			{HF: "lm_head", GGUF: "output", Optional: true},
		},
			hyperRows("model.hyper_connection_mixer", "output_hc"),
			hyperRows("model.layers.{bid}.attn_hyper_connection", "blk.{bid}.hc_attn"),
			hyperRows("model.layers.{bid}.mlp_hyper_connection", "blk.{bid}.hc_ffn"),
			[]table.TensorRow{
				{HF: "model.layers.{bid}.attn_hyper_connection.block_inject_weight", GGUF: "blk.{bid}.hc_attn_inject"},
				{HF: "model.layers.{bid}.mlp_hyper_connection.block_inject_weight", GGUF: "blk.{bid}.hc_ffn_inject"},
			},
			parts.ExpertRows, parts.FusedExpertRows, parts.QwenSharedRows,
			parts.Only(parts.Not(parts.LinearAttention), slices.Concat(parts.AttentionRows(table.MayBias, table.NoBias),
				parts.QKNormRows, []table.TensorRow{
					{HF: "model.layers.{bid}.self_attn.indexer.index_qk_proj", Split: []table.Part{
						{GGUF: "blk.{bid}.indexer.q_proj", Transform: indexerPart("indexer-queries",
							func(q, _ int64) (from, to int64) { return 0, q })},
						{GGUF: "blk.{bid}.indexer.k_proj", Transform: indexerPart("indexer-keys",
							func(q, all int64) (from, to int64) { return q, all })},
					}},
					{HF: "model.layers.{bid}.self_attn.indexer.q_layernorm", GGUF: "blk.{bid}.indexer.q_norm"},
					{HF: "model.layers.{bid}.self_attn.indexer.k_layernorm", GGUF: "blk.{bid}.indexer.k_norm"},
				})),
			parts.Only(hasNgrams, []table.TensorRow{
				{HF: "model.layers.{bid}.ple.key_proj", GGUF: "blk.{bid}.ple_key"},
				{HF: "model.layers.{bid}.ple.value_proj", GGUF: "blk.{bid}.ple_value"},
				{HF: "model.layers.{bid}.ple.norm_key", GGUF: "blk.{bid}.ple_norm_key", Transform: parts.PlusOne},
				{HF: "model.layers.{bid}.ple.norm_query", GGUF: "blk.{bid}.ple_norm_query", Transform: parts.PlusOne},
				{HF: "model.layers.{bid}.ple.norm_conv", GGUF: "blk.{bid}.ple_norm_conv", Transform: parts.PlusOne},
				{HF: "model.layers.{bid}.ple.conv1d", GGUF: "blk.{bid}.ple_conv1d", Transform: parts.Squeeze},
			}),
			parts.Only(hasNgramLayer, []table.TensorRow{
				{HF: "ngrams.ngram_embedding.shard_{xid}", GGUF: "per_layer_token_embd", Group: "ngrams",
					Experts: func(l table.Layer) (int64, error) { return l.Require("split_ngram_parts") },
					Join:    func(_ table.Layer, s []rows.Source) (rows.Source, error) { return rows.Concat(s) }},
				{HF: "ngrams.layer_multipliers", Exact: true, GGUF: "multipliers", Kind: table.Integers{}},
				{HF: "ngrams.ngram_heads_offsets", Exact: true, GGUF: "offsets", Kind: table.Integers{}},
				{HF: "ngrams.ngram_heads_vocab_sizes", Exact: true, GGUF: "sizes", Kind: table.Integers{}},
			}),
			parts.Only(parts.NextN, slices.Concat([]table.TensorRow{
				{HF: "model.layers.{bid}.nextn_fc_{part}", GGUF: "blk.{bid}.nextn.eh_proj",
					Parts: []string{"embedding", "hidden"},
					Join:  func(_ table.Layer, s []rows.Source) (rows.Source, error) { return rows.ConcatColumns(s) }},
				{HF: "model.layers.{bid}.enorm", GGUF: "blk.{bid}.nextn.enorm"},
				{HF: "model.layers.{bid}.hnorm", GGUF: "blk.{bid}.nextn.hnorm"},
			}, hyperRows("model.layers.{bid}.nextn_hc_head", "blk.{bid}.nextn.hc_head"))),
		), "norm", parts.PlusOne)),
	Graph: &graph.Model{
		Reads: []string{"attention.recurrent_layers", "full_attention_interval", "rope.dimension_sections!",
			"ssm.group_count!"},
		Dims: graph.Dims{"n_ff_exp": parts.SharedWidth, "n_ff_shexp": parts.SharedExpertOrWhole},
		Norm: graph.RMS, Streams: graph.GatedStreams{}, Head: graph.LM{},
		Layer: []graph.Step{
			graph.ChooseStep{{In: graph.Has("ple_key"), Steps: []graph.Step{graph.NgramEmbedding{}}}},
			graph.FromStreams{Name: "attn", Part: parts.RecurrentOr(
				graph.GatedDeltaNet{KeysTakeTurns: true, SigmoidGate: true},
				graph.Attention{QKV: graph.GatedQueries{}, Steps: []graph.HeadStep{parts.QKNorm, parts.NeoX},
					Scores: []graph.ScoreStep{graph.PooledIndexer{}}})},
			graph.FromStreams{Name: "ffn", Part: parts.Experts(parts.RouterTopK, graph.GatedShared)},
		},
	},
}

// hyperRows are the rows that mix the residual streams into one: a norm over all streams and low-rank matrices.
func hyperRows(hf, name string) []table.TensorRow {
	return []table.TensorRow{
		{HF: hf + ".hc_norm", GGUF: name + "_norm"},
		{HF: hf + ".input_mix_weight_down", GGUF: name + "_down"},
		{HF: hf + ".input_mix_weight_up", GGUF: name + "_up"},
	}
}

// indexerPart takes queries or keys out of the indexer's matrix of all rows, the first q of them queries.
func indexerPart(name string, part func(q, all int64) (from, to int64)) *table.Transform {
	return &table.Transform{Name: name, Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		heads, err := l.Require("indexer_n_heads")
		if err != nil {
			return nil, err
		}
		size, err := l.Require("indexer_head_dim")
		if err != nil {
			return nil, err
		}
		ne := s.NE()
		if len(ne) != 2 || size < 1 || heads < 1 || heads > config.MaxHeadDim || size > config.MaxHeadDim ||
			ne[1] != (heads+1)*size {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want rows of %d queries and one key of %d",
				gguf.Shape(ne), heads, size)
		}
		from, to := part(heads*size, ne[1])
		return rows.Slice(s, 1, from, to)
	}}
}

// indexerRatios writes the number of positions per row of the indexer, 0 for layers with linear attention.
func indexerRatios(c *config.View) (v gguf.Value, ok bool, err error) {
	ratio, err := c.Require("indexer_compress_ratio")
	if err != nil {
		return v, false, err
	}
	kinds, err := c.RequireLayerTypes()
	if err != nil {
		return v, false, err
	}
	more, err := parts.QwenMTP(c)
	if err != nil {
		return v, false, err
	}
	ratios := make([]int64, len(kinds)+int(more))
	for i := range ratios {
		if i >= len(kinds) || kinds[i] == "full_attention" {
			ratios[i] = ratio
		}
	}
	return parts.PerLayer(ratios, nil)
}

// ngramLayer returns the layer (from 0; config.json counts from 1) that adds rows of the n-gram table; ok is false
// without one.
func ngramLayer(c *config.View) (layer int64, ok bool, err error) {
	const key = "ple_layer_ids"
	ids, ok, err := c.Ints(key)
	switch {
	case err != nil:
	case !ok:
		err = fault.Errorf(fault.Broken, "%s: has no key %q", config.ConfigFile, key)
	case len(ids) > 1:
		err = fault.Errorf(fault.Unsupported, "%s: key %q lists %d layers, but a file has a table for one",
			config.ConfigFile, key, len(ids))
	case len(ids) == 1 && (ids[0] < 1 || ids[0] > config.MaxBlocks):
		err = config.WrongType(key, "the number of a layer, from 1", ids[0])
	case len(ids) == 1:
		return ids[0] - 1, true, nil
	}
	return 0, false, err
}

// hasNgrams is the condition of the n-gram layer, hasNgramLayer of tensors outside the layers for it.
func hasNgrams(l table.Layer) (bool, error) {
	layer, ok, err := ngramLayer(l.View)
	return ok && l.Bid == layer, err
}

func hasNgramLayer(l table.Layer) (bool, error) {
	_, ok, err := ngramLayer(l.View)
	return ok, err
}

// ngramWidth returns the length of the table's rows; each head of each n-gram size looks up one row.
func ngramWidth(c *config.View) (int64, error) {
	width, err := c.Require("ple_embed_dim")
	if err != nil {
		return 0, err
	}
	heads, err := c.Require("heads_per_ngram")
	if err != nil {
		return 0, err
	}
	size, err := c.Require("ngram_size")
	if err != nil {
		return 0, err
	}
	if size < 2 || size > config.MaxHeadDim || heads < 1 || heads > config.MaxHeadDim || width < 1 ||
		width%(heads*(size-1)) != 0 {
		return 0, fault.Errorf(fault.Broken,
			"%s: ple_embed_dim %d is not a multiple of %d heads for each of the n-grams of 2 to %d tokens",
			config.ConfigFile, width, heads, size)
	}
	return width / (heads * (size - 1)), nil
}

// pleRow returns a row for models with an n-gram table, except in files of the draft layers alone.
func pleRow(key string, derive func(c *config.View, layer int64) (gguf.Value, bool, error)) table.Row {
	return table.Row{Key: key, Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
		layer, ok, err := ngramLayer(c)
		if err != nil || !ok || c.Options.NextN == config.OnlyNextN {
			return v, false, err
		}
		return derive(c, layer)
	}}
}

func pleUint(key, from string) table.Row {
	return pleRow(key, func(c *config.View, _ int64) (gguf.Value, bool, error) {
		n, err := c.Require(from)
		return table.Uint32Of(n, true, err)
	})
}

// pleIntegers returns a row whose integers are a tensor of the checkpoint.
func pleIntegers(key, name string) table.Row {
	return pleRow(key, func(c *config.View, _ int64) (v gguf.Value, ok bool, err error) {
		list := make([]uint64, len(c.Facts.Integers[name]))
		for i, n := range c.Facts.Integers[name] {
			if n < 0 {
				return v, false, fault.Errorf(fault.Broken, "ple_embedding: number %d of %s is %d, want one from 0", i,
					name, n)
			}
			list[i] = uint64(n)
		}
		return gguf.Uint64s(list), len(list) > 0, nil
	})
}
