//go:build goexperiment.simd && go1.27

package lane

import "simd/archsimd"

// loadWhole is Load for 4 sub-blocks and a width of 4, where it can; it reports whether it could.
func loadWhole[T float32 | int32 | uint32](tile, src []T, n, width int) bool {
	if width != 4 || len(src) != 4*n {
		return false
	}
	loadWhole4(words(tile), words(src), n)
	return true
}

// storeWhole is the inverse of loadWhole.
func storeWhole[T float32 | int32 | uint32](dst, tile []T, n, width int) bool {
	if width != 4 || len(dst) != 4*n {
		return false
	}
	storeWhole4(words(dst), words(tile), n)
	return true
}

func loadWhole4(tile, src []uint32, n int) {
	switch n {
	case 16:
		// With a constant for n most checks of bounds are gone.
		t, s := (*[64]uint32)(tile), (*[64]uint32)(src)
		for i := 0; i <= 12; i += 4 {
			load16((*[16]uint32)(t[4*i:4*i+16]), (*[4]uint32)(s[i:i+4]), (*[4]uint32)(s[i+16:i+20]),
				(*[4]uint32)(s[i+32:i+36]), (*[4]uint32)(s[i+48:i+52]))
		}
	case 32:
		t, s := (*[128]uint32)(tile), (*[128]uint32)(src)
		for i := 0; i <= 28; i += 4 {
			load16((*[16]uint32)(t[4*i:4*i+16]), (*[4]uint32)(s[i:i+4]), (*[4]uint32)(s[i+32:i+36]),
				(*[4]uint32)(s[i+64:i+68]), (*[4]uint32)(s[i+96:i+100]))
		}
	default:
		for i := 0; i <= n-4; i += 4 {
			s := src[i:]
			load16((*[16]uint32)(tile[4*i:]), (*[4]uint32)(s), (*[4]uint32)(s[n:]), (*[4]uint32)(s[2*n:]),
				(*[4]uint32)(s[3*n:]))
		}
	}
}

// load16 stores four transposed rows.
func load16(t *[16]uint32, a, b, c, d *[4]uint32) {
	w, x, y, z := archsimd.LoadUint32x4Array(a), archsimd.LoadUint32x4Array(b), archsimd.LoadUint32x4Array(c),
		archsimd.LoadUint32x4Array(d)
	p, q := w.InterleaveLo(x).ReshapeToUint64s(), w.InterleaveHi(x).ReshapeToUint64s()
	r, s := y.InterleaveLo(z).ReshapeToUint64s(), y.InterleaveHi(z).ReshapeToUint64s()
	p.InterleaveLo(r).ReshapeToUint32s().StoreArray((*[4]uint32)(t[:4]))
	p.InterleaveHi(r).ReshapeToUint32s().StoreArray((*[4]uint32)(t[4:8]))
	q.InterleaveLo(s).ReshapeToUint32s().StoreArray((*[4]uint32)(t[8:12]))
	q.InterleaveHi(s).ReshapeToUint32s().StoreArray((*[4]uint32)(t[12:]))
}

func storeWhole4(dst, tile []uint32, n int) {
	for i := 0; i <= n-4; i += 4 {
		t, d := (*[16]uint32)(tile[4*i:]), dst[i:]
		w, x := archsimd.LoadUint32x4Array((*[4]uint32)(t[:4])), archsimd.LoadUint32x4Array((*[4]uint32)(t[4:8]))
		y, z := archsimd.LoadUint32x4Array((*[4]uint32)(t[8:12])), archsimd.LoadUint32x4Array((*[4]uint32)(t[12:]))
		p, q := w.InterleaveLo(x).ReshapeToUint64s(), w.InterleaveHi(x).ReshapeToUint64s()
		r, s := y.InterleaveLo(z).ReshapeToUint64s(), y.InterleaveHi(z).ReshapeToUint64s()
		p.InterleaveLo(r).ReshapeToUint32s().StoreArray((*[4]uint32)(d))
		p.InterleaveHi(r).ReshapeToUint32s().StoreArray((*[4]uint32)(d[n:]))
		q.InterleaveLo(s).ReshapeToUint32s().StoreArray((*[4]uint32)(d[2*n:]))
		q.InterleaveHi(s).ReshapeToUint32s().StoreArray((*[4]uint32)(d[3*n:]))
	}
}
