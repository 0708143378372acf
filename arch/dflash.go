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

var _ = register(dflash, dspark, lilicorr)

// dflash and dspark are Qwen 3-like draft models that read hidden states of some layers of the target model and draft a
// block of tokens at once. dspark adds a head that corrects a token's logits by the previous token. Source: the DFlash
// and DSpark classes of the reference's converter.
var (
	dflash = parts.DFlash(&table.Arch{
		Classes: []string{"DFlashDraftModel", "DFlash2DraftModel"},
		// DFlash2 has convolutions over the tokens of a block, and selects among the top-k candidates by the previous
		// token
		Tensors: parts.Only(parts.DFlashConv, slices.Concat(dflashConvs, []table.TensorRow{
			{HF: "model.candidate_selector.predecessor_codebook", Exact: true, GGUF: "selector_predecessor.weight"},
			{HF: "model.candidate_selector.successor_codebook", Exact: true, GGUF: "selector_successor.weight"},
			{HF: "model.candidate_selector.hidden_projection", GGUF: "selector_hidden"},
		})),
	})
	dspark = parts.DFlash(&table.Arch{
		Classes: parts.DSparkClasses,
		Drop: []table.Drop{
			{Prefix: "model.t2d", Why: table.Silent}, // the inverse of d2t
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

// lilicorr is dflash with selector layers, which choose among the top-k candidates at all positions of a block at once.
// In the file they are numbered after the draft's layers; the layer after them is the FFN of the candidates' features.
// Source: the reference's LiLiCorrDraftModel.
var lilicorr = func() *table.Arch {
	a := *parts.DFlash(&table.Arch{Classes: []string{"LiLiCorrDraftModel"}},
		corrRow("hidden_size"), corrRow("candidate_topk"), corrRow("num_heads"), corrRow("num_layers"),
		corrRow("factor_dim"),
		// the tensors' dimensions are checked against it
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
	a.Special = []table.Special{table.Draft{OwnMask: true, MaskToken: func(c *config.View) (int64, bool, error) {
		n, err := parts.DFlashConfig(c).Require("mask_token_id")
		return n, true, err
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

// corrTensors are the tensors of the selector, F32 in every output type. The tensors that the reference generates
// come last.
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

// corrDraft, corrLayer and corrFeature report whether a layer is a draft layer, a selector layer or the feature layer.
// corrOwn reports whether a number is a selector layer's in the checkpoint, where they are numbered from 0.
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

// corrIn reports whether a layer is a selector layer (from = 0), or comes after from selector layers (from > 0).
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

// corrFirst returns the number of draft layers, which is the number of the first selector layer.
func corrFirst(c *config.View) (int64, error) {
	n, err := c.BoundedBlockCount(0)
	return n, err
}

// corrRow is the row of a size of the selector.
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

// corrRows drops an embedding's dimensions of size 1.
var corrRows = &table.Transform{Name: "rows", Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
	return rows.Reshape(s, []int64{s.NE()[0], gguf.Rows(s.NE())})
}}

// corrCells limits the elements of corrBias's output; published draft models have 500,000.
const corrCells = 1 << 26

// corrBias returns the bias of the attention scores between candidates, expanded from biases by relative position:
//
//	relative [heads, 2*block-1]   by query position - key position, from -(block-1) to block-1
//	same     [heads]              added to relative where both positions are equal
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
	dists := 2*block - 1
	if !slices.Equal(s[0].NE(), []int64{dists, heads}) || !slices.Equal(s[1].NE(), []int64{heads}) {
		return nil, fault.Errorf(fault.Broken,
			"dimensions %s and %s, want %s and %d for blocks of %d tokens and %d heads", gguf.Shape(s[0].NE()),
			gguf.Shape(s[1].NE()),
			gguf.Shape([]int64{dists, heads}), heads, block, heads)
	}
	all, err := rows.Reshape(rows.Prepared([]int64{dists * heads}, gguf.TypeF32, func() (rows.Source, error) {
		bias, more := make([]float32, dists*heads), make([]float32, heads)
		var buf []byte
		if err := rows.Decode(s[0], bias, &buf, 0, heads); err != nil {
			return nil, err
		}
		if err := rows.Decode(s[1], more, &buf, 0, 1); err != nil {
			return nil, err
		}
		for h, x := range more {
			bias[int64(h)*dists+block-1] += x
		}
		return rows.Float32s(bias), nil
	}), []int64{1, dists * heads})
	if err != nil {
		return nil, err
	}
	n := (block - 1) * topk // below 1 << 26
	if n*n > corrCells/heads {
		return nil, fault.Errorf(fault.Unsupported,
			"lilicorr: %d heads, candidate_topk %d, block_size %d: the attention bias has more than %d elements", heads,
			topk, block, corrCells)
	}
	cells, err := rows.Gather(all, []int64{1, n * n * heads}, func(i int64) int64 {
		head, query, key := i/(n*n), i/n%n/topk, i%n/topk
		return head*dists + query - key + block - 1
	})
	if err != nil {
		return nil, err
	}
	return rows.Reshape(cells, []int64{n, n, heads})
}
