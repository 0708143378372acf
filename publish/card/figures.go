package card

import (
	"fmt"
	"math"
	"strings"
)

// decimals returns the number of decimals up to the first digit of an error, at most most.
func decimals(err float64, most int) int {
	if !(err > 0) {
		return most
	}
	return min(max(int(math.Ceil(-math.Log10(err))), 0), most)
}

// within returns a mean with its error, up to the error's first digit.
func within(f Figure, most int) string {
	n := decimals(f.Error, most)
	text := fmt.Sprintf("%.*f", n, f.Mean)
	if err := fmt.Sprintf("%.*f", n, f.Error); err != fmt.Sprintf("%.*f", n, 0.0) {
		text += " ± " + err
	}
	return text
}

// leastDivergence is the smallest divergence, in nats per token, that a card shows as a number: less comes from the
// rounding of float32.
const leastDivergence = 1e-4

// unbroken returns text whose lines do not break: figures in a table stay on one line.
func unbroken(s string) string { return strings.ReplaceAll(s, " ", "\u00a0") }

// DivergenceText returns a KL divergence as text. One that its error hides is less than a power of ten.
func DivergenceText(f Figure) string {
	if below := f.Mean + 2*f.Error; below < leastDivergence || f.Mean < 2*f.Error {
		limit := leastDivergence
		for limit < below {
			limit *= 10
		}
		return fmt.Sprintf("below %.*f", max(0, int(math.Round(-math.Log10(limit)))), limit)
	}
	return within(f, 5)
}

// perplexity returns a perplexity as text: with the change from the model before quantization if that is known, whose
// error is much smaller than that of the perplexity.
func perplexity(m Measured) string {
	if m.Ratio == nil {
		return within(*m.PPL, 4)
	}
	change := Figure{100 * (m.Ratio.Mean - 1), 100 * m.Ratio.Error}
	n := decimals(change.Error, 3)
	text := fmt.Sprintf("%.*f", 2+max(0, n-2), m.PPL.Mean)
	if math.Abs(change.Mean) < 0.5*math.Pow10(-n) {
		return text + " (no change)"
	}
	text += fmt.Sprintf(" (%+.*f", n, change.Mean)
	if err := fmt.Sprintf("%.*f", n, change.Error); err != fmt.Sprintf("%.*f", n, 0.0) {
		text += " ± " + err
	}
	return text + " %)"
}

// minChunks is the least number of chunks from which the error of a mean over chunks is estimated.
const minChunks = 8

// difference returns the mean difference a - b of two divergences and its standard error, from those of the chunks,
// which both have in common. ok is false without these.
func difference(a, b Measured) (f Figure, ok bool) {
	n := len(a.Chunks)
	if n != len(b.Chunks) || n < minChunks {
		return f, false
	}
	var sum, squares float64
	for i := range n {
		sum += a.Chunks[i] - b.Chunks[i]
	}
	f.Mean = sum / float64(n)
	for i := range n {
		d := a.Chunks[i] - b.Chunks[i] - f.Mean
		squares += d * d
	}
	f.Error = math.Sqrt(squares / float64(n-1) / float64(n))
	return f, true
}
