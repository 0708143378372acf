package scalar

import (
	"math"

	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/codebook"
)

// Codes of MXFP4 and NVFP4 are floats of a sign, two exponent bits and one
// mantissa bit (E2M1): 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives. codebook.ValuesFP4
// holds them doubled, so scales are halved.

// EncodeFP4 sets codes to the codes c whose codebook.ValuesFP4[c]*s is nearest to x, the
// lowest on ties; so -0 and values that round to 0 get code 0, never 8.
func EncodeFP4(s float32, x []float32, codes []uint8) {
	// The codes of the other sign are no nearer than 0, and -v*s is as far from
	// -x as v*s from x: comparing magnitudes is enough.
	var values [8]float32
	for c := range values {
		values[c] = float32(codebook.ValuesFP4[c] * s)
	}
	codes = codes[:len(x)]
	for i, v := range x {
		a := arith.Abs(v)
		// Errors are not negative, so their bits compare as they do. With the
		// code below them the least is the first; no branch to predict.
		best := uint64(math.MaxUint64)
		for c, q := range &values {
			best = min(best, uint64(math.Float32bits(arith.Abs(q-a)))<<3|uint64(c))
		}
		code := uint8(best & 7)
		if v < 0 && code != 0 {
			code += 8
		}
		codes[i] = code
	}
}

// decodeFP4 decodes bytes of two codes each: lo gets the low codes, hi the high
// ones. All three have one length.
func decodeFP4(lo, hi []float32, s float32, src []byte) {
	lo, hi = lo[:len(src)], hi[:len(src)]
	for j, q := range src {
		lo[j] = codebook.ValuesFP4[q&15] * s
		hi[j] = codebook.ValuesFP4[q>>4] * s
	}
}

func scaleMXFP4(e uint8) float32 { return math.Float32frombits(codebook.E8M0Half[e]) }

func scaleNVFP4(u uint8) float32 { return math.Float32frombits(codebook.UE4M3Half[u]) }
