package parts

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// Rows of models with Kimi's delta attention (KDA) in some layers and MLA in others. Source: the KimiLinear class of
// the reference's converter.

// KDARows are the projections of delta attention, gates and decay excluded.
var KDARows = slices.Concat(AttentionRows(table.NoBias, table.NoBias), []table.TensorRow{
	{HF: "model.layers.{bid}.self_attn.q_conv1d", GGUF: "blk.{bid}.ssm_conv1d_q", Transform: kdaKernel},
	{HF: "model.layers.{bid}.self_attn.k_conv1d", GGUF: "blk.{bid}.ssm_conv1d_k", Transform: kdaKernel},
	{HF: "model.layers.{bid}.self_attn.v_conv1d", GGUF: "blk.{bid}.ssm_conv1d_v", Transform: kdaKernel},
	{HF: "model.layers.{bid}.self_attn.f_a_proj", GGUF: "blk.{bid}.ssm_f_a"},
	{HF: "model.layers.{bid}.self_attn.f_b_proj", GGUF: "blk.{bid}.ssm_f_b"},
	{HF: "model.layers.{bid}.self_attn.b_proj", GGUF: "blk.{bid}.ssm_beta"},
	{HF: "model.layers.{bid}.self_attn.dt_bias", Exact: true, GGUF: "blk.{bid}.ssm_dt.bias"},
	{HF: "model.layers.{bid}.self_attn.o_norm", GGUF: "blk.{bid}.ssm_norm"},
})

// KDAGateRows are a low-rank output gate.
var KDAGateRows = []table.TensorRow{
	{HF: "model.layers.{bid}.self_attn.g_a_proj", GGUF: "blk.{bid}.ssm_g_a"},
	{HF: "model.layers.{bid}.self_attn.g_b_proj", GGUF: "blk.{bid}.ssm_g_b"},
}

// MLARows are the tensors of MLA layers.
var MLARows = []table.TensorRow{
	{HF: "model.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q", If: Not(Has("q_lora_rank"))},
	{HF: "model.layers.{bid}.self_attn.q_a_proj", GGUF: "blk.{bid}.attn_q_a", If: Has("q_lora_rank")},
	{HF: "model.layers.{bid}.self_attn.q_a_layernorm", GGUF: "blk.{bid}.attn_q_a_norm", If: Has("q_lora_rank")},
	{HF: "model.layers.{bid}.self_attn.q_b_proj", GGUF: "blk.{bid}.attn_q_b", If: Has("q_lora_rank")},
	{HF: "model.layers.{bid}.self_attn.kv_a_proj_with_mqa", GGUF: "blk.{bid}.attn_kv_a_mqa"},
	{HF: "model.layers.{bid}.self_attn.kv_a_layernorm", GGUF: "blk.{bid}.attn_kv_a_norm"},
	{HF: "model.layers.{bid}.self_attn.kv_b_proj", Split: []table.Part{
		{GGUF: "blk.{bid}.attn_k_b", Transform: MLAKeys},
		{GGUF: "blk.{bid}.attn_v_b", Transform: MLAValues},
	}},
	{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output"},
}

// kdaKernel reshapes a kernel, [channels, width] or [channels, 1, width] in the checkpoint, to the runtime's
// dimensions.
var kdaKernel = &table.Transform{Name: "kda-kernel", Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
	ne := s.NE()
	if len(ne) != 2 && (len(ne) != 3 || ne[1] != 1) {
		return nil, fault.Errorf(fault.Broken, "dimensions %s, want a kernel for each channel", gguf.Shape(ne))
	}
	return rows.Reshape(s, []int64{ne[0], 1, ne[len(ne)-1], 1})
}}

// KDADecay is -exp of the first elements of A_log, one per head, as a vector; some checkpoints pad A_log.
var KDADecay = Chain("kda-decay", &table.Transform{Name: "of-heads",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		heads, err := l.Require("num_attention_heads")
		if err != nil {
			return nil, err
		}
		n := int64(1)
		for _, d := range s.NE() {
			n *= d
		}
		if heads < 1 || n < heads {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want a number for each of %d heads",
				gguf.Shape(s.NE()), heads)
		}
		if s, err = rows.Reshape(s, []int64{1, n}); err == nil && n > heads {
			s, err = rows.Slice(s, 1, 0, heads)
		}
		if err != nil {
			return nil, err
		}
		return rows.Reshape(s, []int64{heads})
	}}, NegExp)

// LinearAttn returns linear_attn_config.
func LinearAttn(c *config.View) config.Object { return c.Sub("linear_attn_config") }

// KDARow returns the row of a number in linear_attn_config.
func KDARow(key, from string, required bool) table.Row {
	return table.Row{Key: key, Derive: func(c *config.View) (gguf.Value, bool, error) {
		if !required {
			return table.Float32Of(LinearAttn(c).Float(from))
		}
		n, err := LinearAttn(c).Require(from)
		return table.Uint32Of(n, true, err)
	}}
}

// KDAHeads refuses models in which delta attention has another number of heads than MLA: the file has one number.
func KDAHeads(c *config.View) error {
	heads, err := c.Require("num_attention_heads")
	if err != nil {
		return err
	}
	n, ok, err := LinearAttn(c).Int("num_heads")
	if err == nil && ok && n != heads {
		err = fault.Errorf(fault.Unsupported,
			"%s: linear_attn_config.num_heads is %d, num_attention_heads %d: the architecture has one number",
			config.ConfigFile, n, heads)
	}
	return err
}

// FullAttention is the condition of the layers in full_attn_layers of linear_attn_config, which counts from 1.
func FullAttention(l table.Layer) (bool, error) {
	list, ok, err := LinearAttn(l.View).Ints("full_attn_layers")
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: linear_attn_config has no key \"full_attn_layers\"", config.ConfigFile)
	}
	return slices.Contains(list, l.Bid+1), err
}

// KeyHeads writes the number of key heads of each layer: 1 with full attention (MLA), 0 with delta attention.
func KeyHeads(c *config.View) (v gguf.Value, ok bool, err error) {
	if err := KDAHeads(c); err != nil {
		return v, false, err
	}
	n, err := c.BoundedBlockCount(0)
	if err != nil {
		return v, false, err
	}
	heads := make([]int64, n)
	for i := range heads {
		full, err := FullAttention(table.Layer{View: c, Bid: int64(i)})
		if err != nil {
			return v, false, err
		}
		if full {
			heads[i] = 1
		}
	}
	return PerLayer(heads, nil)
}
