package arch

import (
	"slices"

	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(qwen3next)

// qwen3next is Qwen3-Next: three of four layers have linear attention (gated delta net), MTP layers follow the others.
// Norm weights are stored minus 1, except in linear attention. Source: the Qwen3Next class of the reference's
// converter.
var qwen3next = &table.Arch{
	Name:      "qwen3next",
	Classes:   []string{"Qwen3NextForCausalLM"},
	Body:      table.Body{Classes: []string{"Qwen3NextModel"}, Prefix: "model."},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV | table.FusedGateUp,
	NextN:     parts.QwenNextN,
	Metadata:  parts.DeltaMetadata,
	Unused:    []string{"layer_types"},
	Expect: []table.Expect{parts.SiLU, parts.Expect("norm_topk_prob", "true"),
		parts.Expect("decoder_sparse_step", "1"), parts.Expect("use_sliding_window", "false")},
	Rename: parts.MTPNames,
	Tensors: slices.Concat(parts.TransformBySuffix(parts.EmbedRows, "norm", parts.PlusOne),
		parts.TransformBySuffix([]table.TensorRow{
			{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
			{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.post_attention_norm"},
		}, "norm", parts.PlusOne),
		parts.Only(parts.Not(parts.LinearAttention), slices.Concat(parts.AttentionRows(table.MayBias, table.NoBias),
			parts.TransformBySuffix(parts.QKNormRows, "norm", parts.PlusOne))),
		parts.Only(parts.LinearAttention, []table.TensorRow{
			{HF: "model.layers.{bid}.linear_attn.in_proj_qkvz", Split: []table.Part{
				{GGUF: "blk.{bid}.attn_qkv", Transform: deltaQKV},
				{GGUF: "blk.{bid}.attn_gate", Transform: deltaGate},
			}},
			{HF: "model.layers.{bid}.linear_attn.in_proj_ba", GGUF: "blk.{bid}.ssm_ba"},
			{HF: "model.layers.{bid}.linear_attn.conv1d", GGUF: "blk.{bid}.ssm_conv1d", Transform: parts.Squeeze},
			{HF: "model.layers.{bid}.linear_attn.dt_bias", Exact: true, GGUF: "blk.{bid}.ssm_dt.bias"},
			{HF: "model.layers.{bid}.linear_attn.A_log", Exact: true, GGUF: "blk.{bid}.ssm_a", Transform: parts.NegExp},
			{HF: "model.layers.{bid}.linear_attn.norm", GGUF: "blk.{bid}.ssm_norm"},
			{HF: "model.layers.{bid}.linear_attn.out_proj", GGUF: "blk.{bid}.ssm_out"},
		}),
		parts.ExpertRows, parts.FusedExpertRows, parts.QwenSharedRows,
		parts.Only(parts.NextN, parts.TransformBySuffix(parts.NextNRows, "norm", parts.PlusOne))),
	Graph: &graph.Model{
		Folds: true,
		Reads: []string{"attention.recurrent_layers", "full_attention_interval", "ssm.group_count!"},
		Dims:  graph.Dims{"n_ff_exp": parts.SharedWidth, "n_ff_shexp": parts.SharedExpertOrWhole},
		Norm:  graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: parts.PreNormAs("post_attention_norm",
			parts.RecurrentOr(graph.GatedDeltaNet{}, parts.GatedQueryAttention),
			parts.Experts(parts.RouterTopK, graph.GatedShared)),
	},
}

// deltaQKV and deltaGate split in_proj_qkvz, [key heads][query, key, values, gates], into all queries, keys and values
// (deltaQKV) and all gates (deltaGate).
var (
	deltaQKV  = deltaPart("delta-qkv", 0, 3)
	deltaGate = deltaPart("delta-gate", 3, 4)
)

func deltaPart(name string, first, end int) *table.Transform {
	return &table.Transform{Name: name, Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		nk, k, nv, v, err := parts.DeltaHeads(l.View)
		if err != nil {
			return nil, err
		}
		sizes := []int64{k, k, nv / nk * v, nv / nk * v}
		head := 2*k + 2*sizes[2]
		ne := slices.Clone(s.NE())
		if len(ne) != 2 || ne[1] != nk*head {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want %d rows for each of %d key heads",
				gguf.Shape(ne), head, nk)
		}
		ne[1] = 0
		for _, n := range sizes[first:end] {
			ne[1] += nk * n
		}
		return rows.Gather(s, ne, func(i int64) int64 {
			at := int64(0) // offset of the part within a head
			for _, n := range sizes[:first] {
				at += n
			}
			for _, n := range sizes[first : end-1] {
				if i < nk*n {
					return i/n*head + at + i%n
				}
				i -= nk * n
				at += n
			}
			n := sizes[end-1]
			return i/n*head + at + i%n
		})
	}}
}
