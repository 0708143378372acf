package arch

import (
	"fmt"
	"slices"

	"ggforge/gguf"
	"ggforge/internal/fault"
	"ggforge/rows"
	"ggforge/tokenizer"
)

// ernie4_5 is Baidu's ERNIE 4.5, the dense models. Source: the Ernie4_5 class of
// the reference's converter. Older checkpoints have queries, keys and values in
// one matrix, and the two matrices of the MLP's input too.
var ernie4_5 = &Arch{
	Name:      "ernie4_5",
	Classes:   []string{"Ernie4_5_ForCausalLM", "Ernie4_5ForCausalLM"},
	Tokenizer: tokenizer.ClassErnie,
	Metadata:  commonRows,
	Expect:    []Expect{silu},
	Unused: append([]string{"compression_ratio", "weight_share_add_bias", "fuse_swiglu", "fuse_rms_norm", "use_rmsnorm", "rope_reorder", "freq_allocation",
		"use_flash_attention", "sequence_parallel", "fuse_linear", "fuse_attn_qkv", "fuse_attn_ffn", "virtual_pp_degree", "pp_seg_method", "max_sequence_length",
		"ignored_index", "scale_qk_coeff", "token_balance_loss", "token_balance_seqlen", "cachekv_quant", "micro_batch_size"}, biasKeys...),
	Rename: []Rename{{Prefix: "ernie.", With: "model."}},
	Tensors: slices.Concat(embedRows, normRows, attentionRows(MayBias, MayBias), withBias(MayBias, mlpRows), []TensorRow{
		{HF: "model.layers.{bid}.self_attn.qkv_proj", Optional: true, Split: []Part{
			{GGUF: "blk.{bid}.attn_q", Transform: qOfJoined},
			{GGUF: "blk.{bid}.attn_k", Transform: kOfJoined},
			{GGUF: "blk.{bid}.attn_v", Transform: vOfJoined},
		}},
		{HF: "model.layers.{bid}.mlp.up_gate_proj", Optional: true, Split: []Part{
			{GGUF: "blk.{bid}.ffn_gate", Transform: half(0)},
			{GGUF: "blk.{bid}.ffn_up", Transform: half(1)},
		}},
	}),
}

// joinedPart takes queries, keys or values out of a matrix that has all queries,
// all keys, all values; q and k are the rows of all queries and of all keys.
func joinedPart(name string, part func(q, k int64) (from, to int64)) *Transform {
	return &Transform{Name: name, Forward: func(l Layer, s rows.Source) (rows.Source, error) {
		heads, err := l.heads()
		if err != nil {
			return nil, err
		}
		headsKV, err := l.headsKV()
		if err != nil {
			return nil, err
		}
		dim, err := l.headDim()
		if err != nil {
			return nil, err
		}
		if min(heads, headsKV, dim) <= 0 || max(heads, headsKV, dim) > maxHeadDim {
			return nil, fault.Errorf(fault.Broken, "%s: %d heads and %d key heads of %d elements", ConfigFile, heads, headsKV, dim)
		}
		if ne := s.NE(); len(ne) != 2 || ne[1] != (heads+2*headsKV)*dim {
			return nil, fmt.Errorf("dimensions %s, want rows of %d+2*%d heads of %d", gguf.Shape(ne), heads, headsKV, dim)
		}
		from, to := part(heads*dim, headsKV*dim)
		return rows.Slice(s, 1, from, to)
	}}
}

var (
	qOfJoined = joinedPart("q-of-joined", func(q, k int64) (int64, int64) { return 0, q })
	kOfJoined = joinedPart("k-of-joined", func(q, k int64) (int64, int64) { return q, q + k })
	vOfJoined = joinedPart("v-of-joined", func(q, k int64) (int64, int64) { return q + k, q + 2*k })
)
