package precision

import (
	"fmt"

	"ggforge/rows"
)

// ternary returns a weight of BitNet: the rows are cut into four equal parts, and two
// bits of byte [r, i] are the code of row r of each, the first part in the lowest.
//
//	W = (code - 1) / scale
//
// The scale is the inverse of what it is elsewhere.
func ternary(parts []*Tensor, _ Settings) (rows.Source, error) {
	codes, scale := parts[0], parts[1]
	if err := matrix(codes, -1, -1); err != nil {
		return nil, err
	}
	if scale.elements() != 1 {
		return nil, fmt.Errorf("tensor %q of shape %v, want one number", scale.Name, scale.Shape)
	}
	part, width := codes.Shape[0], codes.Shape[1]
	return &decoded{ne: []int64{width, 4 * part}, cost: costScaled, rows: func(s *scratch, out []byte, a, b int64) error {
		f, err := scale.number()
		if err != nil {
			return err
		}
		var values [4]float32
		for c := range values {
			values[c] = float32(c-1) / f
		}
		for r := a; r < b; r++ {
			raw, err := codes.bytes(&s.raw, r%part*width, (r%part+1)*width)
			if err != nil {
				return err
			}
			shift := r / part * 2
			for i, c := range raw {
				put(out, i, values[c>>shift&3])
			}
			out = out[4*width:]
		}
		return nil
	}}, nil
}
