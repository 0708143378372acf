package precision

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"ggforge/fault"
	"ggforge/rows"
)

// grouped is a matrix [out, in] of whole numbers below 256, in groups of columns that
// have a scale and a zero point in each row:
//
//	W[o, i] = (code[o, i] - zero[o, g]) * scale[o, g]   g = group of i
//
// The difference is exact in float32, so that one rounding is left, as in the
// reference.
type grouped struct {
	out, in int64
	groups  int64
	bits    int64 // of a code
	size    int64 // columns of a group, where groups are runs of columns
	// order returns the group of each column, where they are in any order; nil where
	// they are runs.
	order func() ([]int32, error)
	// codes fills dst, [b-a, in], with the codes of rows [a, b).
	codes func(s *scratch, dst []byte, a, b int64) error
	// meta fills scale and zero, both [b-a, groups], for rows [a, b).
	meta func(s *scratch, scale, zero []float32, a, b int64) error
}

// costGrouped is about how many picoseconds an element takes.
const costGrouped = 1000

func (g *grouped) source() rows.Source {
	return &decoded{ne: []int64{g.in, g.out}, cost: costGrouped, rows: g.rows}
}

func (g *grouped) rows(s *scratch, out []byte, a, b int64) error {
	codes := sized(&s.raw, (b-a)*g.in)
	if err := g.codes(s, codes, a, b); err != nil {
		return err
	}
	scale, zero := sized(&s.f32, (b-a)*g.groups), sized(&s.zero, (b-a)*g.groups)
	if err := g.meta(s, scale, zero, a, b); err != nil {
		return err
	}
	var order []int32
	if g.order != nil {
		var err error
		if order, err = g.order(); err != nil {
			return err
		}
	}
	table := wholeNumbers()
	n := int64(1) << g.bits
	byOrder := order != nil && g.groups*n <= g.in
	values := sized(&s.table, max(256, g.in)) // of the codes: in a group, or in all
	for range b - a {
		if byOrder {
			for k := range g.groups {
				for c, q := range table[:n] {
					values[k*n+int64(c)] = (q - zero[k]) * scale[k]
				}
			}
			for i, c := range codes[:g.in] {
				put(out, i, values[int64(order[i])*n+int64(c)])
			}
		} else if order != nil {
			for i, c := range codes[:g.in] {
				k := order[i]
				put(out, i, (table[c]-zero[k])*scale[k])
			}
		} else {
			for k := range g.groups {
				from, to := k*g.size, min((k+1)*g.size, g.in)
				if 2*n <= to-from {
					for c, q := range table[:n] {
						values[c] = (q - zero[k]) * scale[k]
					}
					look(out[4*from:4*to], codes[from:to], (*[256]float32)(values[:256]))
				} else {
					offset(out[4*from:4*to], codes[from:to], table, scale[k], zero[k])
				}
			}
		}
		codes, out, scale, zero = codes[g.in:], out[4*g.in:], scale[g.groups:], zero[g.groups:]
	}
	return nil
}

// look stores the values of the codes, as little-endian float32; len(out) =
// 4*len(codes).
func look(out, codes []byte, values *[256]float32) {
	for len(codes) >= 4 && len(out) >= 16 {
		put(out, 0, values[codes[0]])
		put(out, 1, values[codes[1]])
		put(out, 2, values[codes[2]])
		put(out, 3, values[codes[3]])
		codes, out = codes[4:], out[16:]
	}
	for i, c := range codes {
		put(out, i, values[c])
	}
}

// wholeNumbers are the values of unsigned bytes.
var wholeNumbers = sync.OnceValue(func() *[256]float32 {
	var table [256]float32
	for c := range table {
		table[c] = float32(c)
	}
	return &table
})

// runs sets the size of groups that are runs of columns: that of the settings, which
// must fit, or what comes out when the columns are divided evenly. A size of -1 is
// that of a row.
func (g *grouped) runs(set int64, ok bool) error {
	switch {
	case ok && set == -1:
		g.size = g.in
	case ok && set > 0:
		g.size = set
	case ok:
		return fmt.Errorf("quantization_config: group_size is %d, want -1 or at least 1", set)
	case g.in%g.groups != 0:
		return fmt.Errorf("%d columns in %d groups: quantization_config has no group_size", g.in, g.groups)
	default:
		g.size = g.in / g.groups
	}
	if n := ceil(g.in, g.size); n != g.groups {
		return fmt.Errorf("scales of %d groups, want %d for %d columns in groups of %d (group_size)", g.groups, n, g.in, g.size)
	}
	return nil
}

// ordered sets groups in any order by the group of each column.
func (g *grouped) ordered(t *Tensor) error {
	if len(t.Shape) != 1 || t.Shape[0] != g.in {
		return fmt.Errorf("groups %q of shape %v, want one for each of %d columns", t.Name, t.Shape, g.in)
	}
	g.order = sync.OnceValues(func() ([]int32, error) {
		order := make([]int32, g.in) // there are as many in the file
		var buf []byte
		raw, err := t.bytes(&buf, 0, g.in*t.size())
		if err != nil {
			return nil, err
		}
		for i := range order {
			k := int64(int32(binary.LittleEndian.Uint32(raw[4*i:])))
			if k < 0 || k >= g.groups {
				return nil, fault.Errorf(fault.Broken, "%s: tensor %q: column %d is of group %d, want 0 to %d", t.File, t.Name, i, k, g.groups-1)
			}
			order[i] = int32(k)
		}
		return order, nil
	})
	return nil
}

// matrix reports an error unless t is a matrix, of rows and columns where those are
// not negative.
func matrix(t *Tensor, rows, columns int64) error {
	if len(t.Shape) != 2 || slices.Contains(t.Shape, 0) || rows >= 0 && t.Shape[0] != rows || columns >= 0 && t.Shape[1] != columns {
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

// columns fills dst with columns [a, b) of t, a matrix of 32-bit words, each of them
// one after the other: dst is [b-a, rows].
func (t *Tensor) columns(s *scratch, dst []uint32, a, b int64) error {
	height, width := t.Shape[0], t.Shape[1]
	if t.Mapped != nil { // few bytes of each row: the mapping costs less than calls
		for r := range height {
			raw := t.Mapped[(r*width+a)*4 : (r*width+b)*4]
			for at := r; len(raw) >= 4; at += height {
				dst[at] = binary.LittleEndian.Uint32(raw)
				raw = raw[4:]
			}
		}
		return nil
	}
	for r := range height {
		raw, err := t.bytes(&s.more, (r*width+a)*4, (r*width+b)*4)
		if err != nil {
			return err
		}
		for i := range b - a {
			dst[i*height+r] = binary.LittleEndian.Uint32(raw[4*i:])
		}
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

// unpack fills dst with codes of bits each, the first in the lowest bits of the first
// word. With stream a code may lie in two words; without, what is left of the bits
// of a word is unused.
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
