package precision

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"ggforge/checkpoint/safetensors"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/half"
	"ggforge/rows"
)

// elements returns the number of elements of t.
func (t *Tensor) elements() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// size returns the bytes of an element of t; types of less than a byte are in no
// scheme.
func (t *Tensor) size() int64 { return int64(t.DType.Bits() / 8) }

// bytes returns bytes [from, to) of t, maybe in buf, which never exceeds the size of the file.
func (t *Tensor) bytes(buf *[]byte, from, to int64) ([]byte, error) {
	// a short run is cheaper through the mapping than a call, see package rows
	if t.Mapped != nil && (to-from < readBytes || t.Reader == nil) {
		return t.Mapped[from:to], nil
	}
	*buf = slices.Grow((*buf)[:0], int(to-from))[:to-from]
	if to > from { // an empty read at the end of a file would be an error
		if _, err := t.Reader.ReadAt(*buf, from); err != nil {
			return nil, err
		}
	}
	return *buf, nil
}

// readBytes is the minimum length of a run that is read by ReadAt.
const readBytes = 32 << 10

// floats fills dst with elements of t from element at on, as float32.
func (t *Tensor) floats(dst []float32, at int64) error {
	var some [512]byte
	buf := some[:0]
	size := t.size()
	raw, err := t.bytes(&buf, at*size, (at+int64(len(dst)))*size)
	if err != nil {
		return err
	}
	switch t.DType {
	case safetensors.F64:
		for i := range dst {
			dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:])))
		}
	case safetensors.F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
	case safetensors.F16:
		for i := range dst {
			dst[i] = half.FromF16(binary.LittleEndian.Uint16(raw[2*i:]))
		}
	case safetensors.BF16:
		for i := range dst {
			dst[i] = half.FromBF16(binary.LittleEndian.Uint16(raw[2*i:]))
		}
	default:
		codes := codesOf(t.DType)
		if codes == nil {
			return fault.Errorf(fault.Broken, "%s: tensor %q holds %v, want numbers", t.File, t.Name, t.DType)
		}
		for i := range dst {
			dst[i] = codes.table[raw[i]]
		}
	}
	return nil
}

// number returns the only element of t as a float32.
func (t *Tensor) number() (float32, error) {
	if t.elements() != 1 {
		return 0, fmt.Errorf("tensor %q of shape %v, want one number", t.Name, t.Shape)
	}
	var x [1]float32
	err := t.floats(x[:], 0)
	return x[0], err
}

// int returns element i of t, an integer tensor.
func (t *Tensor) int(i int64) (int64, error) {
	var some [8]byte
	buf := some[:0]
	raw, err := t.bytes(&buf, i*t.size(), (i+1)*t.size())
	if err != nil {
		return 0, err
	}
	switch t.DType {
	case safetensors.I64:
		return int64(binary.LittleEndian.Uint64(raw)), nil
	case safetensors.I32:
		return int64(int32(binary.LittleEndian.Uint32(raw))), nil
	case safetensors.I16:
		return int64(int16(binary.LittleEndian.Uint16(raw))), nil
	case safetensors.I8:
		return int64(int8(raw[0])), nil
	case safetensors.U8:
		return int64(raw[0]), nil
	}
	return 0, fault.Errorf(fault.Broken, "%s: tensor %q holds %v, want whole numbers", t.File, t.Name, t.DType)
}

// whole returns the integers of t, a vector of n.
func (t *Tensor) whole(n int64) ([]int64, error) {
	if len(t.Shape) != 1 || t.Shape[0] != n {
		return nil, fmt.Errorf("tensor %q of shape %v, want [%d]", t.Name, t.Shape, n)
	}
	list := make([]int64, n)
	for i := range list {
		var err error
		if list[i], err = t.int(int64(i)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// The types of parts.
var (
	u8       = []safetensors.DType{safetensors.U8}
	i8       = []safetensors.DType{safetensors.I8}
	i16      = []safetensors.DType{safetensors.I16}
	i32      = []safetensors.DType{safetensors.I32}
	packed   = []safetensors.DType{safetensors.I32, safetensors.U8}
	integers = []safetensors.DType{safetensors.I64, safetensors.I32}
	floats   = []safetensors.DType{safetensors.F32, safetensors.F16, safetensors.BF16}
	e4m3     = []safetensors.DType{safetensors.F8_E4M3}
	e8m0     = []safetensors.DType{safetensors.F8_E8M0}
	f8       = []safetensors.DType{safetensors.F8_E4M3, safetensors.F8_E5M2, safetensors.F8_E4M3FNUZ,
		safetensors.F8_E5M2FNUZ}
	scales    = slices.Concat(floats, e8m0)
	exponents = slices.Concat(u8, e8m0)
)

// codesOf returns the values of the codes of an 8-bit type, nil for other types.
func codesOf(d safetensors.DType) *codeValues { return eightBits()[d] }

// eightBits has the values of the codes of each 8-bit type.
//
//	type       sign exponent mantissa  bias  special codes
//	E4M3       1    4        3         7     0x7F and 0xFF are NaN, no infinity
//	E5M2       1    5        2         15    as in the 16-bit types
//	E4M3FNUZ   1    4        3         8     0x80 is NaN, no infinity, no negative zero
//	E5M2FNUZ   1    5        2         16    0x80 is NaN, no infinity, no negative zero
//	E8M0       0    8        0         127   0xFF is NaN; no zero
//
// Source: the specification of OCP microscaling formats and the types of PyTorch.
var eightBits = sync.OnceValue(func() map[safetensors.DType]*codeValues {
	nan := float32(math.NaN())
	small := func(c, mantissa, bias int) float32 {
		e, m := c&0x7F>>mantissa, c&(1<<mantissa-1)
		if e == 0 {
			e = 1
		} else {
			m |= 1 << mantissa
		}
		f := math.Ldexp(float64(m), e-bias-mantissa)
		if c&0x80 != 0 {
			f = math.Copysign(f, -1)
		}
		return float32(f)
	}
	formulas := map[safetensors.DType]func(c int) float32{
		safetensors.I8: func(c int) float32 { return float32(int8(c)) },
		safetensors.F8_E4M3: func(c int) float32 {
			if c&0x7F == 0x7F {
				return nan
			}
			return small(c, 3, 7)
		},
		safetensors.F8_E5M2: func(c int) float32 {
			switch {
			case c&0x7F > 0x7C:
				return nan
			case c&0x7F == 0x7C:
				return float32(math.Inf(1 - c>>7*2))
			}
			return small(c, 2, 15)
		},
		safetensors.F8_E4M3FNUZ: func(c int) float32 {
			if c == 0x80 {
				return nan
			}
			return small(c, 3, 8)
		},
		safetensors.F8_E5M2FNUZ: func(c int) float32 {
			if c == 0x80 {
				return nan
			}
			return small(c, 2, 16)
		},
		safetensors.F8_E8M0: func(c int) float32 {
			if c == 0xFF {
				return nan
			}
			return float32(math.Ldexp(1, c-127))
		},
	}
	all := map[safetensors.DType]*codeValues{}
	for d, value := range formulas {
		all[d] = &codeValues{vectors: map[safetensors.DType]func(out, codes []byte, scale, zero uint32) int{
			safetensors.I8: vectorsSigned, safetensors.F8_E4M3: vectorsE4M3}[d]}
		for c := range all[d].table {
			all[d].table[c] = value(c)
		}
	}
	return all
})

// scratch is memory of one call of Raw.
type scratch struct {
	raw, more []byte
	zeros     []byte // codes of zero points
	words     []uint32
	f32, zero []float32
	table     []float32
	strips    [stripsKept]strip // of matrices stored by columns
	clock     int64
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// decoded is a weight whose rows are computed as float32.
type decoded struct {
	ne   []int64
	cost int64 // picoseconds per element
	// rows fills out with rows [a, b) as little-endian float32.
	rows func(s *scratch, out []byte, a, b int64) error

	ranks int64 // see Ranks; 0 except for ranked weights
}

func (d *decoded) NE() []int64     { return d.ne }
func (d *decoded) Type() gguf.Type { return gguf.TypeF32 }
func (d *decoded) Cost() int64     { return d.cost }

func (d *decoded) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	out := buffer.Resize(buf, (b-a)*gguf.RowLen(d.ne)*4)
	if a == b {
		return out, nil
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	return out, d.rows(s, out, a, b)
}

func bits(v float32) uint32 { return math.Float32bits(v) }

// put stores v as element i of little-endian float32.
func put(out []byte, i int, v float32) {
	binary.LittleEndian.PutUint32(out[4*i:4*i+4], math.Float32bits(v))
}

var _ rows.Source = (*decoded)(nil)
