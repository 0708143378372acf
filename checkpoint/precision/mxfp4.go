package precision

import (
	"fmt"
	"slices"

	"ggforge/gguf"
	"ggforge/internal/kernel/buffer"
	"ggforge/rows"
)

// mxfp4 returns a weight of MXFP4 blocks from gpt-oss' two tensors of bytes: codes of [..., rows, blocks, 16], two
// adjacent codes per byte, the first in the lower half, and scales of [..., rows, blocks].
func mxfp4(parts []*Tensor, _ Settings) (rows.Source, error) {
	c, s := parts[0].NE(), parts[1].NE()
	if len(c) < 2 || c[0] != 16 || !slices.Equal(c[1:], s) || slices.Contains(s, 0) {
		return nil, fmt.Errorf(
			"codes of dimensions %s and scales of %s, want 16 bytes of codes for each byte of scales", gguf.Shape(c),
			gguf.Shape(s))
	}
	return blocksOf(gguf.TypeMXFP4, parts[0], parts[1], s), nil
}

// nibblesMXFP4 is mxfp4 for codes of [..., rows, columns/2] and scales of
// [..., rows, columns/32].
func nibblesMXFP4(parts []*Tensor, _ Settings) (rows.Source, error) {
	c, s := parts[0].NE(), parts[1].NE()
	if len(c) < 1 || len(c) != len(s) || slices.Contains(s, 0) || c[0] != 16*s[0] || !slices.Equal(c[1:], s[1:]) {
		return nil, fmt.Errorf(
			"codes of dimensions %s and scales of %s, want 16 bytes of codes for each byte of scales", gguf.Shape(c),
			gguf.Shape(s))
	}
	return blocksOf(gguf.TypeMXFP4, parts[0], parts[1], s), nil
}

// nvfp4 returns a weight of NVFP4 blocks: codes of [..., rows, columns/2], two in a
// byte, the first in its lower half, and scales of [..., rows, columns/16] in E4M3. The
// factors of the whole weight are not in the blocks, see Factors.
func nvfp4(parts []*Tensor, _ Settings) (rows.Source, error) {
	c, s := parts[0].NE(), parts[1].NE()
	if len(c) < 2 || len(c) != len(s) || slices.Contains(s, 0) || c[0] != 8*s[0] || !slices.Equal(c[1:], s[1:]) {
		return nil, fmt.Errorf("codes of dimensions %s and scales of %s, want 8 bytes of codes for each byte of scales",
			gguf.Shape(c), gguf.Shape(s))
	}
	if s[0]%4 != 0 {
		return nil, fmt.Errorf("rows of %d, want whole blocks of 64", 16*s[0])
	}
	s[0] /= 4
	return blocksOf(gguf.TypeNVFP4, parts[0], parts[1], s), nil
}

// Factors returns the scales of a whole NVFP4 weight and of its inputs, one number or one per expert of a stack; nil
// means 1. ok is false for other weights.
func (w *Weight) Factors() (weight, input []float32, ok bool, err error) {
	if w.scheme == nil || w.scheme.name != "nvfp4" {
		return nil, nil, false, nil
	}
	if weight, err = w.factor(w.Tensors[2]); err == nil {
		input, err = w.factor(w.Tensors[3])
	}
	return weight, input, true, err
}

// factor reads one of Factors.
func (w *Weight) factor(t *Tensor) ([]float32, error) {
	if t == nil {
		return nil, nil
	}
	n, codes := t.elements(), w.First()
	if n != 1 && (len(codes.Shape) < 3 || n != codes.Shape[0]) {
		return nil, fmt.Errorf("%s: tensor %q of shape %v, want one number, or one for each of %v", t.File, t.Name,
			t.Shape, codes.Shape)
	}
	list := make([]float32, n)
	if err := t.floats(list, 0); err != nil {
		return nil, err
	}
	if w.scheme.inverse {
		for i := range list {
			list[i] = 1 / list[i]
		}
	}
	return list, nil
}

// blocksOf returns a weight whose codes and scales are copied into GGUF blocks; ne are its dimensions, counted in
// blocks.
//
//	MXFP4, 32 elements   byte 0     scale
//	                     byte 1+j   element j in the lower half, j+16 in the upper one
//
//	NVFP4, 64 elements   byte g         scale of 16 elements, without its sign; g = 0 to 3
//	                     byte 4+8*g+j   of these, element j in the lower half, j+8 in the upper one
//
// Source: block_mxfp4 and block_nvfp4 of ggml, and the repacking of the reference's
// converter.
func blocksOf(t gguf.Type, codes, scales *Tensor, ne []int64) rows.Source {
	ne = slices.Clone(ne)
	ne[0] *= t.BlockLen()
	m := &movedBlocks{bytesOf(codes), bytesOf(scales), ne, t, moveMXFP4}
	if t == gguf.TypeNVFP4 {
		m.move = moveNVFP4
	}
	return m
}

// bytesOf returns a tensor of bytes as rows of one byte, in a type of one byte per
// element.
func bytesOf(t *Tensor) rows.Source {
	if t.Mapped != nil { // the bytes are copied anyway
		return rows.Stored([]int64{1, t.elements()}, gguf.TypeI8, t.Mapped, nil)
	}
	return rows.Stored([]int64{1, t.elements()}, gguf.TypeI8, nil, t.Reader)
}

type movedBlocks struct {
	codes, scales rows.Source
	ne            []int64
	typ           gguf.Type
	move          func(out, codes, scales []byte)
}

func (m *movedBlocks) NE() []int64     { return m.ne }
func (m *movedBlocks) Type() gguf.Type { return m.typ }
func (m *movedBlocks) Cost() int64     { return costMoved }

// costMoved is the approximate cost of copying an element's code in picoseconds.
const costMoved = 300

func (m *movedBlocks) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	codes, err := m.codes.Raw(&s.raw, a*m.ne[0]/2, b*m.ne[0]/2)
	if err != nil {
		return nil, err
	}
	size := int64(32) // elements of a scale
	if m.typ == gguf.TypeNVFP4 {
		size = 16
	}
	scales, err := m.scales.Raw(&s.more, a*m.ne[0]/size, b*m.ne[0]/size)
	if err != nil {
		return nil, err
	}
	out := buffer.Resize(buf, (b-a)*m.typ.RowBytes(m.ne[0]))
	m.move(out, codes, scales)
	return out, nil
}

func moveMXFP4(out, codes, scales []byte) {
	for i, scale := range scales {
		src, dst := codes[i*16:i*16+16], out[i*17:i*17+17]
		dst[0] = scale
		for j := range 8 {
			lo, hi := src[j], src[j+8] // elements 2j, 2j+1 and 2j+16, 2j+17
			dst[1+2*j] = lo&0x0f | hi<<4
			dst[2+2*j] = lo>>4 | hi&0xf0
		}
	}
}

func moveNVFP4(out, codes, scales []byte) {
	for i := range len(scales) / 4 {
		dst := out[i*36 : i*36+36]
		for g, scale := range scales[4*i : 4*i+4] {
			dst[g] = scale & 0x7f
			src, to := codes[i*32+g*8:i*32+g*8+8], dst[4+8*g:4+8*g+8]
			for j := range 4 {
				lo, hi := src[j], src[j+4] // elements 2j, 2j+1 and 2j+8, 2j+9
				to[2*j] = lo&0x0f | hi<<4
				to[2*j+1] = lo>>4 | hi&0xf0
			}
		}
	}
}
