//go:build goexperiment.simd && go1.27

package lanes

import "math"

// Spoil fills scratch memory that is kept between calls with NaN and other values
// that must not matter. Tests call it before they compare.
func Spoil() {
	s := kScratches.Get().(*kScratch)
	defer kScratches.Put(s)
	nan := float32(math.NaN())
	for _, a := range [][]float32{
		s.x[:], s.w[:], s.pairs[:], s.lv[:], s.imp[:], s.above[:], s.scale[:], s.mins[:], s.step[:], s.base[:],
		s.total[:], s.square[:],
		s.d[:], s.m[:], s.xt[:], s.wt[:], s.mt[:], s.ds[:], s.dms[:],
		s.sym3.rows[:], s.sym3.m[:], s.sym3.a[:], s.sym3.b[:], s.sym3.gathered[:], s.sym3.x[:],
	} {
		for i := range a {
			a[i] = nan
		}
	}
	for _, a := range [][]int32{s.exact[:], s.ct[:], s.cs[:], s.cm[:]} {
		for i := range a {
			a[i] = -1
		}
	}
	for i := range s.packed {
		s.kept[i] = 0xFFFFFFFF
		s.packed[i] = 0xFFFFFFFF
	}
	for i := range s.words {
		s.words[i] = 0xFFFFFFFF
	}
	for i := range s.codes {
		s.codes[i] = 0xFF
	}
	l := iq1LanesPool.Get().(*iq1Lanes)
	defer iq1LanesPool.Put(l)
	for _, a := range [][]float32{
		l.w[:], l.squares[:], l.x[:], l.w1[:], l.xs[:], l.ws[:], l.sx[0][:], l.sx[1][:], l.sw[0][:], l.sw[1][:],
		l.total[:], l.first[:], l.second[:],
		l.consts[:], l.tops[0][:], l.tops[1][:], l.large[:], l.start[:], l.scale[:],
	} {
		for i := range a {
			a[i] = nan
		}
	}
	for _, a := range [][]int32{l.keys[:], l.sorted[:], l.odd[:], l.sure[:], l.cuts[0][:], l.cuts[1][:], l.mirrored[:],
		l.shift[0][:], l.shift[1][:], l.snapped[:]} {
		for i := range a {
			a[i] = -1
		}
	}
}
