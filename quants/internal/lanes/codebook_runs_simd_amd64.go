//go:build goexperiment.simd && go1.27

package lanes

import (
	"math/bits"
	"simd/archsimd"

	"ggforge/quants/internal/codebook"
)

// oddSquares are the squares of oddLevels.
var oddSquares = [2][8]float32{{1, 9, 25, 49, 1, 9, 25, 49}, {1, 9, 25, 49, 81, 121, 169, 225}}

// lastOf has the bit of the last of n candidates, by n.
var lastOf = func() (t [maxCandidates]uint32) {
	for n := range t {
		t[n] = 1 << n >> 1
	}
	return t
}()

// changes sets masks to the candidates t of n, by group, whose value is not that of t+1,
// and the last.
func changes(masks *[codebook.MaxGroups]uint32, rows *candidateRows, groups, n int) {
	if !searchByAVX2 {
		changesScalar(masks, rows, groups, n)
		return
	}
	last := lastOf[n&(maxCandidates-1)]
	left := rows[:groups]
	for g := range masks[:groups] {
		r := &left[0] // see rowPointers
		left = left[1:]
		a := archsimd.LoadUint32x8Array((*[8]uint32)(r[0:])).Equal(
			archsimd.LoadUint32x8Array((*[8]uint32)(r[1:]))).ToBits()
		b := archsimd.LoadUint32x8Array((*[8]uint32)(r[8:])).Equal(
			archsimd.LoadUint32x8Array((*[8]uint32)(r[9:]))).ToBits()
		c := archsimd.LoadUint32x8Array((*[8]uint32)(r[16:])).Equal(
			archsimd.LoadUint32x8Array((*[8]uint32)(r[17:]))).ToBits()
		d := archsimd.LoadUint32x8Array((*[8]uint32)(r[24:])).Equal(
			archsimd.LoadUint32x8Array((*[8]uint32)(r[25:]))).ToBits()
		masks[g] = ^(uint32(a)|uint32(b)<<8|uint32(c)<<16|uint32(d)<<24)&(last-1) | last
	}
}

// padLines are, by the number of points of a list modulo neighbourChunk, 0 for those of the last
// chunk and padLine for the rest.
var padLines = func() (t [neighbourChunk][neighbourChunk]uint32) {
	for n := 1; n < neighbourChunk; n++ {
		for i := n; i < neighbourChunk; i++ {
			t[n][i] = padLine
		}
	}
	return t
}()

// laneSign is -0.
var laneSign = [8]uint32{1 << 31, 1 << 31, 1 << 31, 1 << 31, 1 << 31, 1 << 31, 1 << 31, 1 << 31}

var laneInf = [8]uint32{0x7F800000, 0x7F800000, 0x7F800000, 0x7F800000, 0x7F800000, 0x7F800000, 0x7F800000, 0x7F800000}

// chooseRuns sets the codes of the candidates of all runs.
func chooseRuns(dim int, s *gridLanes, points, one, more []uint16, n int) {
	if !searchByAVX2 {
		chooseRunsLanes(dim, s, points, one, more)
		return
	}
	l := s.lines
	if dim == 8 {
		hard := settleAVX2Dim8(l, s, points, one, n)
		linesAVX2Dim8(l, s, points, more)
		chooseAVX2(l, s, points, l.hard[:hard])
	} else {
		hard := settleAVX2Dim4(l, s, points, one, n)
		linesAVX2Dim4(l, s, points, more)
		chooseAVX2(l, s, points, l.hard[:hard])
	}
	chooseAVX2(l, s, points, more)
}

// fillAVX2 sets the codes of n candidates from t on.
func fillAVX2(row *[2 * maxCandidates]uint32, t, n int, code uint32) {
	v := archsimd.BroadcastUint32x8(code)
	v.StoreArray((*[8]uint32)(row[t : t+8]))
	v.StoreArray((*[8]uint32)(row[t+8 : t+16]))
	v.StoreArray((*[8]uint32)(row[t+16 : t+24]))
	if n > 24 {
		v.StoreArray((*[8]uint32)(row[t+24 : t+32]))
	}
}

// laneSplat are the indices that give all lanes the value of one.
var laneSplat = func() (t [neighbourChunk][neighbourChunk]uint32) {
	for n := range t {
		for i := range t[n] {
			t[n][i] = uint32(n)
		}
	}
	return t
}()

// splatAt points to laneSplat: see rowPointers.
var splatAt = &laneSplat

var laneUnsure = [8]uint32{unsure, unsure, unsure, unsure, unsure, unsure, unsure, unsure}

// laneFlags are the flags of codes, by those of a shortSpan.
var laneFlags = [2][8]uint32{{}, {offGrid, offGrid, offGrid, offGrid, offGrid, offGrid, offGrid, offGrid}}

// firstLanes are masks of the lanes up to one.
var firstLanes = func() (t [8][8]int32) {
	for n := range t {
		for i := range n + 1 {
			t[n][i] = -1
		}
	}
	return t
}()

// splitSigns sets y to the magnitudes of x, and signs, by 8 elements.
func splitSigns(s *gridLanes, signs *[32]uint8, x []float32, even bool) {
	if !searchByAVX2 {
		clearUpper()
		splitSignsScalar(s, signs, x, even)
		return
	}
	sign := archsimd.LoadUint32x8Array(&laneSign)
	for g := range signs {
		e := archsimd.LoadFloat32x8Array((*[8]float32)(x[8*g:]))
		y, w := (*[8]float32)(s.y[8*g:]), (*[8]float32)(s.w[8*g:])
		negative := e.ToBits().AsInt32x8().Less(archsimd.Int32x8{})
		// not of -0
		negative = negative.And(e.ToBits().ShiftAllLeft(1).Equal(archsimd.Uint32x8{}).ToInt32x8().Not().ToMask())
		b := negative.ToBits()
		flip := sign.Masked(negative)
		if even && b != codebook.Signs7[b&127] {
			c := archsimd.LoadFloat32x8Array(w).Mul(e).Mul(e)
			m := c.Min(c.ConcatPermute128Scalars(1, 0, c))
			m = m.Min(m.AsUint32x8().PermuteScalarsGrouped(2, 3, 0, 1).AsFloat32x8())
			m = m.Min(m.AsUint32x8().PermuteScalarsGrouped(1, 0, 3, 2).AsFloat32x8())
			at := bits.TrailingZeros8(c.Equal(m).ToBits())
			if c.Equal(c).ToBits() != 0xFF { // a NaN, of infinite weights
				at = 8
			}
			if at == 8 {
				clearUpper()
				signs[g] = codebook.EvenSigns(y[:], x[8*g:][:8], w[:])
				continue
			}
			lane := archsimd.LoadUint32x8Array(&laneOnly[at&7])
			flip = flip.Xor(lane)
			b ^= bitOnly[at&7]
		}
		signs[g] = b
		e.ToBits().Xor(flip).BitsToFloat32().StoreArray(y)
	}
}

var bitOnly = [8]uint8{1, 2, 4, 8, 16, 32, 64, 128}

// laneOnly have -0 in one lane.
var laneOnly = func() (t [8][8]uint32) {
	for n := range t {
		t[n][n] = 1 << 31
	}
	return t
}()
