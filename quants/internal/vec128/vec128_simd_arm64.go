//go:build goexperiment.simd && go1.27

package vec128

import "simd/archsimd"

// Name is what the vectors are called.
const Name = "neon"

// ints4 returns 4 times v.
func ints4(v uint32) u32x4 { return archsimd.BroadcastUint32x4(v) }

// lookup returns the bytes of table at the indices, 0 for those from 128 up. No index is from 16 to 127.
func lookup(table, indices u8x16) u8x16 { return table.LookupOrZero(indices) }

// shr8 and shl8 shift bytes. Bits that go from one byte to its neighbour on amd64 are the caller's to mask.
func shr8(v u8x16, n uint64) u8x16 { return v.ShiftAllRight(n) }
func shl8(v u8x16, n uint64) u8x16 { return v.ShiftAllLeft(n) }

// shiftRight3 shifts by 3, arithmetically; count has -3 in each lane.
func shiftRight3(v, count i32x4) i32x4 { return v.Shift(count) }

// clearUpper is for amd64.
func clearUpper() {}
