package scalar

import (
	"testing"

	"ggforge/quants/internal/pack"
)

func TestPackScaleMin(t *testing.T) {
	var s, m [8]uint8
	for j := range s {
		s[j], m[j] = uint8(7*j+5)&63, uint8(63-9*j)&63
	}
	var b [12]byte
	pack.ScaleMin(b[:], &s, &m)
	for j := range s {
		if gs, gm := pack.UnpackScaleMin(b[:], j); gs != s[j] || gm != m[j] {
			t.Errorf("sub-block %d: scale %d min %d, want %d %d", j, gs, gm, s[j], m[j])
		}
	}
	var c [16]uint8
	for j := range c {
		c[j] = uint8(11*j+50) & 63
	}
	PackScalesQ3_K(b[:], &c)
	for j := range c {
		if got := UnpackScaleQ3_K(b[:], j); got != c[j] {
			t.Errorf("Q3_K scale %d: %d, want %d", j, got, c[j])
		}
	}
}
