package writer

import (
	"bytes"
	"testing"
)

// FuzzRecord reads records that are anything: what is taken for one is one.
func FuzzRecord(f *testing.F) {
	f.Add(record(9, []byte("abc"), []byte("def")))
	f.Add([]byte(overwriteMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		if size, old, replacement, ok := parseRecord(b); ok && !bytes.Equal(record(size, old, replacement), b) {
			t.Errorf("%d, %q, %q", size, old, replacement)
		}
	})
}
