package precision

import (
	"encoding/binary"
	"fmt"
	"strings"

	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
	"ggforge/rows"
)

// The tensors of GPTQ and AWQ have the same names. All are transposed except gemv's:
//
//	        GPTQ of b bits             AWQ, gemm         AWQ, gemv
//	qweight [in*b/32, out]             [in, out/8]       [out, in/8]   words of 32 bits
//	qzeros  [groups, out*b/32]         [groups, out/8]   [out, w]
//	scales  [groups, out]              [groups, out]     [out, 8*w]
//	g_idx   [in]: the group of each    -                 -
//
// w words have the zero points of all groups and padding. gemv has the codes in order, the first in the lowest bits.
//
// Codes of GPTQ are a bit stream, the first in the lowest bits: along the inputs in qweight, along the outputs in
// qzeros. Its older format stores zero points minus 1. A word of AWQ has the codes of eight outputs in the order of
// awqOrder.

// isAWQ reports whether parts with these names are AWQ's.
func isAWQ(parts []*Tensor, _ Settings) bool {
	w, scales := parts[0], parts[2]
	return len(w.Shape) == 2 && len(scales.Shape) == 2 && w.Shape[1]*8 == scales.Shape[1]
}

// isGEMV reports whether the parts are AWQ's in the layout of its gemv kernels; with short groups, only the settings
// distinguish it from GPTQ.
func isGEMV(parts []*Tensor, settings Settings) bool {
	version, _, err := settings.String("version")
	return err == nil && strings.EqualFold(version, "gemv") && len(parts[0].Shape) == 2
}

// gptq returns a weight of GPTQ.
func gptq(parts []*Tensor, settings Settings) (rows.Source, error) {
	qweight, qzeros, scales, order := parts[0], parts[1], parts[2], parts[3]
	if err := matrix(scales, -1, -1); err != nil {
		return nil, err
	}
	g := &grouped{groups: scales.Shape[0], out: scales.Shape[1]}
	if err := matrix(qweight, -1, g.out); err != nil {
		return nil, err
	}
	if err := matrix(qzeros, g.groups, -1); err != nil {
		return nil, err
	}
	bits, err := gptqBits(qzeros.Shape[1], g.out, settings)
	if err != nil {
		return nil, err
	}
	if g.in = qweight.Shape[0] * 32 / bits; g.in*bits != qweight.Shape[0]*32 {
		return nil, fmt.Errorf("tensor %q of shape %v, want rows of whole codes of %d bits", qweight.Name,
			qweight.Shape, bits)
	}
	if order != nil {
		err = g.ordered(order)
	} else {
		size, ok, e := settings.Int("group_size")
		if err = e; err == nil {
			err = g.runs(size, ok)
		}
	}
	if err != nil {
		return nil, err
	}
	g.bits, g.byColumn = bits, true
	format, ok, err := settings.String("checkpoint_format")
	if err != nil {
		return nil, err
	}
	less := float32(0)
	switch {
	case !ok || format == "gptq":
		less = 1
	case format != "gptq_v2":
		return nil, fault.Errorf(fault.Unsupported,
			"quantization_config: checkpoint_format is %q, want gptq or gptq_v2", format)
	}
	if packing, ok, err := settings.String("packing_format"); err != nil || ok && !strings.Contains(packing, "gptq") {
		return nil, orUnsupported(err, "quantization_config: packing_format is %q, want one of GPTQ", packing)
	}
	g.codes = func(s *scratch, dst []byte, a, b int64) error {
		words := buffer.Resize(&s.words, (b-a)*qweight.Shape[0])
		if err := qweight.columns(s, words, a, b); err != nil {
			return err
		}
		for ; len(dst) > 0; dst, words = dst[g.in:], words[qweight.Shape[0]:] {
			unpack(dst[:g.in], words, int(bits), true)
		}
		return nil
	}
	g.meta = func(s *scratch, scale, zero []float32, a, b int64) error {
		first, end := a*bits/32, ceil(b*bits, 32) // the words of rows [a, b)
		words := buffer.Resize(&s.words, end-first)
		row := buffer.Resize(&s.table, b-a)
		for k := range g.groups {
			if err := scales.floats(row, k*g.out+a); err != nil {
				return err
			}
			if err := qzeros.words(s, words, k*qzeros.Shape[1]+first); err != nil {
				return err
			}
			for o, f := range row {
				at := int64(o)*g.groups + k
				scale[at] = f
				zero[at] = float32(codeAt(words, (a+int64(o))*bits-first*32, int(bits))) + less
			}
		}
		return nil
	}
	return g.source(), nil
}

// gptqBits returns the bits of a code, computed from the columns of qzeros. The settings must agree, unless they have
// rules for single modules.
func gptqBits(zeroColumns, out int64, settings Settings) (int64, error) {
	bits, ok, err := settings.Int("bits")
	if err != nil {
		return 0, err
	}
	for _, b := range []int64{2, 3, 4, 8} {
		if zeroColumns != out*b/32 || out*b%32 != 0 {
			continue
		}
		dynamic := len(settings.Under("dynamic").Members())+len(settings.Under("extra_config").Members()) > 0
		if ok && b != bits && !dynamic {
			return 0, fmt.Errorf("zero points of %d bits, want %d as quantization_config says", b, bits)
		}
		return b, nil
	}
	return 0, fmt.Errorf("%d words of zero points for %d outputs, want those of 2, 3, 4 or 8 bits", zeroColumns, out)
}

// codeAt returns the code that begins at a bit of words.
func codeAt(words []uint32, at int64, bits int) byte {
	w := uint64(words[at/32])
	if at%32+int64(bits) > 32 {
		w |= uint64(words[at/32+1]) << 32
	}
	return byte(w>>(at%32)) & byte(1<<bits-1)
}

// orUnsupported returns err, or else an error of kind fault.Unsupported.
func orUnsupported(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return fault.Errorf(fault.Unsupported, format, args...)
}

// awqOrder is the nibble of a word for each of its eight outputs. Source: the gemm kernels of AutoAWQ.
var awqOrder = [8]int{0, 4, 1, 5, 2, 6, 3, 7}

// awq returns a weight of AWQ in the layout of its gemm kernels.
func awq(parts []*Tensor, settings Settings) (rows.Source, error) {
	qweight, qzeros, scales := parts[0], parts[1], parts[2]
	if version, ok, err := settings.String("version"); err != nil || ok && !strings.EqualFold(version, "gemm") {
		return nil, orUnsupported(err, "quantization_config: version is %q, want gemm or gemv", version)
	}
	if err := awqBits(settings); err != nil {
		return nil, err
	}
	if err := matrix(scales, -1, -1); err != nil {
		return nil, err
	}
	g := &grouped{groups: scales.Shape[0], out: scales.Shape[1]}
	if g.out%8 != 0 {
		return nil, fmt.Errorf("tensor %q of shape %v, want a multiple of 8 columns: as many as a word has codes",
			scales.Name, scales.Shape)
	}
	if err := matrix(qweight, -1, g.out/8); err != nil {
		return nil, err
	}
	if err := matrix(qzeros, g.groups, g.out/8); err != nil {
		return nil, err
	}
	g.in = qweight.Shape[0]
	size, ok, err := settings.Int("group_size", "q_group_size")
	if err == nil {
		err = g.runs(size, ok)
	}
	if err != nil {
		return nil, err
	}
	g.bits, g.byColumn = 4, true
	g.codes = func(s *scratch, dst []byte, a, b int64) error { return awqCodes(s, qweight, dst, a, b) }
	g.meta = func(s *scratch, scale, zero []float32, a, b int64) error {
		row := buffer.Resize(&s.table, b-a)
		for k := range g.groups {
			if err := scales.floats(row, k*g.out+a); err != nil {
				return err
			}
			for o, f := range row {
				scale[int64(o)*g.groups+k] = f
			}
		}
		codes := buffer.Resize(&s.zeros, (b-a)*g.groups)
		if err := awqCodes(s, qzeros, codes, a, b); err != nil {
			return err
		}
		for i, c := range codes {
			zero[i] = float32(c)
		}
		return nil
	}
	return g.source(), nil
}

// awqCodes fills dst with the codes of outputs [a, b), output by output, of a matrix whose columns have words of eight
// outputs. a and b are multiples of 8.
func awqCodes(s *scratch, t *Tensor, dst []byte, a, b int64) error {
	height, first := t.Shape[0], a/8
	words := buffer.Resize(&s.words, (b/8-first)*height)
	if err := t.columns(s, words, first, b/8); err != nil {
		return err
	}
	for ; len(words) > 0; words, dst = words[height:], dst[8*height:] {
		column := words[:height]
		r := int64(0)
		for ; len(column) >= 8; column, r = column[8:], r+8 {
			// the lower and the upper nibbles of eight words, transposed as bytes
			w := (*[8]uint32)(column)
			l0, l1, l2, l3 := transposed(w, 0)
			h0, h1, h2, h3 := transposed(w, 4)
			for o, codes := range [8]uint64{l0, l2, h0, h2, l1, l3, h1, h3} { // nibbles awqOrder[o]
				binary.LittleEndian.PutUint64(dst[int64(o)*height+r:], codes)
			}
		}
		for o, nibble := range awqOrder {
			for i, w := range column {
				dst[int64(o)*height+r+int64(i)] = byte(w>>(4*nibble)) & 15
			}
		}
	}
	return nil
}

// transposed returns 4 bits of each byte of the words, from bit shift on: byte i of word
// j becomes byte j of result i.
func transposed(w *[8]uint32, shift int) (a, b, c, d uint64) {
	const nibbles, bytes, pairs = 0x0F0F0F0F0F0F0F0F, 0x00FF00FF00FF00FF, 0x0000FFFF0000FFFF
	x := (uint64(w[0]) | uint64(w[4])<<32) >> shift & nibbles
	y := (uint64(w[1]) | uint64(w[5])<<32) >> shift & nibbles
	z := (uint64(w[2]) | uint64(w[6])<<32) >> shift & nibbles
	u := (uint64(w[3]) | uint64(w[7])<<32) >> shift & nibbles
	x, y = x&bytes|y&bytes<<8, x>>8&bytes|y&^bytes
	z, u = z&bytes|u&bytes<<8, z>>8&bytes|u&^bytes
	return x&pairs | z&pairs<<16, y&pairs | u&pairs<<16, x>>16&pairs | z&^pairs, y>>16&pairs | u&^pairs
}

// awqBits returns an error unless codes have 4 bits.
func awqBits(settings Settings) error {
	bits, ok, err := settings.Int("bits", "w_bit")
	if err != nil || ok && bits != 4 {
		return orUnsupported(err, "quantization_config: %d bits, want 4", bits)
	}
	return nil
}

// gemv returns a weight of AWQ in the layout of its gemv kernels.
func gemv(parts []*Tensor, settings Settings) (rows.Source, error) {
	qweight, qzeros, scales := parts[0], parts[1], parts[2]
	if err := awqBits(settings); err != nil {
		return nil, err
	}
	if err := matrix(qweight, -1, -1); err != nil {
		return nil, err
	}
	g := &grouped{out: qweight.Shape[0], in: qweight.Shape[1] * 8, bits: 4}
	size, ok, err := settings.Int("group_size", "q_group_size")
	if err != nil {
		return nil, err
	}
	if !ok || size == -1 {
		size = g.in
	}
	if size < 1 || g.in%size != 0 {
		return nil, fmt.Errorf("quantization_config: group_size is %d for %d columns", size, g.in)
	}
	g.groups = g.in / size
	if err := g.runs(size, true); err != nil {
		return nil, err
	}
	if err := matrix(qzeros, g.out, -1); err != nil {
		return nil, err
	}
	width := qzeros.Shape[1]
	if 8*width < g.groups {
		return nil, fmt.Errorf("tensor %q of shape %v, want zero points of %d groups", qzeros.Name,
			qzeros.Shape, g.groups)
	}
	if err := matrix(scales, g.out, 8*width); err != nil {
		return nil, err
	}
	g.codes = func(s *scratch, dst []byte, a, b int64) error { return packedRows(s, qweight, dst, g.in, 4, a, b) }
	g.meta = func(s *scratch, scale, zero []float32, a, b int64) error {
		codes := buffer.Resize(&s.zeros, (b-a)*g.groups)
		if err := packedRows(s, qzeros, codes, g.groups, 4, a, b); err != nil {
			return err
		}
		for i, c := range codes {
			zero[i] = float32(c)
		}
		for o := range b - a {
			if err := scales.floats(scale[o*g.groups:(o+1)*g.groups], (a+o)*8*width); err != nil {
				return err
			}
		}
		return nil
	}
	return g.source(), nil
}
