package rows

import (
	"slices"
	"sync"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/torchmath"
	"ggforge/quants"
)

// maxHeld is the largest number of elements of the matrix of a linear layer, which is held in memory: 64 MiB. The largest
// published one has 2048 x 2048.
const maxHeld = 16 << 20

// Linear returns the outputs of a linear layer for the rows of x: x times the transposed
// w, plus bias, which may be nil. The sums are those of torchmath.Linear, in float32. The
// result is F16 if all are, and F32 if none is; both is an error, as it is in PyTorch.
// w is held in memory from the first read on.
func Linear(x, w, bias Source) (Source, error) {
	in, out := x.NE()[0], gguf.Rows(w.NE())
	if len(w.NE()) != 2 || w.NE()[0] != in || bias != nil && !slices.Equal(bias.NE(), []int64{out}) {
		shape := "none"
		if bias != nil {
			shape = gguf.Shape(bias.NE())
		}
		return nil, fault.Errorf(fault.Broken,
			"inputs of dimensions %s, a linear layer of %s with a bias of %s: these do not fit", gguf.Shape(x.NE()),
			gguf.Shape(w.NE()), shape)
	}
	if in > maxHeld/out {
		return nil, fault.Errorf(fault.Unsupported,
			"a linear layer of dimensions %s has more than %d elements, the most that are held in memory",
			gguf.Shape(w.NE()), maxHeld)
	}
	l := &linear{Source: x, ne: slices.Clone(x.NE()), in: int(in), typ: mappedType(x)}
	l.ne[0] = out
	for _, s := range []Source{w, bias} {
		if s != nil && mappedType(s) != l.typ {
			return nil, fault.Errorf(fault.Unsupported,
				"the inputs of a linear layer are stored in %v, its weights in %v: want both in F16 or neither",
				x.Type(), s.Type())
		}
	}
	l.get = sync.OnceValues(func() (*torchmath.Linear, error) {
		t := torchmath.NewLinear(l.in, int(out))
		row := 0
		err := Each(w, func(v []float32) {
			for ; len(v) > 0; v = v[in:] {
				t.SetRow(row, v[:in])
				row++
			}
		})
		if err == nil && bias != nil {
			err = Each(bias, t.SetBias)
		}
		return t, err
	})
	return l, nil
}

type linear struct {
	Source // the inputs
	ne     []int64
	in     int
	typ    gguf.Type
	get    func() (*torchmath.Linear, error)
}

func (l *linear) NE() []int64     { return l.ne }
func (l *linear) Type() gguf.Type { return l.typ }

// costLinear is about the time of a product and its addition to the sum, in picoseconds.
const costLinear = 200

func (l *linear) Cost() int64 { return l.Source.Cost()*int64(l.in)/l.ne[0] + costLinear*int64(l.in) }

func (l *linear) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	t, err := l.get()
	if err != nil {
		return nil, err
	}
	scratch := floats.Get().(*scratch)
	defer floats.Put(scratch)
	n, m := int(b-a)*l.in, int((b-a)*l.ne[0])
	scratch.f32 = slices.Grow(scratch.f32[:0], n+m)[:n+m]
	x, y := scratch.f32[:n], scratch.f32[n:]
	if err := Decode(l.Source, x, &scratch.raw, a, b); err != nil {
		return nil, err
	}
	t.Apply(y, x)
	out := buffer.Resize(buf, int(l.typ.RowBytes(int64(m))))
	return out, quants.Lookup(l.typ).Quantize(out, y, int(l.ne[0]), nil)
}

// SiLU returns s with torchmath.SiLU applied to its elements, in the type that Map gives.
func SiLU(s Source) Source {
	elements := gguf.Rows(s.NE()) * gguf.RowLen(s.NE())
	rest := torchmath.SiLURest(elements, s.Type() == gguf.TypeF16)
	return &mapped{s, mappedType(s), func(x []float32, first int64) {
		torchmath.SiLU(x, int(max(0, min(int64(len(x)), first+int64(len(x))-elements+int64(rest)))))
	}}
}
