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

// scalarRegistry is the registry before any init function ran: package
// variables are set up first, so its encoders are the scalar ones in every
// build.
var scalarRegistry = registry

// implementation is one way to run the encoders; vector test files append
// theirs.
type implementation struct {
	name   string
	lookup func(gguf.Type) *Codec
}

var implementations = []implementation{
	{"active", Lookup},
	{"scalar", func(t gguf.Type) *Codec { return &scalarRegistry[t] }},
}

// codecTypes lists the types that can be quantized, in id order.
func codecTypes() (types []gguf.Type) {
	for i := range registry {
		if registry[i].quantize != nil {
			types = append(types, gguf.Type(i))
		}
	}
	return types
}

// decoderTypes lists the types that can be decoded, in id order: those of
// codecTypes, Q8_1 and Q8_K.
func decoderTypes() (types []gguf.Type) {
	for i := range registry {
		if registry[i].dequantize != nil {
			types = append(types, gguf.Type(i))
		}
	}
	return types
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

// blockField names a range of bytes of a block for messages.
type blockField struct {
	name     string
	off, end int
}

var blockFields = map[gguf.Type][]blockField{
	gguf.TypeF32:  {{"element", 0, 4}},
	gguf.TypeF16:  {{"element", 0, 2}},
	gguf.TypeBF16: {{"element", 0, 2}},
	gguf.TypeQ8_0: {{"d (scale)", 0, 2}, {"qs (quants)", 2, 34}},
	gguf.TypeQ4_0: {{"d (scale)", 0, 2}, {"qs (quants)", 2, 18}},
	gguf.TypeQ4_1: {{"d (scale)", 0, 2}, {"m (min)", 2, 4}, {"qs (quants)", 4, 20}},
	gguf.TypeQ5_0: {{"d (scale)", 0, 2}, {"qh (fifth bits)", 2, 6}, {"qs (quants)", 6, 22}},
	gguf.TypeQ5_1: {{"d (scale)", 0, 2}, {"m (min)", 2, 4}, {"qh (fifth bits)", 4, 8}, {"qs (quants)", 8, 24}},
	gguf.TypeQ2_K: {{"scales (scale and min codes)", 0, 16}, {"qs (quants)", 16, 80}, {"d (scale)", 80, 82}, {"dmin (min)", 82, 84}},
	gguf.TypeQ3_K: {{"hmask (third bits)", 0, 32}, {"qs (quants)", 32, 96}, {"scales (scale codes)", 96, 108}, {"d (scale)", 108, 110}},
	gguf.TypeQ4_K: {{"d (scale)", 0, 2}, {"dmin (min)", 2, 4}, {"scales (scale and min codes)", 4, 16}, {"qs (quants)", 16, 144}},
	gguf.TypeQ5_K: {{"d (scale)", 0, 2}, {"dmin (min)", 2, 4}, {"scales (scale and min codes)", 4, 16}, {"qh (fifth bits)", 16, 48}, {"qs (quants)", 48, 176}},
	gguf.TypeQ6_K: {{"ql (quants)", 0, 128}, {"qh (high bits)", 128, 192}, {"scales (scale codes)", 192, 208}, {"d (scale)", 208, 210}},

	gguf.TypeQ8_1:    {{"d (scale)", 0, 2}, {"s (sum)", 2, 4}, {"qs (quants)", 4, 36}},
	gguf.TypeQ8_K:    {{"d (scale)", 0, 4}, {"qs (quants)", 4, 260}, {"bsums (sums)", 260, 292}},
	gguf.TypeQ1_0:    {{"d (scale)", 0, 2}, {"qs (bits)", 2, 18}},
	gguf.TypeQ2_0:    {{"d (scale)", 0, 2}, {"qs (quants)", 2, 18}},
	gguf.TypeTQ1_0:   {{"qs (trits, five per byte)", 0, 48}, {"qh (trits, four per byte)", 48, 52}, {"d (scale)", 52, 54}},
	gguf.TypeTQ2_0:   {{"qs (quants)", 0, 64}, {"d (scale)", 64, 66}},
	gguf.TypeMXFP4:   {{"e (scale)", 0, 1}, {"qs (quants)", 1, 17}},
	gguf.TypeNVFP4:   {{"d (scales)", 0, 4}, {"qs (quants)", 4, 36}},
	gguf.TypeIQ4_NL:  {{"d (scale)", 0, 2}, {"qs (quants)", 2, 18}},
	gguf.TypeIQ4_XS:  {{"d (scale)", 0, 2}, {"scales_h (scale codes)", 2, 4}, {"scales_l (scale codes)", 4, 8}, {"qs (quants)", 8, 136}},
	gguf.TypeIQ2_XXS: {{"d (scale)", 0, 2}, {"qs (indices, signs, scale codes)", 2, 66}},
	gguf.TypeIQ2_XS:  {{"d (scale)", 0, 2}, {"qs (indices, signs)", 2, 66}, {"scales (scale codes)", 66, 74}},
	gguf.TypeIQ2_S:   {{"d (scale)", 0, 2}, {"qs (indices)", 2, 34}, {"signs", 34, 66}, {"qh (high index bits)", 66, 74}, {"scales (scale codes)", 74, 82}},
	gguf.TypeIQ3_XXS: {{"d (scale)", 0, 2}, {"qs (indices)", 2, 66}, {"signs, scale codes", 66, 98}},
	gguf.TypeIQ3_S:   {{"d (scale)", 0, 2}, {"qs (indices)", 2, 66}, {"qh (high index bits)", 66, 74}, {"signs", 74, 106}, {"scales (scale codes)", 106, 110}},
	gguf.TypeIQ1_S:   {{"d (scale)", 0, 2}, {"qs (indices)", 2, 34}, {"qh (high index bits, scale codes, shifts)", 34, 50}},
	gguf.TypeIQ1_M:   {{"qs (indices)", 0, 32}, {"qh (high index bits, shifts)", 32, 48}, {"scales (scale, scale codes)", 48, 56}},
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
	for _, f := range blockFields[t] {
		if end := min(f.end, len(w)); at >= f.off && at < end {
			return fmt.Sprintf("%d bad blocks in the %d bytes known, first: block %d, field %s, byte %d: got %x, want %x",
				bad, len(want), first, f.name, at, g[f.off:end], w[f.off:end])
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

	for _, impl := range implementations {
		for _, typ := range codecTypes() {
			if typ == gguf.TypeF32 { // not in the file: see TestF32
				continue
			}
			t.Run(impl.name+"/"+typ.String(), func(t *testing.T) {
				c := impl.lookup(typ)
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
				t.Logf("%s: %d cases, %d with importance, %d with invalid scales", c.Implementation(), ran, withImportance, invalid)
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
	if !strings.HasPrefix(s, "2 bad blocks in the 432 bytes known, first: block 1, field scales (scale and min codes), byte 5:") {
		t.Error(s)
	}
	for _, typ := range decoderTypes() {
		off := 0
		for _, f := range blockFields[typ] {
			if f.off != off {
				t.Errorf("%v: field %s begins at %d, want %d", typ, f.name, f.off, off)
			}
			off = f.end
		}
		if int64(off) != typ.BlockBytes() {
			t.Errorf("%v: fields end at %d, want %d", typ, off, typ.BlockBytes())
		}
	}
}
