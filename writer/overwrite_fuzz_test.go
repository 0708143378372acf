package writer

import (
	"bytes"
	"errors"
	"testing"

	"ggforge/fault"
)

// recordOf returns the record of a change.
func recordOf(t testing.TB, c change) []byte {
	var b bytes.Buffer
	if err := c.writeTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// FuzzRecord reads arbitrary bytes as records: an accepted record is a valid one.
func FuzzRecord(f *testing.F) {
	f.Add(recordOf(f, change{9, 512, 3, bytes.NewReader([]byte("abc")), bytes.NewReader([]byte("def"))}))
	f.Add([]byte(overwriteMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseRecord("x", bytes.NewReader(b), int64(len(b)))
		if err != nil {
			if !fault.Has(err) && !errors.Is(err, errTorn) {
				t.Errorf("%v has no kind", err)
			}
			return
		}
		if !bytes.Equal(recordOf(t, c), b) {
			t.Errorf("%+v", c)
		}
	})
}
