package rows

import (
	"bytes"
	"slices"

	"ggforge/gguf"
)

// equalStep is how many elements Equal reads at a time.
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
	var buf []byte
	n := gguf.Rows(s.NE())
	step := max(1, equalStep/s.NE()[0])
	values := make([]float32, min(n, step)*s.NE()[0])
	for i := int64(0); i < n; i += step {
		part := values[:(min(n, i+step)-i)*s.NE()[0]]
		if err := Decode(s, part, &buf, i, min(n, i+step)); err != nil {
			return false, err
		}
		if slices.ContainsFunc(part, func(x float32) bool { return x != 0 }) {
			return false, nil
		}
	}
	return true, nil
}
