package arch

import (
	"slices"
	"strings"

	"ggforge/arch/hparams"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

// qwen3next is Qwen3-Next: three of four layers have linear attention (gated delta
// net), the layers that predict further tokens are kept after the others. Its
// norms hold the difference to 1, but for those inside linear attention. Source:
// the Qwen3Next class of the reference's converter.
var qwen3next = &table.Arch{
	Name: "qwen3next",
	Shapes: shape.Rules{
		Dims: shape.Table{"key_dim": "d_state * n_group", "value_dim": "d_inner", "n_ff_exp": shape.SharedWidth, "n_ff_shexp": shape.SharedExpertOrWhole},
		Tensors: shape.Table{
			"attn_q":   "n_embd, 2 * n_embd_q", // half of it are gates
			"attn_qkv": "n_embd, 2 * key_dim + value_dim | n_embd, 2 * n_embd_q + n_embd_k + n_embd_v", "attn_gate": "n_embd, value_dim", "ssm_ba": "n_embd, 2 * dt_rank",
			"ssm_conv1d": "d_conv, 2 * key_dim + value_dim", "ssm_dt.bias": "dt_rank", "ssm_a": "dt_rank",
			"ssm_norm": "value_dim / dt_rank", "ssm_out": "value_dim, n_embd",
		},
	},
	Classes:   []string{"Qwen3NextForCausalLM"},
	Body:      table.Body{Classes: []string{"Qwen3NextModel"}, Prefix: "model."},
	Tokenizer: tokenizer.ClassGPT2,
	Fused:     table.FusedQKV | table.FusedGateUp,
	NextN:     qwenNextN,
	Metadata: slices.Concat(parts.QwenMoERows, []table.Row{
		{Key: "nextn_predict_layers", Derive: func(c *hparams.View) (gguf.Value, bool, error) {
			n, err := qwen3nextMTP(c)
			return table.Uint32Of(n, n > 0, err)
		}},
		parts.UintRow("ssm.conv_kernel", "linear_conv_kernel_dim"),
		parts.UintRow("ssm.state_size", "linear_key_head_dim"),
		parts.UintRow("ssm.group_count", "linear_num_key_heads"),
		parts.UintRow("ssm.time_step_rank", "linear_num_value_heads"),
		{Key: "ssm.inner_size", Derive: func(c *hparams.View) (gguf.Value, bool, error) {
			_, _, nv, v, err := deltaHeads(c)
			return table.Uint32Of(nv*v, true, err)
		}},
		{Key: "attention.recurrent_layers", Derive: recurrentLayers},
		{Key: "full_attention_interval", Type: gguf.Uint32Type, From: []string{"full_attention_interval"}, Const: gguf.Uint32(4)},
		{Key: "rope.dimension_count", Derive: parts.PartialRope(0.25)},
	}),
	Unused: []string{"layer_types"},
	Expect: []table.Expect{parts.SiLU, parts.Expect("norm_topk_prob", "true"), parts.Expect("decoder_sparse_step", "1"), parts.Expect("use_sliding_window", "false")},
	Rename: mtpNames,
	Tensors: slices.Concat(parts.EachEnding(parts.EmbedRows, "norm", parts.PlusOne), parts.EachEnding([]table.TensorRow{
		{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.post_attention_norm"},
	}, "norm", parts.PlusOne),
		parts.Only(parts.Not(linearAttention), slices.Concat(parts.AttentionRows(table.MayBias, table.NoBias), parts.EachEnding(parts.QKNormRows, "norm", parts.PlusOne))),
		parts.Only(linearAttention, []table.TensorRow{
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
		parts.Only(parts.NextN, parts.EachEnding(parts.NextNRows, "norm", parts.PlusOne))),
}

// mtpNames are for the layers that predict further tokens, which have names of
// their own in checkpoints.
var mtpNames = func() (list []table.Rename) {
	for _, mtp := range []string{"mtp.", "model.mtp."} {
		list = append(list,
			table.Rename{Prefix: mtp + "layers.", With: "model.layers.{bid}.", Beyond: true},
			table.Rename{Prefix: mtp + "fc.", With: "model.layers.{bid}.eh_proj.", Beyond: true},
			table.Rename{Prefix: mtp + "pre_fc_norm_embedding.", With: "model.layers.{bid}.enorm.", Beyond: true},
			table.Rename{Prefix: mtp + "pre_fc_norm_hidden.", With: "model.layers.{bid}.hnorm.", Beyond: true},
			table.Rename{Prefix: mtp + "norm.", With: "model.layers.{bid}.shared_head.norm.", Beyond: true})
	}
	return list
}()

// qwenNextN is how Qwen's models have these layers.
var qwenNextN = &table.NextN{Layers: qwen3nextMTP, Prefixes: []string{"mtp.", "model.mtp."}}

// qwen3nextMTP is the number of layers that predict further tokens. Where the
// config does not say it, the tensors do. There are none if the user wants none.
func qwen3nextMTP(c *hparams.View) (int64, error) {
	n, _, err := c.Int("mtp_num_hidden_layers")
	if err == nil && (n < 0 || n > hparams.MaxBlocks) {
		err = hparams.WrongType("mtp_num_hidden_layers", "a number of layers", n)
	}
	if c.Options.NextN == hparams.NoNextN {
		return 0, err
	}
	if err != nil || n > 0 {
		return n, err
	}
	for _, name := range c.Facts.Tensors {
		rest, ok := strings.CutPrefix(strings.TrimPrefix(name, "model."), "mtp.layers.")
		number, _, dot := strings.Cut(rest, ".")
		for ok && dot && n <= hparams.MaxBlocks && !table.Below(number, n) && table.Below(number, hparams.MaxBlocks) {
			n++
		}
	}
	return n, nil
}

// linearAttention is the condition of layers with linear attention: those of that
// type, without types all but every full_attention_interval-th.
func linearAttention(l table.Layer) (bool, error) {
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
		err = hparams.WrongType("full_attention_interval", "a positive integer", interval)
	}
	return err == nil && (l.Bid+1)%interval != 0, err
}

// recurrentLayers writes which layers have linear attention, if the config or the
// transformers library says so.
func recurrentLayers(c *hparams.View) (v gguf.Value, ok bool, err error) {
	if c.KnownType() == "" && !c.Has("layer_types") {
		return v, false, nil
	}
	n, err := c.BlockCount()
	if err != nil {
		return v, false, err
	}
	more, err := qwen3nextMTP(c)
	if err != nil {
		return v, false, err
	}
	if _, _, err := c.LayerTypes(); err != nil {
		return v, false, err
	}
	recurrent := make([]bool, min(max(n, 0)+more, 2*hparams.MaxBlocks))
	for i := range recurrent {
		if recurrent[i], err = linearAttention(table.Layer{View: c, Bid: int64(i)}); err != nil {
			return v, false, err
		}
	}
	return gguf.Bools(recurrent), len(recurrent) > 0, nil
}

// deltaHeads returns the numbers of key and value heads of linear attention and
// their sizes. A key head serves nv/nk value heads.
func deltaHeads(c *hparams.View) (nk, k, nv, v int64, err error) {
	for _, s := range []struct {
		to  *int64
		key string
	}{{&nk, "linear_num_key_heads"}, {&k, "linear_key_head_dim"}, {&nv, "linear_num_value_heads"}, {&v, "linear_value_head_dim"}} {
		if *s.to, err = c.Require(s.key); err != nil {
			return 0, 0, 0, 0, err
		}
		if *s.to < 1 || *s.to > hparams.MaxHeadDim {
			return 0, 0, 0, 0, hparams.WrongType(s.key, "a positive integer", *s.to)
		}
	}
	if nv%nk != 0 {
		err = fault.Errorf(fault.Broken, "%s: %d value heads are not a multiple of %d key heads", hparams.ConfigFile, nv, nk)
	}
	return nk, k, nv, v, err
}

// deltaQKV and deltaGate split in_proj_qkvz, which has for each key head the rows of
// its query, its key, its values and their gates: first all queries, all keys and all
// values, then all gates.
var (
	deltaQKV  = deltaPart("delta-qkv", 0, 3)
	deltaGate = deltaPart("delta-gate", 3, 4)
)

func deltaPart(name string, first, end int) *table.Transform {
	return &table.Transform{Name: name, Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		nk, k, nv, v, err := deltaHeads(l.View)
		if err != nil {
			return nil, err
		}
		sizes := []int64{k, k, nv / nk * v, nv / nk * v}
		head := 2*k + 2*sizes[2]
		ne := slices.Clone(s.NE())
		if len(ne) != 2 || ne[1] != nk*head {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want %d rows for each of %d key heads", gguf.Shape(ne), head, nk)
		}
		ne[1] = 0
		for _, n := range sizes[first:end] {
			ne[1] += nk * n
		}
		return rows.Gather(s, ne, func(i int64) int64 {
			at := int64(0) // of the part within a head
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
