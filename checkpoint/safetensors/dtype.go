package safetensors

import "fmt"

// DType is the element type of a tensor. The zero value is none.
type DType uint8

// The types of the format, in its own order, by its own names.
const (
	BOOL        DType = iota + 1 // one byte, 0 or 1
	F4                           // OCP MX float, e2m1
	F6_E2M3                      // OCP MX float
	F6_E3M2                      // OCP MX float
	U8                           //
	I8                           //
	F8_E5M2                      //
	F8_E4M3                      // finite: no infinity
	F8_E8M0                      // OCP MX scale: an exponent only
	F8_E4M3FNUZ                  // finite, no negative zero
	F8_E5M2FNUZ                  // finite, no negative zero
	I16                          //
	U16                          //
	F16                          // IEEE binary16
	BF16                         // upper half of an F32
	I32                          //
	U32                          //
	F32                          //
	C64                          // two F32: real, imaginary
	F64                          //
	I64                          //
	U64                          //
)

// dtypes is the table of the types: the name in the header and the size of an
// element.
var dtypes = [...]struct {
	name string
	bits int
}{
	BOOL:        {"BOOL", 8},
	F4:          {"F4", 4},
	F6_E2M3:     {"F6_E2M3", 6},
	F6_E3M2:     {"F6_E3M2", 6},
	U8:          {"U8", 8},
	I8:          {"I8", 8},
	F8_E5M2:     {"F8_E5M2", 8},
	F8_E4M3:     {"F8_E4M3", 8},
	F8_E8M0:     {"F8_E8M0", 8},
	F8_E4M3FNUZ: {"F8_E4M3FNUZ", 8},
	F8_E5M2FNUZ: {"F8_E5M2FNUZ", 8},
	I16:         {"I16", 16},
	U16:         {"U16", 16},
	F16:         {"F16", 16},
	BF16:        {"BF16", 16},
	I32:         {"I32", 32},
	U32:         {"U32", 32},
	F32:         {"F32", 32},
	C64:         {"C64", 64},
	F64:         {"F64", 64},
	I64:         {"I64", 64},
	U64:         {"U64", 64},
}

// String returns the name the format gives the type.
func (d DType) String() string {
	if d == 0 || int(d) >= len(dtypes) {
		return fmt.Sprintf("DType(%d)", uint8(d))
	}
	return dtypes[d].name
}

// Bits returns the size of one element in bits: 4, 6 or a multiple of 8, and 0
// for a value that is not a type of the format.
func (d DType) Bits() int {
	if int(d) >= len(dtypes) {
		return 0
	}
	return dtypes[d].bits
}

func dtypeByName(name string) (DType, bool) {
	for d := range dtypes {
		if d > 0 && dtypes[d].name == name {
			return DType(d), true
		}
	}
	return 0, false
}
