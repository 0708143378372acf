package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/imatrix"
	"ggforge/internal/io/statefile"
	"ggforge/test/clitest"
)

// reseal changes the file of a part and makes its checksum right again.
func reseal(t *testing.T, path string, change func(body []byte)) {
	t.Helper()
	data := bytes.Clone(bytesOf(t, path))
	body := data[:len(data)-sha256.Size]
	change(body)
	sum := sha256.Sum256(body)
	if err := os.WriteFile(path, append(body, sum[:]...), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestPartsImpossible checks that --finish refuses impossible losses and sums, although the checksum is right.
func TestPartsImpossible(t *testing.T) {
	model, text := checkpointOf(t, "llama", 1), textOf(t, source(t, 1000))
	common := []string{"-f", text, "-c", "16", "--chunks", "2", "--progress", "none"}
	for _, c := range []struct {
		verb []string
		want string
		put  []float64
	}{
		{[]string{"perplexity", model, "--parts"}, "has a loss of", []float64{math.NaN(), math.Inf(1), -1}},
		{[]string{"compare", model, model, "--parts"}, "want finite ones, not below 0",
			[]float64{math.NaN(), math.Inf(1), -1}},
		{[]string{"imatrix", model, "--sum-chunks", "2", "-o"}, "", nil},
	} {
		name := filepath.Join(t.TempDir(), "p")
		args := append(append(c.verb[:len(c.verb):len(c.verb)], name), common...)
		if code, _, _, err := call(append(args, "--part", "1/1")...); code != 0 {
			t.Fatal(err)
		}
		whole := bytesOf(t, name+".part-1-of-1")
		for _, v := range c.put {
			if err := os.WriteFile(name+".part-1-of-1", whole, 0o666); err != nil {
				t.Fatal(err)
			}
			reseal(t, name+".part-1-of-1", func(b []byte) {
				binary.LittleEndian.PutUint64(b[len(b)-8:],
					math.Float64bits(v))
			})
			if code, _, _, err := call(append(args, "--finish")...); code != 3 ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v: %d, %v", c.verb[0], v, code, err)
			}
		}
		if c.put != nil {
			continue
		}
		for _, v := range []float32{float32(math.NaN()), float32(math.Inf(1)), -1} {
			if err := os.WriteFile(name+".part-1-of-1", whole, 0o666); err != nil {
				t.Fatal(err)
			}
			// the last bytes of the section may be counts, so squares looks for a sum
			reseal(t, name+".part-1-of-1", func(b []byte) {
				squares(t, b, v)
			})
			if code, _, _, err := call(append(args, "--finish")...); code != 3 ||
				!strings.Contains(err.Error(), "add up to") {
				t.Errorf("%s: %v: %d, %v", c.verb[0], v, code, err)
			}
		}
	}
}

// squares replaces the first sum of squares in a section that holds sums of an importance matrix.
func squares(t *testing.T, b []byte, v float32) {
	t.Helper()
	at := bytes.Index(b, []byte("GGUF"))
	sums, _, err := imatrix.ParseState("part", b[at:])
	if err != nil {
		t.Fatal(err)
	}
	want := sums.Tallies()[0].Squares
	first := binary.LittleEndian.AppendUint32(nil, math.Float32bits(want[0]))
	first = binary.LittleEndian.AppendUint32(first, math.Float32bits(want[1]))
	i := bytes.LastIndex(b, first)
	if i < 0 {
		t.Fatal("no sums of squares")
	}
	binary.LittleEndian.PutUint32(b[i:], math.Float32bits(v))
}

// TestStateDamaged checks that a state file of imatrix --save-every with changed or added bytes is refused, and so are
// a link and another user's file.
func TestStateDamaged(t *testing.T) {
	model, text := checkpointOf(t, "llama", 1), textOf(t, source(t, 1000))
	out := filepath.Join(t.TempDir(), "m.gguf")
	args := []string{"imatrix", model, "-f", text, "-o", out, "-c", "16", "--chunks", "2", "--save-every", "1",
		"--progress", "none", "--force"}
	state := out + ".state"
	// incomplete state files are refused before their content is checked
	sums := imatrix.NewSums(16)
	if _, err := sums.Tally("t", 32, 1, false); err != nil {
		t.Fatal(err)
	}
	f, err := sums.State(nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := statefile.Seal(f, f.Size).WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	refused := func(what string, code int, want string) {
		t.Helper()
		if got, _, _, err := call(args...); got != code || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %d, %v", what, got, err)
		}
	}
	write := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(state, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, at := range []int{0, 30, len(whole) / 2, len(whole) - 40, len(whole) - 1} {
		data := bytes.Clone(whole)
		data[at] ^= 1
		write(data)
		refused("another byte", 3, "remove it to start over")
	}
	write(append(bytes.Clone(whole), 0))
	refused("one byte more", 3, "remove it to start over")
	write(whole)
	refused("whole, of another run", 5, "for another")
	if os.Geteuid() == 0 && os.Chown(state, 4321, 4321) == nil {
		refused("another user's", 2, "another user")
	}
	os.Remove(state)
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, whole, 0o666); err != nil {
		t.Fatal(err)
	}
	if clitest.Symlink(t, other, state) {
		refused("a link", 3, "not a regular file")
	}
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Error("an output")
	}
}
