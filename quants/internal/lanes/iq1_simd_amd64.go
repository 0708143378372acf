//go:build goexperiment.simd && go1.27

package lanes

import (
	"math/bits"
	"simd/archsimd"

	"ggforge/quants/internal/pack"
)

// nearIQ1 sets the codes of the items to near points, and l.failed where one had no finite error. It reports whether it
// did.
func nearIQ1(l *iq1Lanes, items []uint16, x, w []float32, groups int) bool {
	if nearByTable {
		nearIQ1AVX2(l, items, x, w, groups)
	}
	return nearByTable
}

func nearIQ1AVX2(l *iq1Lanes, items []uint16, x, w []float32, groups int) {
	first := archsimd.LoadUint32x8Array(&laneIndex)
	count := archsimd.LoadUint32x8Array(&laneCount)
	none := archsimd.LoadUint32x8Array(&laneMax).BitsToFloat32()
	lists := l.lists
	var at [8]uint32
	for _, item := range items {
		g, k := int(item>>8&3), int(item&(maxLanes-1))
		values := &l.values[-l.shift[g&(groups/2&1)][k]&1]
		v, u := load8(x[8*(groups*k+g):]), load8(w[8*(groups*k+g):])
		d := archsimd.BroadcastUint32x8(values[0][k]).BitsToFloat32().Sub(v)
		r0 := u.Mul(d).Mul(d).AsUint32x8()
		d = archsimd.BroadcastUint32x8(values[1][k]).BitsToFloat32().Sub(v)
		r1 := u.Mul(d).Mul(d).AsUint32x8()
		d = archsimd.BroadcastUint32x8(values[2][k]).BitsToFloat32().Sub(v)
		r2 := u.Mul(d).Mul(d).AsUint32x8()
		// Rows by level, transposed in halves.
		p, q := r0.InterleaveLoGrouped(r1).AsUint64x4(), r0.InterleaveHiGrouped(r1).AsUint64x4()
		r, s := r2.InterleaveLoGrouped(r2).AsUint64x4(), r2.InterleaveHiGrouped(r2).AsUint64x4()
		t0, t1 := p.InterleaveLoGrouped(r).AsFloat32x8(), p.InterleaveHiGrouped(r).AsFloat32x8()
		t2, t3 := q.InterleaveLoGrouped(s).AsFloat32x8(), q.InterleaveHiGrouped(s).AsFloat32x8()
		c0, c4 := t0.ConcatPermute128Scalars(0, 0, t0), t0.ConcatPermute128Scalars(1, 1, t0)
		c1, c5 := t1.ConcatPermute128Scalars(0, 0, t1), t1.ConcatPermute128Scalars(1, 1, t1)
		c2, c6 := t2.ConcatPermute128Scalars(0, 0, t2), t2.ConcatPermute128Scalars(1, 1, t2)
		c3, c7 := t3.ConcatPermute128Scalars(0, 0, t3), t3.ConcatPermute128Scalars(1, 1, t3)

		span := lists.spans[l.ranks[g][k]]
		list := lists.codes[span.off:][:8*int(span.n)]
		best, index, i := none, first, first
		for o := 0; o+8 <= len(list); o += 8 {
			p := archsimd.LoadUint16x8Array((*[8]uint16)(list[o:])).ExtendToUint32()
			e := c0.Permute(p)
			e = e.Add(c1.Permute(p.ShiftAllRight(2)))
			e = e.Add(c2.Permute(p.ShiftAllRight(4)))
			e = e.Add(c3.Permute(p.ShiftAllRight(6)))
			e = e.Add(c4.Permute(p.ShiftAllRight(8)))
			e = e.Add(c5.Permute(p.ShiftAllRight(10)))
			e = e.Add(c6.Permute(p.ShiftAllRight(12)))
			e = e.Add(c7.Permute(p.ShiftAllRight(14)))
			less := e.Less(best)
			best = e.IfElse(less, best)
			index = i.IfElse(less, index)
			i = i.Add(count)
		}
		m := best.Min(best.ConcatPermute128Scalars(1, 0, best))
		m = m.Min(m.AsUint32x8().PermuteScalarsGrouped(2, 3, 0, 1).AsFloat32x8())
		m = m.Min(m.AsUint32x8().PermuteScalarsGrouped(1, 0, 3, 2).AsFloat32x8())
		index.StoreArray(&at)
		if m.Less(none).ToBits() == 0 {
			l.failed[k] = true
			continue
		}
		lanes := m.Equal(best).ToBits()
		win := at[bits.TrailingZeros8(lanes)&7]
		for lanes &= lanes - 1; lanes != 0; lanes &= lanes - 1 {
			win = min(win, at[bits.TrailingZeros8(lanes)&7])
		}
		l.codes[g][k] = uint32(list[win])
	}
}

// cutsIQ1_S is scanIQ1_S.
func cutsIQ1_S(l *iq1Lanes) {
	switch {
	case tilesByAVX2:
		scanIQ1_SAVX2(l)
	case tilesByAVX512:
		scanIQ1_SAVX512(l)
	default:
		scanIQ1_S(l)
	}
}

// cutsIQ1_M is scanIQ1_M.
func cutsIQ1_M(l *iq1Lanes) {
	switch {
	case tilesByAVX2:
		scanIQ1_MAVX2(l)
	case tilesByAVX512:
		scanIQ1_MAVX512(l)
	default:
		scanIQ1_M(l)
	}
}

func scanIQ1_SAVX2(l *iq1Lanes) {
	var zero f32x8
	const cuts = pack.QK + 1
	shifted := load8(l.consts[:])
	tops, ends := l.tops[0][:8*cuts], l.tops[1][:8*cuts:8*cuts]
	for i := 0; i <= len(ends)-8; i += 8 {
		store8(ends[i:i+8], zero)
	}
	firsts, seconds := l.first[:24*cuts], l.second[:24*cuts:24*cuts]
	for ; len(firsts) >= 24; firsts, seconds, tops, ends = firsts[24:], seconds[24:], tops[8:], ends[8:] {
		f := (*[24]float32)(firsts)
		c, e0, e1 := load8(f[0:]), load8(f[8:]), load8(f[16:])
		var top f32x8
		for s, t := seconds, ends; len(s) >= 24 && len(t) >= 8; s, t = s[24:], t[8:] {
			v := (*[24]float32)(s)
			a := c.Sub(load8(v[0:]))
			a1 := a.Sub(shifted)
			b0, b1 := e0.Sub(load8(v[8:])), e1.Sub(load8(v[16:]))
			m := a.Mul(a).Mul(b0.Reciprocal()).Max(a1.Mul(a1).Mul(b1.Reciprocal()))
			top = top.Max(m)
			store8(t, load8(t).Max(m))
		}
		store8(tops, top)
	}
}

func scanIQ1_MAVX2(l *iq1Lanes) {
	var zero f32x8
	const cuts = 17
	k0, k1, k2, k3 := load8(l.consts[0:]), load8(l.consts[8:]), load8(l.consts[16:]), load8(l.consts[24:])
	tops, ends := l.tops[0][:8*cuts], l.tops[1][:8*cuts:8*cuts]
	for i := 0; i <= len(ends)-8; i += 8 {
		store8(ends[i:i+8], zero)
	}
	firsts, seconds := l.first[:40*cuts], l.second[:40*cuts:40*cuts]
	for ; len(firsts) >= 40; firsts, seconds, tops, ends = firsts[40:], seconds[40:], tops[8:], ends[8:] {
		f := (*[40]float32)(firsts)
		x, e0, e1, e2, e3 := load8(f[0:]), load8(f[8:]), load8(f[16:]), load8(f[24:]), load8(f[32:])
		var top f32x8
		for s, t := seconds, ends; len(s) >= 40 && len(t) >= 8; s, t = s[40:], t[8:] {
			q := (*[40]float32)(s)
			v := x.Add(load8(q[0:]))
			a := k0.Sub(v)
			m := a.Mul(a).Mul(e0.Sub(load8(q[8:])).Reciprocal())
			a = k1.Sub(v)
			m = m.Max(a.Mul(a).Mul(e1.Sub(load8(q[16:])).Reciprocal()))
			a = k2.Sub(v)
			m1 := a.Mul(a).Mul(e2.Sub(load8(q[24:])).Reciprocal())
			a = k3.Sub(v)
			m1 = m1.Max(a.Mul(a).Mul(e3.Sub(load8(q[32:])).Reciprocal()))
			m = m.Max(m1)
			top = top.Max(m)
			store8(t, load8(t).Max(m))
		}
		store8(tops, top)
	}
}

// scanIQ1_SAVX512 is scanIQ1_SAVX2 with 512 bits. VRCP14PS errs by 2^-14.
func scanIQ1_SAVX512(l *iq1Lanes) {
	var zero f32x16
	const cuts = pack.QK + 1
	shifted := load16(l.consts[:])
	tops, ends := l.tops[0][:16*cuts], l.tops[1][:16*cuts:16*cuts]
	for i := 0; i <= len(ends)-16; i += 16 {
		store16(ends[i:i+16], zero)
	}
	firsts, seconds := l.first[:48*cuts], l.second[:48*cuts:48*cuts]
	for ; len(firsts) >= 48; firsts, seconds, tops, ends = firsts[48:], seconds[48:], tops[16:], ends[16:] {
		f := (*[48]float32)(firsts)
		c, e0, e1 := load16(f[0:]), load16(f[16:]), load16(f[32:])
		var top f32x16
		for s, t := seconds, ends; len(s) >= 48 && len(t) >= 16; s, t = s[48:], t[16:] {
			v := (*[48]float32)(s)
			a := c.Sub(load16(v[0:]))
			a1 := a.Sub(shifted)
			b0, b1 := e0.Sub(load16(v[16:])), e1.Sub(load16(v[32:]))
			m := a.Mul(a).Mul(b0.Reciprocal()).Max(a1.Mul(a1).Mul(b1.Reciprocal()))
			top = top.Max(m)
			store16(t, load16(t).Max(m))
		}
		store16(tops, top)
	}
}

// scanIQ1_MAVX512 is scanIQ1_MAVX2 with 512 bits.
func scanIQ1_MAVX512(l *iq1Lanes) {
	var zero f32x16
	const cuts = 17
	k0, k1, k2, k3 := load16(l.consts[0:]), load16(l.consts[16:]), load16(l.consts[32:]), load16(l.consts[48:])
	tops, ends := l.tops[0][:16*cuts], l.tops[1][:16*cuts:16*cuts]
	for i := 0; i <= len(ends)-16; i += 16 {
		store16(ends[i:i+16], zero)
	}
	firsts, seconds := l.first[:80*cuts], l.second[:80*cuts:80*cuts]
	for ; len(firsts) >= 80; firsts, seconds, tops, ends = firsts[80:], seconds[80:], tops[16:], ends[16:] {
		f := (*[80]float32)(firsts)
		x, e0, e1, e2, e3 := load16(f[0:]), load16(f[16:]), load16(f[32:]), load16(f[48:]), load16(f[64:])
		var top f32x16
		for s, t := seconds, ends; len(s) >= 80 && len(t) >= 16; s, t = s[80:], t[16:] {
			q := (*[80]float32)(s)
			v := x.Add(load16(q[0:]))
			a := k0.Sub(v)
			m := a.Mul(a).Mul(e0.Sub(load16(q[16:])).Reciprocal())
			a = k1.Sub(v)
			m = m.Max(a.Mul(a).Mul(e1.Sub(load16(q[32:])).Reciprocal()))
			a = k2.Sub(v)
			m1 := a.Mul(a).Mul(e2.Sub(load16(q[48:])).Reciprocal())
			a = k3.Sub(v)
			m1 = m1.Max(a.Mul(a).Mul(e3.Sub(load16(q[64:])).Reciprocal()))
			m = m.Max(m1)
			top = top.Max(m)
			store16(t, load16(t).Max(m))
		}
		store16(tops, top)
	}
}

func sortKeys(keys []int32, pairs [][2]uint8, width int) { sortTile(keys, pairs, width) }
