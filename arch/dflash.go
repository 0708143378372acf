package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// dflash and dspark are drafts in the manner of Qwen 3 that see the states of some layers
// of the model that they draft for, and a block of tokens at once; dspark adds a head
// that corrects a token by the one before. Source: the DFlash and DSpark classes of the
// reference's converter.
var (
	dflash = parts.DFlash(&table.Arch{
		Classes: []string{"DFlashDraftModel", "DFlash2DraftModel"},
		// the second generation has convolutions over the tokens of a block, and chooses
		// among the best tokens by the one before
		Tensors: parts.Only(parts.DFlashConv, slices.Concat(dflashConvs, []table.TensorRow{
			{HF: "model.candidate_selector.predecessor_codebook", Exact: true, GGUF: "selector_predecessor.weight"},
			{HF: "model.candidate_selector.successor_codebook", Exact: true, GGUF: "selector_successor.weight"},
			{HF: "model.candidate_selector.hidden_projection", GGUF: "selector_hidden"},
		})),
	})
	dspark = parts.DFlash(&table.Arch{
		Classes: parts.DSparkClasses,
		Drop: []table.Drop{
			{Prefix: "model.t2d", Why: table.Silent}, // d2t the other way round
			{Prefix: "model.lm_head.", Why: table.Silent, If: parts.Not(parts.HasDraftVocabulary)},
		},
		Expect: []table.Expect{parts.Expect("markov_head_type", "vanilla")},
		Tensors: slices.Concat(parts.DSparkHeads, []table.TensorRow{
			{HF: "model.d2t", Exact: true, GGUF: "d2t", Type: table.Always(gguf.TypeI64), Kind: table.Last{},
				Transform: parts.DraftTokens, If: parts.HasDraftVocabulary},
		}),
	},
		table.Row{Key: "sample_from_anchor", Derive: func(c *config.View) (gguf.Value, bool, error) {
			b, ok, err := c.Bool("sample_from_anchor")
			if !ok {
				b = !c.RawConfig().Present("transformer_layer_config") && !c.Present("aux_hidden_state_layer_ids")
			}
			return gguf.Bool(b), err == nil, err
		}},
		parts.ConfidenceRow,
	)
)

// dflashConvs are the convolutions over the tokens of a block.
var dflashConvs = []table.TensorRow{
	{HF: "model.layers.{bid}.attention_conv.base_kernel", Exact: true, GGUF: "blk.{bid}.attn_conv_base"},
	{HF: "model.layers.{bid}.attention_conv.kernel_projection", GGUF: "blk.{bid}.attn_conv_proj"},
	{HF: "model.layers.{bid}.mlp_conv.base_kernel", Exact: true, GGUF: "blk.{bid}.ffn_conv_base"},
	{HF: "model.layers.{bid}.mlp_conv.kernel_projection", GGUF: "blk.{bid}.ffn_conv_proj"},
}

// lilicorr is dflash with layers of their own that choose among the best tokens at all
// places of a block at once. In the file they have the numbers after those of the
// draft, and what they know of each token besides its embedding is the layer after
// them. Source: the reference's LiLiCorrDraftModel.
var lilicorr = func() *table.Arch {
	a := *parts.DFlash(&table.Arch{Classes: []string{"LiLiCorrDraftModel"}},
		corrRow("hidden_size"), corrRow("candidate_topk"), corrRow("num_heads"), corrRow("num_layers"),
		corrRow("factor_dim"),
		// that of the tensors, which are compared with it
		table.Row{Key: "lilicorr.mlp_hidden_size", Whole: true,
			Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
				n, err := corrSize(c, "hidden_size")
				if err != nil {
					return v, false, err
				}
				ratio, err := corrFloat(c, "mlp_ratio")
				if err == nil && !(ratio > 0 && ratio <= config.MaxParts) {
					err = config.WrongType("dflash_config.lilicorr_mlp_ratio", "a ratio of sizes", ratio)
				}
				return table.Uint32Of(int64(float64(n)*ratio), true, err)
			}},
		table.Row{Key: "lilicorr.vector_eps", Whole: true, Derive: func(c *config.View) (gguf.Value, bool, error) {
			f, err := corrFloat(c, "vector_eps")
			return table.Float32Of(f, true, err)
		}},
		table.Row{Key: "lilicorr.logit_scale", Whole: true, Derive: func(c *config.View) (gguf.Value, bool, error) {
			f, err := corrFloat(c, "logit_scale")
			return table.Float32Of(f, true, err)
		}},
	)
	none := func(c *config.View) (gguf.Value, bool, error) {
		has, err := parts.DFlashConv(table.Layer{View: c, Bid: -1})
		return gguf.Uint32(0), has, err
	}
	a.Metadata = parts.Override(a.Metadata, table.Row{Key: "selector_rank", Derive: none},
		table.Row{Key: "selector_top_k", Derive: none})
	a.HeaderLast = []table.Row{{Key: "tokenizer.ggml.mask_token_id",
		Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := parts.DFlashConfig(c).Require("mask_token_id")
			return table.Uint32Of(n, true, err)
		}}}
	a.BlockCount = func(c *config.View) (int64, error) {
		n, err := corrFirst(c)
		if err != nil {
			return 0, err
		}
		layers, err := corrSize(c, "num_layers")
		return n + layers + 1, err
	}
	last := func(c *config.View, _ int64) (int64, error) {
		n, err := a.BlockCount(c)
		return n - 1, err
	}
	var names []table.Rename
	for _, model := range []string{"model.", ""} {
		names = append(names,
			table.Rename{Prefix: model + "lilicorr.layers.{bid}.attn.in_proj_",
				With: "model.lilicorr.in_proj.{bid}.in_proj_"},
			table.Rename{Prefix: model + "lilicorr.layers.", With: "model.lilicorr.layers.{bid}.",
				Number: parts.NumberAfter(corrFirst)},
			table.Rename{Prefix: model + "lilicorr.feature_", With: "model.lilicorr.feature.{bid}.", AfterModel: true,
				Number: last})
	}
	a.Rename = slices.Concat(names, a.Rename)
	a.Tensors = slices.Concat(parts.Only(corrDraft, a.Tensors),
		parts.Only(parts.Both(corrDraft, parts.DFlashConv), dflashConvs), corrTensors)
	return &a
}()

// corrTensors are the tensors of what chooses, F32 in every output type. Those that the
// reference makes anew before it writes any come last.
var corrTensors = inF32([]table.TensorRow{
	{HF: "model.lilicorr.token_proj", GGUF: "lilicorr.token_proj", Bias: table.NeedBias, Optional: true},
	{HF: "model.lilicorr.pass_hidden_proj", GGUF: "lilicorr.pass_hidden_proj", Bias: table.NeedBias},
	{HF: "model.lilicorr.context_proj", GGUF: "lilicorr.context_proj", Bias: table.NeedBias},
	{HF: "model.lilicorr.output_norm", GGUF: "lilicorr.output_norm"},
	{HF: "model.lilicorr.anchor_norm", GGUF: "lilicorr.anchor_norm"},
	{HF: "model.lilicorr.factor_input_proj", GGUF: "lilicorr.factor_input_proj", Bias: table.NeedBias},
	{HF: "model.lilicorr.out_head", GGUF: "lilicorr.out_head", Bias: table.NeedBias},
	{HF: "model.lilicorr.in_head", GGUF: "lilicorr.in_head", Bias: table.NeedBias},
	{HF: "model.lilicorr.anchor_out_head", GGUF: "lilicorr.anchor_out_head", Bias: table.NeedBias},

	{HF: "model.lilicorr.layers.{bid}.attn_norm", GGUF: "blk.{bid}.attn_norm", If: corrLayer},
	{HF: "model.lilicorr.layers.{bid}.attn.out_proj", GGUF: "blk.{bid}.attn_output", Bias: table.NeedBias,
		If: corrLayer},
	{HF: "model.lilicorr.layers.{bid}.mlp_norm", GGUF: "blk.{bid}.ffn_norm", If: corrLayer},
	{HF: "model.lilicorr.layers.{bid}.mlp.up_proj", GGUF: "blk.{bid}.ffn_up", Bias: table.NeedBias, If: corrLayer},
	{HF: "model.lilicorr.layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down", Bias: table.NeedBias, If: corrLayer},
	{HF: "model.lilicorr.feature.{bid}.norm", GGUF: "blk.{bid}.ffn_norm", Bias: table.NeedBias, If: corrFeature},
	{HF: "model.lilicorr.feature.{bid}.mlp.up_proj", GGUF: "blk.{bid}.ffn_up", Bias: table.NeedBias, If: corrFeature},
	{HF: "model.lilicorr.feature.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down", Bias: table.NeedBias,
		If: corrFeature},

	{HF: "model.lilicorr.{part}_slot_bias", GGUF: "lilicorr.attention_bias.bias", Exact: true,
		Parts: []string{"relative", "same"}, Join: corrBias, Kind: table.LastByLayer(0)},
	{HF: "model.lilicorr.slot_embedding", GGUF: "lilicorr.slot_embedding.weight", Exact: true, Transform: corrRows,
		Kind: table.LastByLayer(0)},
	{HF: "model.lilicorr.rank_embedding", GGUF: "lilicorr.rank_embedding.weight", Exact: true, Transform: corrRows,
		Kind: table.LastByLayer(0)},
	{HF: "model.lilicorr.in_proj.{bid}.in_proj_weight", GGUF: "lilicorr.layers.{bid}.attn.in_proj.weight", Exact: true,
		If: corrOwn, Kind: table.LastByLayer(1)},
	{HF: "model.lilicorr.in_proj.{bid}.in_proj_bias", GGUF: "lilicorr.layers.{bid}.attn.in_proj.bias", Exact: true,
		If: corrOwn, Kind: table.LastByLayer(1)},
})

func inF32(list []table.TensorRow) []table.TensorRow {
	for i := range list {
		list[i].Type = table.Always(gguf.TypeF32)
	}
	return list
}

// corrDraft, corrLayer and corrFeature are the conditions of the layers of the draft, of
// those that choose and of the last one; corrOwn that of the numbers that these have in
// the checkpoint.
func corrDraft(l table.Layer) (bool, error) {
	n, err := corrFirst(l.View)
	return l.Bid < n, err
}

func corrLayer(l table.Layer) (bool, error) { return corrIn(l, 0) }

func corrFeature(l table.Layer) (bool, error) {
	n, err := corrSize(l.View, "num_layers")
	if err != nil {
		return false, err
	}
	return corrIn(l, n)
}

// corrIn reports whether a layer is of those that choose, from is 0, or after them.
func corrIn(l table.Layer, from int64) (bool, error) {
	first, err := corrFirst(l.View)
	if err != nil {
		return false, err
	}
	n, err := corrSize(l.View, "num_layers")
	if from > 0 {
		return l.Bid >= first+from, err
	}
	return l.Bid >= first && l.Bid < first+n, err
}

func corrOwn(l table.Layer) (bool, error) {
	n, err := corrSize(l.View, "num_layers")
	return l.Bid < n, err
}

// corrFirst is the number of layers of the draft.
func corrFirst(c *config.View) (int64, error) {
	n, err := c.BoundedBlockCount(0)
	return n, err
}

// corrRow writes a size of what chooses.
func corrRow(key string) table.Row {
	return table.Row{Key: "lilicorr." + key, Whole: true, Derive: func(c *config.View) (gguf.Value, bool, error) {
		n, err := corrSize(c, key)
		return table.Uint32Of(n, true, err)
	}}
}

func corrSize(c *config.View, key string) (int64, error) {
	key = "lilicorr_" + key
	n, err := parts.DFlashConfig(c).Require(key)
	if err == nil && (n < 1 || n > config.MaxParts) {
		err = config.WrongType("dflash_config."+key, "a size", n)
	}
	return n, err
}

func corrFloat(c *config.View, key string) (float64, error) {
	o := parts.DFlashConfig(c)
	f, ok, err := o.Float("lilicorr_" + key)
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: key %q is missing", o.FileName(), "dflash_config.lilicorr_"+key)
	}
	return f, err
}

// corrRows takes the dimensions of 1 from an embedding.
var corrRows = &table.Transform{Name: "rows", Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
	return rows.Reshape(s, []int64{s.NE()[0], gguf.Rows(s.NE())})
}}

// corrCells is the most numbers that corrBias makes; published drafts have 500,000.
const corrCells = 1 << 26

// corrBias is what is added to the scores of attention between the best tokens of a block,
// by the places that they are for:
//
//	relative [heads, 2*block-1]   by how far apart the places are, -(block-1) to block-1
//	same     [heads]              where they are the same, on top
//	out      [heads, n, n]        n = (block-1) * topk, F32
func corrBias(l table.Layer, s []rows.Source) (rows.Source, error) {
	block, err := parts.DFlashBlock(l.View)
	if err != nil {
		return nil, err
	}
	if block < 2 || block > 1<<10 {
		return nil, config.WrongType("block_size", "a number of tokens from 2 to 1024", block)
	}
	topk, err := corrSize(l.View, "candidate_topk")
	if err != nil {
		return nil, err
	}
	heads, err := corrSize(l.View, "num_heads")
	if err != nil {
		return nil, err
	}
	far := 2*block - 1
	if !slices.Equal(s[0].NE(), []int64{far, heads}) || !slices.Equal(s[1].NE(), []int64{heads}) {
		return nil, fault.Errorf(fault.Broken,
			"dimensions %s and %s, want %s and %d for blocks of %d tokens and %d heads", gguf.Shape(s[0].NE()),
			gguf.Shape(s[1].NE()),
			gguf.Shape([]int64{far, heads}), heads, block, heads)
	}
	all, err := rows.Reshape(rows.Prepared([]int64{far * heads}, gguf.TypeF32, func() (rows.Source, error) {
		bias, more := make([]float32, far*heads), make([]float32, heads)
		var buf []byte
		if err := rows.Decode(s[0], bias, &buf, 0, heads); err != nil {
			return nil, err
		}
		if err := rows.Decode(s[1], more, &buf, 0, 1); err != nil {
			return nil, err
		}
		for h, x := range more {
			bias[int64(h)*far+block-1] += x
		}
		return rows.Float32s(bias), nil
	}), []int64{1, far * heads})
	if err != nil {
		return nil, err
	}
	n := (block - 1) * topk // below 1 << 26
	if n*n > corrCells/heads {
		return nil, fault.Errorf(fault.Unsupported,
			"%d heads between the best %d tokens of blocks of %d: want at most %d scores", heads, topk,
			block, corrCells)
	}
	cells, err := rows.Gather(all, []int64{1, n * n * heads}, func(i int64) int64 {
		head, query, key := i/(n*n), i/n%n/topk, i%n/topk
		return head*far + query - key + block - 1
	})
	if err != nil {
		return nil, err
	}
	return rows.Reshape(cells, []int64{n, n, heads})
}
