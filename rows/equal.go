package rows

import (
	"bytes"
	"slices"

	"ggforge/gguf"
)

// equalStep is the number of elements that Equal reads at a time.
const equalStep = 1 << 18

// Equal reports whether two tensors have the same dimensions and the same values
// in the same type, bit for bit.
func Equal(a, b Source) (bool, error) {
	if a.Type() != b.Type() || !slices.Equal(a.NE(), b.NE()) {
		return false, nil
	}
	var bufA, bufB []byte
	n := gguf.Rows(a.NE())
	step := max(1, equalStep/a.NE()[0])
	for i := int64(0); i < n; i += step {
		rawA, err := a.Raw(&bufA, i, min(n, i+step))
		if err != nil {
			return false, err
		}
		rawB, err := b.Raw(&bufB, i, min(n, i+step))
		if err != nil {
			return false, err
		}
		if !bytes.Equal(rawA, rawB) {
			return false, nil
		}
	}
	return true, nil
}

// Zero reports whether all values of a tensor are zero, of either sign.
func Zero(s Source) (bool, error) {
	zero := true
	err := Each(s, func(x []float32) {
		zero = zero && !slices.ContainsFunc(x, func(v float32) bool { return v != 0 })
	})
	return zero, err
}
