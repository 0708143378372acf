// Package size reads and writes numbers of bytes as people write them.
package size

import (
	"math/big"
	"strings"

	"ggforge/fault"
)

// units may follow a number, in upper case, and a B after any of them. K, M and G are decimal, as in llama.cpp's tools.
var units = []struct {
	name  string
	bytes int64
}{
	{"KI", 1 << 10}, {"MI", 1 << 20}, {"GI", 1 << 30}, {"TI", 1 << 40},
	{"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12},
	{"", 1},
}

// maxText bounds the length of a size as text.
const maxText = 40

// Parse returns the number of bytes, at least 1, of a text such as 4200000000, 500M, 1.5GB or 2MiB; case does not
// matter. Fractions of a byte are dropped, but a number without a unit must be whole. An error is of kind fault.Usage.
func Parse(text string) (int64, error) {
	n, ok := parse(text, 1)
	if !ok {
		return 0, fault.Errorf(fault.Usage,
			"%.*q is not a size: want a number of bytes such as 4200000000, 500M, 1.5G or 2MiB", maxText, text)
	}
	return n, nil
}

// ParseIn is Parse with a unit, in bytes, for numbers without one; these need not be whole, and less than a byte is
// one.
func ParseIn(text string, unit int64) (int64, error) {
	n, ok := parse(text, unit)
	if !ok {
		return 0, fault.Errorf(fault.Usage, "%.*q is not a size: want a number above 0, or a size such as 500M or 2MiB",
			maxText, text)
	}
	return n, nil
}

func parse(text string, plain int64) (int64, bool) {
	if len(text) > maxText {
		return 0, false
	}
	number, b := strings.CutSuffix(strings.ToUpper(text), "B")
	factor := int64(1)
	for _, u := range units {
		if short, ok := strings.CutSuffix(number, u.name); ok {
			number, factor = short, u.bytes
			if u.name == "" && !b {
				factor = plain
			}
			break
		}
	}
	whole, part, point := strings.Cut(number, ".")
	if strings.Trim(whole+part, "0123456789") != "" || whole == "" || point && part == "" || point && factor == 1 {
		return 0, false
	}
	r, ok := new(big.Rat).SetString(number)
	if !ok || r.Sign() == 0 {
		return 0, false
	}
	r.Mul(r, new(big.Rat).SetInt64(factor))
	n := new(big.Int).Quo(r.Num(), r.Denom())
	if plain > 1 && n.Sign() == 0 {
		return 1, true
	}
	if !n.IsInt64() || n.Int64() < 1 {
		return 0, false
	}
	return n.Int64(), true
}
