package eval

import (
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"ggforge/arch/graph"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/mmap"
	"ggforge/internal/kernel/gemm"
	"ggforge/model"
	"ggforge/quants"
)

// tensors looks up the tensors of a model and records which were read.
type tensors struct {
	file string
	all  map[string]*model.Tensor
	used map[string]bool
	// folds are the transforms of the inputs of folded weights, nil if none are.
	folds *folds
	// costs are the costs of reading weights: see rows.Source.
	costs map[*gemm.Weights]int64
}

func newTensors(m *model.Model) *tensors {
	t := &tensors{file: m.Path, all: map[string]*model.Tensor{}, used: map[string]bool{},
		costs: map[*gemm.Weights]int64{}}
	for i := range m.Tensors {
		t.all[m.Tensors[i].Name] = &m.Tensors[i]
	}
	return t
}

// fail ends the construction of a model: see keys.fail.
func (t *tensors) fail(kind error, format string, args ...any) {
	panic(buildError{fault.Errorf(kind, "%s: "+format, append([]any{t.file}, args...)...)})
}

// get returns a tensor with its dimensions checked, nil if there is none.
func (t *tensors) get(name string, ne ...int) *model.Tensor {
	x := t.all[name]
	if x == nil {
		return nil
	}
	t.used[name] = true
	if x.Type.Known() && quants.Lookup(x.Type) == nil || !x.Type.Known() {
		t.fail(fault.Unsupported, "tensor %q is of type %v, which cannot be decoded", name, x.Type)
	}
	want := make([]int64, len(ne))
	for i, n := range ne {
		want[i] = int64(n)
	}
	have := slices.Clone(x.NE)
	for len(have) > len(want) && have[len(have)-1] == 1 {
		have = have[:len(have)-1]
	}
	for len(have) < len(want) {
		have = append(have, 1)
	}
	if !slices.Equal(have, want) {
		t.fail(fault.Broken, "tensor %q is %v, want %v", name, x.NE, want)
	}
	return x
}

// required is get for a required tensor.
func (t *tensors) required(name string, ne ...int) *model.Tensor {
	if t.all[name] == nil {
		t.fail(fault.Broken, "no tensor %q", name)
	}
	return t.get(name, ne...)
}

// vector returns the values of a tensor of one row of n, nil if there is none.
func (t *tensors) vector(name string, n int) []float32 {
	x := t.get(name, n)
	if x == nil {
		return nil
	}
	v := make([]float32, n)
	if err := decode(x, v, new([]byte), 0, 1); err != nil {
		t.fail(fault.Broken, "tensor %q: %w", name, err)
		return nil
	}
	return v
}

// matrix is vector for a tensor of rows of n.
func (t *tensors) matrix(name string, n, rows int) []float32 {
	x := t.get(name, n, rows)
	if x == nil {
		return nil
	}
	v := make([]float32, n*rows)
	if err := decode(x, v, new([]byte), 0, int64(rows)); err != nil {
		t.fail(fault.Broken, "tensor %q: %w", name, err)
	}
	return v
}

// requiredValues returns all values of a required tensor.
func (t *tensors) requiredValues(name string, ne ...int) []float32 {
	x := t.required(name, ne...)
	if x == nil {
		return nil
	}
	v := make([]float32, x.Elements())
	if err := decode(x, v, new([]byte), 0, gguf.Rows(x.NE)); err != nil {
		t.fail(fault.Broken, "tensor %q: %w", name, err)
		return nil
	}
	return v
}

// decode sets dst to rows [a, b) of a tensor.
func decode(x *model.Tensor, dst []float32, buf *[]byte, a, b int64) error {
	return mmap.Guard(x.Name, func() error {
		raw, err := x.Source.Raw(buf, a, b)
		if err != nil {
			return err
		}
		if x.Type == gguf.TypeF32 {
			for i := range dst {
				dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
			}
			return nil
		}
		return quants.Lookup(x.Type).Dequantize(dst, raw)
	})
}

// linear returns the layer of NAME.weight, NAME.scale and NAME.bias from in values to out,
// nil if there is none.
func (t *tensors) linear(name string, in, out int) *linear {
	x := t.get(name+".weight", in, out)
	if x == nil {
		return nil
	}
	l := &linear{name: x.Name, w: t.weights(x, 0, out), bias: t.vector(name+".bias", out),
		fold: t.folds.inputs(x.Name, in)}
	if scale := t.scales(name, 1); scale != nil {
		l.scale = &scale[0]
	}
	return l
}

// scales returns the factors of n matrices, nil for none. Scales of inputs are ignored: they
// are for rounding inputs, which does not happen here.
func (t *tensors) scales(name string, n int) []float32 {
	t.get(name+".input_scale", n)
	return t.vector(name+".scale", n)
}

// requiredLinear is linear for a required layer.
func (t *tensors) requiredLinear(name string, in, out int) *linear {
	t.required(name+".weight", in, out)
	return t.linear(name, in, out)
}

// weights returns n rows of a tensor from row first on.
func (t *tensors) weights(x *model.Tensor, first, n int) *gemm.Weights {
	block, size := x.Type.BlockLen(), x.Type.BlockBytes()
	codec := quants.Lookup(x.Type)
	w := &gemm.Weights{
		Rows: n, K: int(x.NE[0]), RowBytes: int(x.Type.RowBytes(x.NE[0])), Block: int(block), BlockBytes: int(size),
		Decode: func(dst []float32, src []byte) error {
			return mmap.Guard(x.Name, func() error { return codec.Dequantize(dst, src) })
		},
	}
	w.Raw = func(buf *[]byte, a, b int) (raw []byte, err error) {
		err = mmap.Guard(x.Name, func() (err error) {
			raw, err = x.Source.Raw(buf, int64(first+a), int64(first+b))
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", x.Name, err)
		}
		return raw, nil
	}
	t.costs[w] = x.Source.Cost()
	return w
}

// inLayer is what names of tensors of a layer begin with.
var inLayer = regexp.MustCompile(`^blk\.[0-9]+\.`)

// checkUnused returns an error if a tensor is not one that was read or that the graph ignores.
func (t *tensors) checkUnused(g *graph.Model) error {
	var left []string
	for name := range t.all {
		if !t.used[name] && !g.Ignores(inLayer.ReplaceAllString(name, "")) {
			left = append(left, name)
		}
	}
	if len(left) == 0 {
		return nil
	}
	slices.Sort(left)
	if len(left) > 5 {
		left = append(left[:5], fmt.Sprintf("and %d more", len(left)-5))
	}
	return fault.Errorf(fault.Unsupported,
		"%s: tensors not supported by the evaluator: %s; ggeval refuses because they may change results", t.file,
		strings.Join(left, ", "))
}
