package quants

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/internal/gen"
)

// codecTypes lists the types that can be quantized, in id order.
func codecTypes() (list []gguf.Type) {
	for i := range types {
		if types[i].encode != nil {
			list = append(list, gguf.Type(i))
		}
	}
	return list
}

// decoderTypes lists the types that can be decoded, in id order: those of
// codecTypes, Q8_1 and Q8_K.
func decoderTypes() (list []gguf.Type) {
	for i := range types {
		if types[i].decode != nil {
			list = append(list, gguf.Type(i))
		}
	}
	return list
}

// variantsOf returns those of the importance variants with which c can work: it
// drops "none" if c needs importance.
func variantsOf(c *Codec, variants ...string) []string {
	if c.NeedsImportance() {
		return slices.DeleteFunc(variants, func(v string) bool { return v == "none" })
	}
	return variants
}

// goldenFile is testdata/quant_golden.json, made with libggml-base 0.27.0; the
// inputs it names are those of internal/gen. Hashes are SHA-256 in hex, cut to
// the length they have in the file.
type goldenFile struct {
	Inputs  map[string]string // input name → hash of its float32 bytes
	Imatrix map[string]string // variant/N → hash of its float32 bytes
	Types   map[string]struct {
		Block, Bytes    int64
		RequiresImatrix bool `json:"requires_imatrix"`
		IgnoresImatrix  bool `json:"ignores_imatrix"`
	}
	Cases map[string]goldenCase // type|input|variant
}

type goldenCase struct {
	Q     string // hash of the blocks
	F     string // hash of the dequantized float32 bytes, every NaN as 0x7FC00000
	H     string // the first 64 bytes of the blocks, in hex; may be absent
	V     *int   // 0: validation must fail; absent: must not
	Abort int    // 1: the reference aborts
}

func readGolden(t testing.TB) (g goldenFile) {
	t.Helper()
	data, err := os.ReadFile("testdata/quant_golden.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// explainDiff says where two runs of blocks of t differ: number of differing
// blocks, the first of them, the field of its first differing byte and the
// bytes of that field. len(got) = len(want), which may end inside a block.
func explainDiff(t gguf.Type, got, want []byte) string {
	size := int(t.BlockBytes())
	bad, first := 0, -1
	for b := 0; b*size < len(want); b++ {
		end := min((b+1)*size, len(want))
		if !bytes.Equal(got[b*size:end], want[b*size:end]) {
			if bad++; first < 0 {
				first = b
			}
		}
	}
	if bad == 0 {
		return fmt.Sprintf("no difference in the %d bytes known", len(want))
	}
	g, w := got[first*size:min((first+1)*size, len(want))], want[first*size:min((first+1)*size, len(want))]
	at := 0
	for g[at] == w[at] {
		at++
	}
	for _, f := range t.Fields() {
		if end := min(f.Off+f.Size(), len(w)); at >= f.Off && at < end {
			return fmt.Sprintf("%d bad blocks in the %d bytes known, first: block %d, field %s, byte %d: got %x, want %x",
				bad, len(want), first, f.Name, at, g[f.Off:end], w[f.Off:end])
		}
	}
	return fmt.Sprintf("%d bad blocks, first: block %d, byte %d in no known field", bad, first, at)
}

// hashFloats hashes little-endian float32 bytes; with canonical NaNs every NaN
// counts as 0x7FC00000.
func hashFloats(x []float32, canonical bool) string {
	h := sha256.New()
	writeFloats(h, x, canonical)
	return hex.EncodeToString(h.Sum(nil))
}

func writeFloats(h hash.Hash, x []float32, canonical bool) {
	b := make([]byte, 0, 4*len(x))
	for _, v := range x {
		u := math.Float32bits(v)
		if canonical && v != v {
			u = 0x7FC00000
		}
		b = binary.LittleEndian.AppendUint32(b, u)
	}
	h.Write(b)
}

func TestGolden(t *testing.T) {
	g := readGolden(t)

	type input struct {
		x      []float32
		rowLen int
	}
	inputs := map[string]input{}
	for name, want := range g.Inputs {
		x, n := gen.Input(name)
		if got := hashFloats(x, false); !strings.HasPrefix(got, want) {
			t.Fatalf("input %s: hash %s, want %s...: the generator is wrong", name, got[:16], want)
		}
		inputs[name] = input{x, n}
	}
	importance := map[string][]float32{}
	for name, want := range g.Imatrix {
		variant, n, _ := strings.Cut(name, "/")
		var cols int
		fmt.Sscan(n, &cols)
		w := gen.Importance(variant, cols)
		if got := hashFloats(w, false); !strings.HasPrefix(got, want) {
			t.Fatalf("importance %s: hash %s, want %s...: the generator is wrong", name, got[:16], want)
		}
		importance[name] = w
	}

	// Cases by type, in a fixed order.
	cases := map[gguf.Type][]string{}
	for key := range g.Cases {
		name, _, _ := strings.Cut(key, "|")
		typ, ok := gguf.ParseType(name)
		if !ok {
			t.Fatalf("golden file has unknown type %q", name)
		}
		cases[typ] = append(cases[typ], key)
	}
	for name, want := range g.Types {
		typ, _ := gguf.ParseType(name)
		if typ.BlockLen() != want.Block || typ.BlockBytes() != want.Bytes {
			t.Errorf("%s: block of %d in %d bytes, want %d in %d", name, typ.BlockLen(), typ.BlockBytes(), want.Block, want.Bytes)
		}
		c := Lookup(typ)
		if !c.CanQuantize() {
			t.Errorf("%s: no encoder", name)
			continue
		}
		if c.NeedsImportance() != want.RequiresImatrix {
			t.Errorf("%s: NeedsImportance %v, want %v", name, c.NeedsImportance(), want.RequiresImatrix)
		}
		if len(cases[typ]) == 0 {
			t.Errorf("%s: no golden case", name)
		}
	}

	for _, set := range codecSets {
		for _, typ := range codecTypes() {
			if typ == gguf.TypeF32 || set.name != "active" && !set.has(typ) { // F32 is not in the file: see TestF32
				continue
			}
			t.Run(set.name+"/"+typ.String(), func(t *testing.T) {
				c := set.lookup(typ)
				ran, withImportance, invalid := 0, 0, 0
				slices.Sort(cases[typ])
				for _, key := range cases[typ] {
					part := strings.Split(key, "|")
					in, ok := inputs[part[1]]
					if !ok {
						t.Fatalf("%s: input hash missing", key)
					}
					var w []float32
					if part[2] != "none" {
						if w, ok = importance[fmt.Sprintf("%s/%d", part[2], in.rowLen)]; !ok {
							t.Fatalf("%s: importance hash missing", key)
						}
						withImportance++
					}
					ran++
					want := g.Cases[key]
					if want.V != nil {
						invalid++
					}
					if err := checkCase(c, in.x, in.rowLen, w, want); err != nil {
						t.Errorf("%s: %v", key, err)
					}
				}
				t.Logf("%s, %s, %s: %d cases, %d with importance, %d with invalid scales", c.plainName, c.weightedName, c.decodeName, ran, withImportance, invalid)
				if ran == 0 || withImportance == 0 || ran == withImportance != c.NeedsImportance() {
					t.Errorf("%d cases, %d with importance: one kind was not tested", ran, withImportance)
				}
			})
		}
	}
}

func checkCase(c *Codec, x []float32, rowLen int, importance []float32, want goldenCase) error {
	q := make([]byte, c.Type().RowBytes(int64(len(x))))
	for i := range q {
		q[i] = 0xA5 // every byte must be written
	}
	err := c.Quantize(q, x, rowLen, importance)
	if want.Abort != 0 {
		if err == nil {
			return fmt.Errorf("quantized, but the reference aborts")
		}
		return nil
	}
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(q); hex.EncodeToString(sum[:]) != want.Q {
		head, err := hex.DecodeString(want.H)
		if err != nil {
			return err
		}
		return fmt.Errorf("wrong blocks: %s", explainDiff(c.Type(), q[:len(head)], head))
	}
	if head := hex.EncodeToString(q[:min(64, len(q))]); want.H != "" && head != want.H {
		return fmt.Errorf("blocks begin with %s, want %s", head, want.H)
	}
	y := make([]float32, len(x))
	if err := c.Dequantize(y, q); err != nil {
		return err
	}
	if got := hashFloats(y, true); !strings.HasPrefix(got, want.F) {
		return fmt.Errorf("right blocks, wrong floats: hash %s, want %s", got[:len(want.F)], want.F)
	}
	if err := c.Validate(q); (err != nil) != (want.V != nil && *want.V == 0) {
		return fmt.Errorf("validation says %v, want failure: %v", err, err == nil)
	}
	return nil
}

// The explanation of a mismatch has to name the right block and field.
func TestExplainDiff(t *testing.T) {
	want := make([]byte, 3*144)
	got := bytes.Clone(want)
	got[144+5] = 1
	got[2*144] = 1
	s := explainDiff(gguf.TypeQ4_K, got, want)
	if !strings.HasPrefix(s, "2 bad blocks in the 432 bytes known, first: block 1, field scales, byte 5:") {
		t.Error(s)
	}
}
