package gemm

// newFloats returns n zeros for a panel, in large pages where the system has them: fewer addresses have to be
// translated, and the processor prefetches only up to the end of a page.
func newFloats(n int) []float32 {
	s := make([]float32, n)
	advise(s)
	return s
}
