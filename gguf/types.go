package gguf

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Type is the id of a tensor's element format, as stored in a GGUF tensor info.
//
// Source of the table: the ggml_type enumeration and the block structures of
// ggml 0.27.0 (ggml.h, ggml-common.h). Ids that ggml once used and has
// withdrawn (4, 5, 31 to 33, 36 to 38) are not types and are refused.
type Type uint32

// Every tensor type of the format through id 42.
const (
	TypeF32     Type = 0
	TypeF16     Type = 1
	TypeQ4_0    Type = 2
	TypeQ4_1    Type = 3
	TypeQ5_0    Type = 6
	TypeQ5_1    Type = 7
	TypeQ8_0    Type = 8
	TypeQ8_1    Type = 9
	TypeQ2_K    Type = 10
	TypeQ3_K    Type = 11
	TypeQ4_K    Type = 12
	TypeQ5_K    Type = 13
	TypeQ6_K    Type = 14
	TypeQ8_K    Type = 15
	TypeIQ2_XXS Type = 16
	TypeIQ2_XS  Type = 17
	TypeIQ3_XXS Type = 18
	TypeIQ1_S   Type = 19
	TypeIQ4_NL  Type = 20
	TypeIQ3_S   Type = 21
	TypeIQ2_S   Type = 22
	TypeIQ4_XS  Type = 23
	TypeI8      Type = 24
	TypeI16     Type = 25
	TypeI32     Type = 26
	TypeI64     Type = 27
	TypeF64     Type = 28
	TypeIQ1_M   Type = 29
	TypeBF16    Type = 30
	TypeTQ1_0   Type = 34
	TypeTQ2_0   Type = 35
	TypeMXFP4   Type = 39
	TypeNVFP4   Type = 40
	TypeQ1_0    Type = 41
	TypeQ2_0    Type = 42
)

// Kind is how the elements of a type are stored.
type Kind uint8

// The kinds of tensor types.
const (
	KindNone    Kind = iota // not a type
	KindFloat               // plain IEEE or bfloat16 elements
	KindInteger             // plain two's complement elements
	KindQuant               // blocks of quants with shared scales
)

// Number is how one number of a block is stored.
type Number uint8

// The numbers of blocks.
const (
	NumByte Number = iota // codes, quants or bits: nothing to swap
	NumI16                // two's complement
	NumI32
	NumI64
	NumU16 // codes of 16 bits
	NumF16
	NumBF16
	NumF32
	NumF64
	NumE8M0  // a byte, the exponent of a power of two; 255 is NaN
	NumUE4M3 // a byte, an unsigned 8-bit float; every value is finite as it is decoded
	NumIQ1_M // 8 bytes: a float16 in the top 4 bits of 4 numbers of 16 bits, which are not swapped
)

// numberBytes is the size of a number.
var numberBytes = [...]int{NumByte: 1, NumI16: 2, NumI32: 4, NumI64: 8, NumU16: 2, NumF16: 2, NumBF16: 2, NumF32: 4,
	NumF64: 8, NumE8M0: 1, NumUE4M3: 1, NumIQ1_M: 8}

// Size returns the number's size in bytes.
func (n Number) Size() int { return numberBytes[n] }

// Field is a run of equal numbers in a block. The fields of a type fill its block
// without gaps. Their names are those of ggml-common.h where it has one for them,
// "element" for plain types.
type Field struct {
	Name   string
	Number Number
	N      int // numbers
	Off    int // from the start of the block, bytes
}

// Size returns the length of f in bytes.
func (f *Field) Size() int { return f.N * f.Number.Size() }

// typeRow describes the storage of a type. Package quants has the conversion, in a row of the same type.
type typeRow struct {
	name       string
	blockLen   int64 // elements per block
	kind       Kind
	fields     []Field
	blockBytes int64 // the sum of the fields
}

func plain(name string, kind Kind, n Number) typeRow {
	r := block(name, 1, Field{"element", n, 1, 0})
	r.kind = kind
	return r
}

// block makes a row of quants, and sets the offsets of its fields.
func block(name string, blockLen int64, fields ...Field) typeRow {
	r := typeRow{name: name, blockLen: blockLen, kind: KindQuant, fields: fields}
	for i := range fields {
		fields[i].Off = int(r.blockBytes)
		r.blockBytes += int64(fields[i].Size())
	}
	return r
}

func numbers(name string, n Number, count int) Field { return Field{name, n, count, 0} }
func f16(name string) Field                          { return numbers(name, NumF16, 1) }
func run(name string, count int) Field               { return numbers(name, NumByte, count) }

// typeTable holds one row per type id; ids that are not types have the zero
// row.
var typeTable = [...]typeRow{
	TypeF32:     plain("F32", KindFloat, NumF32),
	TypeF16:     plain("F16", KindFloat, NumF16),
	TypeQ4_0:    block("Q4_0", 32, f16("d"), run("qs", 16)),
	TypeQ4_1:    block("Q4_1", 32, f16("d"), f16("m"), run("qs", 16)),
	TypeQ5_0:    block("Q5_0", 32, f16("d"), run("qh", 4), run("qs", 16)),
	TypeQ5_1:    block("Q5_1", 32, f16("d"), f16("m"), run("qh", 4), run("qs", 16)),
	TypeQ8_0:    block("Q8_0", 32, f16("d"), run("qs", 32)),
	TypeQ8_1:    block("Q8_1", 32, f16("d"), f16("s"), run("qs", 32)),
	TypeQ2_K:    block("Q2_K", 256, run("scales", 16), run("qs", 64), f16("d"), f16("dmin")),
	TypeQ3_K:    block("Q3_K", 256, run("hmask", 32), run("qs", 64), run("scales", 12), f16("d")),
	TypeQ4_K:    block("Q4_K", 256, f16("d"), f16("dmin"), run("scales", 12), run("qs", 128)),
	TypeQ5_K:    block("Q5_K", 256, f16("d"), f16("dmin"), run("scales", 12), run("qh", 32), run("qs", 128)),
	TypeQ6_K:    block("Q6_K", 256, run("ql", 128), run("qh", 64), run("scales", 16), f16("d")),
	TypeQ8_K:    block("Q8_K", 256, numbers("d", NumF32, 1), run("qs", 256), numbers("bsums", NumI16, 16)),
	TypeIQ2_XXS: block("IQ2_XXS", 256, f16("d"), numbers("qs", NumU16, 32)),
	TypeIQ2_XS:  block("IQ2_XS", 256, f16("d"), numbers("qs", NumU16, 32), run("scales", 8)),
	TypeIQ3_XXS: block("IQ3_XXS", 256, f16("d"), run("qs", 64), run("scales_and_signs", 32)),
	TypeIQ1_S:   block("IQ1_S", 256, f16("d"), run("qs", 32), numbers("qh", NumU16, 8)),
	TypeIQ4_NL:  block("IQ4_NL", 32, f16("d"), run("qs", 16)),
	TypeIQ3_S:   block("IQ3_S", 256, f16("d"), run("qs", 64), run("qh", 8), run("signs", 32), run("scales", 4)),
	TypeIQ2_S:   block("IQ2_S", 256, f16("d"), run("qs", 32), run("signs", 32), run("qh", 8), run("scales", 8)),
	TypeIQ4_XS:  block("IQ4_XS", 256, f16("d"), numbers("scales_h", NumU16, 1), run("scales_l", 4), run("qs", 128)),
	TypeI8:      plain("I8", KindInteger, NumByte),
	TypeI16:     plain("I16", KindInteger, NumI16),
	TypeI32:     plain("I32", KindInteger, NumI32),
	TypeI64:     plain("I64", KindInteger, NumI64),
	TypeF64:     plain("F64", KindFloat, NumF64),
	TypeIQ1_M:   block("IQ1_M", 256, run("qs", 32), run("qh", 16), numbers("d", NumIQ1_M, 1)),
	TypeBF16:    plain("BF16", KindFloat, NumBF16),
	TypeTQ1_0:   block("TQ1_0", 256, run("qs", 48), run("qh", 4), f16("d")),
	TypeTQ2_0:   block("TQ2_0", 256, run("qs", 64), f16("d")),
	TypeMXFP4:   block("MXFP4", 32, numbers("e", NumE8M0, 1), run("qs", 16)),
	TypeNVFP4:   block("NVFP4", 64, numbers("d", NumUE4M3, 4), run("qs", 32)),
	TypeQ1_0:    block("Q1_0", 128, f16("d"), run("qs", 16)),
	TypeQ2_0:    block("Q2_0", 64, f16("d"), run("qs", 16)),
}

var noType typeRow

func (t Type) row() *typeRow {
	if uint64(t) < uint64(len(typeTable)) {
		return &typeTable[t]
	}
	return &noType
}

// Known reports whether t is a type of the format.
func (t Type) Known() bool { return t.row().kind != KindNone }

// Kind returns how elements of t are stored, KindNone for an unknown id.
func (t Type) Kind() Kind { return t.row().kind }

// String returns the type's name, upper case ("Q4_K"), or "type 99" for an
// unknown id.
func (t Type) String() string {
	if r := t.row(); r.kind != KindNone {
		return r.name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// BlockLen returns the number of elements in one block (1 for plain types, 0
// for an unknown id).
func (t Type) BlockLen() int64 { return t.row().blockLen }

// BlockBytes returns the size of one block in bytes, 0 for an unknown id.
func (t Type) BlockBytes() int64 { return t.row().blockBytes }

// Fields returns the layout of a block in the order of its bytes, nil for an
// unknown id. It is not to be changed.
func (t Type) Fields() []Field { return t.row().fields }

// RowBytes returns the size in bytes of a row of n elements; n must be a
// multiple of BlockLen.
func (t Type) RowBytes(n int64) int64 {
	r := t.row()
	if r.kind == KindNone || n < 0 || n%r.blockLen != 0 {
		panic(fmt.Sprintf("gguf: RowBytes(%d) of %v", n, t))
	}
	return n / r.blockLen * r.blockBytes
}

// BPW returns the bits per weight of t.
func (t Type) BPW() float64 {
	r := t.row()
	if r.kind == KindNone {
		return math.NaN()
	}
	return 8 * float64(r.blockBytes) / float64(r.blockLen)
}

// ParseType returns the type of that name, in any case.
func ParseType(name string) (Type, bool) {
	for id := range typeTable {
		if r := &typeTable[id]; r.kind != KindNone && strings.EqualFold(r.name, name) {
			return Type(id), true
		}
	}
	return 0, false
}

// TypeNames returns the names that ParseType accepts.
func TypeNames() []string {
	var names []string
	for id := range typeTable {
		if r := &typeTable[id]; r.kind != KindNone {
			names = append(names, r.name)
		}
	}
	return names
}

// SwapBytes reverses the byte order of every multi-byte number in data, which
// holds whole blocks of t. It turns blocks of a big-endian file into
// little-endian ones and back.
func (t Type) SwapBytes(data []byte) {
	r := t.row()
	for ; len(data) > 0; data = data[r.blockBytes:] {
		for i := range r.fields {
			f := &r.fields[i]
			width := f.Number.Size()
			if width == 1 || f.Number == NumIQ1_M {
				continue
			}
			for b := data[f.Off:][:f.Size()]; len(b) > 0; b = b[width:] {
				slices.Reverse(b[:width])
			}
		}
	}
}
