//go:build goexperiment.simd && go1.27

package vec128

import "simd/archsimd"

// Name is the name of the vectors in the list of implementations.
const Name = "neon"

// ints4 returns 4 times v.
func ints4(v uint32) u32x4 { return archsimd.BroadcastUint32x4(v) }

// lookup returns the bytes of table at the indices, 0 for those from 128 up. No index is from 16 to 127.
func lookup(table, indices u8x16) u8x16 { return table.LookupOrZero(indices) }

// shr8 and shl8 shift bytes. Bits that go from one byte to its neighbour on amd64 are the caller's to mask.
func shr8(v u8x16, n uint64) u8x16 { return v.ShiftAllRight(n) }
func shl8(v u8x16, n uint64) u8x16 { return v.ShiftAllLeft(n) }

// shiftRight shifts by n, arithmetically, and shiftRightBits without regard to the sign. Count has -n in each lane:
// a vector that is made once.
func shiftRight(v i32x4, _ uint64, count i32x4) i32x4 { return v.Shift(count) }
func shiftRightBits(v i32x4, _ uint64, count i32x4) i32x4 {
	return v.ToBits().Shift(count).BitsToInt32()
}

// narrow2 returns the low halves of 8 words, narrowHigh2 the high ones, and narrow4 the lowest bytes of 16.
func narrow2(a, b i32x4) u8x16 {
	return a.ToBits().ReshapeToUint16s().ConcatEven(b.ToBits().ReshapeToUint16s()).ReshapeToUint8s()
}

func narrowHigh2(a, b i32x4) u8x16 {
	return a.ToBits().ReshapeToUint16s().ConcatOdd(b.ToBits().ReshapeToUint16s()).ReshapeToUint8s()
}

func narrow4(a, b, c, d i32x4) u8x16 { return narrow2(a, b).ConcatEven(narrow2(c, d)) }

// clearUpper is for amd64.
func clearUpper() {}
