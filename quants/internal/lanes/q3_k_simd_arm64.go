//go:build goexperiment.simd && go1.27

package lanes

import (
	"simd/archsimd"

	"ggforge/quants/internal/scalar"
)

// Steps of Q3_K with archsimd, and relevelSymTile: see searchAsymNeon. Without importance a weight takes 41
// instructions instead of 97, and 137 in scalar code. Loads and stores that are not calls of load4 and store4 save one
// each: where a function is inlined, there often is a no-op.

// sym3First is sym3Each.
func sym3First(t *symTable, x []float32, s *sym3, scales []float32) {
	if !tilesByNeon {
		sym3Each(t, x, s, scales)
		return
	}
	for i := range len(x) / 64 {
		s.rest[i] = sym3TileNeon(t, (*[64]float32)(x[64*i:]), s, scales[4*i:])
	}
}

// sym3TileNeon is sym3Tile. It looks without divisions: see sym3Look for u, l, x, a1 and b1.
//
// With p = x*b1, as rounded, and c a little less than 1/2, |p - l*a1| < c*a1 means that |p/a1 - l| is less than 1/2 by
// more than the errors of these products, of the difference and of the division: c is 1/2 - 2^-18, they are less than
// 2^-20 of a1 together, as levels are at most 4. Where p is larger than over*a1, that takes its place, and the
// difference is small if l is the largest level. Then u is not above 2^22, which is needed: as the largest element m is
// negative and no term of a is, a1 contains that of m, 4|m|^3, less errors of 2^-19*64|m|^3, while x*b1 is at most
// |m|*256|m|^2.
//
// Where |m| is below 2^-30 or above 2^38 underflow or overflow could get in the way: such lanes count as restless.
func sym3TileNeon(t *symTable, x *[64]float32, s *sym3, scales []float32) (restless uint32) {
	var zero f32x4
	rows := (*[192]float32)(s.rows[:])
	m, a, b := sym3StartNeon(t, x, rows)
	am := m.Abs()
	some := am.GreaterEqual(load4(t.eps[:]))
	store4(scales, a.Div(b).Masked(b.Greater(zero)).Masked(some))
	away := sym3AwayNeon(a, b, load4(t.over[:]), load4(sym3Near[:]),
		am.Less(load4(sym3Least[:])).Or(am.Greater(load4(sym3Most[:]))), x, rows)
	return bits4(away.And(some).And(m.Less(zero)))
}

// bits4 returns the lanes of the mask, as bits.
func bits4(m archsimd.Mask32x4) uint32 {
	return uint32(m.ToInt32x4().And(archsimd.LoadInt32x4Array(&maskBits[0])).ReduceSum())
}

// sym3StartNeon sets rows to the first levels of x and their terms in the sums, and returns the largest elements and
// these sums.
//
//go:noinline
func sym3StartNeon(t *symTable, x *[64]float32, rows *[192]float32) (m, a, b f32x4) {
	mn := archsimd.LoadFloat32x4Array((*[4]float32)(x[:4]))
	mx := mn
	for i := 4; i <= 52; i += 12 {
		e := (*[12]float32)(x[i : i+12])
		v0, v1, v2 := archsimd.LoadFloat32x4Array((*[4]float32)(e[:4])),
			archsimd.LoadFloat32x4Array((*[4]float32)(e[4:8])), archsimd.LoadFloat32x4Array((*[4]float32)(e[8:]))
		mn, mx = mn.Min(v0).Min(v1).Min(v2), mx.Max(v0).Max(v1).Max(v2)
	}
	var zero f32x4
	below := mn.Neg()
	m = mn.IfElse(below.Greater(mx), mx)
	if below.Equal(mx).And(mx.Greater(zero)).ToInt32x4().ReduceMin() != 0 { // the first of both counts
		m = largestNeon(x[:])
	}
	step, high := load4(t.first[:]).Div(m), load4(t.max[:]).ToBits().BitsToInt32()
	for i := 0; i <= 48; i += 16 {
		q, e := (*[48]float32)(rows[3*i:3*i+48]), (*[16]float32)(x[i:i+16])

		v := archsimd.LoadFloat32x4Array((*[4]float32)(e[:4]))
		l := v.Mul(step).Round().ToBits().BitsToInt32().Min(high).ToBits().BitsToFloat32()
		w := v.Mul(v)
		p, u := w.Mul(v).Mul(l), w.Mul(l).Mul(l)
		l.StoreArray((*[4]float32)(q[:4]))
		p.StoreArray((*[4]float32)(q[4:8]))
		u.StoreArray((*[4]float32)(q[8:12]))
		a, b = a.Add(p), b.Add(u)

		v = archsimd.LoadFloat32x4Array((*[4]float32)(e[4:8]))
		l = v.Mul(step).Round().ToBits().BitsToInt32().Min(high).ToBits().BitsToFloat32()
		w = v.Mul(v)
		p, u = w.Mul(v).Mul(l), w.Mul(l).Mul(l)
		l.StoreArray((*[4]float32)(q[12:16]))
		p.StoreArray((*[4]float32)(q[16:20]))
		u.StoreArray((*[4]float32)(q[20:24]))
		a, b = a.Add(p), b.Add(u)

		v = archsimd.LoadFloat32x4Array((*[4]float32)(e[8:12]))
		l = v.Mul(step).Round().ToBits().BitsToInt32().Min(high).ToBits().BitsToFloat32()
		w = v.Mul(v)
		p, u = w.Mul(v).Mul(l), w.Mul(l).Mul(l)
		l.StoreArray((*[4]float32)(q[24:28]))
		p.StoreArray((*[4]float32)(q[28:32]))
		u.StoreArray((*[4]float32)(q[32:36]))
		a, b = a.Add(p), b.Add(u)

		v = archsimd.LoadFloat32x4Array((*[4]float32)(e[12:]))
		l = v.Mul(step).Round().ToBits().BitsToInt32().Min(high).ToBits().BitsToFloat32()
		w = v.Mul(v)
		p, u = w.Mul(v).Mul(l), w.Mul(l).Mul(l)
		l.StoreArray((*[4]float32)(q[36:40]))
		p.StoreArray((*[4]float32)(q[40:44]))
		u.StoreArray((*[4]float32)(q[44:]))
		a, b = a.Add(p), b.Add(u)
	}
	return m, a, b
}

// sym3AwayNeon returns the lanes that may get another level, and those of away.
//
//go:noinline
func sym3AwayNeon(a, b, over, c f32x4, away archsimd.Mask32x4, x *[64]float32, rows *[192]float32) archsimd.Mask32x4 {
	for i := 0; i <= 48; i += 16 {
		q, e := (*[48]float32)(rows[3*i:3*i+48]), (*[16]float32)(x[i:i+16])

		a1 := a.Sub(archsimd.LoadFloat32x4Array((*[4]float32)(q[4:8])))
		p := b.Sub(archsimd.LoadFloat32x4Array((*[4]float32)(q[8:12]))).Mul(
			archsimd.LoadFloat32x4Array((*[4]float32)(e[:4])))
		d := p.Min(a1.Mul(over)).Sub(a1.Mul(archsimd.LoadFloat32x4Array((*[4]float32)(q[:4])))).Abs()
		away = away.Or(d.GreaterEqual(a1.Mul(c)))

		a1 = a.Sub(archsimd.LoadFloat32x4Array((*[4]float32)(q[16:20])))
		p = b.Sub(archsimd.LoadFloat32x4Array((*[4]float32)(q[20:24]))).Mul(
			archsimd.LoadFloat32x4Array((*[4]float32)(e[4:8])))
		d = p.Min(a1.Mul(over)).Sub(a1.Mul(archsimd.LoadFloat32x4Array((*[4]float32)(q[12:16])))).Abs()
		away = away.Or(d.GreaterEqual(a1.Mul(c)))

		a1 = a.Sub(archsimd.LoadFloat32x4Array((*[4]float32)(q[28:32])))
		p = b.Sub(archsimd.LoadFloat32x4Array((*[4]float32)(q[32:36]))).Mul(
			archsimd.LoadFloat32x4Array((*[4]float32)(e[8:12])))
		d = p.Min(a1.Mul(over)).Sub(a1.Mul(archsimd.LoadFloat32x4Array((*[4]float32)(q[24:28])))).Abs()
		away = away.Or(d.GreaterEqual(a1.Mul(c)))

		a1 = a.Sub(archsimd.LoadFloat32x4Array((*[4]float32)(q[40:44])))
		p = b.Sub(archsimd.LoadFloat32x4Array((*[4]float32)(q[44:]))).Mul(
			archsimd.LoadFloat32x4Array((*[4]float32)(e[12:])))
		d = p.Min(a1.Mul(over)).Sub(a1.Mul(archsimd.LoadFloat32x4Array((*[4]float32)(q[36:40])))).Abs()
		away = away.Or(d.GreaterEqual(a1.Mul(c)))
	}
	return away
}

var sym3Near, sym3Least, sym3Most = splat(0.5 - 0x1p-18), splat(0x1p-30), splat(0x1p38)

// sym3LookAgain is sym3Look.
func sym3LookAgain(t *symTable, x []float32, s *sym3, i int) {
	if tilesByNeon {
		sym3LookNeon((*[64]float32)(x), (*[192]float32)(s.rows[192*i:]), load4(s.a[4*i:]), load4(s.b[4*i:]),
			load4(t.over[:])).StoreArray((*[4]int32)(s.restless[4*i:]))
	} else {
		sym3Look(t, x, s, i)
	}
}

//go:noinline
func sym3LookNeon(x *[64]float32, rows *[192]float32, a, b, over f32x4) (found i32x4) {
	limit, half := archsimd.BroadcastUint32x4(0x4A800000).BitsToFloat32(),
		archsimd.BroadcastUint32x4(0x3F000000).BitsToFloat32()
	bit := ints4(1)
	for i := 0; i <= 56; i += 8 {
		q, e := (*[24]float32)(rows[3*i:3*i+24]), (*[8]float32)(x[i:i+8])
		u := b.Sub(archsimd.LoadFloat32x4Array((*[4]float32)(q[8:12]))).Mul(
			archsimd.LoadFloat32x4Array((*[4]float32)(e[:4])))
		u = u.Div(a.Sub(archsimd.LoadFloat32x4Array((*[4]float32)(q[4:8]))))
		away := u.Min(over).Sub(archsimd.LoadFloat32x4Array((*[4]float32)(q[:4]))).Abs()
		found = found.Or(bit.Masked(away.GreaterEqual(half).Or(u.GreaterEqual(limit))))
		bit = bit.Add(bit)
		u = b.Sub(archsimd.LoadFloat32x4Array((*[4]float32)(q[20:]))).Mul(
			archsimd.LoadFloat32x4Array((*[4]float32)(e[4:])))
		u = u.Div(a.Sub(archsimd.LoadFloat32x4Array((*[4]float32)(q[16:20]))))
		away = u.Min(over).Sub(archsimd.LoadFloat32x4Array((*[4]float32)(q[12:16]))).Abs()
		found = found.Or(bit.Masked(away.GreaterEqual(half).Or(u.GreaterEqual(limit))))
		bit = bit.Add(bit)
	}
	return found
}

// sym3Chains sets the first levels of the tiles, and is sym3Chain.
func sym3Chains(t *symTable, s *sym3, tiles int) {
	if !tilesByNeon {
		sym3ChainsTiles(t, s, tiles)
		return
	}
	for i := range tiles {
		_, a, b := sym3StartNeon(t, (*[64]float32)(s.x[64*i:]), (*[192]float32)(s.rows[192*i:]))
		store4(s.a[4*i:], a)
		store4(s.b[4*i:], b)
	}
	clear(s.changed[:4*tiles])
	sym3ChainNeon(t, s, tiles)
}

func sym3ChainNeon(t *symTable, s *sym3, tiles int) {
	var zero f32x4
	low, high := archsimd.BroadcastInt32x4(magicZero-t.levels), archsimd.BroadcastInt32x4(magicZero+t.levels-1)
	mask, magic, offset := ints4(magicMask), archsimd.BroadcastUint32x4(magicBits).BitsToFloat32(),
		archsimd.BroadcastInt32x4(magicZero)
	for row := 0; row < 64; row += 4 {
		for i, k := row, 0; k < 4*tiles; i, k = i+64, k+4 {
			r, x := (*[12]float32)(s.rows[3*i:]), (*[4]float32)(s.x[i:])
			as, bs, changed := (*[4]float32)(s.a[k:]), (*[4]float32)(s.b[k:]), (*[4]int32)(s.changed[k:])
			v, a, b := archsimd.LoadFloat32x4Array(x), archsimd.LoadFloat32x4Array(as), archsimd.LoadFloat32x4Array(bs)
			l, p, q := archsimd.LoadFloat32x4Array((*[4]float32)(r[:4])),
				archsimd.LoadFloat32x4Array((*[4]float32)(r[4:8])), archsimd.LoadFloat32x4Array((*[4]float32)(r[8:]))
			w := v.Mul(v)
			a1, b1 := a.Sub(p), b.Sub(q)
			ok := a1.Greater(zero)
			f := v.Mul(b1).Div(a1).Add(magic).ToBits().BitsToInt32().And(mask).Max(low).Min(high).Sub(
				offset).ConvertToFloat32()
			p1, q1 := w.Mul(v).Mul(f), w.Mul(f).Mul(f)
			a1, b1 = a1.Add(p1), b1.Add(q1)
			ok = ok.And(f.NotEqual(l)).And(b1.Greater(zero)).And(a1.Mul(a1).Mul(b).Greater(a.Mul(a).Mul(b1)))
			a1.IfElse(ok, a).StoreArray(as)
			b1.IfElse(ok, b).StoreArray(bs)
			f.IfElse(ok, l).StoreArray((*[4]float32)(r[:4]))
			p1.IfElse(ok, p).StoreArray((*[4]float32)(r[4:8]))
			q1.IfElse(ok, q).StoreArray((*[4]float32)(r[8:]))
			archsimd.LoadInt32x4Array(changed).Or(ok.ToInt32x4()).StoreArray(changed)
		}
	}
}

// packQ3_K packs the levels s.kept of nb superblocks.
func (s *kScratch) packQ3_K(dst []byte, nb, width int) {
	if !tilesByNeon {
		s.storeQ3_K(dst, nb, width)
		return
	}
	for i := range nb {
		packQ3_KNeon((*[96]byte)(dst[i*scalar.BytesQ3_K:]), (*[64]uint32)(s.kept[64*i:]))
	}
}

type u8x16 = archsimd.Uint8x16

// packQ3_KNeon packs the levels of a superblock, four tiles. Vectors are of sub-blocks, of
// which the odd ones have the second half of 32 elements.
func packQ3_KNeon(dst *[96]byte, w *[64]uint32) {
	low, bit := archsimd.BroadcastUint8x16(3), archsimd.BroadcastUint8x16(4)
	a, b, c, d := transposed4(w[0:4], w[4:8], w[8:12], w[12:16])
	e, f, g, h := transposed4(w[16:20], w[20:24], w[24:28], w[28:32])
	crumbs4(dst[32:48], low, a, c, e, g)
	crumbs4(dst[48:64], low, b, d, f, h)
	even := a.And(bit).ShiftAllRight(2).Or(c.And(bit).ShiftAllRight(1)).Or(e.And(bit)).Or(g.And(bit).ShiftAllLeft(1))
	odd := b.And(bit).ShiftAllRight(2).Or(d.And(bit).ShiftAllRight(1)).Or(f.And(bit)).Or(h.And(bit).ShiftAllLeft(1))
	a, b, c, d = transposed4(w[32:36], w[36:40], w[40:44], w[44:48])
	e, f, g, h = transposed4(w[48:52], w[52:56], w[56:60], w[60:64])
	crumbs4(dst[64:80], low, a, c, e, g)
	crumbs4(dst[80:96], low, b, d, f, h)
	even = even.Or(a.And(bit).ShiftAllLeft(2)).Or(c.And(bit).ShiftAllLeft(3)).Or(e.And(bit).ShiftAllLeft(4)).Or(
		g.And(bit).ShiftAllLeft(5))
	odd = odd.Or(b.And(bit).ShiftAllLeft(2)).Or(d.And(bit).ShiftAllLeft(3)).Or(f.And(bit).ShiftAllLeft(4)).Or(
		h.And(bit).ShiftAllLeft(5))
	even.StoreArray((*[16]byte)(dst[:16]))
	odd.StoreArray((*[16]byte)(dst[16:32]))
}

// crumbs4 stores the low two bits of the bytes, four in each.
func crumbs4(dst []byte, low, a, b, c, d u8x16) {
	a.And(low).Or(b.And(low).ShiftAllLeft(2)).Or(c.And(low).ShiftAllLeft(4)).Or(d.ShiftAllLeft(6)).StoreArray(
		(*[16]byte)(dst))
}

// transposed4 returns the columns of the rows, as bytes.
func transposed4(a, b, c, d []uint32) (w, x, y, z u8x16) {
	p, q := archsimd.LoadUint32x4Array((*[4]uint32)(a)), archsimd.LoadUint32x4Array((*[4]uint32)(b))
	r, s := archsimd.LoadUint32x4Array((*[4]uint32)(c)), archsimd.LoadUint32x4Array((*[4]uint32)(d))
	t, u := p.InterleaveLo(q).ReshapeToUint64s(), p.InterleaveHi(q).ReshapeToUint64s()
	v, e := r.InterleaveLo(s).ReshapeToUint64s(), r.InterleaveHi(s).ReshapeToUint64s()
	return t.InterleaveLo(v).ReshapeToUint8s(), t.InterleaveHi(v).ReshapeToUint8s(),
		u.InterleaveLo(e).ReshapeToUint8s(), u.InterleaveHi(e).ReshapeToUint8s()
}

// relevelTile is relevelSymTile.
func relevelTile(levels int32, x, d []float32, words []uint32) {
	if tilesByNeon {
		relevelSymNeon(levels, (*[64]float32)(x), d, (*[16]uint32)(words))
	} else {
		relevelSymTile(levels, x, d, words)
	}
}

func relevelSymNeon(levels int32, x *[64]float32, d []float32, words *[16]uint32) {
	var zero f32x4
	dv := load4(d)
	none := dv.Equal(zero)
	mask, magic := ints4(magicMask), archsimd.BroadcastUint32x4(magicBits).BitsToFloat32()
	low, high := archsimd.BroadcastInt32x4(magicZero-levels), archsimd.BroadcastInt32x4(magicZero+levels-1)
	least := ints4(uint32(magicZero-levels) * 0x01010101)
	eight := archsimd.BroadcastInt32x4(8) // ShiftAllLeft makes the same each time
	for i := 0; i <= 48; i += 16 {
		e, o := (*[16]float32)(x[i:i+16]), (*[4]uint32)(words[i/4:i/4+4])
		q := archsimd.LoadFloat32x4Array((*[4]float32)(e[12:])).Div(dv).Add(magic).ToBits().BitsToInt32().And(mask).Max(
			low).Min(high)
		q = q.Shift(eight).Add(archsimd.LoadFloat32x4Array((*[4]float32)(e[8:12])).Div(dv).Add(
			magic).ToBits().BitsToInt32().And(mask).Max(low).Min(high))
		q = q.Shift(eight).Add(archsimd.LoadFloat32x4Array((*[4]float32)(e[4:8])).Div(dv).Add(
			magic).ToBits().BitsToInt32().And(mask).Max(low).Min(high))
		q = q.Shift(eight).Add(archsimd.LoadFloat32x4Array((*[4]float32)(e[:4])).Div(dv).Add(
			magic).ToBits().BitsToInt32().And(mask).Max(low).Min(high))
		archsimd.LoadUint32x4Array(o).IfElse(none, q.Sub(least).ToBits()).StoreArray(o)
	}
}
