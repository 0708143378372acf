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

//go:embed testdata/softplus.tsv
var softplusGolden string

// TestSoftplusGolden compares with PyTorch's own results, as TestExpGolden does.
func TestSoftplusGolden(t *testing.T) {
	cases := 0
	for line := range strings.Lines(softplusGolden) {
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
		Softplus(x)
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
	if cases != 8 {
		t.Errorf("%d cases", cases)
	}
}

func TestSoftplusSpecial(t *testing.T) {
	inf := float32(math.Inf(1))
	x := []float32{-inf, inf, float32(math.NaN())}
	Softplus(x)
	if x[0] != 0 || x[1] != inf || x[2] == x[2] {
		t.Errorf("%v, want 0 +Inf NaN", x)
	}
}
