//go:build goexperiment.simd && go1.27

package vec128

import "simd/archsimd"

// Name is the name of the vectors in the list of implementations.
const Name = "avx"

// ints4 returns 4 times v. archsimd.BroadcastUint32x4 needs AVX2.
func ints4(v uint32) u32x4 {
	var w u32x4
	return w.SetElem(0, v).PermuteScalars(0, 0, 0, 0)
}

// lookup returns the bytes of table at the indices, 0 for those from 128 up. No index is from 16 to 127.
func lookup(table, indices u8x16) u8x16 { return table.PermuteOrZero(indices.BitsToInt8()) }

// shr8 and shl8 shift bytes. Bits that go from one byte to its neighbour are the caller's to mask.
func shr8(v u8x16, n uint64) u8x16 { return v.ReshapeToUint16s().ShiftAllRight(n).ReshapeToUint8s() }
func shl8(v u8x16, n uint64) u8x16 { return v.ReshapeToUint16s().ShiftAllLeft(n).ReshapeToUint8s() }

// shiftRight shifts by n, arithmetically, and shiftRightBits without regard to the sign. The count is for arm64.
func shiftRight(v i32x4, n uint64, _ i32x4) i32x4 { return v.ShiftAllRight(n) }
func shiftRightBits(v i32x4, n uint64, _ i32x4) i32x4 {
	return v.ToBits().ShiftAllRight(n).BitsToInt32()
}

// narrow2 returns the low halves of 8 words, of which the high ones are 0; narrowHigh2 the high ones, and narrow4 the
// lowest bytes of 16.
func narrow2(a, b i32x4) u8x16 { return a.SaturateToUint16Concat(b).ReshapeToUint8s() }

func narrowHigh2(a, b i32x4) u8x16 {
	return narrow2(shiftRightBits(a, 16, a), shiftRightBits(b, 16, b))
}

func narrow4(a, b, c, d i32x4) u8x16 {
	p := &quarters
	lo := lookup(a.ToBits().ReshapeToUint8s(), archsimd.LoadUint8x16Array(&p[0])).
		Or(lookup(b.ToBits().ReshapeToUint8s(), archsimd.LoadUint8x16Array(&p[1])))
	hi := lookup(c.ToBits().ReshapeToUint8s(), archsimd.LoadUint8x16Array(&p[2])).
		Or(lookup(d.ToBits().ReshapeToUint8s(), archsimd.LoadUint8x16Array(&p[3])))
	return lo.Or(hi)
}

// quarters are the indices that bring the lowest bytes of 4 words to each quarter of a vector.
var quarters = [4][16]byte{
	{0, 4, 8, 12, z, z, z, z, z, z, z, z, z, z, z, z},
	{z, z, z, z, 0, 4, 8, 12, z, z, z, z, z, z, z, z},
	{z, z, z, z, z, z, z, z, 0, 4, 8, 12, z, z, z, z},
	{z, z, z, z, z, z, z, z, z, z, z, z, 0, 4, 8, 12},
}

func clearUpper() { archsimd.ClearAVXUpperBits() }
