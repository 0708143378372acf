package quants

import (
	"encoding/binary"
	"fmt"
	"math"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/half"
	"ggforge/quants/internal/scalar"
)

// FormatError is the error of a stored number of a tensor's data that is not usable. It is an
// ErrBroken.
type FormatError struct {
	Type  gguf.Type
	Block int    // index of the block, from the start of the data
	Off   int64  // byte offset of the field, from the start of the data
	Field string // "d", "dmin", "element" ...
	Value string // the stored value: "NaN", "+Inf", "-Inf" or a byte
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%v block %d (byte offset %d): %s is %s, want a finite number", e.Type, e.Block, e.Off,
		e.Field, e.Value)
}

// Is makes errors.Is(err, ErrBroken) true.
func (e *FormatError) Is(target error) bool { return target == ErrBroken }

// Validate checks the numbers of src that must be finite: the scales of every
// block, every element of F32, F16 and BF16. All blocks of NVFP4 are valid. src holds whole blocks, else it
// panics. The error is a *FormatError for the first offending number (block by
// block, fields in their order in the block), or is an ErrUnsupported.
func (c *Codec) Validate(src []byte) error {
	if c.decode == nil {
		return fault.Errorf(ErrUnsupported, "validate %v: no codec for this type", c.typ)
	}
	c.blocks(src)
	size := int(c.typ.BlockBytes())
	// The first offender of each field, in the data up to the end of the block of the first one found so far: the one
	// at the end is the first of all, and within a block the first field's.
	var first *FormatError
	end := len(src)
	fields := c.typ.Fields()
	for i := range fields {
		f := &fields[i]
		off := firstInvalid(f, src[:end], size)
		if off < 0 || first != nil && off/size == first.Block {
			continue
		}
		start := off - f.Off
		first = &FormatError{c.typ, start / size, int64(off), f.Name, value(f, src[start:start+size])}
		end = start + size
	}
	if first != nil {
		return first
	}
	return nil
}

// firstInvalid returns the offset of the first number f that is not finite in
// blocks of the given size, -1 if there is none. Fields of numbers that cannot be
// infinite or NaN have none; the others have one number per block.
func firstInvalid(f *gguf.Field, src []byte, size int) int {
	const expF16, expBF16, expF32 = 0x7C00, 0x7F80, 0x7F800000
	off := f.Off
	switch f.Number {
	case gguf.NumF16:
		if size == 2 {
			off = finiteWords(src, expF16*0x0001000100010001, 0x0400*0x0001000100010001)
		}
		for ; off < len(src); off += size {
			if binary.LittleEndian.Uint16(src[off:])&expF16 == expF16 {
				return off
			}
		}
	case gguf.NumBF16:
		if size == 2 {
			off = finiteWords(src, expBF16*0x0001000100010001, 0x0080*0x0001000100010001)
		}
		for ; off < len(src); off += size {
			if binary.LittleEndian.Uint16(src[off:])&expBF16 == expBF16 {
				return off
			}
		}
	case gguf.NumE8M0:
		for ; off < len(src); off += size {
			if src[off] == 255 {
				return off
			}
		}
	case gguf.NumIQ1_M:
		for ; off < len(src); off += size {
			if scalar.ScaleIQ1_M(src[off-f.Off:])&expF16 == expF16 {
				return off
			}
		}
	case gguf.NumF32:
		if size == 4 {
			off = finiteWords(src, expF32*0x0000000100000001, 0x00800000*0x0000000100000001)
		}
		for ; off < len(src); off += size {
			if binary.LittleEndian.Uint32(src[off:])&expF32 == expF32 {
				return off
			}
		}
	}
	return -1
}

// finiteWords returns the length of a prefix of src, a multiple of 64 bytes, in
// which all elements are finite. exp has the exponent bits of every element of
// 8 bytes, step the lowest of them. The prefix ends less than 64 bytes before
// the end of src, or before the first element that is not finite.
//
// An exponent of all ones, and no other, carries into the sign when its lowest
// bit is added. AMD EPYC (Zen 3), go1.27.4: 11-13 GB/s in cache, 9 GB/s from
// memory, which is its speed.
func finiteWords(src []byte, exp, step uint64) (n int) {
	if selected.finite != nil {
		n = selected.finite(src, exp, step)
		src = src[n:]
	}
	sign := exp + step // every sign bit: the carries
	for len(src) >= 64 {
		s := src[:64]
		var acc uint64
		for k := 0; k < 64; k += 16 {
			acc |= binary.LittleEndian.Uint64(s[k:])&exp + step
			acc |= binary.LittleEndian.Uint64(s[k+8:])&exp + step
		}
		if acc&sign != 0 {
			break
		}
		src = src[64:]
		n += 64
	}
	return n
}

// value prints the field of block b.
func value(f *gguf.Field, b []byte) string {
	var v float32
	switch f.Number {
	case gguf.NumF16:
		v = half.FromF16(binary.LittleEndian.Uint16(b[f.Off:]))
	case gguf.NumBF16:
		v = half.FromBF16(binary.LittleEndian.Uint16(b[f.Off:]))
	case gguf.NumE8M0:
		return fmt.Sprintf("%#02x", b[f.Off])
	case gguf.NumIQ1_M:
		v = half.FromF16(scalar.ScaleIQ1_M(b))
	default:
		v = math.Float32frombits(binary.LittleEndian.Uint32(b[f.Off:]))
	}
	return fmt.Sprint(v)
}
