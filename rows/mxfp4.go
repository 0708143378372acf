package rows

import (
	"fmt"
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/safetensors"
)

// Bytes returns a tensor of U8 as it is, in a type of one byte per element.
func Bytes(t *safetensors.Tensor) (Source, error) {
	if t.DType != safetensors.U8 {
		return nil, fault.Errorf(fault.Unsupported, "%s: tensor %q holds %v, want U8", t.File(), t.Name, t.DType)
	}
	ne := slices.Clone(t.Shape)
	slices.Reverse(ne)
	return &memory{ne: ne, typ: gguf.TypeI8, data: t.Data()}, nil
}

// MXFP4 returns a tensor of MXFP4 blocks made of the two tensors in which
// checkpoints keep it: the codes of [..., rows, blocks, 16], of which a byte holds
// neighbours, the first in its lower half, and the scales of [..., rows, blocks].
// Both are bytes. The file's blocks are
//
//	byte 0      scale
//	byte 1+j    element j in the lower half, element j+16 in the upper one
//
// Source: block_mxfp4 of ggml, and the repacking of the reference's converter.
func MXFP4(codes, scales Source) (Source, error) {
	c, s := codes.NE(), scales.NE()
	if len(c) < 2 || c[0] != 16 || !slices.Equal(c[1:], s) || codes.Type() != gguf.TypeI8 || scales.Type() != gguf.TypeI8 {
		return nil, fmt.Errorf("codes of dimensions %s in %v and scales of %s in %v, want 16 bytes of codes for each byte of scales",
			gguf.Shape(c), codes.Type(), gguf.Shape(s), scales.Type())
	}
	ne := slices.Clone(s)
	ne[0] *= 32
	return &mxfp4{codes, scales, ne}, nil
}

type mxfp4 struct {
	codes, scales Source
	ne            []int64
}

func (m *mxfp4) NE() []int64     { return m.ne }
func (m *mxfp4) Type() gguf.Type { return gguf.TypeMXFP4 }

func (m *mxfp4) Raw(buf *[]byte, a, b int64) ([]byte, error) {
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
	out := grow(buf, int((b-a)*gguf.TypeMXFP4.RowBytes(m.ne[0])))
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
