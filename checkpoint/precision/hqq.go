package precision

import (
	"encoding/binary"
	"fmt"

	"ggforge/checkpoint/safetensors"
	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
	"ggforge/rows"
)

// The parts of a weight of HQQ, see hqq.
const (
	hqqCodes = iota
	hqqScale
	hqqZero
	hqqShape
	hqqBits
	hqqGroup
	hqqAxis
	hqqQuantScale
	hqqQuantZero
)

// hqqParts are the stored tensors; the ones after the axis are redundant.
var hqqParts = []part{need("W_q", packed), need("scale", floats), need("zero", floats), need("shape", integers),
	need("nbits", integers), need("group_size", integers),
	need("axis", integers), may("quant_scale", nil), may("quant_zero", nil), may("packing", nil),
	may("compute_dtype", nil), may("view_as_float", nil), may("channel_wise", nil), may("encoded_state_dict", nil),
	may("stores_quant_config", nil), may("optimize", nil), may("round_zero", nil), may("unpack_view_dtype", nil)}

// hqq returns a weight of the HQQ library. The n elements are a matrix of groups: rows of [n/group, group] for axis 1,
// columns of [group, n/group] for axis 0. Its rows are in as many equal parts as a word has codes; word [r, c] has row
// r of each part, the first in the highest bits:
//
//	bits   8  4  2  1       3
//	word   U8, 8/bits codes I32, 10 codes in the lower 30 bits; rows padded to whole words
//
//	W = (code - zero) * scale, each operation in the type of scale
func hqq(parts []*Tensor, _ Settings) (rows.Source, error) {
	for _, p := range parts[hqqQuantScale : hqqQuantZero+1] {
		if p == nil {
			continue
		}
		if p.elements() != 1 {
			return nil, fmt.Errorf("tensor %q of shape %v, want one number", p.Name, p.Shape)
		}
		if n, err := p.int(0); err != nil || n != 0 {
			return nil, orUnsupported(err,
				"tensor %q is %d, want 0: scales and zero points that are quantized themselves have no place next to the others", p.Name, n)
		}
	}
	h := &hqqRows{codes: parts[hqqCodes], scale: parts[hqqScale], zero: parts[hqqZero]}
	var facts [3]int64
	for i, p := range parts[hqqBits : hqqAxis+1] {
		if p.elements() != 1 {
			return nil, fmt.Errorf("tensor %q of shape %v, want one number", p.Name, p.Shape)
		}
		var err error
		if facts[i], err = p.int(0); err != nil {
			return nil, err
		}
	}
	bits, group, axis := facts[0], facts[1], facts[2]
	shape, err := parts[hqqShape].whole(2)
	if err != nil {
		return nil, err
	}
	per, ok := map[int64]int64{8: 1, 4: 2, 3: 10, 2: 4, 1: 8}[bits]
	if !ok || axis != 0 && axis != 1 {
		return nil, fault.Errorf(fault.Unsupported,
			"%d bits in groups along axis %d, want 1, 2, 3, 4 or 8 along 0 or 1", bits, axis)
	}
	if shape[0] < 1 || shape[1] < 1 || shape[0] > 1<<31 || shape[1] > 1<<31 {
		return nil, fmt.Errorf("tensor %q says %v, want rows and columns", parts[hqqShape].Name, shape)
	}
	n := shape[0] * shape[1]
	if group < 1 || n%group != 0 {
		return nil, fmt.Errorf("groups of %d for a shape of %v", group, shape)
	}
	height := group // of the matrix of groups
	h.width = n / group
	if axis == 1 {
		height, h.width = h.width, height
	}
	h.part = ceil(height, per)
	if bits != 3 && height%per != 0 {
		return nil, fmt.Errorf("groups of %d along axis %d for a shape of %v: want whole words of %d", group,
			axis, shape, per)
	}
	if want := map[bool]safetensors.DType{true: safetensors.I32,
		false: safetensors.U8}[bits == 3]; h.codes.DType != want {
		return nil, fmt.Errorf("tensor %q holds %v, want %v for %d bits", h.codes.Name, h.codes.DType, want, bits)
	}
	if h.codes.elements() != h.part*h.width {
		return nil, fmt.Errorf("tensor %q of shape %v, want [%d %d]", h.codes.Name, h.codes.Shape, h.part, h.width)
	}
	for _, p := range []*Tensor{h.scale, h.zero} {
		if p.elements() != n/group || p.DType != h.scale.DType {
			return nil, fmt.Errorf("tensor %q of %v %v, want %v for each of %d groups", p.Name, p.DType, p.Shape,
				h.scale.DType, n/group)
		}
	}
	h.bits, h.per, h.byColumn, h.row, h.round = bits, per, axis == 0, shape[1], roundings()[h.scale.DType]
	return &decoded{ne: []int64{shape[1], shape[0]}, cost: 2 * costGrouped, rows: h.rows}, nil
}

type hqqRows struct {
	codes, scale, zero *Tensor
	bits, per          int64
	part               int64     // rows of words
	width              int64     // of the matrix of groups
	byColumn           bool      // groups are columns
	row                int64     // elements of a row of the weight
	round              *rounding // to the type of scale
}

// cut sets dst to bits of each word of size bytes, from bit shift on; len(words) =
// size*len(dst).
func cut(dst, words []byte, shift, bits, size int) {
	mask := byte(1<<bits - 1)
	if size == 4 {
		for i := range dst {
			dst[i] = byte(binary.LittleEndian.Uint32(words[4*i:])>>(shift&31)) & mask
		}
		return
	}
	all := uint64(mask) * 0x0101010101010101
	for len(dst) >= 8 && len(words) >= 8 {
		binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(words)>>(shift&7)&all)
		dst, words = dst[8:], words[8:]
	}
	for i, w := range words {
		dst[i] = w >> (shift & 7) & mask
	}
}

func (h *hqqRows) rows(s *scratch, out []byte, a, b int64) error {
	size := h.codes.size()
	if a == b {
		return nil
	}
	var scale, zero []float32 // if groups are rows
	firstRow := a * h.row / h.width
	if !h.byColumn {
		n := (b*h.row-1)/h.width - firstRow + 1
		scale, zero = buffer.Resize(&s.f32, n), buffer.Resize(&s.zero, n)
		if err := h.scale.floats(scale, firstRow); err != nil {
			return err
		}
		if err := h.zero.floats(zero, firstRow); err != nil {
			return err
		}
	}
	few := (*[256]float32)(buffer.Resize(&s.table, 256))
	for e, end := a*h.row, b*h.row; e < end; {
		r, c := e/h.width, e%h.width
		n := min(end-e, h.width-c)
		at := r%h.part*h.width + c
		raw, err := h.codes.bytes(&s.raw, at*size, (at+n)*size)
		if err != nil {
			return err
		}
		shift := int(h.bits * (h.per - 1 - r/h.part))
		codes := raw
		if h.bits < 8 {
			codes = buffer.Resize(&s.more, n)
			cut(codes, raw, shift, int(h.bits), int(size))
		}
		if h.byColumn {
			scale, zero = buffer.Resize(&s.f32, n), buffer.Resize(&s.zero, n)
			if err := h.scale.floats(scale, c); err != nil {
				return err
			}
			if err := h.zero.floats(zero, c); err != nil {
				return err
			}
			row := scale // overwritten by the values
			for i, q := range codes {
				zero[i] = float32(q) - zero[i]
			}
			h.round.all(zero)
			for i, q := range zero {
				row[i] *= q
			}
			h.round.all(row)
			for i, v := range row {
				put(out, i, v)
			}
		} else if h.round.products != nil {
			wholeNumbers().scaledCodes(out[:4*n], codes, 1, zero[r-firstRow])
			h.round.scaled(out[:4*n], scale[r-firstRow])
		} else {
			values := few[:int64(1)<<h.bits]
			for q := range values {
				values[q] = float32(q) - zero[r-firstRow]
			}
			h.round.all(values)
			for q := range values {
				values[q] *= scale[r-firstRow]
			}
			h.round.all(values)
			look(out[:4*n], codes, few)
		}
		out = out[4*n:]
		e += n
	}
	return nil
}
