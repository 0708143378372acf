package general

import (
	"math"
	"strconv"
)

// SizeLabel returns the label of a model's size: "7.2B", or "8x7B" with experts, where 7B are the parameters of a model
// with one expert.
func (n Counts) SizeLabel() string {
	if n.Experts > 0 {
		return strconv.FormatInt(n.Experts, 10) + "x" + rounded(n.Shared+n.Expert)
	}
	return rounded(n.Total)
}

// units are the suffixes of sizes, tried in order; the last has no floor.
var units = []struct {
	suffix       string
	above, scale float64
}{
	{"T", 1e12, 1e-12}, {"B", 1e9, 1e-9}, {"M", 1e6, 1e-6}, {"K", -1, 1e-3},
}

// rounded writes n with a suffix and at least two digits: 1.6M, 12M, 405B.
func rounded(n int64) string {
	for _, u := range units {
		if float64(n) <= u.above {
			continue
		}
		f := float64(n) * u.scale
		decimals := 0
		switch whole := math.RoundToEven(f); {
		case whole == 0:
			decimals = 2
		case whole < 10:
			decimals = 1
		}
		return strconv.FormatFloat(f, 'f', decimals, 64) + u.suffix
	}
	panic("general: negative number of parameters")
}
