package precision

import (
	"encoding/binary"
	"math"

	"ggforge/checkpoint/safetensors"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// costNumbers is the approximate cost of an element in picoseconds.
const costNumbers = 1000

// Numbers is Source for weights of any numeric type, as image models have them: plain 8-bit floats without a scale,
// integers and truth values, too. The rows of 64-bit floats that become a narrower type than F32 are such that rounding
// them to it gives what rounding once gives.
func (w *Weight) Numbers(to gguf.Type) (rows.Source, error) {
	t := w.First()
	if w.scheme != nil {
		return w.Source()
	}
	if codes := codesOf(t.DType); codes != nil && isFloat8(t) {
		return computedRows(t, func(out, raw []byte) { codes.scaledCodes(out, raw, 1, 0) }), nil
	}
	var value func(raw []byte) float32
	switch t.DType {
	case safetensors.F64:
		value = func(b []byte) float32 {
			v := math.Float64frombits(binary.LittleEndian.Uint64(b))
			if to == gguf.TypeF32 {
				return float32(v)
			}
			return toOdd(v)
		}
	case safetensors.BOOL:
		value = func(b []byte) float32 { return float32(min(b[0], 1)) }
	case safetensors.U8:
		value = func(b []byte) float32 { return float32(b[0]) }
	case safetensors.I8:
		value = func(b []byte) float32 { return float32(int8(b[0])) }
	case safetensors.U16:
		value = func(b []byte) float32 { return float32(binary.LittleEndian.Uint16(b)) }
	case safetensors.I16:
		value = func(b []byte) float32 { return float32(int16(binary.LittleEndian.Uint16(b))) }
	case safetensors.U32:
		value = func(b []byte) float32 { return float32(binary.LittleEndian.Uint32(b)) }
	case safetensors.I32:
		value = func(b []byte) float32 { return float32(int32(binary.LittleEndian.Uint32(b))) }
	case safetensors.U64:
		value = func(b []byte) float32 { return float32(binary.LittleEndian.Uint64(b)) }
	case safetensors.I64:
		value = func(b []byte) float32 { return float32(int64(binary.LittleEndian.Uint64(b))) }
	case safetensors.F32, safetensors.F16, safetensors.BF16:
		return plainSource(t)
	default:
		return nil, fault.Errorf(fault.Unsupported, "%s: tensor %q holds %v, which is not converted", t.File, t.Name,
			t.DType)
	}
	size := int(t.size())
	return computedRows(t, func(out, raw []byte) {
		for i := range len(raw) / size {
			put(out, i, value(raw[i*size:]))
		}
	}), nil
}

// computedRows returns the rows of t; decode stores the values of raw elements as little-endian float32.
func computedRows(t *Tensor, decode func(out, raw []byte)) rows.Source {
	width := gguf.RowLen(t.NE()) * t.size()
	return &decoded{ne: t.NE(), cost: costNumbers, rows: func(s *scratch, out []byte, a, b int64) error {
		raw, err := t.bytes(&s.raw, a*width, b*width)
		if err == nil {
			decode(out, raw)
		}
		return err
	}}
}

// toOdd rounds v to float32: if v is between two values, to the one with an odd last bit. Rounding that to a type of at
// most 22 bits of mantissa gives what rounding v gives.
func toOdd(v float64) float32 {
	f := float32(v)
	if float64(f) == v || v != v || math.IsInf(float64(f), 0) {
		return f
	}
	if math.Float32bits(f)&1 == 0 {
		// the other neighbour of v is odd
		if math.Abs(float64(f)) > math.Abs(v) {
			return math.Float32frombits(math.Float32bits(f) - 1)
		}
		return math.Float32frombits(math.Float32bits(f) + 1)
	}
	return f
}
