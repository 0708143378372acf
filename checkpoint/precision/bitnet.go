package precision

import (
	"fmt"

	"ggforge/internal/kernel/buffer"
	"ggforge/rows"
)

// ternary returns a weight of BitNet: the rows are in four equal parts; byte [r, i] has the 2-bit codes of row r of
// each part, the first part in the lowest bits.
//
//	W = (code - 1) / scale
//
// The scale is the inverse of other schemes' scales.
func ternary(parts []*Tensor, _ Settings) (rows.Source, error) {
	codes, scale := parts[0], parts[1]
	if err := matrix(codes, -1, -1); err != nil {
		return nil, err
	}
	if scale.elements() != 1 {
		return nil, fmt.Errorf("tensor %q of shape %v, want one number", scale.Name, scale.Shape)
	}
	part, width := codes.Shape[0], codes.Shape[1]
	return &decoded{ne: []int64{width, 4 * part}, cost: costScaled,
		rows: func(s *scratch, out []byte, a, b int64) error {
			f, err := scale.number()
			if err != nil {
				return err
			}
			values := (*[256]float32)(buffer.Resize(&s.table, 256)) // by byte, for the rows of a part
			was := int64(-1)
			for r := a; r < b; r++ {
				raw, err := codes.bytes(&s.raw, r%part*width, (r%part+1)*width)
				if err != nil {
					return err
				}
				if r/part != was {
					was = r / part
					for c := range values {
						values[c] = float32(c>>(2*was)&3-1) / f
					}
				}
				look(out[:4*width], raw, values)
				out = out[4*width:]
			}
			return nil
		}}, nil
}
