package precision

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"ggforge/checkpoint/safetensors"
	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/text/pyjson"
	"ggforge/rows"
)

// ComfyUI's checkpoints of mixed precision have a text next to each quantized weight, the bytes of a JSON object such as
// {"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 256}. Settings may also be members of an object
// "params" in it.
//
//	format                  codes         scales, by which the codes are multiplied
//	float8_e4m3fn           E4M3          one, or one for each row as [rows, 1]
//	float8_e5m2             E5M2          the same
//	float8_e4m3fn_rowwise   E4M3          [rows] or [rows, 1]
//	float8_e4m3fn_blockwise E4M3          one for each block of [group_size, group_size]
//	int8_tensorwise         I8            one, or one for each row as [rows, 1]; with convrot, the rows are rotated
//	int8_blockwise          I8            one for each block of [group_size, group_size]
//	convrot_w4a4            I8, 4 bits    [rows] or [rows, 1]; the rows are rotated
//	nvfp4                   U8, 4 bits    E4M3 for 16 columns, in tiles; weight_scale_2, one of the whole weight;
//	                                      pre_quant_scale, one for each column, where calibration has smoothed inputs
//	mxfp8                   E4M3          exponents for 32 columns, in tiles
//
// Source: comfy/quant_ops.py and comfy/ops.py of ComfyUI, comfy_kitchen/tensor; for the row-wise and block-wise formats
// docs/FORMATS.md of silveroxides/convert_to_quant.

// maxComfy bounds the text next to a weight that names its format, in bytes. Files have some 40 to 80.
const maxComfy = 4 << 10

// maxRotated bounds the groups of a rotation, in columns. Files have 256. Sums of codes are exact in float32 up to it.
const maxRotated = 1 << 16

// The parts of the scheme.
const (
	comfyCodes = iota
	comfyText
	comfyScale
	comfyScale2
	comfyPreScale
	comfyInput
)

// comfyFormat is a format of weights.
type comfyFormat struct {
	codes  safetensors.DType
	source func(l *comfyLayer) (rows.Source, error)
}

// comfyFormats are the formats by name. asym_w4a8_int8, awq_w4a16 and svdquant_w4a4 are not among them.
var comfyFormats = map[string]comfyFormat{
	"float8_e4m3fn":           {safetensors.F8_E4M3, (*comfyLayer).scaled},
	"float8_e5m2":             {safetensors.F8_E5M2, (*comfyLayer).scaled},
	"float8_e4m3fn_rowwise":   {safetensors.F8_E4M3, (*comfyLayer).rowwise},
	"float8_e4m3fn_blockwise": {safetensors.F8_E4M3, func(l *comfyLayer) (rows.Source, error) { return l.blockwise(64) }},
	"int8_tensorwise":         {safetensors.I8, (*comfyLayer).int8},
	"int8_blockwise":          {safetensors.I8, func(l *comfyLayer) (rows.Source, error) { return l.blockwise(128) }},
	"convrot_w4a4":            {safetensors.I8, (*comfyLayer).int4},
	"nvfp4":                   {safetensors.U8, (*comfyLayer).nvfp4},
	"mxfp8":                   {safetensors.F8_E4M3, (*comfyLayer).mxfp8},
}

// comfyLayer is a weight with a text next to it.
type comfyLayer struct {
	parts        []*Tensor
	codes, scale *Tensor // parts of it
	text         *pyjson.Object
}

// comfy returns the rows of a weight with a text next to it. An unknown format gives an error of kind fault.Unsupported.
func comfy(parts []*Tensor, _ Settings) (rows.Source, error) {
	l := &comfyLayer{parts: parts, codes: parts[comfyCodes], scale: parts[comfyScale]}
	var err error
	if l.text, err = comfySettings(parts[comfyText]); err != nil {
		return nil, err
	}
	name, isText := l.text.Get("format").(string)
	format, ok := comfyFormats[name]
	switch {
	case !isText:
		return nil, fmt.Errorf("%q: format is %s, want a text", parts[comfyText].Name,
			pyjson.Describe(l.text.Get("format")))
	case !ok:
		return nil, fault.Errorf(fault.Unsupported, "%q has format %q, which is not converted; %s are",
			parts[comfyText].Name, name, strings.Join(slices.Sorted(maps.Keys(comfyFormats)), ", "))
	case l.codes.DType != format.codes:
		return nil, fmt.Errorf("holds %v, but %q has format %q, which has %v", l.codes.DType, parts[comfyText].Name, name,
			format.codes)
	case l.scale == nil:
		return nil, fmt.Errorf("no weight_scale is next to it, which format %q has", name)
	case slices.Contains(l.codes.Shape, 0) || len(l.codes.Shape) < 1:
		return nil, fmt.Errorf("shape %v, want at least one dimension, and all of at least 1", l.codes.Shape)
	case name != "nvfp4" && (parts[comfyScale2] != nil || parts[comfyPreScale] != nil):
		return nil, fmt.Errorf("weight_scale_2 or pre_quant_scale is next to it, which format %q does not have", name)
	}
	src, err := format.source(l)
	if err != nil {
		return nil, fmt.Errorf("format %q: %w", name, err)
	}
	return src, nil
}

// comfySettings reads the text of a weight.
func comfySettings(t *Tensor) (*pyjson.Object, error) {
	n := t.elements()
	if len(t.Shape) != 1 || n > maxComfy {
		return nil, fmt.Errorf("%q has shape %v, want a text of at most %d bytes", t.Name, t.Shape, maxComfy)
	}
	var buf []byte
	text, err := t.bytes(&buf, 0, n)
	if err != nil {
		return nil, err
	}
	v, err := pyjson.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", t.Name, err)
	}
	o, ok := v.(*pyjson.Object)
	if !ok {
		return nil, fmt.Errorf("%q is %s, want an object", t.Name, pyjson.Describe(v))
	}
	return o, nil
}

// set returns a setting, nil for none.
func (l *comfyLayer) set(key string) any {
	if v, ok := l.text.Lookup(key); ok {
		return v
	}
	params, _ := l.text.Get("params").(*pyjson.Object)
	return params.Get(key)
}

// integer returns a setting of 1 to most, or without if it is not set.
func (l *comfyLayer) integer(key string, without, most int64) (int64, error) {
	v := l.set(key)
	if v == nil {
		return without, nil
	}
	if n, ok := pyjson.Integer(v); ok && n.IsInt64() && n.Int64() >= 1 && n.Int64() <= most {
		return n.Int64(), nil
	}
	return 0, fmt.Errorf("%s is %s, want an integer from 1 to %d", key, pyjson.Describe(v), most)
}

// want returns an error about the scales.
func (l *comfyLayer) want(what string) error {
	return fmt.Errorf("scales %q of %v %v, want %s for %v", l.scale.Name, l.scale.DType, l.scale.Shape, what,
		l.codes.Shape)
}

// perRow reports whether there is a scale for each row of the codes.
func (l *comfyLayer) perRow() bool {
	shape := l.scale.Shape
	return len(shape) >= 1 && len(shape) <= len(l.codes.Shape) && shape[0] == l.codes.Shape[0] &&
		l.scale.elements() == shape[0]
}

// numbers reports whether the scales are floating-point numbers.
func (l *comfyLayer) numbers() bool { return slices.Contains(floats, l.scale.DType) }

func (l *comfyLayer) scaled() (rows.Source, error) {
	// a list would be broadcast along the columns there
	if !l.numbers() || l.scale.elements() != 1 && (!l.perRow() || len(l.scale.Shape) == 1) {
		return nil, l.want("one number, or a column of them, one for each row,")
	}
	return scaledBy(l.codes, l.scale, nil, nil)
}

func (l *comfyLayer) rowwise() (rows.Source, error) {
	if !l.numbers() || !l.perRow() {
		return nil, l.want("one number for each row")
	}
	return scaledBy(l.codes, l.scale, nil, nil)
}

func (l *comfyLayer) blockwise(without int64) (rows.Source, error) {
	side, err := l.integer("group_size", without, maxBlock)
	if err != nil {
		return nil, err
	}
	if s := l.codes.Shape; !l.numbers() || len(s) != 2 ||
		!slices.Equal(l.scale.Shape, []int64{ceil(s[0], side), ceil(s[1], side)}) {
		return nil, l.want(fmt.Sprintf("a number for each block of [%d %d]", side, side))
	}
	return scaledBy(l.codes, l.scale, nil, []int64{side, side})
}

func (l *comfyLayer) int8() (rows.Source, error) {
	if !pyjson.Truthy(l.set("convrot")) {
		return l.scaled()
	}
	if !l.numbers() || l.scale.elements() != 1 && !l.perRow() {
		return nil, l.want("one number, or one for each row,")
	}
	return l.rotated(1)
}

func (l *comfyLayer) int4() (rows.Source, error) {
	if !l.numbers() || !l.perRow() {
		return nil, l.want("one number for each row")
	}
	return l.rotated(2)
}

// costRotated is the approximate cost of an element in picoseconds.
const costRotated = 4000

// rotated returns rows of codes that were rotated before they were rounded; per is the number of codes in a byte: of 8
// bits, or of 4, the first in the lower half. Each group of n columns was multiplied by H/sqrt(n), H being the matrix of
// n = 4, 16, 64, ... rows that is the Kronecker product of
//
//	1  1  1 -1
//	1  1 -1  1
//	1 -1  1  1
//	-1 1  1  1
//
// H is symmetric and H*H = n, so that the same product rotates back. Sums of codes are exact: only the product with
// scale/sqrt(n) rounds.
func (l *comfyLayer) rotated(per int64) (rows.Source, error) {
	if len(l.codes.Shape) != 2 {
		return nil, fmt.Errorf("shape %v, want a matrix", l.codes.Shape)
	}
	const key = "convrot_groupsize"
	group, err := l.integer(key, 256, maxRotated)
	if err != nil {
		return nil, err
	}
	root := int64(math.Sqrt(float64(group)))
	height, width := l.codes.Shape[0], l.codes.Shape[1]*per
	switch {
	case group < 4 || root*root != group || group&(group-1) != 0:
		return nil, fmt.Errorf("%s is %d, want a power of 4", key, group)
	case width%group != 0:
		return nil, fmt.Errorf("%d columns are not whole groups of %d (%s)", width, group, key)
	}
	return &decoded{ne: []int64{width, height}, cost: costRotated, rows: func(s *scratch, out []byte, a, b int64) error {
		raw, err := l.codes.bytes(&s.raw, a*l.codes.Shape[1], b*l.codes.Shape[1])
		if err != nil {
			return err
		}
		x, scale := buffer.Resize(&s.f32, width), []float32{0}
		for r := a; r < b; r++ {
			if per == 1 {
				for i := range x {
					x[i] = float32(int8(raw[i]))
				}
			} else {
				for i, c := range raw[:width/2] {
					x[2*i], x[2*i+1] = float32(int8(c<<4)>>4), float32(int8(c)>>4)
				}
			}
			at := r
			if l.scale.elements() == 1 {
				at = 0
			}
			if err := l.scale.floats(scale, at); err != nil {
				return err
			}
			rotate(x, int(group))
			f := scale[0] / float32(root)
			for i, v := range x {
				put(out, i, v*f)
			}
			raw, out = raw[l.codes.Shape[1]:], out[4*width:]
		}
		return nil
	}}, nil
}

// rotate multiplies each group of n columns by H, see rotated; n is a power of 4.
func rotate(x []float32, n int) {
	for step := 1; step < n; step *= 4 {
		for from := 0; from < len(x); from += 4 * step {
			for i := from; i < from+step; i++ {
				a, b, c, d := x[i], x[i+step], x[i+2*step], x[i+3*step]
				x[i], x[i+step] = a+b+c-d, a+b-c+d
				x[i+2*step], x[i+3*step] = a-b+c+d, b+c+d-a
			}
		}
	}
}

// tiles returns the bytes of the scales of row r: 128 rows of scales, whose columns are padded to a multiple of 4, are
// tiles of 4 columns, one after the other. In a tile of 512 bytes the scale of row r, column c is at byte
// 16*(r%32) + 4*(r/32) + c.
//
// Source: the layout of block scaling factors in the manual of cuBLAS.
type tiles struct {
	scale   *Tensor
	columns int64 // of scales
	band    int64 // the rows [128*band, 128*band+128) are in raw; -1 for none
	raw     []byte
}

// inTiles checks the scales, one byte for each size columns of the weight.
func (l *comfyLayer) inTiles(types []safetensors.DType, height, width, size int64) error {
	if width%size != 0 {
		return fmt.Errorf("%d columns, want a multiple of %d", width, size)
	}
	if n := ceil(height, 128) * 512 * ceil(width/size, 4); !slices.Contains(types, l.scale.DType) ||
		l.scale.elements() != n {
		return l.want(fmt.Sprintf("%d bytes (one for each %d columns, in tiles of 128 x 4)", n, size))
	}
	return nil
}

// row fills dst with the scales of row r.
func (t *tiles) row(buf *[]byte, dst []byte, r int64) error {
	size := 512 * ceil(t.columns, 4)
	if band := r / 128; band != t.band {
		var err error
		if t.raw, err = t.scale.bytes(buf, band*size, (band+1)*size); err != nil {
			return err
		}
		t.band = band
	}
	at := 16*(r%32) + 4*(r%128/32)
	for c := range dst {
		dst[c] = t.raw[int64(c/4)*512+at+int64(c%4)]
	}
	return nil
}

// mxfp8 multiplies codes by the powers of the scales' type: of code 0, 2^-127, of which comfy-kitchen's decoder in PyTorch
// makes 0. Its encoder writes it for blocks of zeros.
func (l *comfyLayer) mxfp8() (rows.Source, error) {
	const size = 32
	if len(l.codes.Shape) != 2 {
		return nil, fmt.Errorf("shape %v, want a matrix", l.codes.Shape)
	}
	height, width := l.codes.Shape[0], l.codes.Shape[1]
	if err := l.inTiles(exponents, height, width, size); err != nil {
		return nil, err
	}
	values, powers := codesOf(safetensors.F8_E4M3), &codesOf(safetensors.F8_E8M0).table
	return &decoded{ne: l.codes.NE(), cost: costScaled, rows: func(s *scratch, out []byte, a, b int64) error {
		raw, err := l.codes.bytes(&s.raw, a*width, b*width)
		if err != nil {
			return err
		}
		t, scale := tiles{scale: l.scale, columns: width / size, band: -1}, buffer.Resize(&s.zeros, width/size)
		for r := a; r < b; r++ {
			if err := t.row(&s.more, scale, r); err != nil {
				return err
			}
			for _, c := range scale {
				values.scaledCodes(out[:4*size], raw[:size], powers[c], 0)
				raw, out = raw[size:], out[4*size:]
			}
		}
		return nil
	}}, nil
}

// e2m1 are the values of 4-bit floats.
var e2m1 = [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, float32(math.Copysign(0, -1)), -0.5, -1, -1.5, -2, -3, -4, -6}

// costFloat4 is the approximate cost of an element in picoseconds.
const costFloat4 = 1500

// nvfp4 has the first code of a byte in its upper half. A code is multiplied by the product of its scale and the whole
// weight's, and then by its column's: as inputs are multiplied by that before the weight.
func (l *comfyLayer) nvfp4() (rows.Source, error) {
	const size = 16
	if len(l.codes.Shape) != 2 {
		return nil, fmt.Errorf("shape %v, want a matrix", l.codes.Shape)
	}
	height, width := l.codes.Shape[0], 2*l.codes.Shape[1]
	if err := l.inTiles(slices.Concat(e4m3, u8), height, width, size); err != nil {
		return nil, err
	}
	if l.parts[comfyScale2] == nil {
		return nil, fmt.Errorf("no weight_scale_2 is next to it")
	}
	whole, err := l.parts[comfyScale2].number()
	if err != nil {
		return nil, err
	}
	pre := l.parts[comfyPreScale]
	if pre != nil && (pre.elements() != width || !slices.Contains(floats, pre.DType)) {
		return nil, fmt.Errorf("scales %q of %v %v, want one for each of %d columns", pre.Name, pre.DType, pre.Shape, width)
	}
	scales := &codesOf(safetensors.F8_E4M3).table
	return &decoded{ne: []int64{width, height}, cost: costFloat4, rows: func(s *scratch, out []byte, a, b int64) error {
		raw, err := l.codes.bytes(&s.raw, a*width/2, b*width/2)
		if err != nil {
			return err
		}
		x := buffer.Resize(&s.f32, width)
		for i := range x {
			x[i] = 1
		}
		if pre != nil {
			if err := pre.floats(x, 0); err != nil {
				return err
			}
		}
		t, scale := tiles{scale: l.scale, columns: width / size, band: -1}, buffer.Resize(&s.zeros, width/size)
		for r := a; r < b; r++ {
			if err := t.row(&s.more, scale, r); err != nil {
				return err
			}
			for k, c := range scale {
				factor, column := whole*scales[c], x[k*size:][:size]
				for i, c := range raw[:size/2] {
					put(out, 2*i, e2m1[c>>4]*factor*column[2*i])
					put(out, 2*i+1, e2m1[c&15]*factor*column[2*i+1])
				}
				raw, out = raw[size/2:], out[4*size:]
			}
		}
		return nil
	}}, nil
}

// weightScaled returns the rows of parts weight, scale_weight; others are scales of activations.
func weightScaled(parts []*Tensor, _ Settings) (rows.Source, error) {
	return scaledBy(parts[0], parts[1], nil, nil)
}
