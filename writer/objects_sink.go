package writer

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// overlap returns how many bytes of tensor t are in piece p, and at which bytes of the file they begin and end.
func (f *object) overlap(t *placed, p int) (n, from, to int64) {
	from = max(t.off, int64(p)*f.piece)
	to = min(t.off+t.bytes(), int64(p)*f.piece+f.length(p))
	return max(0, to-from), from, to
}

// rowBytes returns how many bytes of rows are in piece p.
func (f *object) rowBytes(p int) (n int64) {
	i, _ := slices.BinarySearchFunc(f.sorted, int64(p)*f.piece, func(t *placed, at int64) int {
		return cmp.Compare(t.off+t.bytes(), at+1)
	})
	for ; i < len(f.sorted) && f.sorted[i].off < int64(p+1)*f.piece; i++ {
		k, _, _ := f.overlap(f.sorted[i], p)
		n += k
	}
	return n
}

// need returns the rows of tensor t with bytes in missing pieces of a part, in order.
func (f *object) need(t *placed, part int) (list []span) {
	if t.bytes() == 0 {
		return nil
	}
	row := t.rowBytes()
	for p := int(t.off / f.piece); p <= int((t.off+t.bytes()-1)/f.piece); p++ {
		if f.owners[p] != part || f.made[p] != nil {
			continue
		}
		_, from, to := f.overlap(t, p)
		s := span{a: (from - t.off) / row, b: (to - t.off + row - 1) / row}
		if n := len(list); n > 0 && s.a <= list[n-1].b {
			list[n-1].b = s.b
			continue
		}
		list = append(list, s)
	}
	return list
}

// cells returns the rows of the job that any output needs, cut so that each output needs all rows of a cell or none,
// and that all of them begin in the same piece of its file.
func (j *job) cells() (list []span) {
	var cuts []int64
	for _, t := range j.outputs {
		f, row := t.sink.object, t.rowBytes()
		for _, s := range t.need {
			cuts = append(cuts, s.a, s.b)
			for p := (t.off+s.a*row)/f.piece + 1; ; p++ {
				c := (p*f.piece - t.off + row - 1) / row
				if c >= s.b {
					break
				}
				cuts = append(cuts, c)
			}
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	for i := 1; i < len(cuts); i++ {
		s := span{a: cuts[i-1], b: cuts[i]}
		if slices.ContainsFunc(j.outputs, func(t *placed) bool { return t.wants(s.a) }) {
			list = append(list, s)
		}
	}
	return list
}

// wants reports whether the row is one that the tensor's missing pieces need. Without a sink all rows are.
func (t *placed) wants(row int64) bool {
	if t.sink == nil {
		return true
	}
	i, _ := slices.BinarySearchFunc(t.need, row, func(s span, row int64) int { return cmp.Compare(s.b, row+1) })
	return i < len(t.need) && t.need[i].a <= row
}

// sink collects the rows of a file in pieces, and sends them.
type sink struct {
	*object
	of     *claimed
	fileNo int
	ctx    context.Context // of the run
	group  *errgroup.Group

	mu   sync.Mutex
	open map[int]*openPiece
	free [][]byte
}

// openPiece is a piece that is not complete yet.
type openPiece struct {
	data   []byte
	left   int64 // bytes of rows that are missing
	counts map[int]tally
}

// writeRows writes rows [s.a, s.b) of a tensor of the file.
func (k *sink) writeRows(t *placed, s span, data []byte) error {
	off := t.off + s.a*t.rowBytes()
	if p := int(off / k.piece); s.tally != (tally{}) && k.missing(p) {
		k.mu.Lock()
		counts := k.opened(p).counts
		n := counts[t.tensorNo]
		counts[t.tensorNo] = tally{n.overflows + s.overflows, n.displaced + s.displaced}
		k.mu.Unlock()
	}
	return k.write(off, data)
}

// missing reports whether this process makes piece p.
func (k *sink) missing(p int) bool {
	return k.owners[p] == k.of.opt.Journal.Part && k.has(p) == nil
}

// has returns piece p if it is made.
func (k *sink) has(p int) *madeData {
	k.of.mu.Lock()
	defer k.of.mu.Unlock()
	return k.made[p]
}

// opened returns piece p while it is made, with the lock held.
func (k *sink) opened(p int) *openPiece {
	if x := k.open[p]; x != nil {
		return x
	}
	var data []byte
	if n := len(k.free); n > 0 {
		data, k.free = k.free[n-1], k.free[:n-1]
		clear(data)
	} else {
		data = make([]byte, k.piece)
	}
	x := &openPiece{data: data[:k.length(p)], left: k.rowBytes(p), counts: map[int]tally{}}
	if header := k.header(); int64(p)*k.piece < int64(len(header)) {
		copy(x.data, header[int64(p)*k.piece:])
	}
	k.open[p] = x
	return x
}

// write writes bytes of rows, of which some are in pieces that this process makes. With no bytes it makes a piece
// that has no rows.
func (k *sink) write(off int64, data []byte) error {
	for {
		p := int(off / k.piece)
		at := off - int64(p)*k.piece
		n := min(int64(len(data)), k.length(p)-at)
		if k.missing(p) {
			k.mu.Lock()
			x := k.opened(p)
			k.mu.Unlock()
			copy(x.data[at:], data[:n])
			k.mu.Lock()
			x.left -= n
			whole := x.left == 0
			if whole {
				delete(k.open, p)
			}
			k.mu.Unlock()
			if whole {
				k.group.Go(func() error { return k.send(p, x) })
			}
		}
		data, off = data[n:], off+n
		if len(data) == 0 {
			return k.ctx.Err()
		}
	}
}

// send sends a piece, unless the store has it already.
func (k *sink) send(p int, x *openPiece) error {
	m := &madeData{}
	for t, n := range x.counts {
		m.Counts = append(m.Counts, pieceCount{t, n.overflows, n.displaced})
	}
	slices.SortFunc(m.Counts, func(x, y pieceCount) int { return cmp.Compare(x.Tensor, y.Tensor) })
	same := false
	if have := k.have[p]; have != nil {
		m.Piece, same = k.of.store.Same(*have, x.data)
	}
	if !same {
		var err error
		if m.Piece, err = k.of.store.Send(k.ctx, k.path, k.id, p, x.data); err != nil {
			return err
		}
	}
	k.of.mu.Lock()
	k.made[p] = m
	k.of.mu.Unlock()
	k.mu.Lock()
	k.free = append(k.free, x.data[:cap(x.data)])
	k.mu.Unlock()
	return nil
}
