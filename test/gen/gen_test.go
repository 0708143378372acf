package gen

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"testing"
)

// First 16 hex digits of the SHA-256 of the little-endian float32 bytes; the
// hashes of all inputs are in quants/testdata/quant_golden.json.
func TestInputHashes(t *testing.T) {
	for name, want := range map[string]string{
		"normal/2x512":  "aacb1e78e61e9e36",
		"shift/2x512":   "e960f11e3261b2c6",
		"ratio/2x512":   "34a435a0b3d7fbb2",
		"uniform/3x320": "ae919a82bababd19",
	} {
		x, rowLen := Input(name)
		if got := hash(x); got != want {
			t.Errorf("%s: hash %s, want %s", name, got, want)
		}
		if len(x)%rowLen != 0 {
			t.Errorf("%s: %d values in rows of %d", name, len(x), rowLen)
		}
	}
	for variant, want := range map[string]string{
		"uni": "ce0e56470f7cdba9", "zer": "98668ccecd71bfb0",
		"skew": "6b2b88e2ede1edac", "allz": "e5a00aa9991ac8a5",
	} {
		if got := hash(Importance(variant, 512)); got != want {
			t.Errorf("importance %s/512: hash %s, want %s", variant, got, want)
		}
	}
}

func TestUnknownNamesPanic(t *testing.T) {
	for _, name := range []string{"", "normal", "normal/0x32", "normal/2x512x", "normal/02x512", "nothing/1x32"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Input(%q) did not panic", name)
				}
			}()
			Input(name)
		}()
	}
}

func hash(x []float32) string {
	b := make([]byte, 0, 4*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:8])
}
