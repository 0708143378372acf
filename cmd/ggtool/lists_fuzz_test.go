package main

import (
	"errors"
	"testing"

	"ggforge/fault"
)

// FuzzLists reads arbitrary text as lists of hashes.
func FuzzLists(f *testing.F) {
	f.Add([]byte("xxh64     f6e9be5d70632cf5  m.gguf:a\nsha1 00 m.gguf\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if sums, kinds, err := parseSums("list", data); err == nil && (len(sums) == 0 || len(kinds) == 0 ||
			len(kinds) > 4) || err != nil && !errors.Is(err, fault.Broken) {
			t.Errorf("%d sums of %v, %v", len(sums), kinds, err)
		}
	})
}
