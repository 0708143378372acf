package parts

import (
	"fmt"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/torchmath"
	"ggforge/rows"
)

// SplitHeads reorders the rows [heads][query, key, value] to all queries, all keys, all values.
var SplitHeads = groupedQKV("split-heads", func(l table.Layer) (groups, perGroup int64, err error) {
	heads, err := l.Require(BloomHeads...)
	return heads, 1, err
})

// groupedQKV returns the transform of a joined projection, [groups][perGroup query heads, key head, value head], to all
// queries, all keys, all values. It also applies to biases.
func groupedQKV(name string, count func(table.Layer) (groups, perGroup int64, err error)) *table.Transform {
	return &table.Transform{Name: name, Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		groups, perGroup, err := count(l)
		if err != nil {
			return nil, err
		}
		return rows.UngroupQKV(s, groups, perGroup)
	}}
}

// Half returns the transform that takes the first (0) or the second half (1) of
// dimension 1, the rows of a matrix or of each matrix of a stack.
func Half(i int64) *table.Transform {
	return &table.Transform{Name: fmt.Sprintf("half-%d", i),
		Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
			ne := s.NE()
			if len(ne) < 2 || ne[1]%2 != 0 {
				return nil, fault.Errorf(fault.Broken,
					"dimensions %v, want an even number of rows to be split in halves",
					ne)
			}
			n := ne[1] / 2
			return rows.Slice(s, 1, i*n, (i+1)*n)
		}}
}

// PlusOne adds 1 to the weights of a norm, for families that store weight - 1.
var PlusOne = &table.Transform{
	Name:    "plus-one",
	Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) { return rows.Map(s, rows.Add(1)), nil },
}

// joinedPart takes Q, K or V out of a joined matrix, whose first q rows are Q and whose next k rows are K.
func joinedPart(name string, part func(q, k int64) (from, to int64)) *table.Transform {
	return &table.Transform{Name: name, Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		heads, err := l.Heads()
		if err != nil {
			return nil, err
		}
		headsKV, err := l.HeadsKV()
		if err != nil {
			return nil, err
		}
		dim, err := l.HeadDim()
		if err != nil {
			return nil, err
		}
		if min(heads, headsKV, dim) <= 0 || max(heads, headsKV, dim) > config.MaxHeadDim {
			return nil, fault.Errorf(fault.Broken, "%s: %d heads and %d key heads of %d elements", config.ConfigFile,
				heads, headsKV, dim)
		}
		if ne := s.NE(); len(ne) != 2 || ne[1] != (heads+2*headsKV)*dim {
			return nil, fmt.Errorf("dimensions %s, want rows of %d+2*%d heads of %d", gguf.Shape(ne), heads,
				headsKV, dim)
		}
		from, to := part(heads*dim, headsKV*dim)
		return rows.Slice(s, 1, from, to)
	}}
}

var (
	QOfJoined = joinedPart("q-of-joined", func(q, k int64) (int64, int64) { return 0, q })
	KOfJoined = joinedPart("k-of-joined", func(q, k int64) (int64, int64) { return q, q + k })
	VOfJoined = joinedPart("v-of-joined", func(q, k int64) (int64, int64) { return q + k, q + 2*k })
)

// Transpose transposes a matrix; biases are unchanged.
var Transpose = &table.Transform{
	Name:    "transpose",
	Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) { return transposed(s) },
	Inverse: func(_ *table.Keys, s rows.Source) (rows.Source, error) { return transposed(s) },
}

func transposed(s rows.Source) (rows.Source, error) {
	switch n := len(s.NE()); n {
	case 1:
		return s, nil
	case 2:
		return rows.Transpose(s)
	default:
		return nil, fault.Errorf(fault.Broken, "dimensions %s, want a matrix", gguf.Shape(s.NE()))
	}
}

// TransposeLast transposes a matrix, or each matrix of a stack.
var TransposeLast = &table.Transform{Name: "transpose",
	Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
		if ne := s.NE(); len(ne) < 2 {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want a matrix", gguf.Shape(ne))
		}
		return rows.Transpose(s)
	}}

// SqueezeKernel reshapes a depthwise kernel, [channels, 1, width] in the checkpoint, to a matrix.
var SqueezeKernel = &table.Transform{Name: "squeeze-kernel",
	Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
		ne := s.NE()
		if len(ne) != 3 || ne[1] != 1 {
			return nil, fmt.Errorf("dimensions %s, want the middle one of three to be 1", gguf.Shape(ne))
		}
		return rows.Reshape(s, []int64{ne[0], ne[2]})
	}}

// NegExp computes -exp(x): the matrix A of Mamba from A_log.
var NegExp = &table.Transform{Name: "neg-exp", Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
	return rows.Map(s, func(x []float32) {
		torchmath.Exp(x)
		for i := range x {
			x[i] = -x[i]
		}
	}), nil
}}

// Column reshapes a vector to a column, as runtimes expect.
var Column = &table.Transform{
	Name: "column",
	Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
		return rows.Reshape(s, append([]int64{1}, s.NE()...))
	},
}

// NegExpColumn is NegExp, and then Column.
var NegExpColumn = Chain("neg-exp-column", NegExp, Column)

// Chain returns the transform that applies all in order.
func Chain(name string, all ...*table.Transform) *table.Transform {
	return &table.Transform{Name: name, Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		var err error
		for _, t := range all {
			if s, err = t.Apply(l, s); err != nil {
				return nil, err
			}
		}
		return s, nil
	}}
}

// Squeeze removes dimensions of 1.
var Squeeze = &table.Transform{Name: "squeeze", Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
	ne := slices.DeleteFunc(slices.Clone(s.NE()), func(n int64) bool { return n == 1 })
	if len(ne) == 0 {
		ne = []int64{1}
	}
	return rows.Reshape(s, ne)
}}

// GroupNorm reshapes the weights of a norm to one row per group.
func GroupNorm(groups func(*config.View) (int64, error)) *table.Transform {
	return &table.Transform{Name: "group-norm", Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		n, err := groups(l.View)
		if err != nil {
			return nil, err
		}
		ne := s.NE()
		if len(ne) != 1 || n < 1 || ne[0]%n != 0 {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want a multiple of %d elements", gguf.Shape(ne), n)
		}
		return rows.Reshape(s, []int64{ne[0] / n, n})
	}}
}

// TransposeEach transposes the matrices of a stack.
var TransposeEach = &table.Transform{Name: "transpose-each",
	Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
		if ne := s.NE(); len(ne) != 3 {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want a stack of matrices", gguf.Shape(ne))
		}
		return rows.Transpose(s)
	}}

// PermuteQ and PermuteK permute the rows of each head from Hugging Face's layout (halves) to GGUF's (interleaved
// RoPE).
var (
	PermuteQ = permuteRope("permute-rope-q", (*config.View).Heads, (*table.Keys).Heads)
	PermuteK = permuteRope("permute-rope-k", (*config.View).HeadsKV, (*table.Keys).HeadsKV)
)

func permuteRope(name string, ofConfig func(*config.View) (int64, error),
	ofFile func(*table.Keys) (int64, error)) *table.Transform {
	apply := func(s rows.Source, permute func(rows.Source, int64) (rows.Source, error), heads int64,
		err error) (rows.Source, error) {
		if err != nil {
			return nil, err
		}
		p, err := permute(s, heads)
		if err != nil {
			return nil, fault.Errorf(fault.Broken, "%w", err)
		}
		return p, nil
	}
	return &table.Transform{
		Name: name,
		Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
			heads, err := ofConfig(l.View)
			return apply(s, rows.PermuteRope, heads, err)
		},
		Inverse: func(k *table.Keys, s rows.Source) (rows.Source, error) {
			heads, err := ofFile(k)
			return apply(s, rows.UnpermuteRope, heads, err)
		},
	}
}

// Third returns the transform that takes Q (0), K (1) or V (2) of a joined projection, weight or bias.
func Third(i int64) *table.Transform {
	return &table.Transform{Name: fmt.Sprintf("third-%d", i),
		Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
			ne := s.NE()
			last := len(ne) - 1
			if last > 1 || ne[last]%3 != 0 {
				return nil, fault.Errorf(fault.Broken, "dimensions %s, want rows for queries, keys and values",
					gguf.Shape(ne))
			}
			n := ne[last] / 3
			return rows.Slice(s, last, i*n, (i+1)*n)
		}}
}
