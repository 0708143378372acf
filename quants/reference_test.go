package quants

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/test/gen"
)

// TestReferenceGolden compares what LookupReference encodes with ggml's from_float_ref, for all inputs of the golden
// cases.
func TestReferenceGolden(t *testing.T) {
	data, err := os.ReadFile("testdata/reference_golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden map[string]string // type|input → hash
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	seen, searched := map[gguf.Type]int{}, 0
	for key, want := range golden {
		name, input, _ := strings.Cut(key, "|")
		typ, ok := gguf.ParseType(name)
		if !ok {
			t.Fatalf("type %q", name)
		}
		x, _ := gen.Input(input)
		hash := func(c *Codec) string {
			b, y := make([]byte, typ.RowBytes(int64(len(x)))), make([]float32, len(x))
			if err := c.Quantize(b, x, len(x), nil); err != nil {
				t.Fatal(err)
			}
			if err := c.Dequantize(y, b); err != nil {
				t.Fatal(err)
			}
			for i := range y {
				y[i] += 0 // -0 becomes +0
			}
			return hashFloats(y, false)[:16]
		}
		c := LookupReference(typ)
		got := hash(c)
		if got != want || c.Type() != typ {
			t.Errorf("%s: hash %s of codec %v, want %s", key, got, c.Type(), want)
		}
		if seen[typ]++; typ == gguf.TypeIQ4_NL && got != hash(Lookup(typ)) {
			searched++
		}
	}
	if len(seen) != 6 || seen[gguf.TypeIQ4_NL] < 20 || searched < 10 {
		t.Errorf("cases %v, %d of IQ4_NL where a search finds another scale", seen, searched)
	}
}
