package eval

import "ggforge/internal/kernel/buffer"

// prefixes are the chunks of a run that continue others: the tokens of such a chunk attend to those of the other one,
// too, and their positions follow those of the other one. A chunk and those that continue it, a group, follow each other
// and go through a layer together. Run.First is 0.
type prefixes struct {
	of        []int // for each chunk the one that it continues, or -1
	positions []int // of tokens
}

// wholeGroups returns chunks from chunk c on, and how many tokens they have, such that no group is cut: at most as many
// as are given, unless the first group has more.
func (r *Run) wholeGroups(c, chunks, tokens int) (int, int) {
	of := r.prefixes.of
	starts := func(i int) bool { return i == len(of) || of[i] < 0 }
	n := chunks
	for n > 0 && !starts(c+n) {
		n--
		tokens -= r.Lengths[c+n]
	}
	for n == 0 || !starts(c+n) {
		tokens += r.Lengths[c+n]
		n++
	}
	return n, tokens
}

// position returns the position of token t, of those that go through a layer together.
func (s *stream) position(t int) int {
	if p := s.r.prefixes; p != nil {
		return p.positions[s.firstToken+t]
	}
	return s.r.at + t%s.r.Chunk
}

// seen returns size values of each token that those of a chunk attend to, in rows that are ld apart: the prefix first.
// x are the values of all tokens that go through a layer together, in rows that are xld apart. i is 0 for keys and 1 for
// values.
func (a *attentionScratch) seen(i int, x []float32, c span, xld, size int) (rows []float32, ld int) {
	if c.prefix.n == 0 {
		return x[c.at*xld:], xld
	}
	all := buffer.Resize(&a.joined[i], (c.prefix.n+c.n)*size)
	at := 0
	for _, r := range []rowRange{c.prefix, {c.at, c.n}} {
		for t := r.at; t < r.at+r.n; t++ {
			at += copy(all[at:], x[t*xld:][:size])
		}
	}
	return all, size
}

// sharesPrefixes reports whether chunks of the model can continue others, if none is longer than this: its tokens depend
// on each other by attention alone, not by adapters that tokens choose for later ones, too, and rotations do not depend
// on the length of a chunk.
func (m *Model) sharesPrefixes(longest int) bool {
	if m.p.bidirectional || m.decision != nil || m.adapters != nil {
		return false
	}
	for i := range m.ropes {
		if r := &m.ropes[i]; r.short != nil && longest > r.original {
			return false
		}
	}
	for i := range m.layers {
		l := &m.layers[i]
		for part := range l.parts() {
			switch part := part.(type) {
			case *attention:
				if part.bidirectional {
					return false
				}
			case *mla, *laurel:
			default:
				if reachOf(part) != ownToken {
					return false
				}
			}
		}
		for _, s := range l.steps {
			if _, ok := s.(*ngramEmbedding); ok {
				return false
			}
		}
	}
	return true
}
