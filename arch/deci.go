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
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(deci)

// deci is Deci's DeciLM 7B and Nvidia's Llama Nemotron Super and Ultra, whose layers may lack attention or the FFN.
// Source: the Deci class of the reference's converter.
var (
	deci = &table.Arch{
		Name:      "deci",
		Shapes:    shape.WholeHeadRotates,
		Classes:   []string{"DeciLMForCausalLM"},
		Tokenizer: tokenizer.Sized{Size: 128256, Is: tokenizer.BPE{}, Else: tokenizer.ByteFallbackBPE{}}, // that of Llama 3
		Fused:     table.FusedQKV,
		Metadata: slices.Concat(
			rowsWhen(hasBlocks, []table.Row{
				{Key: "rope.freq_base", Derive: func(c *config.View) (gguf.Value, bool,
					error) {
					return table.Float32Of(c.Rope().Float("rope_theta"))
				}},
				{Key: table.KeyHeadCountKV, Derive: func(c *config.View) (gguf.Value, bool, error) {
					return parts.PerLayer(deciList(c, func(b deciBlock) int64 { return b.headsKV }))
				}},
				{Key: table.KeyHeadCount, Derive: func(c *config.View) (gguf.Value, bool, error) {
					return parts.PerLayer(deciList(c, func(b deciBlock) int64 { return b.heads }))
				}},
				{Key: "feed_forward_length", Derive: func(c *config.View) (gguf.Value, bool, error) {
					return parts.PerLayer(deciList(c, func(b deciBlock) int64 { return b.width }))
				}},
				parts.UintRow(table.KeyBlockCount, config.BlockCountKeys...),
				parts.UintRow("context_length", "max_position_embeddings"),
				parts.UintRow("embedding_length", "hidden_size"),
				parts.FloatRow("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
				{Key: "attention.key_length", Derive: parts.HiddenPerHead},
				{Key: "attention.value_length", Derive: parts.HiddenPerHead},
				parts.FileTypeRow,
			}),
			rowsWhen(func(c *config.View) bool { return !hasBlocks(c) }, slices.Concat(parts.CommonRows, []table.Row{
				{Key: table.KeyHeadCountKV, Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
					list, ok, err := c.Ints(deciHeadsKV)
					if err != nil || !ok {
						return v, false, err
					}
					return parts.PerLayer(list, nil)
				}},
			})),
			[]table.Row{
				parts.UintRow("vocab_size", "vocab_size"),
				parts.RopeDimensionRow,
			}),
		Expect: []table.Expect{parts.SiLU},
		Unused: append([]string{deciHeadsKV, "block_configs"}, parts.BiasKeys...),
		Tensors: slices.Concat(parts.EmbedRows, parts.Only(deciHas(func(b deciBlock) bool { return b.headsKV > 0 }),
			append([]table.TensorRow{
				{HF: "model.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q", Transform: parts.PermuteQ,
					Bias: table.MayBias},
				{HF: "model.layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.attn_k", Transform: permuteDeciK,
					Bias: table.MayBias},
				{HF: "model.layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.attn_v", Bias: table.MayBias},
			}, table.TensorRow{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output",
				Bias: table.MayBias})),
			parts.Only(deciHas(func(b deciBlock) bool { return b.heads > 0 }), parts.NormRows[:1]),
			parts.Only(deciHas(func(b deciBlock) bool { return b.heads > 0 && b.headsKV == 0 }), []table.TensorRow{
				{HF: "model.layers.{bid}.self_attn.linear_attn", GGUF: "blk.{bid}.attn_output"},
			}),
			parts.Only(deciHas(func(b deciBlock) bool { return b.width > 0 }),
				slices.Concat(parts.NormRows[1:], parts.WithBias(table.MayBias, parts.MLPRows)))),
		Extra: parts.Llama3Extra,
		Graph: &graph.Model{
			Norm: graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
			// without keys attention is one matrix; the runtime skips whole layers without an FFN
			Layer: []graph.Step{graph.ChooseStep{
				{In: graph.Where("n_ff = 0")},
				{In: graph.Where("n_head = 0"), Steps: deciLayerSteps[1:]},
				{In: graph.Where("n_head_kv = 0"), Steps: parts.PreNorm(graph.Matrix{Name: "attn_output"}, parts.SwiGLU)},
				{In: graph.Every{}, Steps: deciLayerSteps},
			}},
		},
	}
)

var deciLayerSteps = parts.PreNorm(parts.GQA(parts.Interleaved), parts.SwiGLU)

const deciHeadsKV = "num_key_value_heads_per_layer"

// hasBlocks reports whether the config describes each layer.
func hasBlocks(c *config.View) bool { return c.Has("block_configs") }

// rowsWhen returns rows for configurations that fulfill a condition.
func rowsWhen(cond func(*config.View) bool, list []table.Row) []table.Row {
	list = slices.Clone(list)
	for i, r := range list {
		list[i] = table.Row{Key: r.Key, Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			if !cond(c) {
				return v, false, nil
			}
			if r.Key == gguf.KeyFileType {
				return v, true, nil
			}
			return r.Value(c)
		}}
	}
	return list
}

// deciBlock has the parts and sizes of a layer; width is the FFN's.
type deciBlock struct{ heads, headsKV, width int64 }

// deciList returns a number for each layer of block_configs.
func deciList(c *config.View, of func(deciBlock) int64) ([]int64, error) {
	list, _ := c.Value("block_configs").([]any)
	out := make([]int64, len(list))
	for i := range list {
		b, err := deciLayer(c, int64(i))
		if err != nil {
			return nil, err
		}
		out[i] = of(b)
	}
	return out, nil
}

// deciLayer reads a member of block_configs. Without them a layer has everything.
func deciLayer(c *config.View, bid int64) (b deciBlock, err error) {
	const key = "block_configs"
	hidden, heads, err := c.HiddenAndHeads()
	if err != nil {
		return b, err
	}
	if !hasBlocks(c) {
		b = deciBlock{heads, heads, hidden}
		if n, ok, err := c.IntAt(deciHeadsKV, bid); err != nil || ok {
			b.headsKV = n
			return b, err
		}
		b.headsKV, err = c.HeadsKV()
		return b, err
	}
	list, _ := c.Value(key).([]any)
	if bid < 0 || bid >= int64(len(list)) {
		return b, fault.Errorf(fault.Broken, "%s: key %q has no layer %d", config.ConfigFile, key, bid)
	}
	block, _ := config.ObjectIn(key, list[bid])
	attention, ffn := block.Sub("attention"), block.Sub("ffn")
	if attention.Members() == nil || ffn.Members() == nil {
		return b, config.WrongType(key, "objects with attention and ffn", list[bid])
	}
	inGroup, ok, err := attention.Int("n_heads_in_group")
	if err != nil {
		return b, err
	}
	if linear, _ := attention.Value("replace_with_linear").(bool); ok || linear {
		b.heads = heads
	}
	if ok {
		if inGroup <= 0 {
			return b, config.WrongType(key+".attention.n_heads_in_group", "a positive integer", inGroup)
		}
		b.headsKV = heads / inGroup
	}
	mult, ok, err := ffn.Float("ffn_mult")
	if err != nil || !ok {
		return b, err
	}
	n, err := config.Truncate(2 * mult * float64(hidden) / 3)
	b.width = (n + 255) / 256 * 256
	return b, err
}

// deciHas turns a condition on a layer's deciBlock into a table.Cond.
func deciHas(cond func(deciBlock) bool) table.Cond {
	return func(l table.Layer) (bool, error) {
		b, err := deciLayer(l.View, l.Bid)
		return cond(b), err
	}
}

// permuteDeciK is PermuteK with the number of key heads of the layer.
var permuteDeciK = &table.Transform{Name: "permute-rope-layer-k",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		b, err := deciLayer(l.View, l.Bid)
		if err != nil {
			return nil, err
		}
		return rows.PermuteRope(s, b.headsKV)
	}}
