package gguf

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
)

// Difference lists the differences of two models.
type Difference struct {
	Lines []string // one for each difference, in the order of the first model
	// Numbers are the names of tensors with the same dimensions in both models, but different types or data.
	Numbers []string
}

// Diff lists the differences of two models, one line each, in the order of a; none
// if the bytes of their files are equal. An error comes from ctx.
func Diff(ctx context.Context, a, b *Set) ([]string, error) {
	d, err := Differ(ctx, a, b)
	if err != nil {
		return nil, err
	}
	return d.Lines, nil
}

// Differ is Diff with the names of the tensors whose numbers differ.
func Differ(ctx context.Context, a, b *Set) (*Difference, error) {
	same := len(a.Files) == len(b.Files)
	for i := 0; same && i < len(a.Files); i++ {
		var err error
		if same, err = equal(ctx, a.Files[i].data, b.Files[i].data); err != nil {
			return nil, err
		}
	}
	if same {
		return &Difference{}, nil
	}
	var d Difference
	d.value("files", len(a.Files), len(b.Files))
	d.value("version", a.Files[0].Version, b.Files[0].Version)
	d.value("byte order", a.Files[0].endianness(), b.Files[0].endianness())
	d.value("alignment", a.Files[0].Alignment, b.Files[0].Alignment)
	d.metadata(a.Metadata(), b.Metadata())
	if err := d.tensors(ctx, a, b); err != nil {
		return nil, err
	}
	if len(d.Lines) == 0 {
		d.add("only bytes outside metadata and tensors differ: padding, or how the same values are encoded")
	}
	return &d, nil
}

// equal compares two files, and checks ctx from time to time.
func equal(ctx context.Context, a, b []byte) (bool, error) {
	const step = 16 << 20
	if len(a) != len(b) {
		return false, nil
	}
	for off := 0; off < len(a); off += step {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		end := min(off+step, len(a))
		if !bytes.Equal(a[off:end], b[off:end]) {
			return false, nil
		}
	}
	return true, nil
}

func (d *Difference) add(format string, args ...any) {
	d.Lines = append(d.Lines, fmt.Sprintf(format, args...))
}

func (d *Difference) value(what string, a, b any) {
	if a != b {
		d.add("%s: %v, %v", what, a, b)
	}
}

func (d *Difference) metadata(a, b Metadata) {
	var keysA, keysB []string
	for _, kv := range a {
		keysA = append(keysA, kv.Key)
	}
	values := map[string]Value{}
	for _, kv := range b {
		keysB = append(keysB, kv.Key)
		values[kv.Key] = kv.Value
	}
	d.names("key", keysA, keysB)
	for _, kv := range a {
		v, ok := values[kv.Key]
		if !ok || v == kv.Value {
			continue
		}
		if kv.Value.typ == ArrayType && v.typ == ArrayType && kv.Value.elem == v.elem {
			d.add("key %q: %s", kv.Key, arrayDiff(kv.Value, v))
			continue
		}
		d.add("key %q: %v %s, %v %s", kv.Key, kv.Value.typ, kv.Value.Short(), v.typ, v.Short())
	}
}

// arrayDiff describes the difference of two arrays of the same element type.
func arrayDiff(a, b Value) string {
	if a.n != b.n {
		return fmt.Sprintf("%d elements, %d elements", a.n, b.n)
	}
	first, count := "", 0
	x, y := a.raw, b.raw
	for i := range a.n {
		var e, other Value
		e, x = cutElem(a.elem, x)
		other, y = cutElem(b.elem, y)
		if e != other {
			if count == 0 {
				first = fmt.Sprintf("first element %d: %s, %s", i, e.Short(), other.Short())
			}
			count++
		}
	}
	return fmt.Sprintf("%d of %d elements differ, %s", count, a.n, first)
}

// names adds lines about names in one model only, and about the first difference in the order of the others.
func (d *Difference) names(what string, a, b []string) {
	common := func(x, y []string, side string) (both []string) {
		in := map[string]bool{}
		for _, s := range y {
			in[s] = true
		}
		for _, s := range x {
			if in[s] {
				both = append(both, s)
			} else {
				d.add("%s %q: only in the %s file", what, s, side)
			}
		}
		return both
	}
	x, y := common(a, b, "first"), common(b, a, "second")
	for i := range x {
		if x[i] != y[i] {
			d.add("%s order: place %d among those in both is %q, %q", what, i, x[i], y[i])
			return
		}
	}
}

// located is a tensor and the file it is in.
type located struct {
	*Tensor
	shard int
	file  *File
}

func (d *Difference) tensors(ctx context.Context, a, b *Set) error {
	names := func(s *Set) (all []string, by map[string]located) {
		by = map[string]located{}
		for shard, t := range s.Tensors() {
			all = append(all, t.Name)
			by[t.Name] = located{t, shard, s.Files[shard]}
		}
		return all, by
	}
	namesA, inA := names(a)
	namesB, inB := names(b)
	d.names("tensor", namesA, namesB)
	var moved []located
	for _, name := range namesA {
		x := inA[name]
		y, ok := inB[name]
		if !ok {
			continue
		}
		switch {
		case !slices.Equal(x.NE, y.NE):
			d.add("tensor %q: %s, %s", x.Name, Shape(x.NE), Shape(y.NE))
		case x.Type != y.Type:
			d.add("tensor %q: %v, %v", x.Name, x.Type, y.Type)
			d.Numbers = append(d.Numbers, x.Name)
		default:
			before := len(d.Lines)
			if err := d.data(ctx, x.Name, x.file.Data(x.Tensor), y.file.Data(y.Tensor), x.Type,
				x.file.BigEndian != y.file.BigEndian); err != nil {
				return err
			}
			if len(d.Lines) > before {
				d.Numbers = append(d.Numbers, x.Name)
			}
		}
		if len(a.Files) == len(b.Files) && (x.Offset != y.Offset || x.shard != y.shard) {
			moved = append(moved, x)
		}
	}
	if len(moved) > 0 {
		x := moved[0]
		d.add("offsets of %d tensors differ, first of %q: %s, %s", len(moved), x.Name, x.place(a), inB[x.Name].place(b))
	}
	return nil
}

// place returns the offset of the tensor's data, in a split model with the file, for messages.
func (l located) place(s *Set) string {
	if len(s.Files) == 1 {
		return strconv.FormatInt(l.Offset, 10)
	}
	return fmt.Sprintf("%d in file %d", l.Offset, l.shard+1)
}

// diffBlocks is the number of blocks that are compared at a time.
const diffBlocks = 4096

// data compares the data of two tensors of type t, whose byte orders differ if
// swap is set.
func (d *Difference) data(ctx context.Context, name string, a, b []byte, t Type, swap bool) error {
	if !t.Known() && len(a) != len(b) { // the size of known types follows from the dimensions
		d.add("tensor %q: %d, %d bytes of %v", name, len(a), len(b), t)
		return nil
	}
	step := diffBlocks * int(max(1, t.BlockBytes()))
	first, bad := -1, 0
	for off := 0; off < len(a); off += step {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := min(off+step, len(a))
		x, y := a[off:end], b[off:end]
		if swap && t.Known() {
			y = bytes.Clone(y)
			t.SwapBytes(y)
		}
		if bytes.Equal(x, y) {
			continue
		}
		for i := range x {
			if x[i] != y[i] {
				if bad++; first < 0 {
					first = off + i
				}
			}
		}
	}
	switch {
	case bad == 0:
	case !t.Known():
		d.add("tensor %q: %d of %d bytes differ, first at byte %d (%v)", name, bad, len(a), first, t)
	default:
		d.add("tensor %q: %d of %d bytes differ, first in block %d of %v, byte %d", name, bad, len(a),
			int64(first)/t.BlockBytes(), t, int64(first)%t.BlockBytes())
	}
	return nil
}
