//go:build goexperiment.simd && go1.27

package lanes

import (
	"simd/archsimd"

	"ggforge/quants/internal/scalar"
)

// Steps of Q3_K with 256 bits, and relevelSymTile.

type u32x8 = archsimd.Uint32x8

// sym3First is sym3Each.
func sym3First(t *symTable, x []float32, s *sym3, scales []float32) {
	if !tilesByAVX2 {
		sym3Each(t, x, s, scales)
		return
	}
	for i := range len(x) / 128 {
		s.rest[i] = sym3TileAVX2(t, (*[128]float32)(x[128*i:]), s, scales[8*i:])
	}
}

// sym3TileAVX2 is sym3Tile. It looks without divisions: see sym3Look for u, l, x, a1 and b1.
//
// With p = x*b1, as rounded, and c a little less than 1/2, |p - l*a1| < c*a1 means that |p/a1 - l| is
// less than 1/2 by more than the errors of these products, of the difference and of the division: c is 1/2 -
// 2^-18, they are less than 2^-20 of a1 together, as levels are at most 4. Where p is larger than over*a1,
// that takes its place, and the difference is small if l is the largest level.
// Then u is not above 2^22, which is needed: as the largest element m is negative and no term of a is, a1 contains that of m, 4|m|^3,
// less errors of 2^-19*64|m|^3, while x*b1 is at most |m|*256|m|^2.
//
// Where |m| is below 2^-30 or above 2^38 underflow or overflow could get in the way: such lanes count as restless.
func sym3TileAVX2(t *symTable, x *[128]float32, s *sym3, scales []float32) (restless uint32) {
	var zero f32x8
	rows := (*[384]float32)(s.rows[:])
	m, a, b := sym3StartAVX2(t, x, rows)
	mask := ints8(absBits)
	am := m.AsInt32x8().And(mask).AsFloat32x8()
	some := am.GreaterEqual(load8(t.eps[:]))
	store8(scales, a.Div(b).Masked(b.Greater(zero)).Masked(some))
	lanes := some.And(m.Less(zero)).ToBits()
	away := sym3Away(a, b, load8(t.over[:]), load8(sym3Near[:]), am.Less(load8(sym3Least[:])).Or(am.Greater(load8(sym3Most[:]))), x, rows)
	archsimd.ClearAVXUpperBits()
	return uint32(lanes & away)
}

// sym3StartAVX2 is sym3Start.
func sym3StartAVX2(t *symTable, x *[128]float32, rows *[384]float32) (m, a, b f32x8) {
	mn, mn1 := load8(x[:8]), load8(x[8:16])
	mx, mx1 := mn, mn1
	for v := x[16:]; len(v) >= 16; v = v[16:] {
		e := (*[16]float32)(v)
		v0, v1 := load8(e[:8]), load8(e[8:])
		mn, mx, mn1, mx1 = mn.Min(v0), mx.Max(v0), mn1.Min(v1), mx1.Max(v1)
	}
	mn, mx = mn.Min(mn1), mx.Max(mx1)
	var zero f32x8
	below := zero.Sub(mn)
	m = mn.IfElse(below.Greater(mx), mx)
	if below.Equal(mx).And(mx.Greater(zero)).ToBits() != 0 { // the first of both counts
		m = largestAVX2(x)
	}
	a, b = sym3Sums(load8(t.first[:]).Div(m), load8(t.max[:]).AsInt32x8(), x, rows)
	return m, a, b
}

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

// sym3Sums sets rows to the levels of step, and returns their sums.
//
//go:noinline
func sym3Sums(step f32x8, high i32x8, x *[128]float32, rows *[384]float32) (a, b f32x8) {
	for r, v := rows[:], x[:]; len(r) >= 96 && len(v) >= 32; r, v = r[96:], v[32:] {
		q, e := (*[96]float32)(r), (*[32]float32)(v)
		p, w := sym3Row(load8(e[:8]), step, high, (*[24]float32)(q[:24]))
		a, b = a.Add(p), b.Add(w)
		p, w = sym3Row(load8(e[8:16]), step, high, (*[24]float32)(q[24:48]))
		a, b = a.Add(p), b.Add(w)
		p, w = sym3Row(load8(e[16:24]), step, high, (*[24]float32)(q[48:72]))
		a, b = a.Add(p), b.Add(w)
		p, w = sym3Row(load8(e[24:]), step, high, (*[24]float32)(q[72:]))
		a, b = a.Add(p), b.Add(w)
	}
	return a, b
}

func sym3Row(v, step f32x8, high i32x8, r *[24]float32) (p, q f32x8) {
	l := v.Mul(step).Round().AsInt32x8().Min(high).AsFloat32x8()
	w := v.Mul(v)
	p, q = w.Mul(v).Mul(l), w.Mul(l).Mul(l)
	store8(r[:8], l)
	store8(r[8:16], p)
	store8(r[16:], q)
	return p, q
}

// sym3Away returns the lanes that may get another level, and those of away.
//
//go:noinline
func sym3Away(a, b, over, c f32x8, away archsimd.Mask32x8, x *[128]float32, rows *[384]float32) (lanes uint8) {
	mask := ints8(absBits)
	for r, v := rows[:], x[:]; len(r) >= 48 && len(v) >= 16; r, v = r[48:], v[16:] {
		q, e := (*[48]float32)(r), (*[16]float32)(v)
		a1, p := a.Sub(load8(q[8:])), b.Sub(load8(q[16:])).Mul(load8(e[0:]))
		d := p.Min(a1.Mul(over)).Sub(a1.Mul(load8(q[0:])))
		away = away.Or(d.AsInt32x8().And(mask).AsFloat32x8().GreaterEqual(a1.Mul(c)))
		a1, p = a.Sub(load8(q[32:])), b.Sub(load8(q[40:])).Mul(load8(e[8:]))
		d = p.Min(a1.Mul(over)).Sub(a1.Mul(load8(q[24:])))
		away = away.Or(d.AsInt32x8().And(mask).AsFloat32x8().GreaterEqual(a1.Mul(c)))
	}
	return away.ToBits()
}

var sym3Near, sym3Least, sym3Most = splat(0.5 - 0x1p-18), splat(0x1p-30), splat(0x1p38)

// sym3LookAgain is sym3Look.
func sym3LookAgain(t *symTable, x []float32, s *sym3, i int) {
	if tilesByAVX2 {
		sym3LookAVX2((*[128]float32)(x), (*[384]float32)(s.rows[384*i:]), load8(s.a[8*i:]), load8(s.b[8*i:]), load8(t.over[:])).StoreArray((*[8]int32)(s.restless[8*i:]))
	} else {
		sym3Look(t, x, s, i)
	}
	clearUpper()
}

func sym3LookAVX2(x *[128]float32, rows *[384]float32, a, b, over f32x8) (bits i32x8) {
	limit, half := archsimd.BroadcastUint32x8(0x4A800000).BitsToFloat32(), archsimd.BroadcastUint32x8(0x3F000000).BitsToFloat32()
	mask, bit := ints8(absBits), ints8(1)
	for r, v := rows[:], x[:]; len(r) >= 24 && len(v) >= 8; r, v = r[24:], v[8:] {
		q := (*[24]float32)(r)
		u := b.Sub(load8(q[16:])).Mul(load8(v)).Div(a.Sub(load8(q[8:])))
		away := u.Min(over).Sub(load8(q[0:])).AsInt32x8().And(mask).AsFloat32x8()
		bits = bits.Or(bit.Masked(away.GreaterEqual(half).Or(u.GreaterEqual(limit))))
		bit = bit.Add(bit)
	}
	return bits
}

// sym3Chains sets the first levels of the tiles, and is sym3Chain.
func sym3Chains(t *symTable, s *sym3, tiles int) {
	if !tilesByAVX2 {
		sym3ChainsTiles(t, s, tiles)
		return
	}
	for i := range tiles {
		_, a, b := sym3StartAVX2(t, (*[128]float32)(s.x[128*i:]), (*[384]float32)(s.rows[384*i:]))
		store8(s.a[8*i:], a)
		store8(s.b[8*i:], b)
	}
	clear(s.changed[:8*tiles])
	sym3ChainAVX2(t, s, tiles)
	archsimd.ClearAVXUpperBits()
}

func sym3ChainAVX2(t *symTable, s *sym3, tiles int) {
	var zero f32x8
	low, high := archsimd.BroadcastInt32x8(magicZero-t.levels), archsimd.BroadcastInt32x8(magicZero+t.levels-1)
	mask, magic, offset := ints8(magicMask), archsimd.BroadcastUint32x8(magicBits).BitsToFloat32(), archsimd.BroadcastInt32x8(magicZero)
	for row := 0; row < 128; row += 8 {
		for i, k := row, 0; k < 8*tiles; i, k = i+128, k+8 {
			r, x := (*[24]float32)(s.rows[3*i:]), (*[8]float32)(s.x[i:])
			as, bs, changed := (*[8]float32)(s.a[k:]), (*[8]float32)(s.b[k:]), (*[8]int32)(s.changed[k:])
			v, a, b := load8(x[:]), load8(as[:]), load8(bs[:])
			l, p, q := load8(r[0:]), load8(r[8:]), load8(r[16:])
			w := v.Mul(v)
			a1, b1 := a.Sub(p), b.Sub(q)
			ok := a1.Greater(zero)
			f := v.Mul(b1).Div(a1).Add(magic).AsInt32x8().And(mask).Max(low).Min(high).Sub(offset).ConvertToFloat32()
			p1, q1 := w.Mul(v).Mul(f), w.Mul(f).Mul(f)
			a1, b1 = a1.Add(p1), b1.Add(q1)
			ok = ok.And(f.NotEqual(l)).And(b1.Greater(zero)).And(a1.Mul(a1).Mul(b).Greater(a.Mul(a).Mul(b1)))
			store8(as[:], a1.IfElse(ok, a))
			store8(bs[:], b1.IfElse(ok, b))
			store8(r[0:], f.IfElse(ok, l))
			store8(r[8:], p1.IfElse(ok, p))
			store8(r[16:], q1.IfElse(ok, q))
			archsimd.LoadInt32x8Array(changed).Or(ok.ToInt32x8()).StoreArray(changed)
		}
	}
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
	a, b, c, d = a.ShiftAllRight(2).And(one), b.ShiftAllRight(2).And(one), c.ShiftAllRight(2).And(one), d.ShiftAllRight(2).And(one)
	e, f, g, h = e.ShiftAllRight(2).And(one), f.ShiftAllRight(2).And(one), g.ShiftAllRight(2).And(one), h.ShiftAllRight(2).And(one)
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
	return t.InterleaveLoGrouped(v).AsUint32x8(), t.InterleaveHiGrouped(v).AsUint32x8(), u.InterleaveLoGrouped(e).AsUint32x8(), u.InterleaveHiGrouped(e).AsUint32x8()
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
