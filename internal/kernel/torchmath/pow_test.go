package torchmath

import (
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

//go:embed testdata/pow.tsv
var powGolden string

// TestPowGolden compares powers with PyTorch's own results.
func TestPowGolden(t *testing.T) {
	cases := 0
	for line := range strings.Lines(powGolden) {
		f := strings.Fields(line)
		base, err := strconv.ParseFloat(f[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(f[1])
		if err != nil {
			t.Fatal(err)
		}
		exponents, got := make([]float32, n), make([]float32, n)
		for i := range exponents {
			exponents[i] = float32(2*i) / float32(2*n)
		}
		PowScalar(got, float32(base), exponents)
		var b []byte
		for _, v := range got {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		sum := sha256.Sum256(b)
		if h := hex.EncodeToString(sum[:16]); h != f[2] {
			t.Errorf("%s**, %d exponents: sha256 %s, want %s", f[0], n, h, f[2])
		}
		cases++
	}
	if cases < 400 {
		t.Errorf("%d cases", cases)
	}
}

// TestFMA compares fma with exact arithmetic.
func TestFMA(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	value := func() float32 {
		return math.Float32frombits(r.Uint32()&0x807FFFFF | (100+r.Uint32N(50))<<23)
	}
	for range 200000 {
		a, b, c := value(), value(), value()
		if r.IntN(4) == 0 {
			c = float32(a*b) * -(1 + float32(r.IntN(3)-1)/(1<<23)) // near cancellation
		}
		exact := new(big.Float).SetPrec(300).SetFloat64(float64(a))
		exact.Mul(exact, new(big.Float).SetFloat64(float64(b)))
		exact.Add(exact, new(big.Float).SetFloat64(float64(c)))
		want, _ := exact.Float32()
		if got := fma(a, b, c); got != want {
			t.Fatalf("%v*%v+%v = %v, want %v", a, b, c, got, want)
		}
	}
}
