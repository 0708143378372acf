package torchmath

import (
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"testing"
)

//go:embed testdata/erfinv.tsv
var erfinvGolden string

// TestQuantileGolden compares with PyTorch's own results: equal steps from a first to
// a last probability.
func TestQuantileGolden(t *testing.T) {
	cases := 0
	for line := range strings.Lines(erfinvGolden) {
		f := strings.Fields(line)
		first, err1 := strconv.ParseFloat(f[0], 64)
		last, err2 := strconv.ParseFloat(f[1], 64)
		n, err3 := strconv.Atoi(f[2])
		if err1 != nil || err2 != nil || err3 != nil {
			t.Fatal(line)
		}
		var b []byte
		for i := range n {
			p := float32(first + float64((last-first)*float64(i))/float64(n))
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(NormalQuantile(p)))
		}
		sum := sha256.Sum256(b)
		if h := hex.EncodeToString(sum[:16]); h != f[3] {
			t.Errorf("%s: sha256 %s", strings.TrimSpace(line), h)
		}
		cases++
	}
	if cases < 30 {
		t.Errorf("%d cases", cases)
	}
}

func TestQuantileSpecial(t *testing.T) {
	inf := math.Inf(1)
	for p, want := range map[float32]float64{0: -inf, 1: inf, 0.5: 0} {
		if got := float64(NormalQuantile(p)); got != want {
			t.Errorf("%v: %v, want %v", p, got, want)
		}
	}
	for _, p := range []float32{-0.1, 1.1, float32(inf), float32(math.NaN())} {
		if got := NormalQuantile(p); got == got {
			t.Errorf("%v: %v, want NaN", p, got)
		}
	}
}
