package arch

import (
	"errors"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(commandR, cohere2, cohere2MoE)

// commandR and cohere2 are Cohere's models: Command R and R+, Aya 23; Command R7B
// and A. Source: the classes of command_r.py of the reference's converter.
var (
	commandR = &table.Arch{
		Name:      "command-r",
		Classes:   []string{"CohereForCausalLM"},
		Body:      table.Body{Classes: []string{"CohereModel"}, Prefix: "model."},
		Tokenizer: tokenizer.BPE{},
		Fused:     table.FusedQKV,
		Metadata: slices.Concat(parts.Override(parts.CommonRows,
			// max_position_embeddings is less than the trained context length
			parts.UintRow("context_length", "model_max_length", "max_position_embeddings"),
		), []table.Row{
			parts.FloatRow("logit_scale", "logit_scale"),
			parts.NoRopeScaling,
		}),
		Expect: []table.Expect{parts.SiLU},
		Unused: slices.Concat(parts.BiasKeys, []string{"use_qk_norm", "max_position_embeddings"}),
		Tensors: slices.Concat(parts.EmbedRows[:2], parts.NormRows[:1],
			parts.AttentionRows(table.MayBias, table.MayBias), parts.MLPRows, []table.TensorRow{
				{HF: "model.layers.{bid}.self_attn.q_norm", GGUF: "blk.{bid}.attn_q_norm", Optional: true},
				{HF: "model.layers.{bid}.self_attn.k_norm", GGUF: "blk.{bid}.attn_k_norm", Optional: true},
			}),
		Graph: &graph.Model{
			Norm: graph.LayerNorm, Final: parts.OutputNorm, Head: graph.LM{Scale: cohereLogits},
			Layer: []graph.Step{parts.Parallel("attn_norm", parts.GQA(parts.MayQKNorm, parts.Interleaved),
				"attn_norm", parts.SwiGLU)},
		},
	}
	cohere2 = &table.Arch{
		Name:      "cohere2",
		Shapes:    shape.Rules{Relations: []string{"n_embd_q = n_embd"}},
		Classes:   []string{"Cohere2ForCausalLM"},
		Body:      table.Body{Classes: []string{"Cohere2Model"}, Prefix: "model."},
		Tokenizer: tokenizer.BPE{},
		Fused:     table.FusedQKV,
		Metadata: slices.Concat(parts.CommonRows, []table.Row{
			parts.FloatRow("logit_scale", "logit_scale"),
			parts.UintRow("attention.sliding_window", "sliding_window"),
			parts.UintRow("vocab_size", "vocab_size"),
			{Key: "rope.dimension_count", Derive: cohere2RopeDims},
			parts.NoRopeScaling,
		}),
		Expect: append([]table.Expect{
			parts.Expect("sliding_window_pattern", "4"),
			parts.Expect("_sliding_window_pattern", "4"),
			parts.Expect("position_embedding_type", "rope_gptj"),
			parts.Expect("use_gated_activation", "true"),
			parts.Expect("use_parallel_block", "true"),
			parts.Expect("use_qk_norm", "false"),
			parts.Expect("order_of_interleaved_layers", "local_attn_first"),
		}, parts.SiLU),
		// for other loaders, or duplicates of a key above
		Unused: slices.Concat(parts.BiasKeys, []string{"layer_switch", "layer_types", "use_embedding_sharing",
			"use_parallel_embedding", "cache_implementation"}),
		Tensors: slices.Concat(parts.EmbedRows[:2], parts.NormRows[:1], parts.AttentionRows(table.NoBias, table.NoBias),
			parts.MLPRows, zeroBiases),
		Graph: &graph.Model{
			Reads: []string{"attention.sliding_window!", "logit_scale!"},
			Norm:  graph.LayerNorm, Final: parts.OutputNorm, Head: graph.LM{Scale: cohereLogits},
			Layer: []graph.Step{parts.Parallel("attn_norm", cohere2Attention(graph.Sliding{N: 4}),
				"attn_norm", parts.SwiGLU)},
		},
	}
	// zeroBiases are optional rows for the unused biases of some checkpoints.
	zeroBiases = []table.TensorRow{
		{HF: "model.norm.bias", GGUF: "output_norm.bias", Exact: true, Optional: true, Kind: table.Zero{}},
		{HF: "model.layers.{bid}.input_layernorm.bias", GGUF: "blk.{bid}.attn_norm.bias", Exact: true, Optional: true,
			Kind: table.Zero{}},
		{HF: "model.layers.{bid}.self_attn.q_proj.bias", GGUF: "blk.{bid}.attn_q.bias", Exact: true, Optional: true,
			Kind: table.Zero{}},
		{HF: "model.layers.{bid}.self_attn.k_proj.bias", GGUF: "blk.{bid}.attn_k.bias", Exact: true, Optional: true,
			Kind: table.Zero{}},
		{HF: "model.layers.{bid}.self_attn.v_proj.bias", GGUF: "blk.{bid}.attn_v.bias", Exact: true, Optional: true,
			Kind: table.Zero{}},
		{HF: "model.layers.{bid}.self_attn.o_proj.bias", GGUF: "blk.{bid}.attn_output.bias", Exact: true,
			Optional: true, Kind: table.Zero{}},
	}
)

// cohereLogits is the factor of logits.
const cohereLogits graph.Num = "if(@logit_scale = 0, 1, @logit_scale or 1)"

// cohere2Attention has RoPE in sliding-window layers only.
func cohere2Attention(in graph.Layers) graph.Part {
	return parts.LocalGlobal(in,
		graph.Attention{Steps: []graph.HeadStep{parts.LocalInterleaved}, Window: parts.Window}, graph.Attention{})
}

// cohere2RopeDims returns the number of rotary dimensions: rotary_pct of a head; the whole head without the key, which
// newer versions of the transformers library do not save.
func cohere2RopeDims(c *config.View) (v gguf.Value, ok bool, err error) {
	share, ok, err := c.Float("rotary_pct")
	if err != nil {
		return v, false, err
	}
	if !ok {
		n, err := c.HeadDim()
		return table.Uint32Of(n, true, err)
	}
	hidden, heads, err := c.HiddenAndHeads()
	if err != nil {
		return v, false, err
	}
	n, err := config.Truncate(share * float64(hidden/heads))
	return table.Uint32Of(n, true, err)
}

// cohere2MoE is Command A+ and North: experts after some dense layers, attention and FFN side by side. Source: the
// Cohere2Moe class of the reference's converter.
var cohere2MoE = &table.Arch{
	Name:    "cohere2moe",
	Classes: []string{"Cohere2MoeForCausalLM"},
	Body:    table.Body{Classes: []string{"Cohere2MoeModel"}, Prefix: "model."},
	Config: config.Rules{Types: []string{"cohere2_moe"},
		Derived: config.DerivedKeys{"layer_types": cohere2LayerTypes,
			"mlp_layer_types": cohere2MLPTypes}},
	Tokenizer:  tokenizer.BPE{},
	BlockCount: parts.BlocksWithNextN,
	Metadata: slices.Concat(parts.Override(parts.CommonRows, parts.BlocksRow), []table.Row{
		parts.FloatRow("logit_scale", "logit_scale"),
		parts.UintRow("attention.sliding_window", "sliding_window"),
		{Key: "attention.sliding_window_pattern", Derive: func(c *config.View) (gguf.Value, bool, error) {
			windows, ok, err := parts.LayersOf(c, parts.Sliding)
			if err == nil && !ok {
				_, err = c.LayerType(0) // an error that names the key
			}
			return gguf.Bools(windows), len(windows) > 0, err
		}},
		parts.UintRow("vocab_size", "vocab_size"),
		parts.UintRow("expert_feed_forward_length", "intermediate_size"),
		{Key: "leading_dense_block_count", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := cohere2Dense(c)
			return table.Uint32Of(n, true, err)
		}},
		{Key: "expert_weights_norm", Type: gguf.BoolType, From: []string{"norm_topk_prob"}, Const: gguf.Bool(false)},
		{Key: "expert_shared_count", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, _, err := c.Int("num_shared_experts")
			return table.Uint32Of(n, n != 0, err)
		}},
		{Key: "expert_shared_feed_forward_length", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			n, _, err := c.Int("num_shared_experts")
			if err != nil || n == 0 {
				return v, false, err
			}
			if n < 0 || n > config.MaxParts {
				return v, false, config.WrongType("num_shared_experts", "a number of experts", n)
			}
			return parts.Times(n, "intermediate_size")(c)
		}},
		parts.NextNSome,
		parts.UintRow("rope.dimension_count", "head_dim"),
		parts.NoRopeScaling,
	}),
	Expect: []table.Expect{parts.SiLU, parts.DefaultRopeType, parts.UnitRopeFactor,
		parts.Expect("position_embedding_type", "rope_gptj"), parts.Expect("rotary_pct", "1"),
		parts.Expect("use_gated_activation", "true"), parts.Expect("use_parallel_block", "true"),
		parts.Expect("use_qk_norm", "false"),
		parts.Expect("order_of_interleaved_layers", "local_attn_first"),
		parts.Expect("shared_expert_combination_strategy", "average"),
		parts.Expect("prefix_dense_sliding_window_pattern", "1"), // those layers have RoPE
	},
	Unused: slices.Concat(parts.BiasKeys, []string{"layer_switch", "layer_types", "mlp_layer_types",
		"first_k_dense_replace", "sliding_window_pattern", "_sliding_window_pattern",
		"use_embedding_sharing", "use_parallel_embedding", "cache_implementation"}),
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows[:1],
		parts.AttentionRows(table.NoBias, table.NoBias), zeroBiases,
		parts.Only(cohere2IsDense, parts.MLPRows), parts.Only(cohere2HasExperts, parts.ExpertRows),
		parts.Only(parts.Both(cohere2HasExperts, parts.IsSome("num_shared_experts")), parts.SharedExpertRows),
		// no key has the attention type of the MTP layer
		parts.Only(parts.NextN, slices.Concat(parts.NextNRows, parts.OptionalRows(parts.MLPRows),
			parts.OptionalRows(parts.ExpertRows), parts.OptionalRows(parts.SharedExpertRows)))),
	Graph: &graph.Model{
		Reads: parts.RouterKeys,
		Norm:  graph.NormKind{Centered: true, Eps: graph.LayerNorm.Eps, OrRMS: graph.RMS.Eps},
		Final: parts.OutputNorm, Head: graph.LM{Scale: cohereLogits},
		Layer: []graph.Step{parts.Parallel("attn_norm", graph.Choose{
			{In: graph.Sliding{}, Then: graph.Attention{Steps: []graph.HeadStep{parts.Interleaved}, Window: parts.Window}},
			{In: graph.Where("i < @leading_dense_block_count"), Then: parts.GQA(parts.Interleaved)},
			{In: graph.Every{}, Then: graph.Attention{}},
		}, "attn_norm", parts.Sparse(graph.MoE{Router: graph.Router{Score: graph.Sigmoid}, Experts: parts.SwiGLU,
			Shared: graph.MayShared, With: []graph.MoEOption{graph.HalvedSum{}}}, parts.SwiGLU))},
		Runtime: []graph.Quirk{graph.DraftsRead{"nextn.shared_head_norm."}},
	},
}

// cohere2Kinds reports for each layer whether it is dense.
const cohere2Kinds = "mlp_layer_types"

// cohere2Dense returns the number of dense layers before the first MoE layer.
func cohere2Dense(c *config.View) (int64, error) {
	kinds, ok, err := c.Strings(cohere2Kinds)
	if err != nil || !ok {
		n, _, intErr := c.Int("first_k_dense_replace")
		return n, errors.Join(err, intErr)
	}
	n := slices.IndexFunc(kinds, func(k string) bool { return k != "dense" })
	if n < 0 {
		return int64(len(kinds)), nil
	}
	if slices.Contains(kinds[n:], "dense") {
		return 0, parts.UnsupportedPattern(cohere2Kinds, "no dense layers after the first with experts")
	}
	return int64(n), nil
}

func cohere2IsDense(l table.Layer) (bool, error) {
	if beyond, err := parts.NextN(l); err != nil || beyond {
		return false, err
	}
	kind, ok, err := l.StringAt(cohere2Kinds, l.Bid)
	if err != nil || ok {
		return kind == "dense", err
	}
	n, _, err := l.Int("first_k_dense_replace")
	return l.Bid < n, err
}

// cohere2HasExperts is the condition of MoE layers.
func cohere2HasExperts(l table.Layer) (bool, error) {
	if beyond, err := parts.NextN(l); err != nil || beyond {
		return false, err
	}
	dense, err := cohere2IsDense(l)
	return !dense, err
}

// cohere2LayerTypes is the default of layer_types: every n-th dense layer, and every n-th one of the layers after them,
// has full attention.
func cohere2LayerTypes(v config.Values) (any, error) {
	dense, err := cohere2FirstDense(v)
	if err != nil {
		return nil, err
	}
	first, err := v.Int("prefix_dense_sliding_window_pattern")
	if err != nil {
		return nil, err
	}
	rest, err := v.Int("sliding_window_pattern")
	if err == nil && min(first, rest) < 1 {
		err = config.WrongType("sliding_window_pattern", "a positive number", min(first, rest))
	}
	if err != nil {
		return nil, err
	}
	return config.LayerKinds(v, func(bid int64) string {
		distance := first
		if bid >= dense {
			bid, distance = bid-dense, rest
		}
		if (bid+1)%distance == 0 {
			return "full_attention"
		}
		return "sliding_attention"
	})
}

// cohere2MLPTypes is the default of mlp_layer_types.
func cohere2MLPTypes(v config.Values) (any, error) {
	dense, err := cohere2FirstDense(v)
	if err != nil {
		return nil, err
	}
	return config.LayerKinds(v, func(bid int64) string {
		if bid < dense {
			return "dense"
		}
		return "sparse"
	})
}

// cohere2FirstDense returns the number of dense layers at the beginning.
func cohere2FirstDense(v config.Values) (int64, error) {
	n, _, err := v.Object().Int("first_k_dense_replace")
	return n, err
}
