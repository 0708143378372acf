//go:build goexperiment.simd && go1.27

package lane

import "simd/archsimd"

var hasAVX2 = archsimd.X86.AVX2()

// loadWhole is Load for 8 sub-blocks and a width of 8, or 16 and 16, where it can; it reports whether
// it could. A step takes 4 rows of 8 lanes: four vectors, of sub-blocks i and i+4 each, whose
// groups of 128 bits are transposed.
func loadWhole[T float32 | int32 | uint32](tile, src []T, n, width int) bool {
	switch {
	case !hasAVX2 || len(src) != width*n:
		return false
	case width == 8:
		load8AVX2(words(tile), words(src), n)
	case width == 16:
		load16AVX2(words(tile), words(src), n)
	default:
		return false
	}
	return true
}

// storeWhole is the inverse of loadWhole.
func storeWhole[T float32 | int32 | uint32](dst, tile []T, n, width int) bool {
	switch {
	case !hasAVX2 || len(dst) != width*n:
		return false
	case width == 8:
		store8AVX2(words(dst), words(tile), n)
	case width == 16:
		store16AVX2(words(dst), words(tile), n)
	default:
		return false
	}
	return true
}

func load8AVX2(tile, src []uint32, n int) {
	switch n {
	case 16:
		load8x16((*[128]uint32)(tile), (*[128]uint32)(src))
	case 32:
		load8x32((*[256]uint32)(tile), (*[256]uint32)(src))
	default:
		for i := 0; i <= n-4; i += 4 {
			s := src[i:]
			put4((*[32]uint32)(tile[8*i:]), two(s, s[4*n:]), two(s[n:], s[5*n:]), two(s[2*n:], s[6*n:]),
				two(s[3*n:], s[7*n:]))
		}
	}
	archsimd.ClearAVXUpperBits()
}

// load8x16 and load8x32 have constants for n, with which the checks of bounds and most of the time are gone.
func load8x16(tile, src *[128]uint32) {
	for i := 0; i < 4; i++ {
		s := (*[116]uint32)(src[4*i:])
		put4((*[32]uint32)(tile[32*i:]), two(s[0:4], s[64:68]), two(s[16:20], s[80:84]), two(s[32:36], s[96:100]),
			two(s[48:52], s[112:116]))
	}
}

func load8x32(tile, src *[256]uint32) {
	for i := 0; i < 8; i++ {
		s := (*[228]uint32)(src[4*i:])
		put4((*[32]uint32)(tile[32*i:]), two(s[0:4], s[128:132]), two(s[32:36], s[160:164]), two(s[64:68], s[192:196]),
			two(s[96:100], s[224:228]))
	}
}

// Load8x16 is Load for 8 sub-blocks of 16 elements and a width of 8, where there is AVX2. It leaves the upper halves
// of registers in use.
func Load8x16(tile, src *[128]float32) {
	load8x16((*[128]uint32)(words(tile[:])), (*[128]uint32)(words(src[:])))
}

// put4 stores four transposed rows.
func put4(t *[32]uint32, a, b, c, d archsimd.Uint32x8) {
	a, b, c, d = transposed(a, b, c, d)
	a.StoreArray((*[8]uint32)(t[0:]))
	b.StoreArray((*[8]uint32)(t[8:]))
	c.StoreArray((*[8]uint32)(t[16:]))
	d.StoreArray((*[8]uint32)(t[24:]))
}

func store8AVX2(dst, tile []uint32, n int) {
	for i := 0; i <= n-4; i += 4 {
		t := (*[32]uint32)(tile[8*i:])
		a, b, c, d := row(t[0:]), row(t[8:]), row(t[16:]), row(t[24:])
		a, b, c, d = transposed(a, b, c, d)
		s := dst[i:]
		put(s, s[4*n:], a)
		put(s[n:], s[5*n:], b)
		put(s[2*n:], s[6*n:], c)
		put(s[3*n:], s[7*n:], d)
	}
	archsimd.ClearAVXUpperBits()
}

// load16AVX2 takes the lanes by halves. With 512 bits it makes encoders 8 to 20 percent faster: microseconds for 1000
// weights on a Sapphire Rapids, single values and vectors, Q4_K 10.6 and 9.6, Q6_K with importance 8.4 and 7.7, Q3_K
// 9.1 and 8.1.
func load16AVX2(tile, src []uint32, n int) {
	switch n {
	case 16:
		load16x16((*[256]uint32)(tile), (*[256]uint32)(src))
	case 32:
		load16x32((*[512]uint32)(tile), (*[512]uint32)(src))
	default:
		for l := 0; l < 16; l += 8 {
			for i := 0; i <= n-4; i += 4 {
				s := src[l*n+i:]
				put4Apart((*[56]uint32)(tile[16*i+l:]), two(s, s[4*n:]), two(s[n:], s[5*n:]), two(s[2*n:], s[6*n:]),
					two(s[3*n:], s[7*n:]))
			}
		}
	}
	archsimd.ClearAVXUpperBits()
}

func load16x16(tile, src *[256]uint32) {
	for l := 0; l < 16; l += 8 {
		for i := 0; i < 16; i += 4 {
			s := (*[116]uint32)(src[16*l+i:])
			put4Apart((*[56]uint32)(tile[16*i+l:]), two(s[0:4], s[64:68]), two(s[16:20], s[80:84]),
				two(s[32:36], s[96:100]), two(s[48:52], s[112:116]))
		}
	}
}

func load16x32(tile, src *[512]uint32) {
	for l := 0; l < 16; l += 8 {
		for i := 0; i < 32; i += 4 {
			s := (*[228]uint32)(src[32*l+i:])
			put4Apart((*[56]uint32)(tile[16*i+l:]), two(s[0:4], s[128:132]), two(s[32:36], s[160:164]),
				two(s[64:68], s[192:196]), two(s[96:100], s[224:228]))
		}
	}
}

// put4Apart stores half of four transposed rows of 16.
func put4Apart(t *[56]uint32, a, b, c, d archsimd.Uint32x8) {
	a, b, c, d = transposed(a, b, c, d)
	a.StoreArray((*[8]uint32)(t[0:]))
	b.StoreArray((*[8]uint32)(t[16:]))
	c.StoreArray((*[8]uint32)(t[32:]))
	d.StoreArray((*[8]uint32)(t[48:]))
}

func store16AVX2(dst, tile []uint32, n int) {
	for l := 0; l < 16; l += 8 {
		for i := 0; i <= n-4; i += 4 {
			t := (*[56]uint32)(tile[16*i+l:])
			a, b, c, d := row(t[0:]), row(t[16:]), row(t[32:]), row(t[48:])
			a, b, c, d = transposed(a, b, c, d)
			s := dst[l*n+i:]
			put(s, s[4*n:], a)
			put(s[n:], s[5*n:], b)
			put(s[2*n:], s[6*n:], c)
			put(s[3*n:], s[7*n:], d)
		}
	}
	archsimd.ClearAVXUpperBits()
}

func row(t []uint32) archsimd.Uint32x8 { return archsimd.LoadUint32x8Array((*[8]uint32)(t)) }

// two returns 4 values of lo and 4 of hi.
func two(lo, hi []uint32) (v archsimd.Uint32x8) {
	return v.SetLo(archsimd.LoadUint32x4Array((*[4]uint32)(lo))).SetHi(archsimd.LoadUint32x4Array((*[4]uint32)(hi)))
}

// put is the inverse of two.
func put(lo, hi []uint32, v archsimd.Uint32x8) {
	v.GetLo().StoreArray((*[4]uint32)(lo))
	v.GetHi().StoreArray((*[4]uint32)(hi))
}

// transposed takes the groups of 128 bits as rows of two 4x4 matrices.
func transposed(a, b, c, d archsimd.Uint32x8) (w, x, y, z archsimd.Uint32x8) {
	p, q := a.InterleaveLoGrouped(b).AsUint64x4(), a.InterleaveHiGrouped(b).AsUint64x4()
	r, s := c.InterleaveLoGrouped(d).AsUint64x4(), c.InterleaveHiGrouped(d).AsUint64x4()
	return p.InterleaveLoGrouped(r).AsUint32x8(), p.InterleaveHiGrouped(r).AsUint32x8(),
		q.InterleaveLoGrouped(s).AsUint32x8(), q.InterleaveHiGrouped(s).AsUint32x8()
}
