package gguf

import (
	"fmt"
	"math"
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

// Kind says how the elements of a type are stored.
type Kind uint8

// The kinds of tensor types.
const (
	KindNone    Kind = iota // not a type
	KindFloat               // plain IEEE or bfloat16 elements
	KindInteger             // plain two's complement elements
	KindQuant               // blocks of quants with shared scales
)

// word is a run of multi-byte numbers inside a block: n numbers of width bytes
// from offset off. All other bytes of a block have no byte order.
type word struct{ off, width, n int }

type typeRow struct {
	name       string
	blockLen   int64 // elements per block
	blockBytes int64
	kind       Kind
	words      []word // what a reader of the other endianness has to swap
}

// typeTable holds one row per type id; the zero row stands for ids that are
// not types.
var typeTable = [...]typeRow{
	TypeF32:     {"F32", 1, 4, KindFloat, []word{{0, 4, 1}}},
	TypeF16:     {"F16", 1, 2, KindFloat, []word{{0, 2, 1}}},
	TypeQ4_0:    {"Q4_0", 32, 18, KindQuant, []word{{0, 2, 1}}},
	TypeQ4_1:    {"Q4_1", 32, 20, KindQuant, []word{{0, 2, 2}}},
	TypeQ5_0:    {"Q5_0", 32, 22, KindQuant, []word{{0, 2, 1}}},
	TypeQ5_1:    {"Q5_1", 32, 24, KindQuant, []word{{0, 2, 2}}},
	TypeQ8_0:    {"Q8_0", 32, 34, KindQuant, []word{{0, 2, 1}}},
	TypeQ8_1:    {"Q8_1", 32, 36, KindQuant, []word{{0, 2, 2}}},
	TypeQ2_K:    {"Q2_K", 256, 84, KindQuant, []word{{80, 2, 2}}},
	TypeQ3_K:    {"Q3_K", 256, 110, KindQuant, []word{{108, 2, 1}}},
	TypeQ4_K:    {"Q4_K", 256, 144, KindQuant, []word{{0, 2, 2}}},
	TypeQ5_K:    {"Q5_K", 256, 176, KindQuant, []word{{0, 2, 2}}},
	TypeQ6_K:    {"Q6_K", 256, 210, KindQuant, []word{{208, 2, 1}}},
	TypeQ8_K:    {"Q8_K", 256, 292, KindQuant, []word{{0, 4, 1}, {260, 2, 16}}},
	TypeIQ2_XXS: {"IQ2_XXS", 256, 66, KindQuant, []word{{0, 2, 33}}},
	TypeIQ2_XS:  {"IQ2_XS", 256, 74, KindQuant, []word{{0, 2, 33}}},
	TypeIQ3_XXS: {"IQ3_XXS", 256, 98, KindQuant, []word{{0, 2, 1}}},
	TypeIQ1_S:   {"IQ1_S", 256, 50, KindQuant, []word{{0, 2, 1}, {34, 2, 8}}},
	TypeIQ4_NL:  {"IQ4_NL", 32, 18, KindQuant, []word{{0, 2, 1}}},
	TypeIQ3_S:   {"IQ3_S", 256, 110, KindQuant, []word{{0, 2, 1}}},
	TypeIQ2_S:   {"IQ2_S", 256, 82, KindQuant, []word{{0, 2, 1}}},
	TypeIQ4_XS:  {"IQ4_XS", 256, 136, KindQuant, []word{{0, 2, 2}}},
	TypeI8:      {"I8", 1, 1, KindInteger, nil},
	TypeI16:     {"I16", 1, 2, KindInteger, []word{{0, 2, 1}}},
	TypeI32:     {"I32", 1, 4, KindInteger, []word{{0, 4, 1}}},
	TypeI64:     {"I64", 1, 8, KindInteger, []word{{0, 8, 1}}},
	TypeF64:     {"F64", 1, 8, KindFloat, []word{{0, 8, 1}}},
	TypeIQ1_M:   {"IQ1_M", 256, 56, KindQuant, nil},
	TypeBF16:    {"BF16", 1, 2, KindFloat, []word{{0, 2, 1}}},
	TypeTQ1_0:   {"TQ1_0", 256, 54, KindQuant, []word{{52, 2, 1}}},
	TypeTQ2_0:   {"TQ2_0", 256, 66, KindQuant, []word{{64, 2, 1}}},
	TypeMXFP4:   {"MXFP4", 32, 17, KindQuant, nil},
	TypeNVFP4:   {"NVFP4", 64, 36, KindQuant, nil},
	TypeQ1_0:    {"Q1_0", 128, 18, KindQuant, []word{{0, 2, 1}}},
	TypeQ2_0:    {"Q2_0", 64, 18, KindQuant, []word{{0, 2, 1}}},
}

func (t Type) row() typeRow {
	if uint64(t) < uint64(len(typeTable)) {
		return typeTable[t]
	}
	return typeRow{}
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
	for id, r := range typeTable {
		if r.kind != KindNone && strings.EqualFold(r.name, name) {
			return Type(id), true
		}
	}
	return 0, false
}

// SwapBytes reverses the byte order of every multi-byte number in data, which
// holds whole blocks of t. It turns blocks of a big-endian file into
// little-endian ones and back.
func (t Type) SwapBytes(data []byte) {
	r := t.row()
	for ; len(data) > 0; data = data[r.blockBytes:] {
		for _, w := range r.words {
			for i := range w.n {
				b := data[w.off+i*w.width:][:w.width]
				for l, h := 0, w.width-1; l < h; l, h = l+1, h-1 {
					b[l], b[h] = b[h], b[l]
				}
			}
		}
	}
}
