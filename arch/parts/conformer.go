package parts

import (
	"math"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/half"
	"ggforge/rows"
)

// Rows and transforms for conformers (audio encoders with attention and convolutions over time).

// normEps is the epsilon of batch norms.
const normEps = 1e-5

// BatchNorm returns the row of a batch norm, which in inference is a factor and a bias per channel. hf is its name in
// the checkpoint, to its name in the file, cond the row's condition, nil for none.
func BatchNorm(hf, to string, cond table.Cond) table.TensorRow {
	return table.TensorRow{HF: hf + ".{part}", Exact: true, If: cond,
		Parts: []string{"weight", "bias", "running_mean", "running_var"}, Join: foldNorm,
		Split: []table.Part{{GGUF: to + ".weight", Transform: foldedRow(0)},
			{GGUF: to + ".bias", Transform: foldedRow(1)}}}
}

// foldNorm turns the four vectors of a batch norm into two rows: w = weight/sqrt(var+eps), and bias - mean*w. F16
// vectors are rounded to F16 after each step, as PyTorch does.
func foldNorm(_ table.Layer, parts []rows.Source) (rows.Source, error) {
	const most = 1 << 20 // channels
	ne := parts[0].NE()
	for _, p := range parts {
		if len(ne) != 1 || ne[0] < 1 || ne[0] > most || !slices.Equal(p.NE(), ne) {
			return nil, fault.Errorf(fault.Broken,
				"dimensions %s, want those of the weight, %s, one number for each channel", gguf.Shape(p.NE()),
				gguf.Shape(ne))
		}
	}
	n := ne[0]
	return rows.Prepared([]int64{n, 2}, gguf.TypeF32, func() (rows.Source, error) {
		isHalf := true
		var v [4][]float32
		for i, p := range parts {
			isHalf = isHalf && p.Type() == gguf.TypeF16
			v[i] = make([]float32, n)
			if err := rows.Decode(p, v[i], new([]byte), 0, 1); err != nil {
				return nil, err
			}
		}
		round := func(f float32) float32 { return f }
		if isHalf {
			round = half.RoundF16
		}
		out := make([]float32, 2*n)
		for i := range n {
			root := round(float32(math.Sqrt(float64(round(v[3][i] + normEps)))))
			factor := round(v[0][i] / root)
			out[i], out[n+i] = factor, round(v[1][i]-round(float32(v[2][i]*factor)))
		}
		return rows.Reshape(rows.Float32s(out), []int64{n, 2})
	}), nil
}

// foldedRow returns a row of foldNorm's result.
func foldedRow(i int64) *table.Transform {
	return &table.Transform{Name: "folded-norm", Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
		n := s.NE()[0]
		s, err := rows.Slice(s, 1, i, i+1)
		if err != nil {
			return nil, err
		}
		return rows.Reshape(s, []int64{n})
	}}
}

// DropBatchCounters drops num_batches_tracked.
func DropBatchCounters(prefix string) table.Drop {
	return table.Drop{Prefix: prefix, Suffix: ".num_batches_tracked", Why: table.Silent}
}

// squeezeDim removes a dimension of 1: the second of a depthwise convolution, [channels, 1, kernel], or the last of a
// pointwise one, [out, in, 1].
func squeezeDim(dim int) *table.Transform {
	return &table.Transform{Name: "without-ones", Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
		ne := s.NE()
		switch {
		case len(ne) < 3:
			return s, nil
		case len(ne) > 3 || ne[dim] != 1:
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want two and a 1", gguf.Shape(ne))
		}
		return rows.Reshape(s, slices.Delete(slices.Clone(ne), dim, dim+1))
	}}
}

var (
	EachChannel = squeezeDim(1)
	OneFrame    = squeezeDim(0)
)

// ProductOf writes the product of two sizes.
func ProductOf(in table.In, a, b string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		o := in(c)
		n, err := o.Require(a)
		if err != nil {
			return gguf.Value{}, false, err
		}
		m, err := o.Require(b)
		if err == nil && (min(n, m) < 1 || max(n, m) > math.MaxInt32) {
			err = fault.Errorf(fault.Broken, "%s: keys %q: %d and %d, want sizes", o.FileName(),
				o.Names([]string{a, b}), n, m)
		}
		return table.Uint32Of(n*m, true, err)
	}
}

// ChannelsAsImage reshapes a vector of channels to an image, [1, channels, 1, 1] in the checkpoint's order.
var ChannelsAsImage = &table.Transform{Name: "picture",
	Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
		ne := s.NE()
		if len(ne) != 1 {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want one", gguf.Shape(ne))
		}
		return rows.Reshape(s, []int64{1, 1, ne[0], 1})
	}}

// ChannelsAsPlane reshapes a bias per channel to [channels, 1, 1], for images of spectra.
var ChannelsAsPlane = &table.Transform{Name: "plane", Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
	ne := s.NE()
	if len(ne) != 1 {
		return nil, fault.Errorf(fault.Broken, "dimensions %s, want one", gguf.Shape(ne))
	}
	return rows.Reshape(s, []int64{1, 1, ne[0]})
}}

// FastConformerShapes are the dimensions of the encoder.
var FastConformerShapes = shape.Table{
	"a.conv1d.0": "3, 3, 1, ?a_sub", "a.conv1d.2": "3, 3, 1, ?a_sub", "a.conv1d.3": "1, 1, ?a_sub, ?a_sub",
	"a.conv1d.5": "3, 3, 1, ?a_sub", "a.conv1d.6": "1, 1, ?a_sub, ?a_sub",
	"a.conv1d.0.bias": "1, 1, ?a_sub", "a.conv1d.2.bias": "1, 1, ?a_sub", "a.conv1d.3.bias": "1, 1, ?a_sub",
	"a.conv1d.5.bias": "1, 1, ?a_sub", "a.conv1d.6.bias": "1, 1, ?a_sub",
	"a.pre_encode.out": "?a_flat, a_embd", "a.blk.{bid}.ffn_norm": "a_embd", "a.blk.{bid}.ffn_norm_1": "a_embd",
	"a.blk.{bid}.norm_conv": "a_embd",
	"a.blk.{bid}.ffn_up":    "a_embd, ?a_wide", "a.blk.{bid}.ffn_down": "?a_wide, a_embd",
	"a.blk.{bid}.ffn_up_1": "a_embd, ?a_wide", "a.blk.{bid}.ffn_down_1": "?a_wide, a_embd",
	"a.blk.{bid}.linear_pos": "a_embd, a_embd",
	"a.blk.{bid}.pos_bias_u": "a_embd / @audio.attention.head_count, @audio.attention.head_count",
	"a.blk.{bid}.pos_bias_v": "a_embd / @audio.attention.head_count, @audio.attention.head_count",
	"a.blk.{bid}.conv_pw1":   "a_embd, 2 * a_embd", "a.blk.{bid}.conv_dw": "9, a_embd",
	"a.blk.{bid}.conv_norm": "a_embd",
	"a.blk.{bid}.conv_pw2":  "a_embd, a_embd",
}
