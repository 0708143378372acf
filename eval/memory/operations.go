package memory

import "slices"

// operations is the compute graph of a batch, as the runtime's allocator sees it: results in the order in which they
// are computed, with sizes, sources and views. A result is computed when one that reads it is, unless expand is called
// before.
//
// Source: ggml_build_forward_expand and ggml_gallocr_reserve of ggml 0.27.0, with one buffer type.
type operations struct {
	inputs []*result
	nodes  []*result
}

// result is a tensor of a graph.
type result struct {
	ordered bool // it is in the order of computation
	bytes   int64
	viewOf  *result   // the result that it is a view of, or nil
	part    bool      // a view of a part, or of another order
	sources []*result // that are in the buffer
	reuse   bool      // may be written where one of its sources is
	kept    bool      // is read after the graph is computed

	children, views int
	at              int64
	placed          bool // it has, or had, a place in the buffer
	owned           bool // the place is its own
}

// alignment of results in the buffer.
const alignment = 32

// addInput adds an input. Inputs are placed before everything else.
func (g *operations) addInput(bytes int64) *result {
	r := &result{bytes: bytes, ordered: true}
	g.inputs = append(g.inputs, r)
	return r
}

// op returns a result that has memory of its own.
func (g *operations) op(bytes int64, sources ...*result) *result {
	return &result{bytes: bytes, sources: sources}
}

// expand appends r to the order of computation, after the results that it is computed from.
func (g *operations) expand(r *result) {
	if r.ordered {
		return
	}
	r.ordered = true
	for _, s := range r.sources {
		g.expand(s)
	}
	g.nodes = append(g.nodes, r)
}

// inPlace returns a result that may take the place of a source that is read for the last time.
func (g *operations) inPlace(bytes int64, sources ...*result) *result {
	r := g.op(bytes, sources...)
	r.reuse = true
	return r
}

// view returns a view of all elements, in other dimensions.
func (g *operations) view(of *result) *result {
	root := of
	if of.viewOf != nil {
		root = of.viewOf
	}
	r := g.op(of.bytes, of)
	r.viewOf, r.part = root, of.part
	return r
}

// partView returns a view of some of the elements, or of all in another order.
func (g *operations) partView(of *result, bytes int64) *result {
	r := g.view(of)
	r.bytes, r.part = bytes, true
	return r
}

// store computes its sources, and writes them to a cache.
func (g *operations) store(sources ...*result) { g.expand(g.op(0, sources...)) }

// write returns a result with sources written into it.
func (g *operations) write(into *result, sources ...*result) *result {
	r := g.op(into.bytes, append(sources, into)...)
	r.viewOf = into
	return r
}

// free is a gap of the buffer.
type free struct{ at, bytes int64 }

// buffer places results.
type buffer struct {
	gaps []free // ordered; the last has no end
	peak int64
}

// place takes the smallest gap that is large enough, the last of equal ones, or else the end of the buffer.
func (b *buffer) place(bytes int64) int64 {
	bytes = (bytes + alignment - 1) / alignment * alignment
	best := len(b.gaps) - 1
	size := int64(1) << 62
	for i, f := range b.gaps[:len(b.gaps)-1] {
		if f.bytes >= bytes && f.bytes <= size {
			best, size = i, f.bytes
		}
	}
	f := &b.gaps[best]
	at := f.at
	f.at += bytes
	f.bytes -= bytes
	if f.bytes == 0 {
		b.gaps = slices.Delete(b.gaps, best, best+1)
	}
	b.peak = max(b.peak, at+bytes)
	return at
}

// release makes a gap, and joins it with neighbouring gaps.
func (b *buffer) release(at, bytes int64) {
	bytes = (bytes + alignment - 1) / alignment * alignment
	if bytes == 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(b.gaps, at, func(f free, at int64) int { return int(min(1, max(-1, f.at-at))) })
	b.gaps = slices.Insert(b.gaps, i, free{at, bytes})
	if i+1 < len(b.gaps) && at+bytes == b.gaps[i+1].at {
		b.gaps[i].bytes += b.gaps[i+1].bytes
		b.gaps = slices.Delete(b.gaps, i+1, i+2)
	}
	if i > 0 && b.gaps[i-1].at+b.gaps[i-1].bytes == at {
		b.gaps[i-1].bytes += b.gaps[i].bytes
		b.gaps = slices.Delete(b.gaps, i, i+1)
	}
}

// total returns the size of the buffer that the allocator reserves.
func (g *operations) total() int64 {
	b := &buffer{gaps: []free{{0, 1 << 62}}}
	for _, r := range g.nodes {
		if r.viewOf != nil {
			r.viewOf.views++
		}
		for _, s := range r.sources {
			s.children++
		}
	}
	for _, r := range g.inputs {
		b.placeResult(r)
	}
	for _, r := range g.nodes {
		b.placeResult(r)
		for _, s := range r.sources {
			s.children--
			if s.children > 0 || s.views > 0 {
				continue
			}
			if s.viewOf != nil {
				if s.viewOf.views--; s.viewOf.views == 0 && s.viewOf.children == 0 {
					b.drop(s.viewOf)
				}
			} else {
				b.drop(s)
			}
		}
	}
	return b.peak
}

// placeResult gives r a place, if it is not a view.
func (b *buffer) placeResult(r *result) {
	if r.viewOf != nil || r.placed {
		return
	}
	r.placed = true
	if r.reuse {
		for _, s := range r.sources {
			root := s
			if s.viewOf != nil {
				root = s.viewOf
			}
			if !root.placed || root.kept || s.part || s.bytes != r.bytes || s.children != 1 || s.views != 0 {
				continue
			}
			if s.viewOf != nil {
				continue
			}
			r.at, r.owned, root.owned = root.at, true, false
			return
		}
	}
	r.at, r.owned = b.place(r.bytes), true
}

// drop releases the place of r, if it is its own and nobody reads it later.
func (b *buffer) drop(r *result) {
	if r.owned && !r.kept {
		b.release(r.at, r.bytes)
		r.owned = false
	}
}
