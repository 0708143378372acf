package torchmath

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"testing"
)

// compareGolden applies a function to the numbers of each line of a golden file: FIRST LAST COUNT SUM, which are COUNT
// numbers in equal steps from FIRST to LAST, and the beginning of the SHA-256 of PyTorch's results. It returns the
// number of lines.
func compareGolden(t *testing.T, golden string, apply func([]float32)) (cases int) {
	t.Helper()
	for line := range strings.Lines(golden) {
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
		apply(x)
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
	return cases
}
