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

//go:embed testdata/bilinear.tsv
var bilinearGolden string

// TestBilinearGolden compares squares of points with PyTorch's own results. A line of the golden has the side of a
// square, its side after resizing, the length of the vectors, and the beginning of the SHA-256 of the result.
func TestBilinearGolden(t *testing.T) {
	cases := 0
	for line := range strings.Lines(bilinearGolden) {
		var side, to, n int64
		var want string
		if _, err := fmt.Sscan(line, &side, &to, &n, &want); err != nil {
			t.Fatal(err)
		}
		points := make([]float32, side*side*n)
		for i := range points {
			points[i] = float32(float64(i*7919%1000003)/1000003 - 0.5)
		}
		at := func(y, x int64) []float32 { return points[(y*side+x)*n:][:n] }
		var b []byte
		dst := make([]float32, n)
		for y := range to {
			y0, y1, down := Between(y, to, side)
			for x := range to {
				x0, x1, right := Between(x, to, side)
				Blend(dst, at(y0, x0), at(y0, x1), at(y1, x0), at(y1, x1), down, right)
				for _, v := range dst {
					b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
				}
			}
		}
		sum := sha256.Sum256(b)
		if h := hex.EncodeToString(sum[:16]); h != want {
			t.Errorf("%s: sha256 %s", strings.TrimSpace(line), h)
		}
		cases++
	}
	if cases != 9 {
		t.Errorf("%d cases", cases)
	}
}
