package precision

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ggforge/internal/kernel/buffer"
	"ggforge/rows"
)

// scaled returns a weight of 8-bit codes, floats or integers, times scales:
//
//	W[..., i, j] = (code[..., i, j] - zero) * scale[..., i/a, j/b]
//
// parts are the codes, the scales and optional zero points (integers in the shape of the scales). There is a scale for
// each block of [a, b], smaller at the edges; or a single scale, or one per row, or one per matrix of a
// three-dimensional tensor: dimensions of 1, and missing trailing ones, are broadcast.
func scaled(parts []*Tensor, settings Settings) (rows.Source, error) {
	block, err := blockSize(settings)
	if err != nil {
		return nil, err
	}
	var zeros *Tensor
	if len(parts) > 2 {
		zeros = parts[2]
	}
	return scaledBy(parts[0], parts[1], zeros, block)
}

// ranked is scaled for a joined QKV projection that a checkpoint stores as the tensor-parallel ranks of its training
// had it: each rank has separate rows of blocks. See Ranks.
func ranked(parts []*Tensor, settings Settings) (rows.Source, error) {
	block, err := blockSize(settings)
	if err != nil {
		return nil, err
	}
	codes, grid := parts[0], parts[1]
	if len(codes.Shape) != 2 || len(grid.Shape) != 2 || block == nil {
		return scaledBy(codes, grid, nil, block)
	}
	ranks := int64(1)
	for _, n := range []int64{8, 4} {
		if height := codes.Shape[0]; height%n == 0 && grid.Shape[0] == n*ceil(height/n, block[0]) {
			ranks = n
			break
		}
	}
	var src rows.Source
	if ranks > 1 && grid.Shape[0] != ceil(codes.Shape[0], block[0]) && grid.Shape[1] == ceil(codes.Shape[1], block[1]) {
		s := newScales(codes, grid, nil, block, grid.Shape)
		s.rank = codes.Shape[0] / ranks
		src = s.source()
	} else if src, err = scaledBy(codes, grid, nil, block); err != nil {
		return nil, err
	}
	src.(*decoded).ranks = ranks
	return src, nil
}

// Ranks returns the number of tensor-parallel ranks of a joined QKV projection, by the shape of its scales: 8, 4, or 1.
// src is the result of Source. The order of rows within a rank depends on the model.
func Ranks(src rows.Source) int64 {
	if d, ok := src.(*decoded); ok && d.ranks > 0 {
		return d.ranks
	}
	return 1
}

func ceil(n, d int64) int64 { return (n + d - 1) / d }

// maxBlock bounds the sides of blocks.
const maxBlock = 1 << 20

// blockSize returns the rows and columns of a block; nil if the settings have none.
func blockSize(settings Settings) ([]int64, error) {
	const key = "weight_block_size"
	block, ok, err := settings.Ints(key)
	name := key
	if err == nil && !ok {
		for _, weights := range groups(settings) {
			name = "block_structure"
			if block, ok, err = structure(weights); ok || err != nil {
				break
			}
		}
	}
	if err != nil || !ok {
		return nil, err
	}
	if len(block) != 2 || block[0] < 1 || block[1] < 1 || block[0] > maxBlock || block[1] > maxBlock {
		return nil, fmt.Errorf("quantization_config: %s is %v, want the rows and columns of a block", name, block)
	}
	return block, nil
}

// structure returns block_structure of a group, a list or a text like "128x128".
func structure(weights Settings) (block []int64, ok bool, err error) {
	const key = "block_structure"
	text, isText := weights.Members()[key].(string)
	if !isText {
		return weights.Ints(key)
	}
	for side := range strings.SplitSeq(text, "x") {
		n, err := strconv.ParseInt(side, 10, 32)
		if err != nil {
			return nil, false,
				fmt.Errorf("quantization_config: block_structure is %q, want a list, or a text like \"128x128\"", text)
		}
		block = append(block, n)
	}
	return block, true, nil
}

// scaledBy returns codes times scales, whose blocks follow from their shape.
func scaledBy(codes, scale, zeros *Tensor, block []int64) (rows.Source, error) {
	n := len(codes.Shape)
	if n < 1 || slices.Contains(codes.Shape, 0) {
		return nil, fmt.Errorf("shape %v, want at least one dimension, and all of at least 1", codes.Shape)
	}
	if zeros != nil && (!slices.Equal(zeros.Shape, scale.Shape) || codesOf(zeros.DType) == nil) {
		return nil, fmt.Errorf("zero points %q of %v %v, want numbers of 8 bits for scales of %v", zeros.Name,
			zeros.DType, zeros.Shape, scale.Shape)
	}
	if block != nil && n >= 2 && len(scale.Shape) == n {
		steps := slices.Repeat([]int64{1}, n)
		copy(steps[n-2:], block)
		grid := make([]int64, n)
		for i := range grid {
			grid[i] = ceil(codes.Shape[i], steps[i])
		}
		if slices.Equal(grid, scale.Shape) {
			return newScales(codes, scale, zeros, steps, grid).source(), nil
		}
	}
	// a single scale may have any number of dimensions
	shape := scale.Shape
	if scale.elements() == 1 {
		shape = nil
	}
	steps, grid := make([]int64, n), slices.Repeat([]int64{1}, n)
	fits := len(shape) <= n
	for i := range steps {
		steps[i] = codes.Shape[i]
		if i < len(shape) && fits && shape[i] != 1 {
			steps[i], grid[i] = 1, shape[i]
			fits = shape[i] == codes.Shape[i]
		}
	}
	if !fits {
		want := fmt.Sprintf("one, or one for each row of %v", codes.Shape)
		if block != nil {
			want += fmt.Sprintf(", or for each block of %v", block)
		} else {
			want += " (quantization_config has no weight_block_size)"
		}
		return nil, fmt.Errorf("scales %q of shape %v, want %s", scale.Name, scale.Shape, want)
	}
	return newScales(codes, scale, zeros, steps, grid).source(), nil
}

// scaledRows has codes and the scales of their blocks.
type scaledRows struct {
	codes, scale, zeros *Tensor
	values              *codeValues // of the codes
	shape, steps, grid  []int64     // by dimension: of the codes, of a block, of the scales
	rank                int64       // rows of a rank; 0 for no ranks
}

func newScales(codes, scale, zeros *Tensor, steps, grid []int64) *scaledRows {
	return &scaledRows{codes: codes, scale: scale, zeros: zeros, values: codesOf(codes.DType), shape: codes.Shape,
		steps: steps, grid: grid}
}

// costScaled is the approximate cost of an element in picoseconds.
const costScaled = 300

func (s *scaledRows) source() rows.Source {
	return &decoded{ne: s.codes.NE(), cost: costScaled, rows: s.rows}
}

// scaleRow returns the row of the scales for row r of the codes.
func (s *scaledRows) scaleRow(r int64) int64 {
	if s.rank > 0 {
		return r/s.rank*ceil(s.rank, s.steps[0]) + r%s.rank/s.steps[0]
	}
	at, stride := int64(0), int64(1)
	for i := len(s.shape) - 2; i >= 0; i-- {
		at += r % s.shape[i] / s.steps[i] * stride
		r /= s.shape[i]
		stride *= s.grid[i]
	}
	return at
}

func (s *scaledRows) rows(t *scratch, out []byte, a, b int64) error {
	last := len(s.shape) - 1
	width, step, count := s.shape[last], s.steps[last], s.grid[last]
	codes, err := s.codes.bytes(&t.raw, a*width, b*width)
	if err != nil {
		return err
	}
	row := int64(-1) // the row of the scales in scale
	scale := buffer.Resize(&t.f32, count)
	zero := buffer.Resize(&t.zero, count)
	clear(zero)
	for r := a; r < b; r++ {
		if at := s.scaleRow(r); at != row {
			row = at
			if err := s.scale.floats(scale, at*count); err != nil {
				return err
			}
			if s.zeros != nil {
				if err := s.zeros.floats(zero, at*count); err != nil {
					return err
				}
			}
		}
		for i, f := range scale {
			from := int64(i) * step
			to := min(from+step, width)
			s.values.scaledCodes(out[4*from:4*to], codes[from:to], f, zero[i])
		}
		codes, out = codes[width:], out[4*width:]
	}
	return nil
}

// isFloat8 reports whether t has 8-bit floats.
func isFloat8(t *Tensor) bool { return slices.Contains(f8, t.DType) }
