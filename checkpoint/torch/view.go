package torch

import (
	"fmt"
	"math"

	"ggforge/checkpoint/safetensors"
)

// view returns the tensor of (offset, size, stride) in a storage. All its elements
// lie in it.
func (m *machine) view(s *storage, dtype safetensors.DType, args []value) (value, error) {
	for _, v := range args[1:] {
		n := len(items(v))
		if n > safetensors.MaxDims {
			return nil, m.unsupported("a tensor has %d dimensions, want at most %d", n, safetensors.MaxDims)
		}
		if err := m.spend(n); err != nil {
			return nil, err
		}
	}
	offset, ok := args[0].(int64)
	shape, ok1 := m.ints(args[1])
	strides, ok2 := m.ints(args[2])
	if !ok || !ok1 || !ok2 {
		return nil, m.broken("a tensor of offset, size and stride (%s), want an integer and two tuples of integers",
			kinds(args))
	}
	v := &view{s, dtype, offset, shape, strides}
	if len(shape) != len(strides) {
		return nil, m.broken("a tensor has %d dimensions and %d strides", len(shape), len(strides))
	}
	held := s.bytes() / int64(dtype.Bits()/8) // elements
	if err := v.check(held); err != nil {
		return nil, m.broken("a tensor %v in storage %s: %v", shape, quote(s.key), err)
	}
	return v, nil
}

func (m *machine) ints(v value) ([]int64, bool) {
	t, ok := v.(*tuple)
	if !ok {
		return nil, false
	}
	var list []int64
	for _, x := range t.items {
		n, ok := x.(int64)
		if !ok {
			return nil, false
		}
		list = append(list, n)
	}
	return list, true
}

// maxRepeated bounds the elements of a tensor that repeats elements of its storage (stride 0).
const maxRepeated = 1 << 30

// check returns an error unless all elements of the tensor lie in its storage of held elements.
func (v *view) check(held int64) error {
	if v.offset < 0 || v.offset > held {
		return fmt.Errorf("offset %d, the storage has %d elements", v.offset, held)
	}
	elements, last, empty := int64(1), v.offset, false
	for i, n := range v.shape {
		stride := v.strides[i]
		switch {
		case n < 0:
			return fmt.Errorf("dimension %d is negative", n)
		case stride < 0:
			return fmt.Errorf("stride %d is negative", stride)
		case n == 0:
			empty = true
			continue
		case elements > math.MaxInt64/8/n:
			return fmt.Errorf("the number of elements overflows 64 bits")
		case stride > 0 && n-1 > (math.MaxInt64-last)/stride:
			return fmt.Errorf("stride %d leads out of the storage's %d elements", stride, held)
		}
		elements *= n
		last += (n - 1) * stride
	}
	switch {
	case empty:
		return nil
	case last >= held:
		return fmt.Errorf("offset %d and strides %v lead to element %d, the storage has %d", v.offset,
			v.strides, last, held)
	case elements > held && elements > maxRepeated:
		return fmt.Errorf("%d elements repeat those of a storage of %d, want at most %d", elements, held, maxRepeated)
	}
	return nil
}
