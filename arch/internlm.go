package arch

import (
	"fmt"
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

var _ = register(internlm2, internlm3)

// internlm2 and internlm3 are InternLM 2, 2.5 and 3. Source: the classes of internlm.py of the reference's converter.
// InternLM 3 is a Llama with another tokenizer.
var (
	internlm2 = &table.Arch{
		Name:      "internlm2",
		Classes:   []string{"InternLM2ForCausalLM"},
		Tokenizer: tokenizer.InternLM2{},
		Fused:     table.FusedQKV,
		Metadata:  parts.Override(parts.CommonRows, parts.DynamicAsNone),
		Expect:    []table.Expect{parts.SiLU},
		Unused:    append([]string{"attn_implementation"}, parts.BiasKeys...),
		Tensors: []table.TensorRow{
			{HF: "model.tok_embeddings", GGUF: "token_embd"},
			{HF: "model.norm", GGUF: "output_norm"},
			{HF: "output", GGUF: "output", Optional: true},
			{HF: "model.layers.{bid}.attention_norm", GGUF: "blk.{bid}.attn_norm"},
			{HF: "model.layers.{bid}.ffn_norm", GGUF: "blk.{bid}.ffn_norm"},
			{HF: "model.layers.{bid}.attention.wqkv", Split: []table.Part{
				{GGUF: "blk.{bid}.attn_q", Transform: groupedQ},
				{GGUF: "blk.{bid}.attn_k", Transform: groupedK},
				{GGUF: "blk.{bid}.attn_v", Transform: groupedV},
			}},
			{HF: "model.layers.{bid}.attention.wo", GGUF: "blk.{bid}.attn_output"},
			{HF: "model.layers.{bid}.feed_forward.w1", GGUF: "blk.{bid}.ffn_gate"},
			{HF: "model.layers.{bid}.feed_forward.w2", GGUF: "blk.{bid}.ffn_down"},
			{HF: "model.layers.{bid}.feed_forward.w3", GGUF: "blk.{bid}.ffn_up"},
		},
		Graph: parts.Decoder(graph.RMS, parts.GQA(parts.Interleaved), parts.SwiGLU),
	}
	internlm3 = &table.Arch{
		Name:      "llama",
		Shapes:    shape.WholeHeadRotates,
		Classes:   []string{"InternLM3ForCausalLM"},
		Tokenizer: tokenizer.InternLM3{},
		Fused:     table.FusedQKV,
		Metadata:  parts.Override(parts.LlamaRows, parts.DynamicAsNone),
		Expect:    []table.Expect{parts.SiLU},
		Unused:    parts.BiasKeys,
		Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.PermutedRows(table.MayBias),
			parts.WithBias(table.MayBias, parts.MLPRows)),
		Graph: parts.LlamaGraph,
	}
)

// groupedQ, groupedK and groupedV take Q, K and V out of one matrix [groups][query heads of the group, key head, value
// head]. Q and K are permuted to interleaved RoPE.
var (
	groupedQ = groupedPart("grouped-q", func(s rows.Source, heads, headsKV, headDim int64) (rows.Source, error) {
		return headRows(s, 0, heads, headDim)
	})
	groupedK = groupedPart("grouped-k", func(s rows.Source, heads, headsKV, headDim int64) (rows.Source, error) {
		return headRows(s, heads, headsKV, headDim)
	})
	groupedV = groupedPart("grouped-v", func(s rows.Source, heads, headsKV, headDim int64) (rows.Source, error) {
		return rows.Slice(s, 1, (heads+headsKV)*headDim, (heads+2*headsKV)*headDim)
	})
)

func groupedPart(name string, part func(s rows.Source, heads, headsKV, headDim int64) (rows.Source,
	error)) *table.Transform {
	return &table.Transform{Name: name, Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		hidden, heads, err := l.HiddenAndHeads()
		if err != nil {
			return nil, err
		}
		headsKV, err := l.HeadsKV()
		if err != nil {
			return nil, err
		}
		if headsKV <= 0 || heads%headsKV != 0 || hidden%heads != 0 {
			return nil, fault.Errorf(fault.Broken,
				"%s: hidden size %d, %d heads, %d key heads: want each to be a multiple of the next", config.ConfigFile,
				hidden, heads, headsKV)
		}
		headDim := hidden / heads
		if ne := s.NE(); len(ne) != 2 || heads > ne[1] || headDim > ne[1] || ne[1] != (heads+2*headsKV)*headDim {
			return nil, fmt.Errorf("dimensions %s, want %d+2*%d heads of %d rows", gguf.Shape(ne), heads,
				headsKV, headDim)
		}
		if s, err = rows.UngroupQKV(s, headsKV, heads/headsKV); err != nil {
			return nil, err
		}
		return part(s, heads, headsKV, headDim)
	}}
}

// headRows returns the rows of n heads from a first one on, permuted.
func headRows(s rows.Source, first, n, headDim int64) (rows.Source, error) {
	s, err := rows.Slice(s, 1, first*headDim, (first+n)*headDim)
	if err != nil {
		return nil, err
	}
	return rows.PermuteRope(s, n)
}
