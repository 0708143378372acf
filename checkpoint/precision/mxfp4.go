package precision

import (
	"fmt"
	"slices"

	"ggforge/gguf"
	"ggforge/rows"
)

// mxfp4 returns a weight of MXFP4 blocks made of the two tensors of bytes in which
// checkpoints keep it: the codes of [..., rows, blocks, 16], of which a byte holds
// neighbours, the first in its lower half, and the scales of [..., rows, blocks].
// The blocks of a GGUF file are
//
//	byte 0      scale
//	byte 1+j    element j in the lower half, element j+16 in the upper one
//
// Source: block_mxfp4 of ggml, and the repacking of the reference's converter.
func mxfp4(parts []*Tensor, _ Settings) (rows.Source, error) {
	c, s := parts[0].NE(), parts[1].NE()
	if len(c) < 2 || c[0] != 16 || !slices.Equal(c[1:], s) || slices.Contains(s, 0) {
		return nil, fmt.Errorf("codes of dimensions %s and scales of %s, want 16 bytes of codes for each byte of scales", gguf.Shape(c), gguf.Shape(s))
	}
	ne := slices.Clone(s)
	ne[0] *= 32
	return &blocksMXFP4{bytesOf(parts[0]), bytesOf(parts[1]), ne}, nil
}

type blocksMXFP4 struct {
	codes, scales rows.Source
	ne            []int64
}

func (m *blocksMXFP4) NE() []int64     { return m.ne }
func (m *blocksMXFP4) Type() gguf.Type { return gguf.TypeMXFP4 }

func (m *blocksMXFP4) Cost() int64 { return costMXFP4 }

// costMXFP4 is about how many picoseconds it takes to move an element's code.
const costMXFP4 = 300

func (m *blocksMXFP4) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	blocks := m.ne[0] / 32
	var some, more []byte
	codes, err := m.codes.Raw(&some, a*blocks, b*blocks)
	if err != nil {
		return nil, err
	}
	scales, err := m.scales.Raw(&more, a, b)
	if err != nil {
		return nil, err
	}
	n := int((b - a) * gguf.TypeMXFP4.RowBytes(m.ne[0]))
	*buf = slices.Grow((*buf)[:0], n)[:n]
	out := *buf
	for i, scale := range scales {
		src, dst := codes[i*16:i*16+16], out[i*17:i*17+17]
		dst[0] = scale
		for j := range 8 {
			lo, hi := src[j], src[j+8] // elements 2j, 2j+1 and 2j+16, 2j+17
			dst[1+2*j] = lo&0x0f | hi<<4
			dst[2+2*j] = lo>>4 | hi&0xf0
		}
	}
	return out, nil
}
