package eval

import (
	"slices"

	"ggforge/internal/kernel/gemm"
)

// heldCost is the cost of an element, in picoseconds, from which on rows are held in memory if they are read again: the
// product of a block of tokens with the element takes some hundred times as long.
const heldCost = 350

// heldRows holds rows of weights that are expensive to make, as in a model that is encoded while it is read.
type heldRows struct {
	gemm.Weights // its rows are held
	from         *gemm.Weights
	data         []byte
	filled       []bool // by row
}

// weights returns the weights to multiply with: w, or, if its rows are expensive and will be read again, weights that
// hold the encoded rows in memory from their first use until stream.dropHeld.
func (s *stream) weights(w *gemm.Weights) *gemm.Weights {
	if !s.rereads || s.m.costs[w] < heldCost {
		return w
	}
	for _, h := range s.heldRows {
		if h.from == w {
			return &h.Weights
		}
	}
	h := &heldRows{Weights: *w, from: w, data: s.bytes(w.Rows * w.RowBytes), filled: make([]bool, w.Rows)}
	h.Raw = h.rows
	s.heldRows = append(s.heldRows, h)
	return &h.Weights
}

// rows is Weights.Raw. Several goroutines may ask for different rows at the same time.
func (h *heldRows) rows(buf *[]byte, a, b int) ([]byte, error) {
	data := h.data[a*h.RowBytes : b*h.RowBytes]
	if slices.Contains(h.filled[a:b], false) {
		raw, err := h.from.Raw(buf, a, b)
		if err != nil {
			return nil, err
		}
		copy(data, raw)
		for i := a; i < b; i++ {
			h.filled[i] = true
		}
	}
	return data, nil
}

// bytes returns n bytes, from a dropped buffer if one is large enough.
func (s *workspace) bytes(n int) []byte {
	for i, data := range s.freeBytes {
		if cap(data) >= n {
			s.freeBytes = slices.Delete(s.freeBytes, i, i+1)
			return data[:n]
		}
	}
	if len(s.freeBytes) > 0 {
		s.freeBytes = s.freeBytes[1:] // too small: others will have its size
	}
	return make([]byte, n)
}

// dropHeld lets go of the rows that are held.
func (s *stream) dropHeld() {
	for _, h := range s.heldRows {
		s.freeBytes = append(s.freeBytes, h.data)
	}
	s.heldRows = s.heldRows[:0]
}
