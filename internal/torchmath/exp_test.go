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

//go:embed testdata/exp.tsv
var expGolden string

// TestExpGolden compares with PyTorch's own results: equal steps from a first to a
// last number, in tensors of all lengths around those of vectors.
func TestExpGolden(t *testing.T) {
	cases := 0
	for line := range strings.Lines(expGolden) {
		f := strings.Fields(line)
		first, err1 := strconv.ParseFloat(f[0], 64)
		last, err2 := strconv.ParseFloat(f[1], 64)
		n, err3 := strconv.Atoi(f[2])
		if err1 != nil || err2 != nil || err3 != nil {
			t.Fatal(line)
		}
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(first + float64((last-first)*float64(i))/float64(n))
		}
		Exp(x)
		var b []byte
		for _, v := range x {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		sum := sha256.Sum256(b)
		if h := hex.EncodeToString(sum[:16]); h != f[3] {
			t.Errorf("%s: sha256 %s", strings.TrimSpace(line), h)
		}
		cases++
	}
	if cases < 300 {
		t.Errorf("%d cases", cases)
	}
}

func TestExpSpecial(t *testing.T) {
	inf := float32(math.Inf(1))
	nan := float32(math.NaN())
	x := []float32{0, float32(math.Copysign(0, -1)), inf, -inf, nan}
	Exp(x)
	if x[0] != 1 || x[1] != 1 || x[2] != inf || x[3] != 0 || x[4] == x[4] {
		t.Errorf("exponentials %v, want 1 1 +Inf 0 NaN", x)
	}
}
