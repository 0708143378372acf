package precision

import (
	"fmt"
	"slices"

	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
	"ggforge/rows"
)

// packedInts returns a weight of compressed-tensors in format pack-quantized, codes of 1 to 8 bits in 32-bit words, per
// whole codes in each, the first in the lowest bits:
//
//	weight_packed      [out, ceil(in/per)]       words along the columns
//	weight_scale       [out, groups]
//	weight_shape       [2]: out, in
//	weight_zero_point  [ceil(out/per), groups]   words along the rows; half the range without
//	weight_g_idx       [in]: the group of each column, where they are in any order
func packedInts(parts []*Tensor, settings Settings) (rows.Source, error) {
	words, scales, shape, zeros, order := parts[0], parts[1], parts[2], parts[3], parts[4]
	size, err := shape.whole(2)
	if err != nil {
		return nil, err
	}
	g := &grouped{out: size[0], in: size[1]}
	if g.out < 1 || g.in < 1 {
		return nil, fmt.Errorf("tensor %q says %v, want rows and columns", shape.Name, size)
	}
	if err := matrix(words, g.out, -1); err != nil {
		return nil, err
	}
	if err := matrix(scales, g.out, -1); err != nil {
		return nil, err
	}
	g.groups = scales.Shape[1]
	set, err := packedSettings(settings, packedShape{in: g.in, words: words.Shape[1], groups: g.groups,
		zeros: zeros != nil})
	if err != nil {
		return nil, err
	}
	bits, per := set.bits, 32/set.bits
	g.bits = bits
	if order != nil {
		err = g.ordered(order)
	} else {
		err = g.runs(set.size, set.sized)
	}
	if err != nil {
		return nil, err
	}
	if zeros != nil {
		err = matrix(zeros, ceil(g.out, per), g.groups)
	} else if set.asymmetric {
		err = fmt.Errorf("has no weight_zero_point, although \"symmetric\" is false in quantization_config")
	}
	if err != nil {
		return nil, err
	}
	g.codes = func(s *scratch, dst []byte, a, b int64) error { return packedRows(s, words, dst, g.in, bits, a, b) }
	g.meta = func(s *scratch, scale, zero []float32, a, b int64) error {
		if err := scales.floats(scale, a*g.groups); err != nil {
			return err
		}
		if zeros == nil {
			for i := range zero {
				zero[i] = float32(int(1) << (bits - 1))
			}
			return nil
		}
		row := buffer.Resize(&s.words, g.groups)
		for o := a; o < b; o++ {
			if err := zeros.words(s, row, o/per*g.groups); err != nil {
				return err
			}
			for k, w := range row {
				zero[(o-a)*g.groups+int64(k)] = float32(w >> (o % per * bits) & (1<<bits - 1))
			}
		}
		return nil
	}
	return g.source(), nil
}

// packedRows fills dst, [b-a, in], with the codes of rows [a, b) of t, whose words have codes of adjacent columns.
func packedRows(s *scratch, t *Tensor, dst []byte, in, bits, a, b int64) error {
	row := buffer.Resize(&s.words, t.Shape[1])
	for o := a; o < b; o++ {
		if err := t.words(s, row, o*t.Shape[1]); err != nil {
			return err
		}
		unpack(dst[:in], row, int(bits), false)
		dst = dst[in:]
	}
	return nil
}

// packedGroup has the settings of packed weights in a config group.
type packedGroup struct {
	bits, size        int64
	sized, asymmetric bool // has a size; needs zero points
}

// packedShape has the sizes that follow from the tensors of a packed weight.
type packedShape struct {
	in, words, groups int64 // of a row
	zeros             bool
}

// fits reports whether the settings fit weights of that shape.
func (g packedGroup) fits(t packedShape) bool {
	size := g.size
	if !g.sized || size < 1 {
		size = t.in
	}
	return g.fitsWords(t) && ceil(t.in, size) == t.groups && g.asymmetric == t.zeros
}

func (g packedGroup) fitsWords(t packedShape) bool { return ceil(t.in, 32/g.bits) == t.words }

// packedSettings returns the group of settings that fits the shape of a weight. With several groups, the weight's shape
// decides; it is an error if it fits different ones.
func packedSettings(settings Settings, t packedShape) (set packedGroup, err error) {
	var all, fit []packedGroup // all without doubles
	for _, weights := range groups(settings) {
		var g packedGroup
		var ok bool
		if g.bits, ok, err = weights.Int("num_bits"); err != nil || !ok {
			continue
		}
		if kind, ok, err := weights.String("type"); err != nil || ok && kind != "int" {
			continue
		}
		if g.size, g.sized, err = weights.Int("group_size"); err != nil {
			return set, err
		}
		if symmetric, ok := weights.Members()["symmetric"].(bool); ok {
			g.asymmetric = !symmetric
		}
		if g.bits < 1 || g.bits > 8 {
			return set, fault.Errorf(fault.Unsupported, "quantization_config: num_bits is %d, want 1 to 8", g.bits)
		}
		if !slices.Contains(all, g) {
			all = append(all, g)
		}
	}
	for _, fits := range []func(packedGroup, packedShape) bool{packedGroup.fits, packedGroup.fitsWords} {
		if fit = slices.DeleteFunc(slices.Clone(all), func(g packedGroup) bool { return !fits(g, t) }); len(fit) > 0 {
			break
		}
	}
	switch {
	case err != nil:
		return set, err
	case len(all) == 0:
		return set, fmt.Errorf("quantization_config has no config_groups with num_bits")
	case len(fit) == 0:
		return set, fmt.Errorf("%d words for %d columns, want %d of %d bits (num_bits)", t.words, t.in,
			ceil(t.in, 32/all[0].bits), all[0].bits)
	case len(fit) > 1:
		return set, fault.Errorf(fault.Unsupported,
			"quantization_config has %d config_groups that fit: which one holds cannot be told", len(fit))
	}
	return fit[0], nil
}
