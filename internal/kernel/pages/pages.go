// Package pages makes memory that is read again and again in long runs, such as matrices.
package pages

// Floats returns n zeros. Where the system has pages of several sizes they lie in the
// largest as far as possible: fewer addresses have to be translated, and what a processor
// fetches ahead ends at a page.
func Floats(n int) []float32 {
	s := make([]float32, n)
	advise(s)
	return s
}
