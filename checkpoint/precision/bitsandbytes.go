package precision

import (
	"encoding/json"
	"fmt"
	"slices"

	"ggforge/checkpoint/safetensors"
	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/half"
	"ggforge/internal/text/pyjson"
	"ggforge/rows"
)

// int8Rows returns a weight of bitsandbytes' 8-bit scheme: integers, and for each row the magnitude (SCB) of code 127.
//
//	W = (code * SCB[row]) * (1/127), rounded twice
//
// Values of weight_format other than 0 are tilings for older GPUs.
func int8Rows(parts []*Tensor, _ Settings) (rows.Source, error) {
	codes, most, format := parts[0], parts[1], parts[2]
	if err := matrix(codes, -1, -1); err != nil {
		return nil, err
	}
	if most.elements() != codes.Shape[0] {
		return nil, fmt.Errorf("tensor %q of shape %v, want one for each of %d rows", most.Name, most.Shape,
			codes.Shape[0])
	}
	if format != nil {
		if format.elements() != 1 {
			return nil, fmt.Errorf("tensor %q of shape %v, want one number", format.Name, format.Shape)
		}
		if n, err := format.int(0); err != nil || n != 0 {
			return nil, orUnsupported(err, "tensor %q is %d, want 0: rows as they are", format.Name, n)
		}
	}
	table, width := &codesOf(safetensors.I8).table, codes.Shape[1]
	return &decoded{ne: codes.NE(), cost: costScaled, rows: func(s *scratch, out []byte, a, b int64) error {
		raw, err := codes.bytes(&s.raw, a*width, b*width)
		if err != nil {
			return err
		}
		scale := buffer.Resize(&s.f32, b-a)
		if err := most.floats(scale, a); err != nil {
			return err
		}
		for _, f := range scale {
			for i, c := range raw[:width] {
				put(out, i, float32(table[c]*f)*float32(1.0/127))
			}
			raw, out = raw[width:], out[4*width:]
		}
		return nil
	}}, nil
}

// The parts of a bitsandbytes 4-bit weight, see fourBits.
const (
	bnbCodes = iota
	bnbLargest
	bnbValues
	bnbStateNF4
	bnbStateFP4
	bnbNestedLargest
	bnbNestedValues
)

// maxState is the largest quant_state in bytes; published ones have some 200.
const maxState = 1 << 16

// fourBits returns a weight of bitsandbytes' 4-bit schemes, NF4 or FP4: the codes of the matrix as one row, two per
// byte, the first in the upper half, in blocks with an absmax each:
//
//	W[i] = round(quant_map[code[i]] * absmax[i / blocksize])
//
// rounded to the weight's original type. The absmax values may be quantized again:
//
//	absmax[b] = nested_quant_map[code[b]] * nested_absmax[b / nested_blocksize] + nested_offset
//
// quant_state is JSON with the sizes of blocks, the shape and the types. Source: the
// published layout of the bitsandbytes library and its CPU kernels.
func fourBits(parts []*Tensor, _ Settings) (rows.Source, error) {
	state := parts[bnbStateNF4]
	if state == nil {
		state = parts[bnbStateFP4]
	}
	if state == nil {
		return nil, fmt.Errorf("has no weight.quant_state of nf4 or fp4, which has its shape")
	}
	w := &fourBitRows{codes: parts[bnbCodes], largest: parts[bnbLargest]}
	shape, err := w.state(state, parts[bnbNestedLargest], parts[bnbNestedValues])
	if err != nil {
		return nil, fmt.Errorf("%q: %w", state.Name, err)
	}
	if w.values, err = numbers(parts[bnbValues], 16); err != nil {
		return nil, err
	}
	w.width = shape[1]
	n := shape[0] * shape[1]
	// bytes may be stored as numbers of another type (bnb_4bit_quant_storage)
	if size := w.codes.elements() * w.codes.size(); size != ceil(ceil(n, 2), w.codes.size())*w.codes.size() {
		return nil, fmt.Errorf("%d bytes of codes, want %d for a shape of %v", size, ceil(n, 2), shape)
	}
	if blocks := ceil(n, w.block); w.largest.elements() != blocks {
		return nil, fmt.Errorf("tensor %q of shape %v, want %d for blocks of %d", w.largest.Name, w.largest.Shape,
			blocks, w.block)
	}
	if w.nested != nil && w.nested.elements() != ceil(w.largest.elements(), w.nestedBlock) {
		return nil, fmt.Errorf("tensor %q of shape %v, want %d for blocks of %d", w.nested.Name, w.nested.Shape,
			ceil(w.largest.elements(), w.nestedBlock), w.nestedBlock)
	}
	return &decoded{ne: []int64{shape[1], shape[0]}, cost: costGrouped, rows: w.rows}, nil
}

// numbers returns the n elements of a table.
func numbers(t *Tensor, n int64) ([]float32, error) {
	if t == nil || t.elements() != n {
		return nil, fmt.Errorf("has no table of %d values", n)
	}
	list := make([]float32, n)
	return list, t.floats(list, 0)
}

type fourBitRows struct {
	codes, largest *Tensor
	nested         *Tensor // nil for magnitudes that are not quantized
	values         []float32
	nestedValues   []float32
	offset         float32
	width          int64  // of a row
	block          int64  // elements
	nestedBlock    int64  // magnitudes
	dtype          string // that W is rounded to, as PyTorch calls it
}

// rounds are the ways of rounding to a type, by its name in PyTorch.
var rounds = map[string]func(float32) float32{
	"float32":  func(f float32) float32 { return f },
	"float16":  half.RoundF16,
	"bfloat16": roundBF16,
}

func roundBF16(f float32) float32 { return half.FromBF16(half.ToBF16(f)) }

// state reads quant_state.
func (w *fourBitRows) state(t, nested, nestedValues *Tensor) (shape []int64, err error) {
	n := t.elements()
	if n > maxState {
		return nil, fmt.Errorf("%d bytes, want at most %d", n, maxState)
	}
	var buf []byte
	text, err := t.bytes(&buf, 0, n)
	if err != nil {
		return nil, err
	}
	v, err := pyjson.Parse(slices.Clone(text))
	if err != nil {
		return nil, err
	}
	m, ok := v.(*pyjson.Object)
	if !ok {
		return nil, fmt.Errorf("want a JSON object")
	}
	number := func(key string) (float64, error) {
		num, ok := m.Get(key).(json.Number)
		if !ok {
			return 0, fmt.Errorf("%s is %v, want a number", key, m.Get(key))
		}
		return num.Float64()
	}
	size := func(key string) (int64, error) {
		f, err := number(key)
		if err == nil && (f != float64(int64(f)) || f < 1 || f > maxBlock) {
			err = fmt.Errorf("%s is %v, want a size", key, f)
		}
		return int64(f), err
	}
	if w.block, err = size("blocksize"); err != nil {
		return nil, err
	}
	w.dtype, _ = m.Get("dtype").(string)
	if rounds[w.dtype] == nil {
		return nil, fault.Errorf(fault.Unsupported, "dtype is %q, want float32, float16 or bfloat16", w.dtype)
	}
	list, _ := m.Get("shape").([]any)
	for _, d := range list {
		num, _ := d.(json.Number)
		n, err := num.Int64()
		if err != nil || n < 1 || n > 1<<31 {
			return nil, fmt.Errorf("shape is %v, want rows and columns", list)
		}
		shape = append(shape, n)
	}
	if len(shape) != 2 {
		return nil, fmt.Errorf("shape is %v, want rows and columns", list)
	}
	if nested == nil {
		return shape, nil
	}
	w.nested = nested
	if w.nestedBlock, err = size("nested_blocksize"); err != nil {
		return nil, err
	}
	offset, err := number("nested_offset")
	if err != nil {
		return nil, err
	}
	w.offset = float32(offset)
	w.nestedValues, err = numbers(nestedValues, 256)
	return shape, err
}

// magnitudes fills dst with the absmax of the blocks from at on.
func (w *fourBitRows) magnitudes(s *scratch, dst []float32, at int64) error {
	if w.nested == nil {
		return w.largest.floats(dst, at)
	}
	codes, err := w.largest.bytes(&s.more, at, at+int64(len(dst)))
	if err != nil {
		return err
	}
	first := at / w.nestedBlock
	scale := buffer.Resize(&s.zero, (at+int64(len(dst))-1)/w.nestedBlock-first+1)
	if err := w.nested.floats(scale, first); err != nil {
		return err
	}
	for i, c := range codes {
		dst[i] = float32(w.nestedValues[c]*scale[(at+int64(i))/w.nestedBlock-first]) + w.offset
	}
	return nil
}

// fill sets the values of the codes of a block.
func (w *fourBitRows) fill(table *[16]float32, f float32) {
	values := (*[16]float32)(w.values)
	switch w.dtype { // function calls would dominate the cost
	case "bfloat16":
		for c, v := range values {
			table[c] = half.FromBF16(half.ToBF16(v * f))
		}
	case "float16":
		for c, v := range values {
			table[c] = half.RoundF16(v * f)
		}
	default:
		for c, v := range values {
			table[c] = v * f
		}
	}
}

func (w *fourBitRows) rows(s *scratch, out []byte, a, b int64) error {
	from, end := a*w.width, b*w.width // elements
	codes, err := w.codes.bytes(&s.raw, from/2, ceil(end, 2))
	if err != nil {
		return err
	}
	first := from / w.block
	largest := buffer.Resize(&s.f32, (end-1)/w.block-first+1)
	if err := w.magnitudes(s, largest, first); err != nil {
		return err
	}
	var table [16]float32
	for i, f := range largest {
		w.fill(&table, f)
		e := max(from, (first+int64(i))*w.block)
		to := min(end, (first+int64(i)+1)*w.block)
		if e%2 == 1 { // the second code of a byte
			put(out, 0, table[codes[0]&15])
			codes, out, e = codes[1:], out[4:], e+1
		}
		n := int((to - e) / 2)
		for j, c := range codes[:n] {
			put(out[8*j:8*j+8], 0, table[c>>4])
			put(out[8*j:8*j+8], 1, table[c&15])
		}
		codes, out = codes[n:], out[8*n:]
		if (to-e)%2 == 1 { // the first
			put(out, 0, table[codes[0]>>4])
			out = out[4:]
		}
	}
	return nil
}
