package writer

import (
	"bytes"
	"testing"
)

// FuzzRecord reads records that are anything: what is taken for one is one.
func FuzzRecord(f *testing.F) {
	f.Add(change{9, 512, []byte("abc"), []byte("def")}.record())
	f.Add([]byte(overwriteMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, ok := parseRecord(b); ok && (!bytes.Equal(c.record(), b) || len(c.old) != len(c.replacement)) {
			t.Errorf("%+v", c)
		}
	})
}
