package memory

import (
	"math/bits"

	"ggforge/fault"
)

// sizes computes with sizes, which in a hostile file may be too large for any machine, and keeps the first error.
type sizes struct{ err error }

// fail keeps the first error.
func (s *sizes) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fault.Errorf(fault.Broken, format, args...)
	}
}

// product multiplies sizes.
func (s *sizes) product(what string, factors ...int64) int64 {
	p := uint64(1)
	for _, f := range factors {
		hi, lo := bits.Mul64(p, uint64(f))
		if hi != 0 || lo > 1<<60 {
			s.fail("%s: too large for any machine", what)
			return 0
		}
		p = lo
	}
	return int64(p)
}

// sum adds sizes.
func (s *sizes) sum(what string, a, b int64) int64 {
	if a+b < 0 || a+b > 1<<60 {
		s.fail("%s: too large for any machine", what)
		return 0
	}
	return a + b
}
