package arch

import (
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

// layerInts returns a list of one number for each layer.
func (c *Config) layerInts(key string) ([]int64, error) {
	list, ok, err := c.Ints(key)
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: has no key %q", ConfigFile, key)
	}
	return list, err
}

// perLayer is a list of numbers as a metadata value.
func perLayer(list []int64, err error) (v gguf.Value, ok bool, _ error) {
	if err != nil || len(list) == 0 {
		return v, false, err
	}
	out := make([]int32, len(list))
	for i, n := range list {
		if n < 0 || n > 1<<31-1 {
			return v, false, fault.Errorf(fault.Broken, "%s: %d for layer %d does not fit 31 bits", ConfigFile, n, i)
		}
		out[i] = int32(n)
	}
	return gguf.Int32s(out), true, nil
}

// deci is Deci's DeciLM 7B and Nvidia's Llama Nemotron Super and Ultra, whose
// layers may lack attention or the feed-forward part. Source: the Deci class of
// the reference's converter.
var (
	deci = &Arch{
		Name:      "deci",
		Classes:   []string{"DeciLMForCausalLM"},
		Tokenizer: tokenizer.ClassDeci,
		Metadata: slices.Concat(
			rowsIf(hasBlocks, []Row{
				{Key: "rope.freq_base", Derive: func(c *Config) (gguf.Value, bool, error) { return float32Of(c.Rope().Float("rope_theta")) }},
				{Key: keyHeadCountKV, Derive: func(c *Config) (gguf.Value, bool, error) {
					return perLayer(c.deciList(func(b deciBlock) int64 { return b.headsKV }))
				}},
				{Key: keyHeadCount, Derive: func(c *Config) (gguf.Value, bool, error) {
					return perLayer(c.deciList(func(b deciBlock) int64 { return b.heads }))
				}},
				{Key: "feed_forward_length", Derive: func(c *Config) (gguf.Value, bool, error) {
					return perLayer(c.deciList(func(b deciBlock) int64 { return b.width }))
				}},
				uintRow(keyBlockCount, blockCountKeys...),
				uintRow("context_length", "max_position_embeddings"),
				uintRow("embedding_length", "hidden_size"),
				floatRow("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
				{Key: "attention.key_length", Derive: hiddenPerHead},
				{Key: "attention.value_length", Derive: hiddenPerHead},
				fileTypeRow,
			}),
			rowsIf(func(c *Config) bool { return !hasBlocks(c) }, slices.Concat(commonRows, []Row{
				{Key: keyHeadCountKV, Derive: func(c *Config) (v gguf.Value, ok bool, err error) {
					list, ok, err := c.Ints(deciHeadsKV)
					if err != nil || !ok {
						return v, false, err
					}
					return perLayer(list, nil)
				}},
			})),
			[]Row{
				uintRow("vocab_size", "vocab_size"),
				{Key: "rope.dimension_count", Derive: ropeDimensionCount},
			}),
		Expect: []Expect{silu},
		Unused: append([]string{deciHeadsKV, "block_configs"}, biasKeys...),
		Tensors: slices.Concat(embedRows, only(deciHas(func(b deciBlock) bool { return b.headsKV > 0 }), append([]TensorRow{
			{HF: "model.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q", Transform: permuteQ, Bias: MayBias},
			{HF: "model.layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.attn_k", Transform: permuteDeciK, Bias: MayBias},
			{HF: "model.layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.attn_v", Bias: MayBias},
		}, TensorRow{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output", Bias: MayBias})),
			only(deciHas(func(b deciBlock) bool { return b.heads > 0 }), normRows[:1]),
			only(deciHas(func(b deciBlock) bool { return b.heads > 0 && b.headsKV == 0 }), []TensorRow{
				{HF: "model.layers.{bid}.self_attn.linear_attn", GGUF: "blk.{bid}.attn_output"},
			}),
			only(deciHas(func(b deciBlock) bool { return b.width > 0 }), slices.Concat(normRows[1:], withBias(MayBias, mlpRows)))),
		Extra: llama.Extra,
	}
)

const deciHeadsKV = "num_key_value_heads_per_layer"

// hasBlocks tells that the config describes each layer.
func hasBlocks(c *Config) bool { return c.Has("block_configs") }

// rowsIf are rows that some configs have.
func rowsIf(cond func(*Config) bool, list []Row) []Row {
	list = slices.Clone(list)
	for i, r := range list {
		list[i] = Row{Key: r.Key, Derive: func(c *Config) (v gguf.Value, ok bool, err error) {
			if !cond(c) {
				return v, false, nil
			}
			if r.Key == gguf.KeyFileType {
				return v, true, nil
			}
			return r.value(c)
		}}
	}
	return list
}

// deciBlock is what a layer has; width is that of its feed-forward part.
type deciBlock struct{ heads, headsKV, width int64 }

// deciList returns a number for each layer of block_configs.
func (c *Config) deciList(of func(deciBlock) int64) ([]int64, error) {
	list, _ := c.Value("block_configs").([]any)
	out := make([]int64, len(list))
	for i := range list {
		b, err := c.deciBlock(int64(i))
		if err != nil {
			return nil, err
		}
		out[i] = of(b)
	}
	return out, nil
}

// deciBlock reads a member of block_configs. Without them a layer has everything.
func (c *Config) deciBlock(bid int64) (b deciBlock, err error) {
	const key = "block_configs"
	hidden, heads, err := c.hiddenAndHeads()
	if err != nil {
		return b, err
	}
	if !hasBlocks(c) {
		b = deciBlock{heads, heads, hidden}
		if list, ok, err := c.Ints(deciHeadsKV); err != nil || ok {
			if err == nil && bid >= int64(len(list)) {
				err = fault.Errorf(fault.Broken, "%s: key %q has no layer %d", ConfigFile, deciHeadsKV, bid)
			}
			if err != nil {
				return b, err
			}
			b.headsKV = list[bid]
			return b, nil
		}
		b.headsKV, err = c.headsKV()
		return b, err
	}
	list, _ := c.Value(key).([]any)
	if bid < 0 || bid >= int64(len(list)) {
		return b, fault.Errorf(fault.Broken, "%s: key %q has no layer %d", ConfigFile, key, bid)
	}
	block, _ := list[bid].(map[string]any)
	attention, _ := block["attention"].(map[string]any)
	ffn, _ := block["ffn"].(map[string]any)
	if attention == nil || ffn == nil {
		return b, wrongType(key, "objects with attention and ffn", list[bid])
	}
	inGroup, ok, err := asInt(key+".attention.n_heads_in_group", attention["n_heads_in_group"])
	if err != nil {
		return b, err
	}
	if linear, _ := attention["replace_with_linear"].(bool); ok || linear {
		b.heads = heads
	}
	if ok {
		if inGroup <= 0 {
			return b, wrongType(key+".attention.n_heads_in_group", "a positive integer", inGroup)
		}
		b.headsKV = heads / inGroup
	}
	mult, ok, err := asFloat(key+".ffn.ffn_mult", ffn["ffn_mult"])
	if err != nil || !ok {
		return b, err
	}
	n, err := truncate(2 * mult * float64(hidden) / 3)
	b.width = (n + 255) / 256 * 256
	return b, err
}

// deciHas is a condition on what a layer has.
func deciHas(cond func(deciBlock) bool) Cond {
	return func(l Layer) (bool, error) {
		b, err := l.deciBlock(l.Bid)
		return cond(b), err
	}
}

// permuteDeciK is permuteK with the number of key heads of the layer.
var permuteDeciK = &Transform{Name: "permute-rope-layer-k", Forward: func(l Layer, s rows.Source) (rows.Source, error) {
	b, err := l.deciBlock(l.Bid)
	if err != nil {
		return nil, err
	}
	return rows.PermuteRope(s, b.headsKV)
}}
