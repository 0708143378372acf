//go:build goexperiment.simd && go1.27

package lanes

import (
	"math"
	"math/bits"
	"simd/archsimd"
	"sync"

	"ggforge/internal/lane"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
)

// Q3_K without importance with 256 bits, which machines with 512 take, too: a third faster there than tiles of 16 sub-blocks.
//
// Of a group of tiles all have their largest elements found, then their first levels, then looks at which elements may
// get another level: a tile alone waits for chains of 16 additions and a division, longer than the processor looks ahead. A
// fifth of the sub-blocks are restless. They are not put into tiles: a round takes all that are left, looks at the 16 elements of
// each, takes the first that may change of those that are next in the pass, and tries these moves, eight at a time.
//
// A look does without divisions and without the sums of others. With the names of search.Sym3, p and q for what the element adds to a and b, and
// u = 2^-24: x*(b-q) - l*(a-p) is x*b - l*a, as x*q = l*p, so that x*b1/a1 is less than 1/2 from l where
//
//	|x*b - l*a| < c*(a - p), c < 1/2
//
// The sides are k*x*b - k*l*a, k = 2 + 2^-15, and a*(1-2^-16) - p here, and the least first sum sees to it that |m|*b is at most
// 600a, m the largest element. As p is not negative, else the element counts as one that may change, p <= a. Where the look says
// no, a - p is above 2^-17*a, and k*x*b at most 18a. The products and differences err by 40u*a together, p and q by 3u of their own, which is 24u*p for l*p - x*q, and
// the products and the division of the search by 19u*(a - p): less than the 2^-17 of a - p and of a that k and 1-2^-16 leave. k*x*b
// counts as 3.125*k*a at most, which is out of reach for all levels but 3, the largest: then x*b1/a1 is above
// 3 - 2^-18 and below 2^22, where arith.RoundEven ends, as a - p is above a/4.
// Where |m| is below 2^-30 or above 2^38 underflow or overflow could get in the way: all elements of such may change.

// plainQ3_K is the scratch of QuantizePlainQ3_KAVX2.
type plainQ3_K struct {
	kScratch

	// Of all sub-blocks: largest element, first step, sums, the bits of the least first sum with which looks are
	// right, and whether there is a restless element (-1).
	largest         [maxSub]float32
	steps, a, b     [maxSub]uint32
	least, restless [maxSub]int32

	// Of a group of tiles: rows of levels and of what they add to a, by turns.
	rows [2 * 16 * 8 * sym3Group]float32

	// Of restless sub-blocks: elements, levels and what they add to a, the element that is next in the pass,
	// whether the pass has changed any (all bits), and how many more passes there may be.
	elements            [maxSub][16]float32
	levels, parts       [maxSub][16]uint32
	next, changed, left [maxSub]uint32

	// Those that are left, their elements that may change, as bits, and the moves to try.
	list  [2 * maxSub]uint8
	looks [maxSub]uint32
	moves sym3Moves
}

// sym3Moves are moves to try, by place in plainQ3_K.list.
type sym3Moves struct {
	at                [maxSub]uint8 // the element
	x                 [maxSub]float32
	l, p, a, b, moved [maxSub]uint32
}

var plainQ3_KPool = sync.Pool{New: func() any { return new(plainQ3_K) }}

// sym3Group is the number of tiles that take each step together.
const sym3Group = 8

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
		for i := 0; i < 2*nb; i++ {
			relevelSymAVX2(4, (*[128]float32)(s.x[128*i:]), s.d[8*i:], (*[32]uint32)(s.kept[32*i:]))
		}
		s.keepSym3(x, 8)
		for i := 0; i < nb; i++ {
			packQ3_KAVX2((*[96]byte)(dst[i*scalar.BytesQ3_K:]), (*[64]uint32)(s.kept[64*i:]))
		}
		dst = dst[nb*scalar.BytesQ3_K:]
	}
}

// search is sym3.search.
func (s *plainQ3_K) search(t *symTable, x []float32) {
	n, tiles := 0, len(x)/128
	for i := 0; i < tiles; i += sym3Group {
		end := min(i+sym3Group, tiles)
		for j := i; j < end; j++ {
			lane.Load(s.x[128*j:][:128], x[128*j:][:128], 16, 8)
		}
		s.first(t, i, end)
		for k := 8 * i; k < 8*end; k++ {
			s.list[n&(2*maxSub-1)] = uint8(k)
			n -= int(s.restless[k&(maxSub-1)])
		}
	}
	s.begin(t, x, n)
	for n > 0 {
		s.lookAgain(n)
		n = s.choose(n)
		s.try(t, n)
		s.take(n)
	}
	s.scales(t, tiles)
}

// first takes the tiles from number i to end, an even number of them. All of them take each step together: a
// tile alone would wait for its largest elements, the division and the sums.
func (s *plainQ3_K) first(t *symTable, i, end int) {
	first := load8(t.first[:])
	for j := i; j < end; j++ {
		m := sym3Largest((*[128]float32)(s.x[128*j:]))
		store8(s.largest[8*j:], m)
		storeBits8(s.steps[8*j:], first.Div(m))
	}
	high := load8(t.max[:]).AsInt32x8()
	for j := i; j < end; j += 2 {
		k := 8 * j
		a0, b0, a1, b1 := sym3FirstSums(loadBits8(s.steps[k:]), loadBits8(s.steps[k+8:]), high, (*[256]float32)(s.x[16*k:]), (*[512]float32)(s.rows[256*(j-i):]))
		storeBits8(s.a[k:], a0)
		storeBits8(s.b[k:], b0)
		storeBits8(s.a[k+8:], a1)
		storeBits8(s.b[k+8:], b1)
	}
	var zero f32x8
	mask := ints8(absBits)
	for j := i; j < end; j++ {
		k := 8 * j
		m, a, b := load8(s.largest[k:]), loadBits8(s.a[k:]), loadBits8(s.b[k:])
		am := m.AsInt32x8().And(mask).AsFloat32x8()
		fine := am.GreaterEqual(load8(sym3Least[:])).And(am.LessEqual(load8(sym3Most[:])))
		least := am.Mul(am).Mul(am).Mul(load8(look3Half[:])).AsInt32x8().IfElse(fine, mask)
		least.StoreArray((*[8]int32)(s.least[k:]))
		ak := a.Mul(load8(look3Double[:]))
		still := sym3Still(ak, b.Mul(load8(look3Double[:])), ak.Mul(load8(look3Over[:])), a.Mul(load8(look3Near[:])), fine, (*[128]float32)(s.x[16*k:]), (*[256]float32)(s.rows[256*(j-i):]))
		can := m.Less(zero).And(am.GreaterEqual(load8(t.eps[:]))).ToInt32x8()
		can.AndNot(still.ToInt32x8()).StoreArray((*[8]int32)(s.restless[k:]))
	}
	archsimd.ClearAVXUpperBits()
}

var look3Half, look3Double, look3Over, look3Near = splat(0.5), splat(2 + 0x1p-15), splat(3.125), splat(1 - 0x1p-16)

// sym3Largest is largestTile.
func sym3Largest(x *[128]float32) (m f32x8) {
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
	return m
}

// sym3FirstSums sets rows to the levels of the steps of two tiles x and what they add to a, and returns the sums.
//
//go:noinline
func sym3FirstSums(s0, s1 f32x8, high i32x8, x *[256]float32, rows *[512]float32) (a0, b0, a1, b1 f32x8) {
	for r, e := rows[:], x[:]; len(r) >= 272 && len(e) >= 136; r, e = r[16:], e[8:] {
		q, u := (*[272]float32)(r), (*[136]float32)(e)
		v := load8(u[0:])
		l := v.Mul(s0).Round().AsInt32x8().Min(high).AsFloat32x8()
		w := v.Mul(v)
		p := w.Mul(v).Mul(l)
		store8(q[0:], l)
		store8(q[8:], p)
		a0, b0 = a0.Add(p), b0.Add(w.Mul(l).Mul(l))
		v = load8(u[128:])
		l = v.Mul(s1).Round().AsInt32x8().Min(high).AsFloat32x8()
		w = v.Mul(v)
		p = w.Mul(v).Mul(l)
		store8(q[256:], l)
		store8(q[264:], p)
		a1, b1 = a1.Add(p), b1.Add(w.Mul(l).Mul(l))
	}
	return a0, b0, a1, b1
}

// sym3Still returns which of the lanes have no restless element.
//
//go:noinline
func sym3Still(ak, bk, over, near f32x8, lanes archsimd.Mask32x8, x *[128]float32, rows *[256]float32) archsimd.Mask32x8 {
	mask := ints8(absBits)
	for r, e := rows[:], x[:]; len(r) >= 32 && len(e) >= 16; r, e = r[32:], e[16:] {
		q, u := (*[32]float32)(r), (*[16]float32)(e)
		d0 := bk.Mul(load8(u[0:])).Min(over).Sub(ak.Mul(load8(q[0:]))).AsInt32x8().And(mask).AsFloat32x8()
		d1 := bk.Mul(load8(u[8:])).Min(over).Sub(ak.Mul(load8(q[16:]))).AsInt32x8().And(mask).AsFloat32x8()
		lanes = lanes.And(d0.Less(near.Sub(load8(q[8:])))).And(d1.Less(near.Sub(load8(q[24:]))))
	}
	return lanes
}

// begin sets what the search needs of the n restless sub-blocks.
func (s *plainQ3_K) begin(t *symTable, x []float32, n int) {
	high := load8(t.max[:]).AsInt32x8()
	for _, i := range s.list[:n] {
		step := archsimd.BroadcastUint32x8(s.steps[i]).BitsToFloat32()
		e, u, l, p := (*[16]float32)(x[16*int(i):]), &s.elements[i], &s.levels[i], &s.parts[i]
		v0, v1 := load8(e[:8]), load8(e[8:])
		l0, l1 := v0.Mul(step).Round().AsInt32x8().Min(high).AsFloat32x8(), v1.Mul(step).Round().AsInt32x8().Min(high).AsFloat32x8()
		store8(u[:8], v0)
		store8(u[8:], v1)
		storeBits8(l[:8], l0)
		storeBits8(l[8:], l1)
		storeBits8(p[:8], v0.Mul(v0).Mul(v0).Mul(l0))
		storeBits8(p[8:], v1.Mul(v1).Mul(v1).Mul(l1))
		s.next[i], s.changed[i], s.left[i] = 0, 0, 4
	}
	archsimd.ClearAVXUpperBits()
}

// lookAgain sets looks of the n sub-blocks that are left.
func (s *plainQ3_K) lookAgain(n int) {
	mask := ints8(absBits)
	double, most, less := load8(look3Double[:]), load8(look3Over[:]), load8(look3Near[:])
	looks := s.looks[:n]
	for j, i := range s.list[:n] {
		if j >= len(looks) {
			break
		}
		a, b := archsimd.BroadcastUint32x8(s.a[i]).BitsToFloat32(), archsimd.BroadcastUint32x8(s.b[i]).BitsToFloat32()
		ak, bk, near := a.Mul(double), b.Mul(double), a.Mul(less)
		over := ak.Mul(most)
		e, l, p := &s.elements[i], &s.levels[i], &s.parts[i]
		d0 := bk.Mul(load8(e[:8])).Min(over).Sub(ak.Mul(loadBits8(l[:8]))).AsInt32x8().And(mask).AsFloat32x8()
		d1 := bk.Mul(load8(e[8:])).Min(over).Sub(ak.Mul(loadBits8(l[8:]))).AsInt32x8().And(mask).AsFloat32x8()
		looks[j] = uint32(d0.Less(near.Sub(loadBits8(p[:8]))).ToBits()) | uint32(d1.Less(near.Sub(loadBits8(p[8:]))).ToBits())<<8
	}
	archsimd.ClearAVXUpperBits()
}

// choose takes the next element that may change in each of the n sub-blocks that are left. It returns how many have any; list has those.
// It has no branch in the loop, as none could be foreseen.
func (s *plainQ3_K) choose(n int) (left int) {
	m := &s.moves
	for j, look := range s.looks[:n] {
		i := s.list[j&(2*maxSub-1)]
		sum := int32(s.a[i])
		look = (look ^ 0xFFFF | uint32((sum-s.least[i])>>31|sum>>31)) & 0xFFFF
		next := s.next[i] & 31
		rest := look >> next << next
		wrap := uint32(int32(rest-1)>>31) & s.changed[i] & uint32(-int32(s.left[i])>>31)
		rest |= look & wrap
		s.left[i] += wrap
		s.changed[i] &^= wrap
		at := bits.TrailingZeros32(rest|1<<16) & 15
		k := left & (maxSub - 1)
		m.at[k] = uint8(at)
		m.x[k] = s.elements[i][at]
		m.l[k] = s.levels[i][at]
		m.a[k] = s.a[i]
		m.b[k] = s.b[i]
		s.list[left&(2*maxSub-1)] = i
		left += int(-rest >> 31)
	}
	return left
}

// try turns moves into what they lead to.
func (s *plainQ3_K) try(t *symTable, n int) {
	var zero f32x8
	low, high := archsimd.BroadcastInt32x8(magicZero-t.levels), archsimd.BroadcastInt32x8(magicZero+t.levels-1)
	mask, magic, offset := ints8(magicMask), archsimd.BroadcastUint32x8(magicBits).BitsToFloat32(), archsimd.BroadcastInt32x8(magicZero)
	for j := 0; j < n; j += 8 {
		m := &s.moves
		ls, as, bs := m.l[j:], m.a[j:], m.b[j:]
		v, l, a, b := load8(m.x[j:]), loadBits8(ls), loadBits8(as), loadBits8(bs)
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
		storeBits8(m.p[j:], p1.IfElse(ok, p))
		ok.ToInt32x8().AsUint32x8().StoreArray((*[8]uint32)(m.moved[j:]))
	}
	archsimd.ClearAVXUpperBits()
}

// take puts the results of moves in place.
func (s *plainQ3_K) take(n int) {
	m := &s.moves
	for j, at := range m.at[:n] {
		i, k := s.list[j&(2*maxSub-1)], j&(maxSub-1)
		s.levels[i][at&15], s.parts[i][at&15] = m.l[k], m.p[k]
		s.a[i], s.b[i] = m.a[k], m.b[k]
		s.next[i] = uint32(at) + 1
		s.changed[i] |= m.moved[k]
		// A part below 0 is not in the proof.
		s.least[i] |= int32((0x80000000-int64(m.p[k]))>>63) & math.MaxInt32
	}
}

// scales sets the scales.
func (s *plainQ3_K) scales(t *symTable, tiles int) {
	var zero f32x8
	mask, eps := ints8(absBits), load8(t.eps[:])
	for i := 0; i < 8*tiles; i += 8 {
		a, b := loadBits8(s.a[i:]), loadBits8(s.b[i:])
		some := load8(s.largest[i:]).AsInt32x8().And(mask).AsFloat32x8().GreaterEqual(eps)
		store8(s.scale[i:], a.Div(b).Masked(b.Greater(zero)).Masked(some))
	}
	archsimd.ClearAVXUpperBits()
}

func loadBits8(w []uint32) f32x8 { return loadWords8(w).BitsToFloat32() }

func storeBits8(w []uint32, v f32x8) { v.ToBits().StoreArray((*[8]uint32)(w)) }
