package fetch

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestKept reads ranges that do not begin and end where those of an earlier run did.
func TestKept(t *testing.T) {
	data := make([]byte, 1000)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	folder := t.TempDir()
	open := func() *kept {
		f := &File{Size: int64(len(data)), address: "x"}
		if err := f.Keep(folder, true); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.Close)
		return f.kept
	}
	k := open()
	for _, r := range [][2]int{{100, 200}, {150, 400}, {600, 700}, {400, 410}} {
		if err := k.add(data[r[0]:r[1]], int64(r[0])); err != nil {
			t.Fatal(err)
		}
	}
	again := open()
	for _, c := range []struct{ from, to, want int }{
		{100, 200, 100}, {120, 380, 260}, {100, 500, 310}, {399, 411, 11}, {0, 100, 0}, {99, 300, 0}, {650, 800, 50},
		{600, 700, 100}, {700, 701, 0},
	} {
		for _, k := range []*kept{k, again} {
			p := make([]byte, c.to-c.from)
			if n := k.read(p, int64(c.from)); n != c.want || !bytes.Equal(p[:n], data[c.from:c.from+n]) {
				t.Errorf("bytes %d to %d: %d are there, want %d", c.from, c.to, n, c.want)
			}
		}
	}
	if _, err := again.data.WriteAt([]byte{^data[160]}, 160); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 300)
	if n := again.read(p, 100); n != 0 {
		t.Errorf("%d bytes of a range that has been changed", n)
	}
}
