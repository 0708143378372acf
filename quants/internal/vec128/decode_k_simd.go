//go:build goexperiment.simd && go1.27 && (amd64 || arm64)

package vec128

import (
	"encoding/binary"
	"simd/archsimd"

	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
)

// Decoders of the K types and IQ4_XS. The scales of a superblock are computed first, and stored 4 times each.

// scales has the scales of sub-blocks, each 4 times, as float32 bits.
type scales [16][4]uint32

// broadcasts are the indices of the 4 words of a vector, 4 times each.
var broadcasts = [4][16]byte{
	{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3},
	{4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7},
	{8, 9, 10, 11, 8, 9, 10, 11, 8, 9, 10, 11, 8, 9, 10, 11},
	{12, 13, 14, 15, 12, 13, 14, 15, 12, 13, 14, 15, 12, 13, 14, 15},
}

// loadBroadcasts returns broadcasts in the four fields of tops.
func loadBroadcasts() tops {
	return tops{archsimd.LoadUint8x16Array(&broadcasts[0]), archsimd.LoadUint8x16Array(&broadcasts[1]),
		archsimd.LoadUint8x16Array(&broadcasts[2]), archsimd.LoadUint8x16Array(&broadcasts[3])}
}

func (s *scales) load(j int) f32x4 { return loadInts(&s[j&15]).BitsToFloat32() }

// store sets 4 scales from j on to the elements of v.
func (s *scales) store(j int, v f32x4, l tops) {
	w := v.ToBits().ReshapeToUint8s()
	p := (*[4][4]uint32)(s[j:])
	lookup(w, l.a).ReshapeToUint32s().StoreArray(&p[0])
	lookup(w, l.b).ReshapeToUint32s().StoreArray(&p[1])
	lookup(w, l.c).ReshapeToUint32s().StoreArray(&p[2])
	lookup(w, l.d).ReshapeToUint32s().StoreArray(&p[3])
}

// set8 sets the first 8 scales to 2^24*d*v[j].
func (s *scales) set8(v u8x16, d f32x4, l tops) {
	s.store(0, words(v, archsimd.LoadUint8x16Array(&topBytes[0])).Mul(d), l)
	s.store(4, words(v, archsimd.LoadUint8x16Array(&topBytes[1])).Mul(d), l)
}

// set16 sets all of them.
func (s *scales) set16(v u8x16, d f32x4, l tops) {
	t := loadTops()
	s.store(0, words(v, t.a).Mul(d), l)
	s.store(4, words(v, t.b).Mul(d), l)
	s.store(8, words(v, t.c).Mul(d), l)
	s.store(12, words(v, t.d).Mul(d), l)
}

func neg(v f32x4) f32x4 { return v.ToBits().Xor(ints4(1 << 31)).BitsToFloat32() }

// scaleMinCodes is pack.UnpackScaleMin for all sub-blocks, byte j of s and m being the codes of sub-block j.
func scaleMinCodes(src []byte) (s, m uint64) {
	a, b, c := binary.LittleEndian.Uint32(src), binary.LittleEndian.Uint32(src[4:]), binary.LittleEndian.Uint32(src[8:])
	s = uint64(a&0x3F3F3F3F) | uint64(c&0x0F0F0F0F|a>>2&0x30303030)<<32
	m = uint64(b&0x3F3F3F3F) | uint64(c>>4&0x0F0F0F0F|b>>2&0x30303030)<<32
	return s, m
}

// setScaleMin sets ds and ms to the scales of Q4_K and Q5_K, those of codes 2^24 times smaller, and to the
// minimums, negative.
func setScaleMin(ds, ms *scales, b *[16]byte) {
	s, m := scaleMinCodes(b[4:])
	l := loadBroadcasts()
	ds.set8(low8(s), getF16(b[:], scaled48), l)
	ms.set8(low8(m), neg(getF16(b[2:], scaled24)), l)
}

func DequantizeQ4_K(dst []float32, src []byte) {
	clearUpper()
	var ds, ms scales
	t, low := loadTops(), bytes16(15)
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesQ4_K {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesQ4_K]byte)(src)
		setScaleMin(&ds, &ms, (*[16]byte)(b[:]))
		for g := range 4 {
			y, q := (*[64]float32)(y[64*g:]), (*[32]byte)(b[16+32*g:])
			v, w := loadBytes(q[:]), loadBytes(q[16:])
			d, m := ds.load(2*g), ms.load(2*g)
			mulAdd16(y[0:], v.And(low), t, d, m)
			mulAdd16(y[16:], w.And(low), t, d, m)
			d, m = ds.load(2*g+1), ms.load(2*g+1)
			mulAdd16(y[32:], shr8(v, 4).And(low), t, d, m)
			mulAdd16(y[48:], shr8(w, 4).And(low), t, d, m)
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesQ4_K:]
	}
}

func DequantizeQ5_K(dst []float32, src []byte) {
	clearUpper()
	var ds, ms scales
	t, low, bit := loadTops(), bytes16(15), bytes16(16)
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesQ5_K {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesQ5_K]byte)(src)
		setScaleMin(&ds, &ms, (*[16]byte)(b[:]))
		h, i := loadBytes(b[16:]), loadBytes(b[32:])
		for g := range 4 {
			y, q := (*[64]float32)(y[64*g:]), (*[32]byte)(b[48+32*g:])
			v, w := loadBytes(q[:]), loadBytes(q[16:])
			d, m := ds.load(2*g), ms.load(2*g)
			mulAdd16(y[0:], v.And(low).Or(shl8(h, 4).And(bit)), t, d, m)
			mulAdd16(y[16:], w.And(low).Or(shl8(i, 4).And(bit)), t, d, m)
			d, m = ds.load(2*g+1), ms.load(2*g+1)
			mulAdd16(y[32:], shr8(v, 4).And(low).Or(shl8(h, 3).And(bit)), t, d, m)
			mulAdd16(y[48:], shr8(w, 4).And(low).Or(shl8(i, 3).And(bit)), t, d, m)
			h, i = shr8(h, 2), shr8(i, 2)
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesQ5_K:]
	}
}

func DequantizeQ2_K(dst []float32, src []byte) {
	clearUpper()
	var ds, ms scales
	t, low, crumb := loadTops(), bytes16(15), bytes16(3)
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesQ2_K {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesQ2_K]byte)(src)
		codes := loadBytes(b[:])
		l := loadBroadcasts()
		ds.set16(codes.And(low), getF16(b[80:], scaled48), l)
		ms.set16(shr8(codes, 4).And(low), neg(getF16(b[82:], scaled24)), l)
		for h := range 2 {
			v, w := loadBytes(b[16+32*h:]), loadBytes(b[32+32*h:])
			for g := range 4 {
				y, j := (*[32]float32)(y[128*h+32*g:]), 8*h+2*g
				mulAdd16(y[:16], v.And(crumb), t, ds.load(j), ms.load(j))
				mulAdd16(y[16:], w.And(crumb), t, ds.load(j+1), ms.load(j+1))
				v, w = shr8(v, 2), shr8(w, 2)
			}
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesQ2_K:]
	}
}

// scaleCodesQ3_K returns scalar.UnpackScaleQ3_K of all sub-blocks.
func scaleCodesQ3_K(b *[12]byte) u8x16 {
	s, t := binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint32(b[8:])
	const low = 0x0F0F0F0F0F0F0F0F
	return pair(s&low|uint64(t<<4&0x30303030)|uint64(t<<2&0x30303030)<<32,
		s>>4&low|uint64(t&0x30303030)|uint64(t>>2&0x30303030)<<32)
}

func DequantizeQ3_K(dst []float32, src []byte) {
	clearUpper()
	var ds scales
	t, crumb, bit, middle := loadTops(), bytes16(3), bytes16(4), bytes16(32)
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesQ3_K {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesQ3_K]byte)(src)
		ds.set16(scaleCodesQ3_K((*[12]byte)(b[96:])).Sub(middle), getF16(b[108:], scaled48), loadBroadcasts())
		m, n := loadBytes(b[0:]), loadBytes(b[16:])
		for h := range 2 {
			v, w := loadBytes(b[32+32*h:]), loadBytes(b[48+32*h:])
			for g := range 4 {
				y, j := (*[32]float32)(y[128*h+32*g:]), 8*h+2*g
				mul16(y[:16], v.And(crumb).Or(shl8(m, 2).And(bit)).Sub(bit), t, ds.load(j))
				mul16(y[16:], w.And(crumb).Or(shl8(n, 2).And(bit)).Sub(bit), t, ds.load(j+1))
				v, w, m, n = shr8(v, 2), shr8(w, 2), shr8(m, 1), shr8(n, 1)
			}
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesQ3_K:]
	}
}

func DequantizeQ6_K(dst []float32, src []byte) {
	clearUpper()
	var ds scales
	t, low, high, middle := loadTops(), bytes16(15), bytes16(0x30), bytes16(32)
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesQ6_K {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesQ6_K]byte)(src)
		ds.set16(loadBytes(b[192:]), getF16(b[208:], scaled48), loadBroadcasts())
		for i := range 4 {
			// Half h of the superblock, 16 of the 32 bytes of each run.
			h, o := i>>1, i&1
			v, w, q := loadBytes(b[64*h+16*o:]), loadBytes(b[64*h+16*o+32:]), loadBytes(b[128+16*i:])
			y, j := (*[112]float32)(y[128*h+16*o:]), 8*h+o
			mul16(y[0:], v.And(low).Or(shl8(q, 4).And(high)).Sub(middle), t, ds.load(j))
			mul16(y[32:], w.And(low).Or(shl8(q, 2).And(high)).Sub(middle), t, ds.load(j+2))
			mul16(y[64:], shr8(v, 4).And(low).Or(q.And(high)).Sub(middle), t, ds.load(j+4))
			mul16(y[96:], shr8(w, 4).And(low).Or(shr8(q, 2).And(high)).Sub(middle), t, ds.load(j+6))
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesQ6_K:]
	}
}

// nibbles8 returns the 8 half bytes of v in turn, the low one of a byte first.
func nibbles8(v uint32) uint64 {
	u := uint64(v)
	u = (u | u<<16) & 0x0000FFFF0000FFFF
	u = (u | u<<8) & 0x00FF00FF00FF00FF
	return (u | u<<4) & 0x0F0F0F0F0F0F0F0F
}

// crumbs8 returns the 8 quarter bytes of v in turn.
func crumbs8(v uint16) uint64 {
	u := nibbles8(uint32(v)) // two in each of the first 4 bytes
	u = (u | u<<16) & 0x0000FFFF0000FFFF
	u = (u | u<<8) & 0x00FF00FF00FF00FF
	return (u | u<<6) & 0x0303030303030303
}

func DequantizeIQ4_XS(dst []float32, src []byte) {
	clearUpper()
	var ds scales
	t, low, middle, values := loadTops(), bytes16(15), bytes16(32), archsimd.LoadUint8x16Array(&bytesIQ4)
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesIQ4_XS {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesIQ4_XS]byte)(src)
		codes := nibbles8(binary.LittleEndian.Uint32(b[4:])) | crumbs8(binary.LittleEndian.Uint16(b[2:]))<<4
		ds.set8(low8(codes).Sub(middle), getF16(b[:], scaled48), loadBroadcasts())
		for j := range 8 {
			v, d, y := loadBytes(b[8+16*j:]), ds.load(j), (*[32]float32)(y[32*j:])
			mul16(y[:16], lookup(values, v.And(low)), t, d)
			mul16(y[16:], lookup(values, shr8(v, 4).And(low)), t, d)
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesIQ4_XS:]
	}
}
