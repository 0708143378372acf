package parts

import (
	"fmt"

	"slices"

	"ggforge/arch/config"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// Linear attention (gated delta net) of Qwen3-Next and later Qwen models.

// DeltaMetadata are the rows of these models, experts included.
var DeltaMetadata = slices.Concat(QwenMoERows, []table.Row{
	{Key: "nextn_predict_layers", Derive: func(c *config.View) (gguf.Value, bool, error) {
		n, err := QwenMTP(c)
		return table.Uint32Of(n, n > 0, err)
	}},
	UintRow("ssm.conv_kernel", "linear_conv_kernel_dim"),
	UintRow("ssm.state_size", "linear_key_head_dim"),
	UintRow("ssm.group_count", "linear_num_key_heads"),
	UintRow("ssm.time_step_rank", "linear_num_value_heads"),
	{Key: "ssm.inner_size", Derive: func(c *config.View) (gguf.Value, bool, error) {
		_, _, nv, v, err := DeltaHeads(c)
		return table.Uint32Of(nv*v, true, err)
	}},
	{Key: "attention.recurrent_layers", Derive: RecurrentLayers},
	{Key: "full_attention_interval", Type: gguf.Uint32Type, From: []string{"full_attention_interval"},
		Const: gguf.Uint32(4)},
	{Key: "rope.dimension_count", Derive: PartialRope(0.25)},
})

// LinearAttention is the condition of layers with linear attention: by layer_types, else all layers except every
// full_attention_interval-th.
func LinearAttention(l table.Layer) (bool, error) {
	n, err := l.BlockCount()
	if err != nil || l.Bid < 0 || l.Bid >= n {
		return false, err
	}
	if l.Has("layer_types") {
		kind, err := l.LayerType(l.Bid)
		return kind == "linear_attention", err
	}
	interval, ok, err := l.Int("full_attention_interval")
	if err == nil && !ok {
		interval = 4
	}
	if err == nil && interval < 1 {
		err = config.WrongType("full_attention_interval", "a positive integer", interval)
	}
	return err == nil && (l.Bid+1)%interval != 0, err
}

// RecurrentLayers writes which layers have linear attention; no value without layer_types.
func RecurrentLayers(c *config.View) (v gguf.Value, ok bool, err error) {
	if c.KnownType() == "" && !c.Has("layer_types") {
		return v, false, nil
	}
	n, err := c.BlockCount()
	if err != nil {
		return v, false, err
	}
	more, err := QwenMTP(c)
	if err != nil {
		return v, false, err
	}
	if _, _, err := c.LayerTypes(); err != nil {
		return v, false, err
	}
	recurrent := make([]bool, min(max(n, 0)+more, 2*config.MaxBlocks))
	for i := range recurrent {
		if recurrent[i], err = LinearAttention(table.Layer{View: c, Bid: int64(i)}); err != nil {
			return v, false, err
		}
	}
	return gguf.Bools(recurrent), len(recurrent) > 0, nil
}

// DeltaHeads returns the numbers of key heads (nk) and value heads (nv) of linear attention, and their sizes. nv/nk
// value heads share a key head.
func DeltaHeads(c *config.View) (nk, k, nv, v int64, err error) {
	for _, s := range []struct {
		to  *int64
		key string
	}{{&nk, "linear_num_key_heads"}, {&k, "linear_key_head_dim"}, {&nv, "linear_num_value_heads"},
		{&v, "linear_value_head_dim"}} {
		if *s.to, err = c.Require(s.key); err != nil {
			return 0, 0, 0, 0, err
		}
		if *s.to < 1 || *s.to > config.MaxHeadDim {
			return 0, 0, 0, 0, config.WrongType(s.key, "a positive integer", *s.to)
		}
	}
	if nv%nk != 0 {
		err = fault.Errorf(fault.Broken, "%s: %d value heads are not a multiple of %d key heads",
			config.ConfigFile, nv, nk)
	}
	return nk, k, nv, v, err
}

// DeltaDims and DeltaShapes are the dimensions of their tensors, in files of architectures without a graph and of
// decision models.
var (
	DeltaDims   = shape.Table{"key_dim": "d_state * n_group", "value_dim": "d_inner"}
	DeltaShapes = shape.Table{
		"attn_q":    "n_embd, 2 * n_embd_q", // queries and gates
		"attn_qkv":  "n_embd, 2 * key_dim + value_dim | n_embd, 2 * n_embd_q + n_embd_k + n_embd_v",
		"attn_gate": "n_embd, value_dim",
		"ssm_alpha": "n_embd, dt_rank", "ssm_beta": "n_embd, dt_rank",
		"ssm_conv1d": "d_conv, 2 * key_dim + value_dim", "ssm_dt.bias": "dt_rank", "ssm_a": "dt_rank",
		"ssm_norm": "value_dim / dt_rank", "ssm_out": "value_dim, n_embd",
	}
)

// DeltaRows are the tensors of linear attention.
var DeltaRows = []table.TensorRow{
	{HF: "model.layers.{bid}.linear_attn.in_proj_qkv", GGUF: "blk.{bid}.attn_qkv", Transform: spreadAfterQK},
	{HF: "model.layers.{bid}.linear_attn.in_proj_z", GGUF: "blk.{bid}.attn_gate", Transform: spreadRows},
	{HF: "model.layers.{bid}.linear_attn.in_proj_a", GGUF: "blk.{bid}.ssm_alpha", Transform: spreadHeads},
	{HF: "model.layers.{bid}.linear_attn.in_proj_b", GGUF: "blk.{bid}.ssm_beta", Transform: spreadHeads},
	{HF: "model.layers.{bid}.linear_attn.conv1d", GGUF: "blk.{bid}.ssm_conv1d",
		Transform: Chain("delta-kernel", Squeeze, spreadAfterQK)},
	{HF: "model.layers.{bid}.linear_attn.dt_bias", Exact: true, GGUF: "blk.{bid}.ssm_dt.bias", Transform: spreadHeads},
	{HF: "model.layers.{bid}.linear_attn.A_log", Exact: true, GGUF: "blk.{bid}.ssm_a",
		Transform: Chain("delta-decay", spreadHeads, NegExp)},
	{HF: "model.layers.{bid}.linear_attn.norm", GGUF: "blk.{bid}.ssm_norm"},
	{HF: "model.layers.{bid}.linear_attn.out_proj", GGUF: "blk.{bid}.ssm_out", Transform: spreadColumns},
}

// Transforms that reorder value heads: [k][r][d] becomes [r][k][d], for nk key heads k and nv/nk value heads r of each.
var (
	// spreadAfterQK is for rows of value heads after the rows of queries and keys.
	spreadAfterQK = ungroupHeads("spread-after-qk",
		func(nk, k, nv, v int64) (skip, size int64) { return 2 * nk * k, v })
	spreadRows = ungroupHeads("spread-rows", func(_, _, _, v int64) (skip, size int64) { return 0, v })
	// spreadHeads is for one row, or one element, per value head.
	spreadHeads = ungroupHeads("spread-heads", func(_, _, _, _ int64) (skip, size int64) { return 0, 1 })
	// spreadColumns is for columns of value heads.
	spreadColumns = &table.Transform{Name: "spread-columns",
		Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
			nk, _, nv, v, err := DeltaHeads(l.View)
			if err != nil || nk == nv || l.Facts.Folded[fmt.Sprintf("model.layers.%d.linear_attn.out_proj.weight",
				l.Bid)] {
				return s, err // runtimes undo the fold in the checkpoint's order, and reorder the activations
			}
			ne := s.NE()
			if len(ne) != 2 || ne[0] != nv*v {
				return nil, fault.Errorf(fault.Broken, "dimensions %s, want rows of %d value heads of %d",
					gguf.Shape(ne), nv, v)
			}
			return rows.Columns(s, func(s rows.Source) (rows.Source, error) {
				ne := s.NE()
				heads, err := rows.Reshape(s, []int64{v, nv * ne[1]})
				if err != nil {
					return nil, err
				}
				if heads, err = rows.Gather(heads, heads.NE(),
					func(i int64) int64 { return i/nv*nv + ungroupedHead(i%nv, nk, nv) }); err != nil {
					return nil, err
				}
				return rows.Reshape(heads, ne)
			})
		}}
)

// ungroupHeads returns the transform of a tensor with value heads in its rows: after skip
// rows, each of size rows.
func ungroupHeads(name string, lay func(nk, k, nv, v int64) (skip, size int64)) *table.Transform {
	return &table.Transform{Name: name, Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		nk, k, nv, v, err := DeltaHeads(l.View)
		if err != nil || nk == nv {
			return s, err
		}
		skip, size := lay(nk, k, nv, v)
		ne := s.NE()
		n := gguf.Rows(ne)
		if len(ne) == 1 {
			n = ne[0]
		}
		if len(ne) > 2 || n != skip+nv*size {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want %d value heads of %d after %d rows",
				gguf.Shape(ne), nv, size, skip)
		}
		return rows.Regroup(s, func(i int64) int64 {
			if i < skip {
				return i
			}
			i -= skip
			return skip + ungroupedHead(i/size, nk, nv)*size + i%size
		})
	}}
}

// ungroupedHead returns the index in the checkpoint of value head i of the file.
func ungroupedHead(i, nk, nv int64) int64 { return i%nk*(nv/nk) + i/nk }

// Qwen35Sections are the default M-RoPE sections.
var Qwen35Sections = table.Row{Key: "rope.dimension_sections", Derive: func(c *config.View) (gguf.Value, bool, error) {
	return gguf.Int32s([]int32{11, 11, 10, 0}), c.RopeRoot().Members()["mrope_section"] == nil, nil
}}

// Qwen35Unused are keys that are fixed in runtimes: interleaved M-RoPE sections, gates in half of attn_q, float32
// states of linear attention.
var Qwen35Unused = slices.Concat(MultimodalKeys, []string{"layer_types", "rope_scaling.mrope_interleaved",
	"attn_output_gate", "mamba_ssm_dtype"})

// Qwen35Expect are the supported values of keys that change the arithmetic.
var Qwen35Expect = []table.Expect{SiLU, Expect("mtp_use_dedicated_embeddings", "false"),
	Expect("attn_output_gate", "true"),
	Expect("norm_topk_prob", "true"), Expect("decoder_sparse_step", "1"), Expect("use_sliding_window", "false")}
