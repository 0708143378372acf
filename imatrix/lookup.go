package imatrix

import (
	"context"
	"fmt"
	"math"
	"slices"

	"ggforge/internal/io/mmap"
)

// optional names the tensors that are quantized without importance when the
// size of their entry is wrong; the reference only warns.
var optional = []string{"token_embd.weight", "per_layer_token_embd.weight"}

// Check reports whether Lookup will have values for the tensor of that name and
// dimensions, ne[0] being the row: for plans, it reads no values. ok is false
// without an error when there is no entry.
//
// An entry must have ne[0]*ne[2] values, missing dimensions being 1; otherwise there is a *SizeError. For
// token_embd.weight and per_layer_token_embd.weight it is returned as warning: these tensors are quantized without
// importance, as in the reference. The reference looks up only tensors that it converts: for others the size may be
// anything.
func (m *Matrix) Check(name string, ne []int64) (ok bool, warning, err error) {
	e := m.Entry(name)
	if e == nil {
		return false, nil, nil
	}
	want := int64(1)
	for i, n := range ne {
		if i == 0 || i == 2 {
			want *= n
		}
	}
	if got := int64(e.Len()); got != want {
		bad := &SizeError{Path: m.Path, Name: name, Want: want, Got: got}
		if slices.Contains(optional, name) {
			return false, bad, nil
		}
		return false, nil, bad
	}
	return true, nil, nil
}

// Lookup returns the importance of the tensor of that name and dimensions: ne[0]*ne[2] values, from which Slice cuts
// those of slice k. values is nil where Check returns ok false; warning and err are those of Check. A value that is not
// finite or is negative gives a *ValueError, see Validate. The slice is the caller's.
func (m *Matrix) Lookup(name string, ne []int64) (values []float32, warning, err error) {
	ok, warning, err := m.Check(name, ne)
	if !ok {
		return nil, warning, err
	}
	e := m.Entry(name)
	if values, err = m.Values(e); err != nil {
		return nil, nil, err
	}
	if i := badValue(values); i >= 0 {
		return nil, nil, &ValueError{Path: m.Path, Name: name, Index: i, Value: values[i]}
	}
	return values, nil, nil
}

// Values returns the values of an entry of m, unchecked. The slice is the
// caller's.
func (m *Matrix) Values(e *Entry) ([]float32, error) {
	dst := make([]float32, e.Len())
	return dst, mmap.Guard(m.Path, func() error { e.values(dst, 0); return nil })
}

// Sums returns the numbers of an entry of m as the file has them: sums of
// squares in a GGUF file; in a legacy one, values times Calls. The slice is the
// caller's.
func (m *Matrix) Sums(e *Entry) ([]float32, error) {
	dst := make([]float32, e.Len())
	return dst, mmap.Guard(m.Path, func() error { e.sums(dst, 0); return nil })
}

// plain returns the sums of the activations, without squares, nil if the file does not have them.
func (m *Matrix) plain(e *Entry) ([]float32, error) {
	if e.plain == nil {
		return slices.Clone(e.plains), nil
	}
	dst := make([]float32, len(e.plain)/4)
	return dst, mmap.Guard(m.Path, func() error { e.decode(dst, e.plain); return nil })
}

// Slice returns the part of a tensor's values that slice k along dimension 2
// uses: elements k*ne[0] to (k+1)*ne[0]. It is nil for nil values, and panics
// when they have no such part.
func Slice(values []float32, ne []int64, k int64) []float32 {
	if values == nil {
		return nil
	}
	n := ne[0]
	return values[k*n : (k+1)*n : (k+1)*n]
}

// Validate reads the values of the entries of the given names, or of all
// entries if names is nil, and returns a *ValueError for the first that is not
// finite or is negative. Names without an entry are passed over.
// When ctx ends, so does the reading.
//
// The reference refuses values that are not finite, before any work and for any recipe, in every entry that include and
// exclude left, even if no tensor has its name. It accepts negative values and computes with them; refusing those is
// our own rule.
func (m *Matrix) Validate(ctx context.Context, names []string) error {
	if m == nil {
		return nil
	}
	if names != nil {
		for _, name := range names {
			if e := m.Entry(name); e != nil {
				if err := m.validate(ctx, e); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for i := range m.entries {
		if err := m.validate(ctx, &m.entries[i]); err != nil {
			return err
		}
	}
	return nil
}

func (m *Matrix) validate(ctx context.Context, e *Entry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return mmap.Guard(m.Path, func() error {
		var buf [4096]float32
		for from := 0; from < e.Len(); from += len(buf) {
			part := buf[:min(len(buf), e.Len()-from)]
			e.values(part, from)
			if i := badValue(part); i >= 0 {
				return &ValueError{Path: m.Path, Name: e.Name, Index: from + i, Value: part[i]}
			}
		}
		return nil
	})
}

// Blank returns the matrices of a tensor without activations, by its entry in m, in ascending order. The tensor has n
// matrices. zero are those whose values are all 0, as legacy files have them for experts that the calibration did not
// reach: encoders make zeros of their weights, with most types. unseen are those whose count is 0: their values are
// all 1.
func (m *Matrix) Blank(ctx context.Context, e *Entry, n int) (zero, unseen []int, err error) {
	if n < 1 || e.Len()%n != 0 {
		return nil, nil, fmt.Errorf("%s: entry %s of %d values has no %d matrices", m.Path, quote(e.Name), e.Len(), n)
	}
	if e.Matrices() == n {
		unseen = e.Unseen()
	}
	columns := e.Len() / n
	err = mmap.Guard(m.Path, func() error {
		var buf [4096]float32
		for k := range n {
			if err := ctx.Err(); err != nil {
				return err
			}
			blank := true
			for at := 0; blank && at < columns; at += len(buf) {
				part := buf[:min(len(buf), columns-at)]
				e.values(part, k*columns+at)
				blank = !slices.ContainsFunc(part, func(v float32) bool { return v != 0 })
			}
			if blank {
				zero = append(zero, k)
			}
		}
		return nil
	})
	return zero, unseen, err
}

// badValue returns the index of the first value that is negative or not finite, -1 if there is none.
func badValue(values []float32) int {
	return slices.IndexFunc(values, func(v float32) bool { return !(v >= 0 && v <= math.MaxFloat32) })
}

// Coverage compares the entries of a matrix with the tensors of a model.
type Coverage struct {
	Used    int      // entries that name a tensor
	Missing []string // tensors without an entry, in the order of the model
	Unused  []string // entries without a tensor, in the order of the matrix
}

// Coverage compares the entries with names, those of a model's tensors, or only of the tensors that could use
// importance.
func (m *Matrix) Coverage(names []string) Coverage {
	var c Coverage
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if seen[name] = true; m.Entry(name) == nil {
			c.Missing = append(c.Missing, name)
		}
	}
	if m == nil {
		return c
	}
	for i := range m.entries {
		if name := m.entries[i].Name; !seen[name] {
			c.Unused = append(c.Unused, name)
		}
	}
	c.Used = len(m.entries) - len(c.Unused)
	return c
}
