package page

import (
	"fmt"
	"math"
)

// PlusMinus formats a figure and its standard error, each times a factor.
func PlusMinus(format string, factor, value, margin float64) string {
	return fmt.Sprintf(format+" ± "+format, factor*value, factor*margin)
}

// Small formats a figure of any size below one.
func Small(v float64) string {
	if v != 0 && math.Abs(v) < 1e-3 {
		return fmt.Sprintf("%.2e", v)
	}
	return fmt.Sprintf("%.5f", v)
}

// Divergence formats a divergence and its standard error.
func Divergence(mean, margin float64) string { return Small(mean) + " ± " + Small(margin) }

// Perplexity formats a perplexity and its standard error.
func Perplexity(value, margin float64) string { return PlusMinus("%.4f", 1, value, margin) }
