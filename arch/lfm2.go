package arch

import (
	"fmt"
	"math"
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

// lfm2 and lfm2moe are Liquid AI's LFM2: layers of short convolutions among layers
// of attention. Source: the classes of lfm2.py of the reference's converter.
var (
	lfm2 = &Arch{
		Name:      "lfm2",
		Classes:   []string{"Lfm2ForCausalLM", "LFM2ForCausalLM"},
		Tokenizer: tokenizer.ClassGPT2,
		Metadata: slices.Concat(with(commonRows,
			Row{Key: "feed_forward_length", Derive: lfm2FeedForward},
			Row{Key: keyHeadCountKV, Derive: lfm2HeadsKV},
		), []Row{
			uintRow("vocab_size", "vocab_size"),
			uintRow("shortconv.l_cache", "conv_L_cache"),
		}),
		Expect: []Expect{{"conv_bias", []string{"false"}}},
		Unused: []string{"block_dim", "block_mlp_init_scale", "block_norm_eps", "block_out_init_scale", "block_use_swiglu", "block_use_xavier_init", "conv_dim",
			"conv_dim_out", "conv_use_xavier_init", "full_attn_idxs", "intermediate_size", "num_heads", "use_pos_enc", "theta", "tie_embedding"},
		Tensors: slices.Concat(lfm2Tensors, lfm2MLP),
	}
	lfm2moe = &Arch{
		Name:      "lfm2moe",
		Classes:   []string{"Lfm2MoeForCausalLM"},
		Tokenizer: tokenizer.ClassGPT2,
		Metadata: slices.Concat(with(commonRows,
			Row{Key: keyHeadCountKV, Derive: lfm2HeadsKV},
		), []Row{
			uintRow("expert_feed_forward_length", "moe_intermediate_size"),
			uintRow("leading_dense_block_count", "num_dense_layers"),
			{Key: "expert_gating_func", Const: gguf.Uint32(gatingFuncs["sigmoid"])},
			uintRow("vocab_size", "vocab_size"),
			uintRow("shortconv.l_cache", "conv_L_cache"),
		}),
		Expect: []Expect{
			{"conv_bias", []string{"false"}},
			{"norm_topk_prob", []string{"true"}},
			{"routed_scaling_factor", []string{"1", "1.0"}},
		},
		Unused: []string{"use_expert_bias", "tie_embedding", "conv_dim", "num_heads", "use_pos_enc"},
		Tensors: slices.Concat(lfm2Tensors, only(lfm2Dense, lfm2MLP), only(lfm2Sparse, []TensorRow{
			{HF: "model.layers.{bid}.feed_forward.gate", GGUF: "blk.{bid}.ffn_gate_inp"},
			{HF: "model.layers.{bid}.feed_forward.expert_bias", GGUF: "blk.{bid}.exp_probs_b.bias", Exact: true, Optional: true},
			{HF: "model.layers.{bid}.feed_forward.experts.{xid}.w1", GGUF: "blk.{bid}.ffn_gate_exps"},
			{HF: "model.layers.{bid}.feed_forward.experts.{xid}.w2", GGUF: "blk.{bid}.ffn_down_exps"},
			{HF: "model.layers.{bid}.feed_forward.experts.{xid}.w3", GGUF: "blk.{bid}.ffn_up_exps"},
		})),
	}
	lfm2Tensors = slices.Concat([]TensorRow{
		{HF: "model.embed_tokens", GGUF: "token_embd"},
		{HF: "model.embedding_norm", GGUF: "token_embd_norm"},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "model.layers.{bid}.operator_norm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "model.layers.{bid}.ffn_norm", GGUF: "blk.{bid}.ffn_norm"},
	}, only(layerTypeIs("conv"), []TensorRow{
		{HF: "model.layers.{bid}.conv.conv", GGUF: "blk.{bid}.shortconv.conv", Transform: squeezeKernel},
		{HF: "model.layers.{bid}.conv.in_proj", GGUF: "blk.{bid}.shortconv.in_proj"},
		{HF: "model.layers.{bid}.conv.out_proj", GGUF: "blk.{bid}.shortconv.out_proj"},
	}), only(layerTypeIs("full_attention"), []TensorRow{
		{HF: "model.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q"},
		{HF: "model.layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.attn_k"},
		{HF: "model.layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.attn_v"},
		{HF: "model.layers.{bid}.self_attn.out_proj", GGUF: "blk.{bid}.attn_output"},
		{HF: "model.layers.{bid}.self_attn.q_layernorm", GGUF: "blk.{bid}.attn_q_norm"},
		{HF: "model.layers.{bid}.self_attn.k_layernorm", GGUF: "blk.{bid}.attn_k_norm"},
	}))
	lfm2MLP = []TensorRow{
		{HF: "model.layers.{bid}.feed_forward.w1", GGUF: "blk.{bid}.ffn_gate"},
		{HF: "model.layers.{bid}.feed_forward.w2", GGUF: "blk.{bid}.ffn_down"},
		{HF: "model.layers.{bid}.feed_forward.w3", GGUF: "blk.{bid}.ffn_up"},
	}
)

func lfm2Dense(l Layer) (bool, error) {
	n, err := l.Require("num_dense_layers")
	return l.Bid < n, err
}

func lfm2Sparse(l Layer) (bool, error) {
	dense, err := lfm2Dense(l)
	return !dense, err
}

// layerTypeIs tells the layers of one kind, by the list layer_types.
func layerTypeIs(kind string) Cond {
	return func(l Layer) (bool, error) {
		t, err := l.layerType(l.Bid)
		return t == kind, err
	}
}

func (c *Config) layerType(bid int64) (string, error) {
	const key = "layer_types"
	list, _ := c.Value(key).([]any)
	if bid < 0 || bid >= int64(len(list)) {
		return "", fault.Errorf(fault.Broken, "%s: key %q has no layer %d", ConfigFile, key, bid)
	}
	s, ok := list[bid].(string)
	if !ok {
		return "", wrongType(key, "strings", list[bid])
	}
	return s, nil
}

// lfm2HeadsKV is the number of key heads of each layer, 0 for convolutions.
func lfm2HeadsKV(c *Config) (v gguf.Value, ok bool, err error) {
	types, _, err := c.Strings("layer_types")
	if err != nil {
		return v, false, err
	}
	n, err := c.Require(headKVKeys...)
	if err == nil && (n < 0 || n > math.MaxInt32 || len(types) == 0) {
		err = fault.Errorf(fault.Broken, "%s: %d key heads for the layers of \"layer_types\", of which there are %d", ConfigFile, n, len(types))
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

// lfm2FeedForward is the width of the MLP, which the config has before it is
// adjusted, or after.
func lfm2FeedForward(c *Config) (v gguf.Value, ok bool, err error) {
	n, err := c.Require("block_ff_dim", "intermediate_size")
	if err != nil {
		return v, false, err
	}
	adjust, ok, err := c.Bool("block_auto_adjust_ff_dim")
	if err != nil || !ok {
		if err == nil {
			err = fault.Errorf(fault.Broken, "%s: has no key \"block_auto_adjust_ff_dim\"", ConfigFile)
		}
		return v, false, err
	}
	if !adjust {
		return uint32Of(n, true, nil)
	}
	multiple, err := c.Require("block_multiple_of")
	if err == nil && (multiple <= 0 || multiple > math.MaxInt32 || n > math.MaxInt32) {
		err = fault.Errorf(fault.Broken, "%s: width %d of the MLP in multiples of %d", ConfigFile, n, multiple)
	}
	if err != nil {
		return v, false, err
	}
	n = int64(2 * float64(n) / 3)
	factor, ok, err := c.Float("block_ffn_dim_multiplier")
	if err == nil && ok {
		n, err = truncate(factor * float64(n))
	}
	return uint32Of((n+multiple-1)/multiple*multiple, true, err)
}

// lfm2LayerTypes is the default of layer_types: attention in the layers of
// full_attn_idxs, or in all.
func lfm2LayerTypes(v values) (any, error) {
	list, ok, err := asList("full_attn_idxs", v["full_attn_idxs"], asInt)
	if err != nil {
		return nil, err
	}
	return layerTypes(v, func(bid int64) string {
		if !ok || slices.Contains(list, bid) {
			return "full_attention"
		}
		return "conv"
	})
}

// squeezeKernel turns a kernel of one channel, [channels, 1, width] in the
// checkpoint, into a matrix.
var squeezeKernel = &Transform{Name: "squeeze-kernel", Forward: func(_ Layer, s rows.Source) (rows.Source, error) {
	ne := s.NE()
	if len(ne) != 3 || ne[1] != 1 {
		return nil, fmt.Errorf("dimensions %s, want the middle one of three to be 1", gguf.Shape(ne))
	}
	return rows.Reshape(s, []int64{ne[0], ne[2]})
}}
