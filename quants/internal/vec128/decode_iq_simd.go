//go:build goexperiment.simd && go1.27 && (amd64 || arm64)

package vec128

import (
	"encoding/binary"
	"simd/archsimd"

	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
)

// Decoders of the codebook types. Points of a codebook are looked up as the bytes of their values, and signs as masks
// of 8 bytes, which are 0 or -1: two operations apply 16 signs, before the bytes are widened. The tables take 36 KB.

var (
	pointsIQ2_XXS [256]uint64
	pointsIQ2_XS  [512]uint64
	pointsIQ2_S   [1024]uint64
	pointsIQ3_XXS [256]uint32
	pointsIQ3_S   [512]uint32
	pointsIQ1     [2048]uint64 // eighths of the values, without the shift
	signs7        [128]uint64
	signs8        [256]uint64
)

func init() {
	points8(pointsIQ2_XXS[:], codebook.GridIQ2_XXS[:], codebook.LevelsIQ2[:])
	points8(pointsIQ2_XS[:], codebook.GridIQ2_XS[:], codebook.LevelsIQ2[:])
	points8(pointsIQ2_S[:], codebook.GridIQ2_S[:], codebook.LevelsIQ2[:])
	points4(pointsIQ3_XXS[:], codebook.GridIQ3_XXS[:], codebook.LevelsIQ3_XXS[:])
	points4(pointsIQ3_S[:], codebook.GridIQ3_S[:], codebook.LevelsIQ3_S[:])
	points8(pointsIQ1[:], codebook.GridIQ1[:], []float32{-8, 0, 8})
	for i := range signs8 {
		for k := range 8 {
			signs8[i] |= uint64(i>>k&1*0xFF) << (8 * k)
		}
	}
	for i := range signs7 {
		signs7[i] = signs8[codebook.Signs7[i]]
	}
}

// points8 sets points to the values of 8 levels of 2 bits as signed bytes.
func points8(points []uint64, codes []uint16, levels []float32) {
	for i, code := range codes {
		for k := range 8 {
			points[i] |= uint64(uint8(int8(levels[code>>(2*k)&3]))) << (8 * k)
		}
	}
}

// points4 sets points to the values of 4 levels of 3 bits as bytes.
func points4(points []uint32, codes []uint16, levels []float32) {
	for i, code := range codes {
		for k := range 4 {
			points[i] |= uint32(levels[code>>(3*k)&7]) << (8 * k)
		}
	}
}

// signed returns v, negative where the mask is -1.
func signed(v, mask u8x16) u8x16 { return v.Xor(mask).Sub(mask) }

// oddCodes returns 2*c + 1 for codes c below 128, one in each byte.
func oddCodes(v uint64) uint64 { return v<<1 | 0x0101010101010101 }

// nibbles16 returns the 16 half bytes of v in turn, the low one of a byte first.
func nibbles16(v uint64) (lo, hi uint64) { return nibbles8(uint32(v)), nibbles8(uint32(v >> 32)) }

func DequantizeIQ2_XXS(dst []float32, src []byte) {
	clearUpper()
	var ds scales
	t := loadTops()
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesIQ2_XXS {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesIQ2_XXS]byte)(src)
		var codes uint64
		for j := range 8 {
			codes |= uint64(b[2+8*j+7]>>4) << (8 * j)
		}
		ds.set8(low8(oddCodes(codes)), getF16(b[:], scaled48-3<<23), loadBroadcasts())
		for j := range 8 {
			q, y, d := (*[8]byte)(b[2+8*j:]), (*[32]float32)(y[32*j:]), ds.load(j)
			word := binary.LittleEndian.Uint32(q[4:])
			v := signed(pair(pointsIQ2_XXS[q[0]], pointsIQ2_XXS[q[1]]), pair(signs7[word&127], signs7[word>>7&127]))
			w := signed(pair(pointsIQ2_XXS[q[2]], pointsIQ2_XXS[q[3]]),
				pair(signs7[word>>14&127], signs7[word>>21&127]))
			mul16(y[:16], v, t, d)
			mul16(y[16:], w, t, d)
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesIQ2_XXS:]
	}
}

func DequantizeIQ2_XS(dst []float32, src []byte) {
	clearUpper()
	var ds scales
	t := loadTops()
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesIQ2_XS {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesIQ2_XS]byte)(src)
		lo, hi := nibbles16(binary.LittleEndian.Uint64(b[66:]))
		ds.set16(pair(oddCodes(lo), oddCodes(hi)), getF16(b[:], scaled48-3<<23), loadBroadcasts())
		for j := range 16 {
			q := binary.LittleEndian.Uint32(b[2+4*j:])
			v := signed(pair(pointsIQ2_XS[q&511], pointsIQ2_XS[q>>16&511]), pair(signs7[q>>9&127], signs7[q>>25]))
			mul16(y[16*j:], v, t, ds.load(j))
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesIQ2_XS:]
	}
}

func DequantizeIQ2_S(dst []float32, src []byte) {
	clearUpper()
	var ds scales
	t := loadTops()
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesIQ2_S {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesIQ2_S]byte)(src)
		lo, hi := nibbles16(binary.LittleEndian.Uint64(b[74:]))
		ds.set16(pair(oddCodes(lo), oddCodes(hi)), getF16(b[:], scaled48-3<<23), loadBroadcasts())
		for j := range 8 {
			q, s, y := (*[4]byte)(b[2+4*j:]), (*[4]byte)(b[34+4*j:]), (*[32]float32)(y[32*j:])
			h := uint(b[66+j])
			v := signed(pair(pointsIQ2_S[uint(q[0])|h<<8&0x300], pointsIQ2_S[uint(q[1])|h<<6&0x300]),
				pair(signs8[s[0]], signs8[s[1]]))
			w := signed(pair(pointsIQ2_S[uint(q[2])|h<<4&0x300], pointsIQ2_S[uint(q[3])|h<<2&0x300]),
				pair(signs8[s[2]], signs8[s[3]]))
			mul16(y[:16], v, t, ds.load(2*j))
			mul16(y[16:], w, t, ds.load(2*j+1))
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesIQ2_S:]
	}
}

// two returns two points of 4 elements.
func two(a, b uint32) uint64 { return uint64(a) | uint64(b)<<32 }

func DequantizeIQ3_XXS(dst []float32, src []byte) {
	clearUpper()
	var ds scales
	t := loadTops()
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesIQ3_XXS {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesIQ3_XXS]byte)(src)
		var codes uint64
		for j := range 8 {
			codes |= uint64(b[66+4*j+3]>>4) << (8 * j)
		}
		ds.set8(low8(oddCodes(codes)), getF16(b[:], scaled48-2<<23), loadBroadcasts())
		p := &pointsIQ3_XXS
		for j := range 8 {
			q, y, d := (*[8]byte)(b[2+8*j:]), (*[32]float32)(y[32*j:]), ds.load(j)
			word := binary.LittleEndian.Uint32(b[66+4*j:])
			v := signed(pair(two(p[q[0]], p[q[1]]), two(p[q[2]], p[q[3]])), pair(signs7[word&127], signs7[word>>7&127]))
			w := signed(pair(two(p[q[4]], p[q[5]]), two(p[q[6]], p[q[7]])),
				pair(signs7[word>>14&127], signs7[word>>21&127]))
			mul16(y[:16], v, t, d)
			mul16(y[16:], w, t, d)
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesIQ3_XXS:]
	}
}

func DequantizeIQ3_S(dst []float32, src []byte) {
	clearUpper()
	var ds scales
	t := loadTops()
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesIQ3_S {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesIQ3_S]byte)(src)
		ds.set8(low8(oddCodes(nibbles8(binary.LittleEndian.Uint32(b[106:])))), getF16(b[:], scaled48), loadBroadcasts())
		p := &pointsIQ3_S
		for j := range 8 {
			q, s, y, d := (*[8]byte)(b[2+8*j:]), (*[4]byte)(b[74+4*j:]), (*[32]float32)(y[32*j:]), ds.load(j)
			h := uint(b[66+j])
			v := pair(two(p[uint(q[0])|h<<8&256], p[uint(q[1])|h<<7&256]),
				two(p[uint(q[2])|h<<6&256], p[uint(q[3])|h<<5&256]))
			w := pair(two(p[uint(q[4])|h<<4&256], p[uint(q[5])|h<<3&256]),
				two(p[uint(q[6])|h<<2&256], p[uint(q[7])|h<<1&256]))
			mul16(y[:16], signed(v, pair(signs8[s[0]], signs8[s[1]])), t, d)
			mul16(y[16:], signed(w, pair(signs8[s[2]], signs8[s[3]])), t, d)
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesIQ3_S:]
	}
}

// shiftsIQ1 are the shifts up and down, in eighths, for 8 elements.
var shiftsIQ1 = [2]uint64{0x0101010101010101, 0xFFFFFFFFFFFFFFFF}

func DequantizeIQ1_S(dst []float32, src []byte) {
	clearUpper()
	var ds scales
	t, p := loadTops(), &pointsIQ1
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesIQ1_S {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesIQ1_S]byte)(src)
		var codes uint64
		for j := range 8 {
			codes |= uint64(b[34+2*j+1]>>4&7) << (8 * j)
		}
		ds.set8(low8(oddCodes(codes)), getF16(b[:], scaled48-3<<23), loadBroadcasts())
		for j := range 8 {
			q, y, d := (*[4]byte)(b[2+4*j:]), (*[32]float32)(y[32*j:]), ds.load(j)
			w := uint(binary.LittleEndian.Uint16(b[34+2*j:]))
			shift := archsimd.BroadcastInt8x16(int8(1 - w>>15*2)).ToBits()
			mul16(y[:16], pair(p[uint(q[0])|w<<8&0x700], p[uint(q[1])|w<<5&0x700]).Add(shift), t, d)
			mul16(y[16:], pair(p[uint(q[2])|w<<2&0x700], p[uint(q[3])|w>>1&0x700]).Add(shift), t, d)
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesIQ1_S:]
	}
}

func DequantizeIQ1_M(dst []float32, src []byte) {
	clearUpper()
	var ds scales
	var d [2]byte
	t, p := loadTops(), &pointsIQ1
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesIQ1_M {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesIQ1_M]byte)(src)
		binary.LittleEndian.PutUint16(d[:], scalar.ScaleIQ1_M(b[:]))
		s := binary.LittleEndian.Uint64(b[48:])
		ds.set16(pair(scaleCodesIQ1_M(s), scaleCodesIQ1_M(s>>32)), getF16(d[:], scaled48-3<<23), loadBroadcasts())
		for j := range 16 {
			h := uint(b[32+j])
			v := pair(p[uint(b[2*j])|h<<8&0x700], p[uint(b[2*j+1])|h<<4&0x700])
			mul16(y[16*j:], v.Add(pair(shiftsIQ1[h>>3&1], shiftsIQ1[h>>7&1])), t, ds.load(j))
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesIQ1_M:]
	}
}

// scaleCodesIQ1_M returns 2*c + 1 of the 8 scale codes c in two words of 16 bits.
func scaleCodesIQ1_M(s uint64) uint64 {
	v := s&7 | s&0x38<<5 | s&0x1C0<<10 | s&0xE00<<15
	s >>= 16
	return oddCodes(v | (s&7|s&0x38<<5|s&0x1C0<<10|s&0xE00<<15)<<32)
}
