package eval

import (
	"slices"

	"ggforge/internal/kernel/gemm"
)

// costly is from how many picoseconds on, for an element, rows are held if they are read
// again: what a block of tokens takes to be multiplied with it is some hundred times as
// much.
const costly = 350

// held is rows of weights that took long to make: those of a model that is encoded as it is
// read.
type held struct {
	gemm.Weights // hands out rows that are held
	from         *gemm.Weights
	data         []byte
	have         []bool // by row
}

// weights returns those to multiply with: w, or while they are to be read again what holds
// its rows as they come, if they take long to make. Until s.drop these take as many bytes
// as they are encoded in.
func (s *stream) weights(w *gemm.Weights) *gemm.Weights {
	if !s.again || s.m.costs[w] < costly {
		return w
	}
	for _, h := range s.held {
		if h.from == w {
			return &h.Weights
		}
	}
	h := &held{Weights: *w, from: w, data: s.bytes(w.Rows * w.RowBytes), have: make([]bool, w.Rows)}
	h.Raw = h.rows
	s.held = append(s.held, h)
	return &h.Weights
}

// rows is Weights.Raw. Several goroutines may ask for different rows at the same time.
func (h *held) rows(buf *[]byte, a, b int) ([]byte, error) {
	data := h.data[a*h.RowBytes : b*h.RowBytes]
	if slices.Contains(h.have[a:b], false) {
		raw, err := h.from.Raw(buf, a, b)
		if err != nil {
			return nil, err
		}
		copy(data, raw)
		for i := a; i < b; i++ {
			h.have[i] = true
		}
	}
	return data, nil
}

// bytes returns n bytes, of those that were dropped if it can.
func (s *room) bytes(n int) []byte {
	for i, data := range s.free {
		if cap(data) >= n {
			s.free = slices.Delete(s.free, i, i+1)
			return data[:n]
		}
	}
	if len(s.free) > 0 {
		s.free = s.free[1:] // too small: others will have its size
	}
	return make([]byte, n)
}

// drop lets go of the rows that are held.
func (s *stream) drop() {
	for _, h := range s.held {
		s.free = append(s.free, h.data)
	}
	s.held = s.held[:0]
}
