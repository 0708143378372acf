// Package pack puts codes of a few bits into bytes, in the orders that several types
// share.
package pack

import (
	"encoding/binary"

	"ggforge/internal/kernel/half"
)

const (
	QK   = 32  // elements per block of the Q4_0 family
	QK_K = 256 // elements per superblock of the K types
)

// PutF16 rounds v to float16, stores it and returns it as stored.
func PutF16(b []byte, v float32) float32 {
	h := half.ToF16(v)
	binary.LittleEndian.PutUint16(b, h)
	return half.FromF16(h)
}

func F16(b []byte) float32 { return half.FromF16(binary.LittleEndian.Uint16(b)) }

// Nibbles stores two runs of 4-bit codes in one run of bytes: byte j holds
// lo[j] in its low half and hi[j] in its high half. Higher bits of the codes are
// dropped. All three have one length.
func Nibbles(dst, lo, hi []uint8) {
	lo, hi = lo[:len(dst)], hi[:len(dst)]
	for j := range dst {
		dst[j] = lo[j]&15 | hi[j]<<4
	}
}

// FifthBits returns bit 4 of 32 codes, code j as bit j.
func FifthBits(codes *[QK]uint8) (bits uint32) {
	for j, c := range codes {
		bits |= uint32(c>>4&1) << j
	}
	return bits
}

// Crumbs stores the low 2 bits of 256 codes in 64 bytes, 128 codes in 32
// bytes: byte l of a half holds its codes l, l+32, l+64, l+96 at bits 0, 2, 4
// and 6.
func Crumbs(dst []byte, codes *[QK_K]uint8) {
	dst = dst[:64]
	for h := range 2 {
		c := codes[128*h:][:128]
		for l := range 32 {
			dst[32*h+l] = c[l]&3 | c[l+32]&3<<2 | c[l+64]&3<<4 | c[l+96]&3<<6
		}
	}
}

// Scales and mins of Q4_K and Q5_K, 8 x 6 bits each in 12 bytes:
//
//	bytes 0..3    s0 .. s3 in bits 0-5   high 2 bits of s4 .. s7 in bits 6-7
//	bytes 4..7    m0 .. m3 in bits 0-5   high 2 bits of m4 .. m7 in bits 6-7
//	bytes 8..11   low 4 bits of s4 .. s7 in bits 0-3, of m4 .. m7 in bits 4-7

// ScaleMin stores the codes s and m. Codes above 63 spill into the
// neighbouring bits in the way of the reference.
func ScaleMin(dst []byte, s, m *[8]uint8) {
	dst = dst[:12]
	for j := range 4 {
		dst[j] = s[j] | s[j+4]>>4<<6
		dst[j+4] = m[j] | m[j+4]>>4<<6
		dst[j+8] = s[j+4]&15 | m[j+4]<<4
	}
}

// UnpackScaleMin returns scale and min code of sub-block j.
func UnpackScaleMin(src []byte, j int) (s, m uint8) {
	src = src[:12]
	if j < 4 {
		return src[j] & 63, src[j+4] & 63
	}
	return src[j+4]&15 | src[j-4]>>6<<4, src[j+4]>>4 | src[j]>>6<<4
}
