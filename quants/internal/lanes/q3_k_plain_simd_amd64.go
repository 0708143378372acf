//go:build goexperiment.simd && go1.27

package lanes

import (
	"encoding/binary"
	"math/bits"
	"simd/archsimd"
	"sync"

	"ggforge/internal/kernel/lane"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
)

// Q3_K without importance with 256 bits, which machines with 512 take, too: tiles of 16 sub-blocks gain nothing.
// Replaces scalar.QuantizeQ3_K.
//
// Of a group of tiles all have their largest elements found, then their first levels, then looks at which elements may
// get another level: a tile alone waits for chains of 16 additions and a division, longer than the processor looks
// ahead. In a fifth of the sub-blocks, the restless ones, there are any. These are not put into tiles, as the moves
// that they take are 1 (half of them) to 12: a round takes the next move of all that are left, tries eight at a time,
// and looks at the 16 elements of each again. There is no branch in that that depends on weights.
//
// A look needs neither divisions nor the term of an element in b. With the names of search.Sym3, p and q for the
// element's terms in a and b, m for the largest element and u = 2^-24: x*(b-q) - l*(a-p) is x*b - l*a, as x*q = l*p, so
// that x*b1/a1 is less than 1/2 from l where
//
//	|x*b - l*a| < c*(a - p), c < 1/2
//
// The sides here are k*x*b - k*l*a, k = 2 + 2^-15, and a*(1-2^-16) - p. p is not negative: it is in the beginning,
// where levels have the sign of x, and an item with a part that is becomes unproved, all of whose elements may change.
// So p <= a. Where the look says no, k*x*b is at most 18a, and products and differences err by 40u*a together; p and q
// err by 3u of their own, which is 24u*p for l*p - x*q; and the products and the division of the search err by 19u*(a -
// p). That is less than the 2^-17 of a - p and the 2^-17 of a that k and 1-2^-16 leave. k*x*b counts as 3.125*k*a at
// most, which is out of reach for all levels but 3, the largest. For that one x*b1/a1 is above 3 - 2^-18 then, and far
// below 2^22, where arith.RoundEven ends: a - p is above a/4, b at most 257*m*m, and a at least
// |m|*m*m/4. Proof of the last: a*a/b is m^4/2 at least in the beginning, as a term of b is at most 8/|m| times that of a, which
// has 4*|m|^3 of m. Moves let it grow, but for 2^-16 by rounding. By Cauchy and Schwarz the x^4 of elements whose level
// is not 0 sum up to no less, so one of these is 0.4*|m| at least, b is 0.17*m*m, and a, which is positive, is
// sqrt(b/2)*m*m. Where |m| is below 2^-30 or above 2^38 underflow or overflow could get in the way: such items are
// unproved, too.
//
// MB/s on one core of a Sapphire Rapids, best of many short runs, rows of 4096: 2430. Before, with restless sub-blocks
// in tiles, where a chain tried each element, it was 1730. 20 instructions for each weight (qemu-x86_64); by the sizes
// of loops, 3 of them for loading and the largest, 3 for first levels, 2.5 for the first look, 7 for all moves, 2 for
// last levels, 2 for scales and packing. The processor does 4 in a cycle; first levels are bound by 8 multiplications
// and roundings on two ports for 8 weights, last ones by a division in 5 cycles.
//
// Tried and lost: trying each element of an item exactly (118 instructions instead of 80 for a look and its choice, two
// divisions); restless sub-blocks in tiles that look and move together (2 in 5 lanes have something to do); last levels
// by reciprocals and a bound (as fast); one function that looks and chooses. Gained 6%: no vector in two lines of the
// cache.

// plainQ3_K is the scratch of QuantizePlainQ3_KAVX2. The arrays that are loaded most come first, and no part of it has
// a vector in two lines of the cache.
type plainQ3_K struct {
	tiles [maxSub / 8]tileQ3_K
	rows  [groupQ3_K]rowsQ3_K // of a group of tiles

	// Restless sub-blocks by number, where they are, and the lists of their numbers, and of those that are left.
	items     [maxSub]itemQ3_K
	moves     movesQ3_K
	looks     [maxSub]uint32    // by place in list: bits of the elements that do not change if they are next
	itemAt    [maxSub]*itemQ3_K // loads from here have addresses with fewer instructions
	all, list [maxSub + 64]uint8
	kScratch
}

// tileQ3_K is a tile of 8 sub-blocks: elements by row, largest elements, first steps, and sums of x*x*x*l and x*x*l*l.
type tileQ3_K struct {
	x                   [128]float32
	largest, step, a, b [8]uint32
	still               [8]uint32 // elements that keep their levels, as bits
	restless            uint8     // lanes in which there are others, as bits
	_                   [31]uint8
}

// rowsQ3_K are, alternately, rows of levels and of their terms in a.
type rowsQ3_K [2 * 128]float32

// itemQ3_K is a restless sub-block. ahead has the bits of the elements that are next in the pass; again all bits if
// there may be another pass, that is, if this one has changed something; unproved all bits if all elements may change.
type itemQ3_K struct {
	x, l, p                      [16]uint32 // elements, levels, and the terms of levels in a
	a, b                         uint32
	ahead, again, left, unproved uint32
	_                            [10]uint32
}

// movesQ3_K are moves to try, by place in plainQ3_K.list.
type movesQ3_K struct {
	at                             [maxSub]uint8 // the element
	x, l, p, a, b, moved, unproved [maxSub]uint32
}

var plainQ3_KPool = sync.Pool{New: func() any {
	s := new(plainQ3_K)
	for i := range s.items {
		s.itemAt[i] = &s.items[i]
	}
	return s
}}

// groupQ3_K is the number of tiles that take each step together.
const groupQ3_K = 8

// QuantizePlainQ3_KAVX2 is QuantizeQ3_K without importance, which is nil.
func QuantizePlainQ3_KAVX2(dst []byte, src, _ []float32) {
	s := plainQ3_KPool.Get().(*plainQ3_K)
	defer plainQ3_KPool.Put(s)
	width := lane.Width()
	for len(src) > 0 {
		nb := min(lane.MaxWidth, len(src)/pack.QK_K)
		x := src[:nb*pack.QK_K]
		src = src[len(x):]
		s.search(symQ3_K, x)
		for i := 0; i < nb; i += width {
			s.codeScalesQ3_K(dst[i*scalar.BytesQ3_K:], s.scale[16*i:], s.d[16*i:], min(nb-i, width), width)
		}
		if relevelQ3_K(s.tiles[:2*nb], s.d[:], s.kept[:]) {
			s.keepSym3(x, 8)
		}
		for i := 0; i < nb; i++ {
			packQ3_KAVX2((*[96]byte)(dst[i*scalar.BytesQ3_K:]), (*[64]uint32)(s.kept[64*i:]))
		}
		dst = dst[nb*scalar.BytesQ3_K:]
	}
}

// search is sym3.search.
func (s *plainQ3_K) search(t *symTable, x []float32) {
	n, tiles := 0, s.tiles[:len(x)/128]
	for i := 0; i < len(tiles); i += groupQ3_K {
		group := tiles[i:min(i+groupQ3_K, len(tiles))]
		firstQ3_K(t, group, x[128*i:], &s.rows)
		for j := range group {
			r := &restOf[group[j].restless]
			binary.LittleEndian.PutUint64(s.all[n:], r.lanes+uint64(i+j)*0x0808080808080808)
			n += r.n
		}
	}
	s.list = s.all
	s.begin(t, x, n)
	for left := s.choose(n); left > 0; left = s.choose(left) {
		s.moves.try(t, left)
		s.take(left)
		s.look(left)
	}
	for _, i := range s.all[:n] {
		u, v := s.itemAt[i], &s.tiles[i/8]
		v.a[i%8], v.b[i%8] = u.a, u.b
	}
	for i := range tiles {
		store8(s.scale[8*i:], tiles[i].scales(t))
	}
	archsimd.ClearAVXUpperBits()
}

// restOf has the number of set bits of each byte value, and their indices, a byte each.
var restOf = func() (r [256]struct {
	lanes uint64
	n     int
}) {
	for i := range r {
		for k := range 8 {
			if i>>k&1 != 0 {
				r[i].lanes |= uint64(k) << (8 * r[i].n)
				r[i].n++
			}
		}
	}
	return r
}()

// firstQ3_K takes a group of tiles, an even number of them. All take each step together: a
// tile alone would wait for its largest elements, the division and the sums.
func firstQ3_K(t *symTable, tiles []tileQ3_K, x []float32, all *[groupQ3_K]rowsQ3_K) {
	first := load8(t.first[:])
	for j := range tiles {
		u := &tiles[j]
		lane.Load8x16(&u.x, (*[128]float32)(x[128*j:]))
		m := largestQ3_K(&u.x)
		storeBits8(u.largest[:], m)
		storeBits8(u.step[:], first.Div(m))
	}
	high := load8(t.max[:]).AsInt32x8()
	for j := 0; j+1 < len(tiles); j += 2 {
		u, v := &tiles[j], &tiles[j+1]
		a0, b0, a1, b1 := firstSumsQ3_K(loadBits8(u.step[:]), loadBits8(v.step[:]), high, &u.x, &v.x,
			&all[j&(groupQ3_K-1)], &all[(j+1)&(groupQ3_K-1)])
		storeBits8(u.a[:], a0)
		storeBits8(u.b[:], b0)
		storeBits8(v.a[:], a1)
		storeBits8(v.b[:], b1)
	}
	var zero f32x8
	mask := ints8(absBits)
	for j := range tiles {
		u := &tiles[j]
		m, a := loadBits8(u.largest[:]), loadBits8(u.a[:])
		am := m.AsInt32x8().And(mask).AsFloat32x8()
		fine := am.GreaterEqual(load8(look3Least[:])).And(am.LessEqual(load8(look3Most[:])))
		ak := a.Mul(load8(look3Double[:]))
		still := stillQ3_K(ak, loadBits8(u.b[:]).Mul(load8(look3Double[:])), ak.Mul(load8(look3Over[:])),
			a.Mul(load8(look3Near[:])), &u.x, &all[j&(groupQ3_K-1)])
		still.AsUint32x8().StoreArray(&u.still)
		can := m.Less(zero).And(am.GreaterEqual(load8(t.eps[:])))
		u.restless = can.ToBits() &^ (still.Equal(ints8(0xFFFF)).And(fine).ToBits())
	}
	archsimd.ClearAVXUpperBits()
}

var (
	look3Double, look3Over, look3Near = splat(2 + 0x1p-15), splat(3.125), splat(1 - 0x1p-16)
	look3Least, look3Most             = splat(0x1p-30), splat(0x1p38)
)

// largestQ3_K is largestTile.
func largestQ3_K(x *[128]float32) (m f32x8) {
	v0, v1 := load8(x[0:8]), load8(x[8:16])
	mn, mx, mn1, mx1 := v0, v0, v1, v1
	for i := 16; i <= 80; i += 32 {
		e := (*[48]float32)(x[i : i+48])
		v0, v1 = load8(e[0:8]), load8(e[8:16])
		mn, mx, mn1, mx1 = mn.Min(v0), mx.Max(v0), mn1.Min(v1), mx1.Max(v1)
		v0, v1 = load8(e[16:24]), load8(e[24:32])
		mn, mx, mn1, mx1 = mn.Min(v0), mx.Max(v0), mn1.Min(v1), mx1.Max(v1)
	}
	v0, v1 = load8(x[112:120]), load8(x[120:128])
	mn, mx, mn1, mx1 = mn.Min(v0), mx.Max(v0), mn1.Min(v1), mx1.Max(v1)
	mn, mx = mn.Min(mn1), mx.Max(mx1)
	var zero f32x8
	below := zero.Sub(mn)
	m = mn.IfElse(below.Greater(mx), mx)
	if below.Equal(mx).And(mx.Greater(zero)).ToBits() != 0 { // the first of both counts
		m = largestAVX2(x)
	}
	return m
}

// firstSumsQ3_K sets rows to the levels of the steps of two tiles and their terms in a, and returns the sums.
//
//go:noinline
func firstSumsQ3_K(s0, s1 f32x8, high i32x8, x0, x1 *[128]float32, rows0, rows1 *rowsQ3_K) (a0, b0, a1, b1 f32x8) {
	for i := 0; i <= 120; i += 8 {
		r := (*[16]float32)(rows0[2*i : 2*i+16])
		v := load8(x0[i : i+8])
		l := v.Mul(s0).Round().AsInt32x8().Min(high).AsFloat32x8()
		w := v.Mul(v)
		p := w.Mul(v).Mul(l)
		store8(r[0:8], l)
		store8(r[8:16], p)
		a0, b0 = a0.Add(p), b0.Add(w.Mul(l).Mul(l))
		r = (*[16]float32)(rows1[2*i : 2*i+16])
		v = load8(x1[i : i+8])
		l = v.Mul(s1).Round().AsInt32x8().Min(high).AsFloat32x8()
		w = v.Mul(v)
		p = w.Mul(v).Mul(l)
		store8(r[0:8], l)
		store8(r[8:16], p)
		a1, b1 = a1.Add(p), b1.Add(w.Mul(l).Mul(l))
	}
	return a0, b0, a1, b1
}

// rowBits has the bit of each row of a tile.
var rowBits = func() (b [128]uint32) {
	for i := range b {
		b[i] = 1 << (i / 8)
	}
	return b
}()

// stillQ3_K returns the elements of each lane that keep their levels, as bits.
//
//go:noinline
func stillQ3_K(ak, bk, over, near f32x8, x *[128]float32, rows *rowsQ3_K) (still i32x8) {
	mask := ints8(absBits)
	for i := 0; i <= 96; i += 32 {
		q, u, c := (*[64]float32)(rows[2*i:2*i+64]), (*[32]float32)(x[i:i+32]), (*[32]uint32)(rowBits[i:i+32])
		d0 := bk.Mul(load8(u[0:8])).Min(over).Sub(ak.Mul(load8(q[0:8]))).AsInt32x8().And(mask).AsFloat32x8()
		d1 := bk.Mul(load8(u[8:16])).Min(over).Sub(ak.Mul(load8(q[16:24]))).AsInt32x8().And(mask).AsFloat32x8()
		still = still.Or(d0.Less(near.Sub(load8(q[8:16]))).ToInt32x8().And(loadWords8(c[0:8]).AsInt32x8()))
		still = still.Or(d1.Less(near.Sub(load8(q[24:32]))).ToInt32x8().And(loadWords8(c[8:16]).AsInt32x8()))
		d0 = bk.Mul(load8(u[16:24])).Min(over).Sub(ak.Mul(load8(q[32:40]))).AsInt32x8().And(mask).AsFloat32x8()
		d1 = bk.Mul(load8(u[24:32])).Min(over).Sub(ak.Mul(load8(q[48:56]))).AsInt32x8().And(mask).AsFloat32x8()
		still = still.Or(d0.Less(near.Sub(load8(q[40:48]))).ToInt32x8().And(loadWords8(c[16:24]).AsInt32x8()))
		still = still.Or(d1.Less(near.Sub(load8(q[56:64]))).ToInt32x8().And(loadWords8(c[24:32]).AsInt32x8()))
	}
	return still
}

// begin makes items of the n restless sub-blocks.
func (s *plainQ3_K) begin(t *symTable, x []float32, n int) {
	high := load8(t.max[:]).AsInt32x8()
	least, most := uint32(0x30800000), uint32(0x52800000) // 2^-30, 2^38
	for j, i := range s.all[:n] {
		tile, k, u := &s.tiles[i/8], i%8, s.itemAt[i]
		step := archsimd.BroadcastUint32x8(tile.step[k]).BitsToFloat32()
		e := (*[16]float32)(x[16*int(i):])
		v0, v1 := load8(e[:8]), load8(e[8:])
		l0, l1 := v0.Mul(step).Round().AsInt32x8().Min(high).AsFloat32x8(),
			v1.Mul(step).Round().AsInt32x8().Min(high).AsFloat32x8()
		storeBits8(u.x[:8], v0)
		storeBits8(u.x[8:], v1)
		storeBits8(u.l[:8], l0)
		storeBits8(u.l[8:], l1)
		storeBits8(u.p[:8], v0.Mul(v0).Mul(v0).Mul(l0))
		storeBits8(u.p[8:], v1.Mul(v1).Mul(v1).Mul(l1))
		m := tile.largest[k] & absBits
		u.a, u.b = tile.a[k], tile.b[k]
		u.ahead, u.again, u.left = 0xFFFF, 0, 4
		s.looks[j&(maxSub-1)] = tile.still[k]
		u.unproved = uint32(int32(m-least)>>31|int32(most-m)>>31) & 0xFFFF
	}
	archsimd.ClearAVXUpperBits()
}

// choose selects the next element that may change in each of the n sub-blocks that are left. It returns the number of
// sub-blocks that have any; list has their numbers. It has no branch in the loop, as none could be foreseen.
func (s *plainQ3_K) choose(n int) (left int) {
	m := &s.moves
	for j, still := range s.looks[:n] {
		i := s.list[j]
		u := s.itemAt[i]
		look := still ^ 0xFFFF | u.unproved
		rest := look & u.ahead
		wrap := uint32(int32(rest-1)>>31) & u.again
		rest |= look & wrap
		u.left += wrap
		u.again &^= wrap
		at := bits.TrailingZeros32(rest|1<<16) & 15
		k := left & (maxSub - 1)
		m.at[k], m.x[k], m.l[k], m.a[k], m.b[k], s.list[k] = uint8(at), u.x[at], u.l[at], u.a, u.b, i
		left += int(-rest >> 31)
	}
	return left
}

// look sets looks of the n sub-blocks that are left.
func (s *plainQ3_K) look(n int) {
	mask := ints8(absBits)
	double, most, less := load8(look3Double[:]), load8(look3Over[:]), load8(look3Near[:])
	list := s.list[:n]
	for j := range s.looks[:n] {
		u := s.itemAt[list[j]]
		a, b := archsimd.BroadcastUint32x8(u.a).BitsToFloat32(), archsimd.BroadcastUint32x8(u.b).BitsToFloat32()
		ak, bk, near := a.Mul(double), b.Mul(double), a.Mul(less)
		over := ak.Mul(most)
		d0 := bk.Mul(loadBits8(u.x[:8])).Min(over).Sub(ak.Mul(loadBits8(u.l[:8]))).AsInt32x8().And(mask).AsFloat32x8()
		d1 := bk.Mul(loadBits8(u.x[8:])).Min(over).Sub(ak.Mul(loadBits8(u.l[8:]))).AsInt32x8().And(mask).AsFloat32x8()
		s.looks[j] = uint32(d0.Less(near.Sub(loadBits8(u.p[:8]))).ToBits()) |
			uint32(d1.Less(near.Sub(loadBits8(u.p[8:]))).ToBits())<<8
	}
	archsimd.ClearAVXUpperBits()
}

// try replaces n moves by their results.
func (m *movesQ3_K) try(t *symTable, n int) {
	var zero f32x8
	low, high := archsimd.BroadcastInt32x8(magicZero-t.levels), archsimd.BroadcastInt32x8(magicZero+t.levels-1)
	mask, magic, offset := ints8(magicMask), archsimd.BroadcastUint32x8(magicBits).BitsToFloat32(),
		archsimd.BroadcastInt32x8(magicZero)
	for j := 0; j < n; j += 8 {
		ls, as, bs := m.l[j:], m.a[j:], m.b[j:]
		v, l, a, b := loadBits8(m.x[j:]), loadBits8(ls), loadBits8(as), loadBits8(bs)
		w := v.Mul(v)
		wv := w.Mul(v)
		p := wv.Mul(l)
		a1, b1 := a.Sub(p), b.Sub(w.Mul(l).Mul(l))
		ok := a1.Greater(zero)
		f := v.Mul(b1).Div(a1).Add(magic).AsInt32x8().And(mask).Max(low).Min(high).Sub(offset).ConvertToFloat32()
		p1 := wv.Mul(f)
		a1, b1 = a1.Add(p1), b1.Add(w.Mul(f).Mul(f))
		ok = ok.And(f.NotEqual(l)).And(b1.Greater(zero)).And(a1.Mul(a1).Mul(b).Greater(a.Mul(a).Mul(b1)))
		storeBits8(as, a1.IfElse(ok, a))
		storeBits8(bs, b1.IfElse(ok, b))
		storeBits8(ls, f.IfElse(ok, l))
		p = p1.IfElse(ok, p)
		storeBits8(m.p[j:], p)
		ok.ToInt32x8().AsUint32x8().StoreArray((*[8]uint32)(m.moved[j:]))
		ints8(0xFFFF).Masked(p.Less(zero)).AsUint32x8().StoreArray((*[8]uint32)(m.unproved[j:]))
	}
	archsimd.ClearAVXUpperBits()
}

// aheadOf has the elements after the one of that number, as bits.
var aheadOf = func() (a [16]uint32) {
	for i := range a {
		a[i] = 0xFFFE << i & 0xFFFF
	}
	return a
}()

// take puts the results of n moves in place.
func (s *plainQ3_K) take(n int) {
	m := &s.moves
	for j, at := range m.at[:n] {
		k := j & (maxSub - 1)
		u, at := s.itemAt[s.list[k]], at&15
		u.l[at], u.p[at] = m.l[k], m.p[k]
		u.a, u.b = m.a[k], m.b[k]
		u.ahead = aheadOf[at]
		u.again = (u.again | m.moved[k]) & uint32(-int32(u.left)>>31)
		u.unproved |= m.unproved[k]
	}
}

// scales returns the scales.
func (u *tileQ3_K) scales(t *symTable) f32x8 {
	var zero f32x8
	a, b := loadBits8(u.a[:]), loadBits8(u.b[:])
	some := loadBits8(u.largest[:]).AsInt32x8().And(ints8(absBits)).AsFloat32x8().GreaterEqual(load8(t.eps[:]))
	return a.Div(b).Masked(b.Greater(zero)).Masked(some)
}

// relevelQ3_K is relevelSymTile for the tiles. It reports whether any scale is 0.
func relevelQ3_K(tiles []tileQ3_K, d []float32, words []uint32) bool {
	var zero f32x8
	var some i32x8
	d, words = d[:8*len(tiles)], words[:32*len(tiles)]
	mask, magic := ints8(magicMask), archsimd.BroadcastUint32x8(magicBits).BitsToFloat32()
	bottom := int32(magicZero - 4)
	low, high := archsimd.BroadcastInt32x8(bottom), archsimd.BroadcastInt32x8(magicZero+3)
	least := archsimd.BroadcastUint32x8(uint32(bottom) * 0x01010101)
	for i := range tiles {
		x, w := &tiles[i].x, (*[32]uint32)(words[32*i:])
		dv := load8(d[8*i:])
		some = some.Or(dv.Equal(zero).ToInt32x8())
		for o := 0; o < 4; o++ {
			v, w := (*[32]float32)(x[32*o:32*o+32]), (*[8]uint32)(w[8*o:8*o+8])
			q := load8(v[24:32]).Div(dv).Add(magic).AsInt32x8().And(mask).Max(low).Min(high)
			q = q.ShiftAllLeft(8).Add(load8(v[16:24]).Div(dv).Add(magic).AsInt32x8().And(mask).Max(low).Min(high))
			q = q.ShiftAllLeft(8).Add(load8(v[8:16]).Div(dv).Add(magic).AsInt32x8().And(mask).Max(low).Min(high))
			q = q.ShiftAllLeft(8).Add(load8(v[0:8]).Div(dv).Add(magic).AsInt32x8().And(mask).Max(low).Min(high))
			q.AsUint32x8().Sub(least).StoreArray(w)
		}
	}
	any := some.Less(zero.AsInt32x8()).ToBits() != 0
	archsimd.ClearAVXUpperBits()
	return any
}

func loadBits8(w []uint32) f32x8 { return loadWords8(w).BitsToFloat32() }

func storeBits8(w []uint32, v f32x8) { v.ToBits().StoreArray((*[8]uint32)(w)) }
