package gguf

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ValueType is the id of a metadata value's type, as stored in the file.
type ValueType uint32

// The metadata value types of the format (GGUF specification, gguf_metadata_value_type).
const (
	Uint8Type   ValueType = 0
	Int8Type    ValueType = 1
	Uint16Type  ValueType = 2
	Int16Type   ValueType = 3
	Uint32Type  ValueType = 4
	Int32Type   ValueType = 5
	Float32Type ValueType = 6
	BoolType    ValueType = 7
	StringType  ValueType = 8
	ArrayType   ValueType = 9
	Uint64Type  ValueType = 10
	Int64Type   ValueType = 11
	Float64Type ValueType = 12
)

// valueTypes names each value type and gives its width in bytes; 0 for the
// types of variable size.
var valueTypes = [...]struct {
	name  string
	width int
}{
	Uint8Type: {"u8", 1}, Int8Type: {"i8", 1}, Uint16Type: {"u16", 2}, Int16Type: {"i16", 2},
	Uint32Type: {"u32", 4}, Int32Type: {"i32", 4}, Float32Type: {"f32", 4}, BoolType: {"bool", 1},
	StringType: {"str", 0}, ArrayType: {"arr", 0}, Uint64Type: {"u64", 8}, Int64Type: {"i64", 8},
	Float64Type: {"f64", 8},
}

// Known reports whether t is a value type of the format.
func (t ValueType) Known() bool { return uint64(t) < uint64(len(valueTypes)) }

// String returns the short name of t ("u32", "str").
func (t ValueType) String() string {
	if t.Known() {
		return valueTypes[t].name
	}
	return fmt.Sprintf("value type %d", uint32(t))
}

// width returns the size of one value in bytes, 0 for strings, arrays and
// unknown types.
func (t ValueType) width() int {
	if t.Known() {
		return valueTypes[t].width
	}
	return 0
}

// Value is one typed metadata value. Values are immutable and comparable: two
// are equal with == exactly when their types and bytes are.
//
// raw holds the payload as GGUF version 3 writes it in little-endian order. A
// string's payload here is its text alone; inside an array each string has its
// 64-bit length in front, and each nested array its element type and count.
type Value struct {
	typ  ValueType
	elem ValueType // element type of an array
	n    int       // number of elements of an array
	raw  string
}

// Constructors, one per type.

func Uint8(v uint8) Value   { return Value{typ: Uint8Type, raw: string([]byte{v})} }
func Int8(v int8) Value     { return Value{typ: Int8Type, raw: string([]byte{byte(v)})} }
func Uint16(v uint16) Value { return Value{typ: Uint16Type, raw: le(2, uint64(v))} }
func Int16(v int16) Value   { return Value{typ: Int16Type, raw: le(2, uint64(v))} }
func Uint32(v uint32) Value { return Value{typ: Uint32Type, raw: le(4, uint64(v))} }
func Int32(v int32) Value   { return Value{typ: Int32Type, raw: le(4, uint64(v))} }
func Uint64(v uint64) Value { return Value{typ: Uint64Type, raw: le(8, v)} }
func Int64(v int64) Value   { return Value{typ: Int64Type, raw: le(8, uint64(v))} }
func Float32(v float32) Value {
	return Value{typ: Float32Type, raw: le(4, uint64(math.Float32bits(v)))}
}
func Float64(v float64) Value { return Value{typ: Float64Type, raw: le(8, math.Float64bits(v))} }
func String(s string) Value   { return Value{typ: StringType, raw: s} }
func Bool(v bool) Value {
	if v {
		return Value{typ: BoolType, raw: "\x01"}
	}
	return Value{typ: BoolType, raw: "\x00"}
}

func le(width int, v uint64) string {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	return string(b[:width])
}

// Array returns an array of elements of type elem. It panics if an element has
// another type.
func Array(elem ValueType, elems ...Value) Value {
	var raw []byte
	for _, e := range elems {
		if e.typ != elem {
			panic(fmt.Sprintf("gguf: array of %v holds %v", elem, e.typ))
		}
		raw = e.appendElem(raw)
	}
	return Value{typ: ArrayType, elem: elem, n: len(elems), raw: string(raw)}
}

// elemBytes returns the number of bytes that appendElem appends.
func (v Value) elemBytes() int64 {
	switch v.typ {
	case StringType:
		return 8 + int64(len(v.raw))
	case ArrayType:
		return 4 + 8 + int64(len(v.raw))
	}
	return int64(len(v.raw))
}

// appendElem appends v in the form that it has inside an array.
func (v Value) appendElem(b []byte) []byte { return v.appendTo(b, binary.LittleEndian) }

// appendTo is appendElem in the given order.
func (v Value) appendTo(b []byte, order binary.AppendByteOrder) []byte {
	switch v.typ {
	case StringType:
		return appendString(b, v.raw, order)
	case ArrayType:
		b = order.AppendUint32(b, uint32(v.elem))
		b = order.AppendUint64(b, uint64(v.n))
		if order == binary.AppendByteOrder(binary.BigEndian) {
			for e := range v.Elems() {
				b = e.appendTo(b, order)
			}
			return b
		}
	}
	start := len(b)
	b = append(b, v.raw...)
	if order == binary.AppendByteOrder(binary.BigEndian) {
		slices.Reverse(b[start:])
	}
	return b
}

// Strings returns an array of strings.
func Strings(v []string) Value {
	size := 8 * len(v)
	for _, s := range v {
		size += len(s)
	}
	var b strings.Builder // its string becomes the payload without a copy
	b.Grow(size)
	var length [8]byte
	for _, s := range v {
		binary.LittleEndian.PutUint64(length[:], uint64(len(s)))
		b.Write(length[:])
		b.WriteString(s)
	}
	return Value{typ: ArrayType, elem: StringType, n: len(v), raw: b.String()}
}

// Bools returns an array of flags.
func Bools(v []bool) Value {
	return arrayOf(BoolType, v, func(b bool) uint64 {
		if b {
			return 1
		}
		return 0
	})
}

// Int32s returns an array of 32-bit integers.
func Int32s(v []int32) Value {
	return arrayOf(Int32Type, v, func(i int32) uint64 { return uint64(i) })
}

// Uint64s returns an array of 64-bit integers without a sign.
func Uint64s(v []uint64) Value {
	return arrayOf(Uint64Type, v, func(i uint64) uint64 { return i })
}

// Float32s returns an array of 32-bit floats.
func Float32s(v []float32) Value {
	return arrayOf(Float32Type, v, func(f float32) uint64 { return uint64(math.Float32bits(f)) })
}

// Uint8s returns an array of bytes.
func Uint8s(v []byte) Value {
	return Value{typ: ArrayType, elem: Uint8Type, n: len(v), raw: string(v)}
}

// arrayOf returns an array of numbers, of which f gives the bits.
func arrayOf[T any](elem ValueType, v []T, f func(T) uint64) Value {
	w := elem.width()
	var b strings.Builder
	b.Grow(w * len(v))
	var buf [8]byte
	for _, e := range v {
		binary.LittleEndian.PutUint64(buf[:], f(e))
		b.Write(buf[:w])
	}
	return Value{typ: ArrayType, elem: elem, n: len(v), raw: b.String()}
}

// Type returns the value's type.
func (v Value) Type() ValueType { return v.typ }

// ElemType returns the type of an array's elements; it is meaningless for
// other values.
func (v Value) ElemType() ValueType { return v.elem }

// Len returns the number of elements of an array and 0 for other values.
func (v Value) Len() int { return v.n }

// bits returns the payload of a number as an integer without a sign.
func (v Value) bits() uint64 {
	var b [8]byte
	copy(b[:], v.raw)
	return binary.LittleEndian.Uint64(b[:])
}

// Int returns the value of an integer type as int64, ok false for other types
// and for u64 values beyond the range of int64.
func (v Value) Int() (i int64, ok bool) {
	u := v.bits()
	switch v.typ {
	case Int8Type:
		return int64(int8(u)), true
	case Int16Type:
		return int64(int16(u)), true
	case Int32Type:
		return int64(int32(u)), true
	case Int64Type:
		return int64(u), true
	case Uint8Type, Uint16Type, Uint32Type, Uint64Type:
		return int64(u), int64(u) >= 0
	}
	return 0, false
}

// Float returns the value of a float type as float64, ok false for other types.
func (v Value) Float() (f float64, ok bool) {
	switch v.typ {
	case Float32Type:
		return float64(math.Float32frombits(uint32(v.bits()))), true
	case Float64Type:
		return math.Float64frombits(v.bits()), true
	}
	return 0, false
}

// Bool returns the value of a bool, ok false for other types.
func (v Value) Bool() (b, ok bool) { return v.typ == BoolType && v.raw != "\x00", v.typ == BoolType }

// Str returns the text of a string, ok false for other types.
func (v Value) Str() (s string, ok bool) {
	if v.typ != StringType {
		return "", false
	}
	return v.raw, true
}

// Elems yields the elements of an array in order, and nothing for other values.
func (v Value) Elems() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.typ != ArrayType {
			return
		}
		rest := v.raw
		for range v.n {
			var e Value
			e, rest = cutElem(v.elem, rest)
			if !yield(e) {
				return
			}
		}
	}
}

// Filter returns the array with the elements for whose index keep is true.
func (v Value) Filter(keep func(i int) bool) Value {
	out := Value{typ: v.typ, elem: v.elem}
	var raw []byte
	i := 0
	for e := range v.Elems() {
		if keep(i) {
			raw = e.appendElem(raw)
			out.n++
		}
		i++
	}
	out.raw = string(raw)
	return out
}

// cutElem splits the first array element of type t off raw, which is well formed.
func cutElem(t ValueType, raw string) (e Value, rest string) {
	u64 := func(s string) uint64 { return binary.LittleEndian.Uint64([]byte(s[:8])) }
	switch t {
	case StringType:
		n := u64(raw)
		return Value{typ: t, raw: raw[8 : 8+n]}, raw[8+n:]
	case ArrayType:
		elem := ValueType(binary.LittleEndian.Uint32([]byte(raw[:4])))
		n := int(u64(raw[4:]))
		body := raw[12:]
		rest = body
		if w := elem.width(); w > 0 {
			rest = body[n*w:]
		} else {
			for range n {
				_, rest = cutElem(elem, rest)
			}
		}
		return Value{typ: t, elem: elem, n: n, raw: body[:len(body)-len(rest)]}, rest
	}
	w := t.width()
	return Value{typ: t, raw: raw[:w]}, raw[w:]
}

// String returns the value as text: numbers in decimal, floats with the fewest
// digits that read back the same, strings quoted, arrays in brackets.
func (v Value) String() string {
	switch v.typ {
	case StringType:
		return strconv.Quote(v.raw)
	case BoolType:
		return strconv.FormatBool(v.raw != "\x00")
	case Float32Type:
		f, _ := v.Float()
		return strconv.FormatFloat(f, 'g', -1, 32)
	case Float64Type:
		f, _ := v.Float()
		return strconv.FormatFloat(f, 'g', -1, 64)
	case Uint64Type:
		return strconv.FormatUint(v.bits(), 10)
	case ArrayType:
		b := []byte{'['}
		for e := range v.Elems() {
			if len(b) > 1 {
				b = append(b, ", "...)
			}
			b = append(b, e.String()...)
		}
		return string(append(b, ']'))
	}
	i, _ := v.Int()
	return strconv.FormatInt(i, 10)
}

// KV is one metadata pair.
type KV struct {
	Key   string
	Value Value
}

// Metadata is the ordered list of a file's metadata pairs. Keys are unique.
type Metadata []KV

// Get returns the value of key.
func (m Metadata) Get(key string) (Value, bool) {
	for _, kv := range m {
		if kv.Key == key {
			return kv.Value, true
		}
	}
	return Value{}, false
}

// Architecture returns general.architecture, "" if it is not there.
func (m Metadata) Architecture() string {
	v, _ := m.Get(KeyArchitecture)
	s, _ := v.Str()
	return s
}

// Set gives key a value. A key that is already there keeps its place, a new one
// is appended: the rule of the reference's converter.
func (m *Metadata) Set(key string, v Value) {
	for i, kv := range *m {
		if kv.Key == key {
			(*m)[i].Value = v
			return
		}
	}
	*m = append(*m, KV{key, v})
}

// Move gives key a value and puts it last, also when it was there before: the
// rule of ggml's gguf_set functions, which the reference's quantizer uses.
func (m *Metadata) Move(key string, v Value) {
	m.Delete(key)
	*m = append(*m, KV{key, v})
}

// Delete removes key, if there.
func (m *Metadata) Delete(key string) {
	*m = slices.DeleteFunc(*m, func(kv KV) bool { return kv.Key == key })
}
