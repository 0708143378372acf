package gguf

import (
	"encoding/binary"
	"slices"
	"strings"
)

func (r *reader) value(t ValueType) (Value, error) {
	switch t {
	case StringType:
		s, err := r.str("string")
		return Value{typ: t, raw: s}, err
	case ArrayType:
		head := r.pos
		elem, n, size, err := r.array(1)
		if err != nil {
			return Value{}, err
		}
		var raw strings.Builder // grown to the known size: the array, often most of the file, is copied once
		if r.order == binary.ByteOrder(binary.LittleEndian) && !r.v1 {
			raw.Write(r.data[r.pos-size : r.pos])
		} else {
			raw.Grow(size)
			end := r.pos
			r.pos = head
			r.convert(&raw)
			r.pos = end
		}
		return Value{typ: t, elem: elem, n: n, raw: raw.String()}, nil
	}
	if err := r.scalars(t, 1); err != nil {
		return Value{}, err
	}
	var raw strings.Builder
	r.write(&raw, t, r.data[r.pos-t.width():r.pos])
	return Value{typ: t, raw: raw.String()}, nil
}

// array checks an array after its value type and skips it. size is the number of bytes of its
// elements in the form that Value keeps: that of the file, but in version 1 lengths grow from 32
// to 64 bits.
func (r *reader) array(depth int) (elem ValueType, n, size int, err error) {
	at := r.pos
	if depth > maxNesting {
		return 0, 0, 0, r.errorf(at, "arrays nested more than %d deep", maxNesting)
	}
	t, err := r.u32("element type")
	if err != nil {
		return 0, 0, 0, err
	}
	elem = ValueType(t)
	if !elem.Known() {
		return 0, 0, 0, r.errorf(at, "unknown %v of array elements", elem)
	}
	minBytes := elem.width()
	if minBytes == 0 {
		minBytes = 4 // the shortest length field
	}
	if n, err = r.count("array length", minBytes); err != nil {
		return 0, 0, 0, err
	}
	switch elem {
	case StringType:
		for range n {
			length, err := r.size("string length")
			if err != nil {
				return 0, 0, 0, err
			}
			if _, err := r.take(length, "string"); err != nil {
				return 0, 0, 0, err
			}
			size += 8 + int(length)
		}
	case ArrayType:
		for range n {
			_, _, m, err := r.array(depth + 1)
			if err != nil {
				return 0, 0, 0, err
			}
			size += 12 + m
		}
	default:
		size = n * elem.width()
		err = r.scalars(elem, n)
	}
	return elem, n, size, err
}

// scalars checks n values of the fixed-size type t and skips them.
func (r *reader) scalars(t ValueType, n int) error {
	w := t.width()
	if w == 0 {
		return r.errorf(r.pos, "unknown %v", t)
	}
	at := r.pos
	b, err := r.take(uint64(n)*uint64(w), t.String())
	if err != nil || t != BoolType {
		return err
	}
	for i, v := range b {
		if v > 1 {
			if err := r.bad(r.errorf(at+i, "bool is %d, want 0 or 1", v)); err != nil {
				return err
			}
		}
	}
	return nil
}

// convert appends to raw the elements of an array after its value type, which has
// been checked, in the form that Value keeps.
func (r *reader) convert(raw *strings.Builder) (elem ValueType, n int) {
	u32 := func() uint32 {
		r.pos += 4
		return r.order.Uint32(r.data[r.pos-4:])
	}
	size := func() uint64 {
		if r.v1 {
			return uint64(u32())
		}
		r.pos += 8
		return r.order.Uint64(r.data[r.pos-8:])
	}
	elem, n = ValueType(u32()), int(size())
	var head [12]byte
	for i := 0; i < n; i++ {
		switch elem {
		case StringType:
			length := int(size())
			raw.Write(binary.LittleEndian.AppendUint64(head[:0], uint64(length)))
			raw.Write(r.data[r.pos : r.pos+length])
			r.pos += length
		case ArrayType:
			at := r.pos
			e, m := ValueType(u32()), size()
			raw.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(head[:0], uint32(e)), m))
			r.pos = at
			r.convert(raw)
		default:
			w := n * elem.width()
			r.write(raw, elem, r.data[r.pos:r.pos+w])
			r.pos += w
			return elem, n
		}
	}
	return elem, n
}

// write appends values of the fixed-size type t in little-endian order to raw.
func (r *reader) write(raw *strings.Builder, t ValueType, b []byte) {
	w := t.width()
	if w == 1 || r.order == binary.ByteOrder(binary.LittleEndian) {
		raw.Write(b)
		return
	}
	var one [8]byte
	for ; len(b) > 0; b = b[w:] {
		copy(one[:w], b)
		slices.Reverse(one[:w])
		raw.Write(one[:w])
	}
}
