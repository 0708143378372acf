package quants

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/test/gen"
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
// inputs it names are those of test/gen. Hashes are SHA-256 in hex, cut to
// the length they have in the file. The blocks of the cases are in
// testdata/quant_golden.bin.gz, in the order of their keys.
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
	F     string // hash of the dequantized float32 bytes, every NaN as 0x7FC00000
	V     *int   // 0: validation must fail; absent: must not
	Abort int    // 1: the reference aborts, and there are no blocks

	blocks []byte
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
	packed, err := os.Open("testdata/quant_golden.bin.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	r, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range slices.Sorted(maps.Keys(g.Cases)) {
		c := g.Cases[key]
		if c.Abort != 0 {
			continue
		}
		part := strings.Split(key, "|")
		var rows, cols int64
		if _, err := fmt.Sscanf(part[1][strings.Index(part[1], "/")+1:], "%dx%d", &rows, &cols); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		size := rows * cols / g.Types[part[0]].Block * g.Types[part[0]].Bytes
		if size > int64(len(blocks)) {
			t.Fatalf("%s: %d bytes of blocks are left, want %d", key, len(blocks), size)
		}
		c.blocks, blocks = blocks[:size:size], blocks[size:]
		g.Cases[key] = c
	}
	if len(blocks) > 0 {
		t.Fatalf("%d bytes of blocks are left", len(blocks))
	}
	return g
}

// explainDiff describes where two runs of whole blocks of t differ: how many blocks do, and
// the first of them field by field. len(got) = len(want).
func explainDiff(t gguf.Type, got, want []byte) string {
	size := int(t.BlockBytes())
	bad, first := 0, -1
	for off := 0; off < len(want); off += size {
		if !bytes.Equal(got[off:off+size], want[off:off+size]) {
			if bad++; first < 0 {
				first = off
			}
		}
	}
	if bad == 0 {
		return "no difference"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d blocks are wrong, the first is block %d (elements from %d on):", bad, len(want)/size,
		first/size, int64(first/size)*t.BlockLen())
	for _, f := range t.Fields() {
		g, w := got[first+f.Off:][:f.Size()], want[first+f.Off:][:f.Size()]
		fmt.Fprintf(&b, "\n\t%-7s ", f.Name)
		if bytes.Equal(g, w) {
			fmt.Fprintf(&b, "%s as it should be", fieldText(t, &f, got[first:first+size]))
			continue
		}
		if f.Size() > 8 {
			n, at := 0, -1
			for i := range g {
				if g[i] != w[i] {
					if n++; at < 0 {
						at = i
					}
				}
			}
			fmt.Fprintf(&b, "%d of %d bytes are wrong, the first is byte %d: ", n, len(g), at)
		}
		fmt.Fprintf(&b, "got %s, want %s", fieldText(t, &f, got[first:first+size]),
			fieldText(t, &f, want[first:first+size]))
	}
	return b.String()
}

// fieldText prints a field of a block: its bytes, and the value of a float.
func fieldText(t gguf.Type, f *gguf.Field, block []byte) string {
	text := fmt.Sprintf("%x", block[f.Off:][:f.Size()])
	switch f.Number {
	case gguf.NumF16, gguf.NumBF16, gguf.NumF32, gguf.NumIQ1_M:
		text += fmt.Sprintf(" (%s)", value(f, block))
	}
	return text
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
			t.Errorf("%s: block of %d in %d bytes, want %d in %d", name, typ.BlockLen(), typ.BlockBytes(),
				want.Block, want.Bytes)
		}
		c := Lookup(typ)
		if !c.CanQuantize() {
			t.Errorf("%s: no encoder", name)
			continue
		}
		if c.NeedsImportance() != want.RequiresImatrix {
			t.Errorf("%s: NeedsImportance %v, want %v", name, c.NeedsImportance(), want.RequiresImatrix)
		}
		if ignores := c.Importance() == ImportanceIgnored; ignores != want.IgnoresImatrix {
			t.Errorf("%s: ignores importance: %v, want %v", name, ignores, want.IgnoresImatrix)
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
				ran, withImportance, invalid, failed := 0, 0, 0, 0
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
						if failed++; failed <= 3 {
							t.Errorf("%s: %v", key, err)
						}
					}
				}
				if failed > 3 {
					t.Errorf("%d of %d cases failed", failed, ran)
				}
				t.Logf("%s, %s, %s: %d cases, %d with importance, %d with invalid scales", c.plainName, c.weightedName,
					c.decodeName, ran, withImportance, invalid)
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
	if !bytes.Equal(q, want.blocks) {
		return errors.New(explainDiff(c.Type(), q, want.blocks))
	}
	y := make([]float32, len(x))
	if err := c.Dequantize(y, q); err != nil {
		return err
	}
	if got := hashFloats(y, true); !strings.HasPrefix(got, want.F) {
		return fmt.Errorf("right blocks, wrong floats: %s", explainFloats(c.Type(), y, q))
	}
	if err := c.Validate(q); (err != nil) != (want.V != nil && *want.V == 0) {
		return fmt.Errorf("validation says %v, want failure: %v", err, err == nil)
	}
	return nil
}

// explainFloats describes where the floats decoded from the blocks q differ from those of
// the scalar code, of which only a hash is golden.
func explainFloats(t gguf.Type, got []float32, q []byte) string {
	want := make([]float32, len(got))
	if err := scalarCodec(t).Dequantize(want, q); err != nil {
		return err.Error()
	}
	for i, v := range want {
		if math.Float32bits(got[i]) != math.Float32bits(v) && (got[i] == got[i] || v == v) {
			b := i / int(t.BlockLen())
			block := q[b*int(t.BlockBytes()):][:t.BlockBytes()]
			text := fmt.Sprintf("element %d of block %d is %v, the scalar code says %v; the block:",
				i%int(t.BlockLen()), b, got[i], v)
			for _, f := range t.Fields() {
				text += fmt.Sprintf("\n\t%-7s %s", f.Name, fieldText(t, &f, block))
			}
			return text
		}
	}
	return "they are those of the scalar code, which is wrong too"
}

// The explanation of a mismatch has to name the right block and fields.
func TestExplainDiff(t *testing.T) {
	want := make([]byte, 3*144)
	got := bytes.Clone(want)
	got[144+5], got[144+1] = 1, 0x3C
	got[2*144+20] = 1
	for _, line := range []string{
		"2 of 3 blocks are wrong, the first is block 1 (elements from 256 on):",
		"\td       got 003c (1), want 0000 (0)\n",
		"\tdmin    0000 (0) as it should be\n",
		"\tscales  1 of 12 bytes are wrong, the first is byte 1: got 000100000000000000000000, want 000000000000000000000000\n",
		"\tqs      00000000",
	} {
		if s := explainDiff(gguf.TypeQ4_K, got, want); !strings.Contains(s, line) {
			t.Errorf("want %q in\n%s", line, s)
		}
	}
}
