package torchmath

import (
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"testing"
)

//go:embed testdata/sin.tsv
var sinGolden string

//go:embed testdata/cos.tsv
var cosGolden string

//go:embed testdata/positions.tsv
var positionsGolden string

// TestTrigGolden compares sines and cosines with PyTorch's own results, for tensors of all
// lengths around those of vectors: see compareGolden.
func TestTrigGolden(t *testing.T) {
	for _, f := range []struct {
		golden string
		apply  func([]float32)
	}{{sinGolden, Sin}, {cosGolden, Cos}} {
		if cases := compareGolden(t, f.golden, f.apply); cases < 300 {
			t.Errorf("%d cases", cases)
		}
	}
}

// TestSinusoidsGolden compares whole tables, whose rows are taken in parts of any
// length.
func TestSinusoidsGolden(t *testing.T) {
	cases := 0
	for line := range strings.Lines(positionsGolden) {
		var columns int
		var want string
		if _, err := fmt.Sscan(line, &columns, &want); err != nil {
			t.Fatal(err)
		}
		table := NewSinusoids(1500, columns)
		hash := sha256.New()
		for row, n := int64(0), int64(1); row < 1500; n = n*2%97 + 1 {
			n = min(n, 1500-row)
			part := make([]float32, n*int64(columns))
			table.Rows(part, row)
			var b []byte
			for _, v := range part {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
			}
			hash.Write(b)
			row += n
		}
		if h := hex.EncodeToString(hash.Sum(nil)[:16]); h != want {
			t.Errorf("%d columns: sha256 %s, want %s", columns, h, want)
		}
		cases++
	}
	if cases < 10 {
		t.Errorf("%d cases", cases)
	}
}

func TestTrigSpecial(t *testing.T) {
	negative := float32(math.Copysign(0, -1))
	x := []float32{0, negative}
	Sin(x)
	if x[0] != 0 || math.Signbit(float64(x[0])) || x[1] != 0 || !math.Signbit(float64(x[1])) {
		t.Errorf("sines %v, want 0 -0", x)
	}
	defer func() {
		if recover() == nil {
			t.Error("an angle beyond the range is taken")
		}
	}()
	Cos([]float32{1, 50000})
}
