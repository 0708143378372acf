package eval

import (
	"fmt"

	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// embed sets h to the normalized embeddings of the tokens of the run; w nil for no norm. Each token is decoded once.
func (s *stream) embed(h []float32, w *norm) error {
	p := s.m.p
	bufs, places := make([][]byte, len(s.scratch)), make([][]float32, len(s.scratch))
	if s.m.positions != nil && s.r.Chunk > p.context {
		return fault.Errorf(fault.Refused, "%s: %d tokens at once, want at most %d, the positions that it has",
			s.m.source.Path, s.r.Chunk, p.context)
	}
	first, at := map[int32]int{}, []int(nil) // place of the first occurrence of each token
	for i, id := range s.r.Tokens {
		if id < 0 || int(id) >= p.vocab {
			return fault.Errorf(fault.Refused, "%s: token %d of the text is %d, want less than %d", s.m.source.Path,
				i, id, p.vocab)
		}
		if _, ok := first[id]; !ok {
			first[id], at = i, append(at, i)
		}
	}
	row := func(i int) []float32 { return h[i*p.width:][:p.width] }
	err := parallel.For(s.ctx, len(s.scratch), len(at), func(i, worker int) error {
		id := int64(s.m.adapters.embedded(s.r.Tokens[at[i]]))
		if err := decode(s.m.embed, row(at[i]), &bufs[worker], id, id+1); err != nil {
			return fmt.Errorf("%s: tensor %q: %w", s.m.source.Path, s.m.embed.Name, err)
		}
		if !vecmath.Finite(row(at[i])) {
			return fault.Errorf(fault.Broken, "%s: tensor %q: the row of token %d is not finite", s.m.source.Path,
				s.m.embed.Name, id)
		}
		if t := s.m.embedFold; t != nil {
			place := buffer.Resize(&places[worker], p.width)
			copy(place, row(at[i]))
			t.undo(row(at[i]), place)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, id := range s.r.Tokens {
		copy(row(i), row(first[id]))
	}
	return parallel.For(s.ctx, len(s.scratch), len(s.r.Tokens), func(i, worker int) error {
		row := row(i)
		if p.embedScale != 1 {
			vecmath.Scale(row, row, float32(p.embedScale))
		}
		if s.m.tokenType != nil {
			vecmath.Add(row, s.m.tokenType)
		}
		if s.m.positions != nil {
			place := buffer.Resize(&places[worker], p.width)
			at := int64(s.position(i))
			if err := decode(s.m.positions, place, &bufs[worker], at, at+1); err != nil {
				return fmt.Errorf("%s: tensor %q: %w", s.m.source.Path, s.m.positions.Name, err)
			}
			vecmath.Add(row, place)
		}
		if w != nil {
			s.norm(w, row, row)
		}
		return nil
	})
}
