package digest

import (
	"errors"
	"testing"

	"ggforge/fault"
)

// FuzzSums reads arbitrary text as a list of sums.
func FuzzSums(f *testing.F) {
	f.Add([]byte("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  README.md\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		sums, names, err := ParseSums("list", data, 100)
		if err == nil && (len(names) == 0 || len(sums) != len(names) || len(names) > 100) || err != nil &&
			!errors.Is(err, fault.Broken) && !errors.Is(err, fault.Usage) {
			t.Errorf("%d sums of %d names, %v", len(sums), len(names), err)
		}
	})
}
