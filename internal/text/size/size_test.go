package size

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"ggforge/fault"
)

// sizes are texts and the bytes that they stand for, 0 for texts that are no size.
var sizes = map[string]int64{
	"1": 1, "12B": 12, "3k": 3000, "40M": 40_000_000, "5GB": 5_000_000_000, "9223372036G": 9223372036_000_000_000,
	"9223372036854775807": math.MaxInt64,
	"1.5G":                1_500_000_000, "2MiB": 2 << 20, "2mib": 2 << 20, "1.5KiB": 1536, "0.5Ki": 512, "5T": 5e12,
	"1.25TiB": 5 << 38, "4.2GB": 4_200_000_000, "1.0009K": 1000,
	"0": 0, "": 0, "G": 0, "-1": 0, "+1": 0, "5KK": 0, "9223372037G": 0, "9223372036854775808": 0,
	"18446744073709551615": 0, " 1": 0, "1 G": 0, "1.5": 0, "1.5B": 0, "1.": 0, ".5G": 0,
	"1..5G": 0, "1e3": 0, "0x10": 0, "1/2G": 0, "1_000": 0, "0.0001K": 0, "0.0G": 0, "1iB": 0, "1Bi": 0, "1BB": 0,
	"1P": 0, "∞": 0, "١": 0, strings.Repeat("0", 50) + "1": 0,
}

func TestParse(t *testing.T) {
	for text, want := range sizes {
		n, err := Parse(text)
		if n != want || (err != nil) != (want == 0) || err != nil && !errors.Is(err, fault.Usage) {
			t.Errorf("%q: %d %v, want %d", text, n, err, want)
		}
	}
	for text, want := range map[string]int64{"1": 1 << 20, "0.5": 1 << 19, "0.0000001": 1, "3": 3 << 20,
		"3M": 3_000_000, "2GiB": 2 << 30, "7B": 7, "0": 0, "x": 0, "-1": 0, "1e3": 0} {
		if n, err := ParseIn(text, 1<<20); n != want || (err != nil) != (want == 0) {
			t.Errorf("in MiB, %q: %d %v, want %d", text, n, err, want)
		}
	}
}

// FuzzParse checks that an accepted size is its number times its unit.
func FuzzParse(f *testing.F) {
	for text := range sizes {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := Parse(text)
		if err != nil {
			if n != 0 || len(err.Error()) > 400 {
				t.Fatalf("%q: %d, %v", text, n, err)
			}
			return
		}
		end := strings.LastIndexAny(text, "0123456789") + 1
		r, ok := new(big.Rat).SetString(text[:end])
		power := map[string]int64{"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 1 << 10, "mi": 1 << 20,
			"gi": 1 << 30, "ti": 1 << 40}[strings.TrimSuffix(strings.ToLower(text[end:]), "b")]
		if !ok || power == 0 {
			t.Fatalf("%q is %d", text, n)
		}
		r.Mul(r, new(big.Rat).SetInt64(power)).Sub(r, new(big.Rat).SetInt64(n))
		if n < 1 || r.Sign() < 0 || r.Cmp(big.NewRat(1, 1)) >= 0 {
			t.Fatalf("%q is %d, which is %v off", text, n, r)
		}
	})
}
