//go:build goexperiment.simd && go1.27

package vec128

import "simd/archsimd"

// Name is what the vectors are called.
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

// shiftRight3 shifts by 3, arithmetically. The count is for arm64.
func shiftRight3(v, _ i32x4) i32x4 { return v.ShiftAllRight(3) }

func clearUpper() { archsimd.ClearAVXUpperBits() }
