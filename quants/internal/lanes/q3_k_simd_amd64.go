//go:build goexperiment.simd && go1.27

package lanes

import (
	"simd/archsimd"

	"ggforge/quants/internal/scalar"
)

// Steps of Q3_K and relevelSymTile with 256 bits.

type u32x8 = archsimd.Uint32x8

// largestAVX2 is largestTile.
//
//go:noinline
func largestAVX2(x *[128]float32) (m f32x8) {
	var largest f32x8
	mask := ints8(absBits)
	for i := 0; i < len(x); i += 8 {
		v := load8(x[i : i+8])
		av := v.AsInt32x8().And(mask).AsFloat32x8()
		larger := av.Greater(largest)
		m, largest = v.IfElse(larger, m), av.IfElse(larger, largest)
	}
	return m
}

// packQ3_K packs the levels s.kept of nb superblocks.
func (s *kScratch) packQ3_K(dst []byte, nb, width int) {
	if !tilesByAVX2 {
		s.storeQ3_K(dst, nb, width)
		return
	}
	for i := range nb {
		packQ3_KAVX2((*[96]byte)(dst[i*scalar.BytesQ3_K:]), (*[64]uint32)(s.kept[64*i:]))
	}
}

// packQ3_KAVX2 packs the levels of a superblock, two tiles.
func packQ3_KAVX2(dst *[96]byte, w *[64]uint32) {
	low, one := archsimd.BroadcastUint32x8(0x03030303), archsimd.BroadcastUint32x8(0x01010101)
	// Lane 2*k + e of row o is of elements 4*o to 4*o+3 of the sub-block of that number. Byte 16*e + 4*o of a
	// half has their low bits at place 2*k, the mask at place k + 4*half.
	a, b, c, d := transposed8(w[0:8], w[8:16], w[16:24], w[24:32]) // lanes 0 and 4, ..., 3 and 7
	e, f, g, h := transposed8(w[32:40], w[40:48], w[48:56], w[56:64])
	crumbs(dst[32:48], a.And(low).Or(c.And(low).ShiftAllLeft(2)))
	crumbs(dst[48:64], b.And(low).Or(d.And(low).ShiftAllLeft(2)))
	crumbs(dst[64:80], e.And(low).Or(g.And(low).ShiftAllLeft(2)))
	crumbs(dst[80:96], f.And(low).Or(h.And(low).ShiftAllLeft(2)))
	a, b, c, d = a.ShiftAllRight(2).And(one), b.ShiftAllRight(2).And(one), c.ShiftAllRight(2).And(one),
		d.ShiftAllRight(2).And(one)
	e, f, g, h = e.ShiftAllRight(2).And(one), f.ShiftAllRight(2).And(one), g.ShiftAllRight(2).And(one),
		h.ShiftAllRight(2).And(one)
	a = a.Or(c.ShiftAllLeft(1)).Or(e.ShiftAllLeft(4)).Or(g.ShiftAllLeft(5))
	b = b.Or(d.ShiftAllLeft(1)).Or(f.ShiftAllLeft(4)).Or(h.ShiftAllLeft(5))
	a.GetLo().Or(a.GetHi().ShiftAllLeft(2)).AsUint8x16().StoreArray((*[16]uint8)(dst[0:16]))
	b.GetLo().Or(b.GetHi().ShiftAllLeft(2)).AsUint8x16().StoreArray((*[16]uint8)(dst[16:32]))
	archsimd.ClearAVXUpperBits()
}

// crumbs stores the bits of the low half and those of the high half four places on.
func crumbs(dst []byte, v u32x8) {
	v.GetLo().Or(v.GetHi().ShiftAllLeft(4)).AsUint8x16().StoreArray((*[16]uint8)(dst))
}

// transposed8 takes the groups of 128 bits as rows of two 4x4 matrices.
func transposed8(a, b, c, d []uint32) (w, x, y, z u32x8) {
	p, q, r, s := loadWords8(a), loadWords8(b), loadWords8(c), loadWords8(d)
	t, u := p.InterleaveLoGrouped(q).AsUint64x4(), p.InterleaveHiGrouped(q).AsUint64x4()
	v, e := r.InterleaveLoGrouped(s).AsUint64x4(), r.InterleaveHiGrouped(s).AsUint64x4()
	return t.InterleaveLoGrouped(v).AsUint32x8(), t.InterleaveHiGrouped(v).AsUint32x8(),
		u.InterleaveLoGrouped(e).AsUint32x8(), u.InterleaveHiGrouped(e).AsUint32x8()
}

func loadWords8(w []uint32) u32x8 { return archsimd.LoadUint32x8Array((*[8]uint32)(w)) }

// relevelTile is relevelSymTile.
func relevelTile(levels int32, x, d []float32, words []uint32) {
	if tilesByAVX2 {
		relevelSymAVX2(levels, (*[128]float32)(x), d, (*[32]uint32)(words))
	} else {
		relevelSymTile(levels, x, d, words)
	}
}

func relevelSymAVX2(levels int32, x *[128]float32, d []float32, words *[32]uint32) {
	var zero f32x8
	dv := load8(d)
	none := dv.Equal(zero)
	mask, magic := ints8(magicMask), archsimd.BroadcastUint32x8(magicBits).BitsToFloat32()
	low, high := archsimd.BroadcastInt32x8(magicZero-levels), archsimd.BroadcastInt32x8(magicZero+levels-1)
	least := archsimd.BroadcastUint32x8(uint32(magicZero-levels) * 0x01010101)
	for o := 0; o < 4; o++ {
		v := x[32*o : 32*o+32]
		q := load8(v[24:32]).Div(dv).Add(magic).AsInt32x8().And(mask).Max(low).Min(high)
		q = q.ShiftAllLeft(8).Add(load8(v[16:24]).Div(dv).Add(magic).AsInt32x8().And(mask).Max(low).Min(high))
		q = q.ShiftAllLeft(8).Add(load8(v[8:16]).Div(dv).Add(magic).AsInt32x8().And(mask).Max(low).Min(high))
		q = q.ShiftAllLeft(8).Add(load8(v[0:8]).Div(dv).Add(magic).AsInt32x8().And(mask).Max(low).Min(high))
		w := words[8*o : 8*o+8]
		loadWords8(w).IfElse(none, q.AsUint32x8().Sub(least)).StoreArray((*[8]uint32)(w))
	}
	archsimd.ClearAVXUpperBits()
}
