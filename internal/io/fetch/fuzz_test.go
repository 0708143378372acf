package fetch

import (
	"fmt"
	"testing"
)

// FuzzLog reads logs of stored ranges: ranges that do not lie in the file must not be returned.
func FuzzLog(f *testing.F) {
	f.Add(entry{0, 100, 7}.record(), int64(100))
	f.Add(append(entry{50, 50, 7}.record(), entry{0, 50, 7}.record()...), int64(100))
	f.Add(entry{1 << 62, 1 << 31, 7}.record(), int64(1)<<62)
	f.Fuzz(func(t *testing.T, log []byte, size int64) {
		entries, sound := parseLog(log, max(0, size))
		if sound && len(entries) != len(log)/recordBytes {
			t.Errorf("%d ranges in %d bytes", len(entries), len(log))
		}
		for i, e := range entries {
			if e.off < 0 || e.n == 0 || e.end() > size || sound && i > 0 && e.off < entries[i-1].off {
				t.Errorf("range %+v of %d bytes", e, size)
			}
		}
	})
}

// FuzzContentRange reads values of the header Content-Range.
func FuzzContentRange(f *testing.F) {
	f.Add("bytes 0-9/10")
	f.Add("bytes 5-4/10")
	f.Add("bytes */10")
	f.Add("bytes 0-9/*")
	f.Fuzz(func(t *testing.T, s string) {
		first, last, total, ok := contentRange(s)
		if !ok {
			return
		}
		if first < 0 || last < first || total <= last {
			t.Errorf("%q gives %d to %d of %d", s, first, last, total)
		}
		if a, b, c, again := contentRange(fmt.Sprintf("bytes %d-%d/%d", first, last, total)); !again || a != first ||
			b != last || c != total {
			t.Errorf("%q is another range when it is written anew", s)
		}
	})
}
