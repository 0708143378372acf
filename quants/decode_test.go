package quants

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"testing"

	"ggforge/gguf"
	"ggforge/internal/kernel/half"
	"ggforge/test/gen"
)

// Blocks of random bytes decode to the reference's floats, and are valid where the reference accepts them.
// testdata/random_blocks.json describes how it was made.
func TestRandomBlocks(t *testing.T) {
	data, err := os.ReadFile("testdata/random_blocks.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Types map[string]struct {
			Blocks, Invalid int
			SHA256          string
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for _, typ := range codecTypes() {
		if typ == gguf.TypeF32 {
			continue
		}
		want, ok := file.Types[typ.String()]
		if !ok || want.Blocks == 0 {
			t.Errorf("%v: not in the file", typ)
			continue
		}
		c, size := Lookup(typ), int(typ.BlockBytes())
		q := gen.Bytes("blocks/"+typ.String(), want.Blocks*size)
		y := dequantized(t, c, q, want.Blocks*int(typ.BlockLen()))
		if got := hashFloats(y, true); got != want.SHA256 {
			t.Errorf("%v: wrong floats: %s", typ, explainFloats(typ, y, q))
		}
		invalid := 0
		for off := 0; off < len(q); off += size {
			if c.Validate(q[off:off+size]) != nil {
				invalid++
			}
		}
		if invalid != want.Invalid {
			t.Errorf("%v: %d of %d blocks are invalid, want %d", typ, invalid, want.Blocks, want.Invalid)
		}
	}
}

// Q8_1 and Q8_K have no decoder in the reference: their formula is checked.
func TestQ8Decoders(t *testing.T) {
	for _, c := range []struct {
		typ gguf.Type
		d   func(block []byte) float32
		qs  int
	}{
		{gguf.TypeQ8_1, func(b []byte) float32 { return half.FromF16(binary.LittleEndian.Uint16(b)) }, 4},
		{gguf.TypeQ8_K, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }, 4},
	} {
		const blocks = 50
		size, n := int(c.typ.BlockBytes()), int(c.typ.BlockLen())
		q := gen.Bytes("blocks/"+c.typ.String(), blocks*size)
		y := dequantized(t, Lookup(c.typ), q, blocks*n)
		for i, v := range y {
			b := q[i/n*size:][:size]
			want := c.d(b) * float32(int8(b[c.qs+i%n]))
			if math.Float32bits(v) != math.Float32bits(want) && !(v != v && want != want) {
				t.Fatalf("%v: element %d is %v, want %v", c.typ, i, v, want)
			}
		}
	}
}
