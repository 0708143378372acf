package hftest

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"ggforge/checkpoint/safetensors"
	"ggforge/internal/kernel/half"
	"ggforge/test/gen"
)

// A fill computes element i of a tensor from g, a sample of the standard normal distribution.
type fill func(i int64, g float64) float64

// scaled returns g*scale around a centre.
func scaled(centre, scale float64) fill {
	return func(_ int64, g float64) float64 { return centre + float64(g*scale) }
}

// fills are the ways to fill a tensor of floats, by the name in "fill NAME".
var fills = map[string]fill{
	"weight": scaled(0, 0.04),
	"norm":   scaled(1, 0.1),
	"bias":   scaled(0, 0.05),
	"decay":  scaled(-3, 0.5),
	// scales of quantized weights
	"scale": func(_ int64, g float64) float64 { return 0.001 + float64(math.Abs(g)*0.01) },
	// reciprocals of such scales
	"inverse": func(_ int64, g float64) float64 { return 1 / (0.001 + float64(math.Abs(g)*0.01)) },
	// logarithms of small numbers
	"log":   func(i int64, g float64) float64 { return float64(float64(i%16)*0.1875) + float64(g*0.1) },
	"count": func(i int64, _ float64) float64 { return float64(i) },
	"zero":  func(int64, float64) float64 { return 0 },
	// sums of a few products are exact in F32
	"grid":  func(i int64, _ float64) float64 { return float64(i*2654435761%2003-1001) / 8192 },
	"whole": func(_ int64, g float64) float64 { return math.Round(g * 2) },
	"gaps": func(i int64, g float64) float64 { // rows of 64; from row 1000 on, every second one is zero
		if row := i / 64; row >= 1000 && row%2 == 1 {
			return 0
		}
		return float64(g * 0.04)
	},
	"slope": func(i int64, _ float64) float64 { return math.Exp2(-float64(i + 1)) }, // of ALiBi with 8 heads
}

// argFills are the fills with arguments; n is the number of elements.
var argFills = map[string]func(i, n int64, args []float64) float64{
	"list": func(i, _ int64, args []float64) float64 { return args[i] },
	// runs of args[0] equal elements: 0, 1, 2 and so on
	"every": func(i, _ int64, args []float64) float64 { return math.Floor(float64(i) / args[0]) },
	"diagonal": func(i, _ int64, args []float64) float64 { // rows of args[0] elements, one of them nonzero
		if n := int64(args[0]); i%n != i/n%n {
			return 0
		}
		return 0.5
	},
	// 0 to n-1 in another order (n is no multiple of 5), divided by args[0] and rounded down
	"shuffled": func(i, n int64, args []float64) float64 { return math.Floor(float64(i*5%n) / args[0]) },
}

// byteFills are the fills of byte tensors.
var byteFills = map[string]func(b byte) byte{
	"bytes":      func(b byte) byte { return b },
	"zero-bytes": func(byte) byte { return 0 },
	"ternary":    func(b byte) byte { return b & 0x55 << (b >> 7) }, // four 2-bit codes, none of them 3
	"scales":     func(b byte) byte { return 110 + b%14 },           // exponents of numbers somewhat below 1
	"float8": func(b byte) byte { // no infinity and no NaN in any format
		if b&0x78 == 0x78 {
			b ^= 0x40
		}
		return b
	},
}

// edge is the start of the first row of each matrix in variants with Edge: zeros, subnormal and underflowing F16
// values, ties of rounding to F16 and BF16, and values at and beyond the largest F16.
var edge = []float64{0, math.Copysign(0, -1), 0x1p-24, 0x1p-25, -0x1.01p-25, 0x1.ff8p-15, 0x1p-14, 0x1.002p0, 0x1.006p0,
	-0x1.001ffep0, 0x1.554p-2, 1.0 / 3,
	0x1.01p0, 0x1.03p0, 1e-20, -7.5e-6, 3.1415927, 65504, -65504, 65519, 0x1p-126, 0x1p-149, 0x1.ffp-1, -0x1.fffffep-1}

// filler makes the bytes of tensors, piece by piece.
type filler struct {
	t     tensor
	dtype safetensors.DType
	seed  uint64
	edge  bool
	ring  bool
	blank bool
	bell  []float64
	out   []byte

	ringBytes []byte // see repeat
	ringType  safetensors.DType
}

// pieceLen is the number of elements per piece.
const pieceLen = 1 << 13

// each calls f with the bytes of the tensor, piece by piece; they are valid
// during the call.
func (w *filler) each(f func([]byte) error) error {
	name := fmt.Sprintf("%d/%s/%v", w.seed, w.t.name, w.t.shape)
	n := int64(1)
	for _, d := range w.t.shape {
		n *= d
	}
	how := w.t.fill
	if how == "" {
		how = w.fill()
	}
	if bytes := byteFills[how]; bytes != nil {
		if w.dtype.Bits() != 8 && (w.dtype != safetensors.I32 || how != "bytes") {
			return fmt.Errorf("tensor %s: fill %s for %v", w.t.name, how, w.dtype)
		}
		b := gen.Bytes(name, int(n)*w.dtype.Bits()/8)
		for i := range b {
			b[i] = bytes(b[i])
		}
		return f(b)
	}
	if how == "state" { // quant_state of a bitsandbytes weight; args are rows, columns, elements of a block
		text := fmt.Sprintf(`{"quant_type": "nf4", "blocksize": %v, "dtype": "bfloat16", "shape": [%v, %v]}`,
			w.t.args[2], w.t.args[0], w.t.args[1])
		return f([]byte(fmt.Sprintf("%-*s", n, text)))
	}
	value := fills[how]
	if withArgs := argFills[how]; withArgs != nil {
		value = func(i int64, _ float64) float64 { return withArgs(i, n, w.t.args) }
	}
	if value == nil {
		return fmt.Errorf("tensor %s: unknown fill %q", w.t.name, how)
	}
	if w.blank && how == "weight" {
		return f(make([]byte, n*int64(w.dtype.Bits())/8))
	}
	if w.ring && how == "weight" {
		return w.repeat(name, n, f)
	}
	edges := int64(0)
	if w.edge && w.t.fill == "" && len(w.t.shape) > 1 {
		edges = min(int64(len(edge)), w.t.shape[len(w.t.shape)-1])
	}
	return w.floats(name, n, f, func(i int64, g float64) float64 {
		if i < edges {
			return edge[i]
		}
		return value(i, g)
	})
}

// floats calls f with n elements, piece by piece.
func (w *filler) floats(name string, n int64, f func([]byte) error, value fill) error {
	if w.bell == nil {
		w.bell = make([]float64, pieceLen)
	}
	for from := int64(0); from < n; from += pieceLen {
		piece := w.bell[:min(pieceLen, n-from)]
		gen.Bell(name, piece, from)
		w.out = w.out[:0]
		for j, g := range piece {
			v := value(from+int64(j), g)
			switch w.dtype {
			case safetensors.F32:
				w.out = binary.LittleEndian.AppendUint32(w.out, math.Float32bits(float32(v)))
			case safetensors.F16:
				w.out = binary.LittleEndian.AppendUint16(w.out, half.ToF16(float32(v)))
			case safetensors.BF16:
				w.out = binary.LittleEndian.AppendUint16(w.out, half.ToBF16(float32(v)))
			case safetensors.I64:
				w.out = binary.LittleEndian.AppendUint64(w.out, uint64(int64(v)))
			case safetensors.I32:
				w.out = binary.LittleEndian.AppendUint32(w.out, uint32(int32(v)))
			default:
				return fmt.Errorf("tensor %s: cannot fill %v with numbers, only F32, F16, BF16, I64 and I32", w.t.name,
					w.dtype)
			}
		}
		if err := f(w.out); err != nil {
			return err
		}
	}
	return nil
}

// ringLen is the number of elements of a ring: a prime, so that no two rows near each other are the same.
const ringLen = 1<<20 + 7

// repeat calls f with n weights from a ring of ringLen weights, from an offset that depends on the name.
func (w *filler) repeat(name string, n int64, f func([]byte) error) error {
	if w.ringType != w.dtype {
		w.ringBytes, w.ringType = nil, w.dtype
		add := func(b []byte) error { w.ringBytes = append(w.ringBytes, b...); return nil }
		if err := w.floats(fmt.Sprintf("%d/ring", w.seed), ringLen, add, fills["weight"]); err != nil {
			return err
		}
	}
	size := int64(w.dtype.Bits() / 8)
	at := int64(binary.LittleEndian.Uint64(gen.Bytes(name, 8))%ringLen) * size
	for left := n * size; left > 0; {
		b := w.ringBytes[at:]
		b = b[:min(left, int64(len(b)))]
		if err := f(b); err != nil {
			return err
		}
		left -= int64(len(b))
		at = 0
	}
	return nil
}

// fill is the usual fill of a tensor.
func (w *filler) fill() string {
	switch {
	case w.dtype == safetensors.U8 || w.dtype == safetensors.I8:
		return "bytes"
	case w.dtype.Bits() == 8:
		return "float8"
	case len(w.t.shape) > 1:
		return "weight"
	case strings.HasSuffix(w.t.name, ".weight"):
		return "norm"
	}
	return "bias"
}
