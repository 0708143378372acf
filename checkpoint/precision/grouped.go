package precision

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
	"ggforge/rows"
)

// grouped is a matrix [out, in] of integers below 256, in groups of columns with a scale and a zero point per row:
//
//	W[o, i] = (code[o, i] - zero[o, g]) * scale[o, g]   g = group of i
//
// The difference is exact in float32, so that only the product rounds, as in the reference.
type grouped struct {
	out, in int64
	groups  int64
	bits    int64 // of a code
	// byColumn: rows are stored as columns.
	byColumn bool
	// layout returns the group of each column.
	layout func() (layout, error)
	// codes fills dst, [b-a, in], with the codes of rows [a, b).
	codes func(s *scratch, dst []byte, a, b int64) error
	// meta fills scale and zero, both [b-a, groups], for rows [a, b).
	meta func(s *scratch, scale, zero []float32, a, b int64) error
}

// layout has the groups of columns: runs of size columns, or the group of each column.
type layout struct {
	size  int64
	order []int32
}

// costGrouped is the approximate cost of an element in picoseconds.
const costGrouped = 700

func (g *grouped) source() rows.Source {
	return &decoded{ne: []int64{g.in, g.out}, cost: costGrouped, rows: g.rows}
}

func (g *grouped) rows(s *scratch, out []byte, a, b int64) error {
	groups, err := g.layout()
	if err != nil {
		return err
	}
	if !g.byColumn {
		part := &strip{codes: buffer.Resize(&s.raw, (b-a)*g.in), scale: buffer.Resize(&s.f32, (b-a)*g.groups),
			zero: buffer.Resize(&s.zero, (b-a)*g.groups)}
		if err := g.read(s, part, a, b); err != nil {
			return err
		}
		for o := range b - a {
			g.row(s, out[4*o*g.in:4*(o+1)*g.in], part, o, groups)
		}
		return nil
	}
	for o := a; o < b; o++ {
		part, err := g.strip(s, o/stripRows)
		if err != nil {
			return err
		}
		g.row(s, out[4*(o-a)*g.in:4*(o-a+1)*g.in], part, o%stripRows, groups)
	}
	return nil
}

// strip is some rows of a matrix, unpacked.
type strip struct {
	of          *grouped // nil for none
	index, used int64
	codes       []byte
	scale, zero []float32
}

// stripRows is the number of rows that are unpacked together if they are stored as columns: a single column uses only a
// few bytes of each cache line.
const stripRows = 32

// stripsKept is the number of strips that a worker keeps: permuted rows of Q and K alternate between the two halves of
// a head.
const stripsKept = 4

// strip returns the strip of an index, valid until stripsKept others have been requested.
func (g *grouped) strip(s *scratch, index int64) (*strip, error) {
	s.clock++
	oldest := &s.strips[0]
	for i := range s.strips {
		t := &s.strips[i]
		if t.of == g && t.index == index {
			t.used = s.clock
			return t, nil
		}
		if t.used < oldest.used {
			oldest = t
		}
	}
	a, b := index*stripRows, min((index+1)*stripRows, g.out)
	oldest.of, oldest.index, oldest.used = nil, index, s.clock
	buffer.Resize(&oldest.codes, (b-a)*g.in)
	buffer.Resize(&oldest.scale, (b-a)*g.groups)
	buffer.Resize(&oldest.zero, (b-a)*g.groups)
	err := g.read(s, oldest, a, b)
	if err == nil {
		oldest.of = g
	}
	return oldest, err
}

// read fills a strip with rows [a, b).
func (g *grouped) read(s *scratch, t *strip, a, b int64) error {
	if err := g.codes(s, t.codes, a, b); err != nil {
		return err
	}
	return g.meta(s, t.scale, t.zero, a, b)
}

// row computes row o of a strip.
func (g *grouped) row(s *scratch, out []byte, t *strip, o int64, groups layout) {
	codes, scale, zero := t.codes[o*g.in:(o+1)*g.in], t.scale[o*g.groups:(o+1)*g.groups],
		t.zero[o*g.groups:(o+1)*g.groups]
	n := int64(1) << g.bits
	order := groups.order
	numbers := wholeNumbers()
	if order == nil {
		few := (*[256]float32)(buffer.Resize(&s.table, 256))
		for k := range g.groups {
			from, to := k*groups.size, min((k+1)*groups.size, g.in)
			if numbers.vectors != nil || 2*n > to-from {
				numbers.scaledCodes(out[4*from:4*to], codes[from:to], scale[k], zero[k])
				continue
			}
			for c, q := range numbers.table[:n] {
				few[c] = (q - zero[k]) * scale[k]
			}
			look(out[4*from:4*to], codes[from:to], few)
		}
		return
	}
	table := &numbers.table
	if g.groups*n > g.in {
		for i, c := range codes {
			k := order[i]
			put(out, i, (table[c]-zero[k])*scale[k])
		}
		return
	}
	values := buffer.Resize(&s.table, g.groups*n)
	for k := range g.groups {
		for c, q := range table[:n] {
			values[k*n+int64(c)] = (q - zero[k]) * scale[k]
		}
	}
	for i, c := range codes {
		put(out, i, values[int64(order[i])*n+int64(c)])
	}
}

// runs sets the size of groups of adjacent columns: from the settings, which must fit, else the columns divided evenly.
// A size of -1 means a whole row.
func (g *grouped) runs(set int64, ok bool) error {
	size := set
	switch {
	case ok && set == -1:
		size = g.in
	case ok && set > 0:
	case ok:
		return fmt.Errorf("quantization_config: group_size is %d, want -1 or at least 1", set)
	case g.in%g.groups != 0:
		return fmt.Errorf("%d columns in %d groups: quantization_config has no group_size", g.in, g.groups)
	default:
		size = g.in / g.groups
	}
	if n := ceil(g.in, size); n != g.groups {
		return fmt.Errorf("scales of %d groups, want %d for %d columns in groups of %d (group_size)", g.groups,
			n, g.in, size)
	}
	g.layout = func() (layout, error) { return layout{size: size}, nil }
	return nil
}

// ordered sets the group of each column, in any order.
func (g *grouped) ordered(t *Tensor) error {
	if len(t.Shape) != 1 || t.Shape[0] != g.in {
		return fmt.Errorf("groups %q of shape %v, want one for each of %d columns", t.Name, t.Shape, g.in)
	}
	size := ceil(g.in, g.groups)
	g.layout = sync.OnceValues(func() (layout, error) {
		runs := true                 // as in most files
		order := make([]int32, g.in) // bounded: the file has as many
		var buf []byte
		raw, err := t.bytes(&buf, 0, g.in*t.size())
		if err != nil {
			return layout{}, err
		}
		for i := range order {
			k := int64(int32(binary.LittleEndian.Uint32(raw[4*i:])))
			if k < 0 || k >= g.groups {
				return layout{}, fault.Errorf(fault.Broken, "%s: tensor %q: column %d is of group %d, want 0 to %d",
					t.File, t.Name, i, k, g.groups-1)
			}
			order[i] = int32(k)
			runs = runs && k == int64(i)/size
		}
		if runs && ceil(g.in, size) == g.groups {
			return layout{size: size}, nil
		}
		return layout{order: order}, nil
	})
	return nil
}

// matrix returns an error unless t is a matrix with the given rows and columns; negative numbers are not checked.
func matrix(t *Tensor, rows, columns int64) error {
	if len(t.Shape) != 2 || slices.Contains(t.Shape, 0) || rows >= 0 && t.Shape[0] != rows ||
		columns >= 0 && t.Shape[1] != columns {
		side := func(n int64) string {
			if n < 0 {
				return "any"
			}
			return fmt.Sprint(n)
		}
		return fmt.Errorf("tensor %q of shape %v, want [%s %s]", t.Name, t.Shape, side(rows), side(columns))
	}
	return nil
}

// columns fills dst, [b-a, rows], with columns [a, b) of t, a matrix of 32-bit words.
func (t *Tensor) columns(s *scratch, dst []uint32, a, b int64) error {
	height, width := t.Shape[0], t.Shape[1]
	for r := int64(0); r < height; {
		// some rows at a time, so that each column uses a whole cache line
		var rows [16][]byte
		n := min(int64(len(rows)), height-r)
		if t.Mapped != nil { // few bytes of each row: the mapping is cheaper than calls
			for i := range rows[:n] {
				at := (r + int64(i)) * width
				rows[i] = t.Mapped[(at+a)*4 : (at+b)*4]
			}
		} else {
			n = 1
			raw, err := t.bytes(&s.more, (r*width+a)*4, (r*width+b)*4)
			if err != nil {
				return err
			}
			rows[0] = raw
		}
		for i := range b - a {
			to := dst[i*height+r:][:n]
			for j := range to {
				to[j] = binary.LittleEndian.Uint32(rows[j&15][4*i:])
			}
		}
		r += n
	}
	return nil
}

// words fills dst with the words of t from element at on.
func (t *Tensor) words(s *scratch, dst []uint32, at int64) error {
	raw, err := t.bytes(&s.more, at*4, (at+int64(len(dst)))*4)
	if err != nil {
		return err
	}
	for i := range dst {
		dst[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	return nil
}

// unpack fills dst with codes of the given bits, the first in the lowest bits of the first word. With stream, codes may
// cross words; without, the remaining bits of a word are unused.
func unpack(dst []byte, words []uint32, bits int, stream bool) {
	switch {
	case bits == 4:
		for len(dst) >= 8 {
			// each step doubles the distance of the halves
			w := uint64(words[0])
			w = (w | w<<16) & 0x0000FFFF0000FFFF
			w = (w | w<<8) & 0x00FF00FF00FF00FF
			w = (w | w<<4) & 0x0F0F0F0F0F0F0F0F
			binary.LittleEndian.PutUint64(dst, w)
			dst, words = dst[8:], words[1:]
		}
		for i := range dst {
			dst[i] = byte(words[0]>>(4*i)) & 15
		}
	case bits == 8:
		for len(dst) >= 4 {
			binary.LittleEndian.PutUint32(dst, words[0])
			dst, words = dst[4:], words[1:]
		}
		for i := range dst {
			dst[i] = byte(words[0] >> (8 * i))
		}
	case 32%bits != 0 && stream:
		mask := byte(1<<bits - 1)
		held, left := uint64(0), 0
		for i := range dst {
			if left < bits {
				held |= uint64(words[0]) << left
				words, left = words[1:], left+32
			}
			dst[i] = byte(held) & mask
			held >>= bits
			left -= bits
		}
	default:
		mask, per := uint32(1<<bits-1), 32/bits
		for len(dst) > 0 {
			w := words[0]
			n := min(per, len(dst))
			for i := range n {
				dst[i] = byte(w & mask)
				w >>= bits
			}
			dst, words = dst[n:], words[1:]
		}
	}
}
