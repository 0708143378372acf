package arch

import (
	"fmt"
	"math"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/half"
	"ggforge/internal/kernel/torchmath"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(bailingMoE, bailingMoE2, sarvamMoE)

// bailingMoE and bailingMoE2 are inclusionAI's Ling and Ring. Source: the classes of bailingmoe.py of the
// reference's converter.
var (
	bailingMoE = &table.Arch{
		Name:      "bailingmoe",
		Shapes:    shape.WholeHeadRotates,
		Classes:   []string{"BailingMoeForCausalLM"},
		Tokenizer: tokenizer.BPE{},
		Fused:     table.FusedQKV,
		Metadata: slices.Concat(parts.CommonRows, []table.Row{
			parts.RopeDimensionRow,
			parts.UintRow("leading_dense_block_count", "first_k_dense_replace"),
			parts.UintRow("vocab_size", "vocab_size"),
			parts.UintRow("expert_feed_forward_length", "moe_intermediate_size"),
			{Key: "expert_weights_scale", Const: gguf.Float32(1)},
			parts.UintRow("expert_shared_count", "num_shared_experts"),
			parts.BoolRow("expert_weights_norm", "norm_topk_prob"),
		}),
		Expect: []table.Expect{parts.SiLU, parts.Expect("norm_softmax", "false"), parts.Expect("use_qkv_bias", "false"),
			parts.Expect("use_bias", "false")},
		Unused: []string{"embedding_dropout", "max_window_layers", "moe_layer_freq", "multi_gate",
			"num_nextn_predict_layers", "output_dropout", "rope_type", "sliding_window",
			"use_sliding_window", "router_dtype"},
		Tensors: slices.Concat([]table.TensorRow{{HF: "model.word_embeddings", GGUF: "token_embd"}},
			parts.EmbedRows[1:2], parts.NormRows, parts.ExpertRows, parts.SharedExpertRows, []table.TensorRow{
				{HF: "lm_head", GGUF: "output", Optional: true, Transform: normHead},
				{HF: "model.layers.{bid}.attention.query_key_value", Split: []table.Part{
					{GGUF: "blk.{bid}.attn_q", Transform: parts.Chain("q-of-joined-permuted", parts.QOfJoined,
						parts.PermuteQ)},
					{GGUF: "blk.{bid}.attn_k", Transform: parts.Chain("k-of-joined-permuted", parts.KOfJoined,
						parts.PermuteK)},
					{GGUF: "blk.{bid}.attn_v", Transform: parts.VOfJoined},
				}},
				{HF: "model.layers.{bid}.attention.dense", GGUF: "blk.{bid}.attn_output"},
			}),
		Graph: parts.Decoder(graph.RMS, parts.GQA(parts.Interleaved), parts.Experts(parts.Router, graph.HasShared)).Reading("expert_weights_norm", "expert_weights_scale"),
	}
	bailingMoE2 = &table.Arch{
		Name:       "bailingmoe2",
		Classes:    []string{"BailingMoeV2ForCausalLM"},
		Tokenizer:  tokenizer.BPE{},
		Fused:      table.FusedQKV,
		BlockCount: withNextN,
		Metadata: slices.Concat(parts.Override(parts.CommonRows,
			table.Row{Key: table.KeyBlockCount, Derive: func(c *config.View) (gguf.Value, bool, error) {
				n, err := withNextN(c)
				return table.Uint32Of(n, true, err)
			}}), []table.Row{
			{Key: "rope.dimension_count", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
				dim, err := c.HeadDim()
				if err != nil {
					return v, false, err
				}
				share, ok, err := c.Rope().Float("partial_rotary_factor")
				if !ok {
					share = 0.5
				}
				if err != nil {
					return v, false, err
				}
				n, err := config.Truncate(float64(dim) * share)
				return table.Uint32Of(n, true, err)
			}},
			parts.UintRow("leading_dense_block_count", "first_k_dense_replace"),
			parts.UintRow("vocab_size", "vocab_size"),
			parts.UintRow("expert_feed_forward_length", "moe_intermediate_size"),
			{Key: "expert_shared_feed_forward_length", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
				if n, ok, err := c.Int("moe_shared_expert_intermediate_size"); err != nil || ok {
					return table.Uint32Of(n, ok, err)
				}
				width, err := c.Require("moe_intermediate_size")
				if err != nil {
					return v, false, err
				}
				n, err := c.Require("num_shared_experts")
				if err == nil && (n < 0 || n > config.MaxParts || width < 0 || width > 1<<32) {
					err = fault.Errorf(fault.Broken, "%s: %d shared experts of %d", config.ConfigFile, n, width)
				}
				return table.Uint32Of(n*width, true, err)
			}},
			parts.FloatRow("expert_weights_scale", "routed_scaling_factor"),
			parts.UintRow("expert_shared_count", "num_shared_experts"),
			parts.BoolRow("expert_weights_norm", "norm_topk_prob"),
			parts.Optional(parts.UintRow("nextn_predict_layers", "num_nextn_predict_layers")),
		}),
		Expect: []table.Expect{parts.SiLU, parts.Expect("use_qkv_bias", "false"), parts.Expect("use_bias", "false"),
			parts.Expect("use_qk_norm", "true"), parts.Expect("use_rmsnorm", "true")},
		Unused: []string{"embedding_dropout", "max_window_layers", "moe_router_enable_expert_bias",
			"moe_router_topk_scaling_factor", "mtp_loss_scaling_factor", "output_dropout", "rotary_dim",
			"router_dtype", "sliding_window", "use_sliding_window", "rope_interleave",
			"moe_router_enable_routed_scaling", "moe_router_group_topk", "moe_router_num_groups"},
		Tensors: slices.Concat([]table.TensorRow{
			{HF: "model.word_embeddings", GGUF: "token_embd"},
			{HF: "model.layers.{bid}.attention.query_key_value", GGUF: "blk.{bid}.attn_qkv"},
			{HF: "model.layers.{bid}.attention.dense", GGUF: "blk.{bid}.attn_output"},
			{HF: "model.layers.{bid}.attention.query_layernorm", GGUF: "blk.{bid}.attn_q_norm"},
			{HF: "model.layers.{bid}.attention.key_layernorm", GGUF: "blk.{bid}.attn_k_norm"},
		}, parts.EmbedRows[1:], parts.NormRows, parts.Only(parts.FirstDense("first_k_dense_replace"), parts.MLPRows),
			parts.Only(parts.Not(parts.FirstDense("first_k_dense_replace")),
				slices.Concat(parts.ExpertRows, parts.SharedExpertRows, []table.TensorRow{
					{HF: "model.layers.{bid}.mlp.gate.expert_bias", GGUF: "blk.{bid}.exp_probs_b.bias", Exact: true,
						Optional: true},
				})), parts.Only(isNextN, []table.TensorRow{
				{HF: "model.layers.{bid}.eh_proj", GGUF: "blk.{bid}.nextn.eh_proj"},
				{HF: "model.layers.{bid}.enorm", GGUF: "blk.{bid}.nextn.enorm"},
				{HF: "model.layers.{bid}.hnorm", GGUF: "blk.{bid}.nextn.hnorm"},
				{HF: "model.layers.{bid}.final_layernorm", GGUF: "blk.{bid}.layer_output_norm"},
			})),
		Graph: &graph.Model{
			Reads: []string{"expert_gating_func!", "expert_weights_norm", "expert_weights_scale"},
			Dims:  graph.Dims{"n_ff_shexp": "(@expert_shared_feed_forward_length or n_ff_exp) * @expert_shared_count"},
			Norm:  graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
			Layer: parts.PreNorm(parts.GQA(parts.QKNorm, parts.NeoX),
				parts.Sparse(parts.Experts(parts.RouterGroups, graph.MayShared), parts.SwiGLU)),
		},
	}
)

// withNextN returns the number of layers, MTP layers included.
func withNextN(c *config.View) (int64, error) {
	extra, _, err := c.Int("num_nextn_predict_layers")
	if err != nil {
		return 0, err
	}
	if extra == 0 {
		return c.BlockCount()
	}
	n, err := c.Require("num_hidden_layers")
	return min(max(n, 0), config.MaxBlocks) + min(max(extra, 0), config.MaxBlocks), err
}

// isNextN is the condition of MTP layers.
func isNextN(l table.Layer) (bool, error) {
	n, err := l.BlockCount()
	return l.Bid >= n, err
}

// normHead divides each column of the output matrix by its L2 norm where norm_head is set:
// transformers does so in each forward pass. All steps are float32, rows added one after
// the other, as PyTorch does it.
var normHead = &table.Transform{Name: "norm-head", Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
	if on, _, err := l.Bool("norm_head"); err != nil || !on {
		return s, err
	}
	ne := s.NE()
	if len(ne) != 2 || ne[0] > maxColumns {
		return nil, fmt.Errorf("dimensions %s, want a matrix of at most %d columns", gguf.Shape(ne), maxColumns)
	}
	return rows.Prepared(ne, gguf.TypeF32, func() (rows.Source, error) {
		lengths := make([]float32, ne[0])
		if err := rows.Each(s, func(x []float32) {
			for i, v := range x {
				lengths[i%len(lengths)] += float32(v * v)
			}
		}); err != nil {
			return nil, err
		}
		for i, sum := range lengths {
			lengths[i] = float32(math.Sqrt(float64(sum))) + 1e-7
		}
		return rows.Map(rows.Convert(s, gguf.TypeF32), func(x []float32) {
			for i := range x {
				x[i] /= lengths[i%len(lengths)]
			}
		}), nil
	}), nil
}}

// maxColumns bounds the memory for the sums, one per column.
const maxColumns = 1 << 20

// sarvamMoE is Sarvam's models: Ling 2 with RoPE over whole heads and with the mean subtracted from the experts'
// biases. Source: the class SarvamMoEModel of the reference's converter.
var sarvamMoE = func() *table.Arch {
	a := &table.Arch{
		Name: bailingMoE2.Name, Tokenizer: bailingMoE2.Tokenizer, Fused: bailingMoE2.Fused,
		BlockCount: bailingMoE2.BlockCount,
		Classes:    []string{"SarvamMoEForCausalLM", "modeling_sarvam_moe.SarvamMoEForCausalLM"},
		Expect:     bailingMoE2.Expect, Unused: bailingMoE2.Unused, Graph: bailingMoE2.Graph,
	}
	a.Metadata = parts.Override(bailingMoE2.Metadata,
		table.Row{Key: "rope.dimension_count", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := c.HeadDim()
			return table.Uint32Of(n, true, err)
		}})
	for _, r := range bailingMoE2.Tensors {
		if r.GGUF == "blk.{bid}.exp_probs_b.bias" {
			r.Transform = subtractMean
		}
		a.Tensors = append(a.Tensors, r)
	}
	return a
}()

// subtractMean subtracts the mean of a vector from each element in the precision of the checkpoint, as PyTorch does:
// sums are float32, the mean is rounded, and so are the differences.
var subtractMean = &table.Transform{Name: "less-mean",
	Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
		round := func(v float32) float32 { return v }
		switch s.Type() {
		case gguf.TypeF16:
			round = half.RoundF16
		case gguf.TypeBF16:
			round = func(v float32) float32 { return half.FromBF16(half.ToBF16(v)) }
		}
		whole := rows.Convert(s, gguf.TypeF32)
		return rows.Prepared(s.NE(), gguf.TypeF32, func() (rows.Source, error) {
			n := gguf.Rows(s.NE()) * gguf.RowLen(s.NE())
			sum := torchmath.NewSum(n)
			if err := rows.Each(whole, sum.Add); err != nil {
				return nil, err
			}
			mean := round(sum.Value() / float32(n))
			return rows.Map(whole, func(x []float32) {
				for i, v := range x {
					x[i] = round(v - mean)
				}
			}), nil
		}), nil
	}}
