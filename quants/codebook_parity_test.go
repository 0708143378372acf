package quants

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ggforge/gguf"
	"ggforge/quants/internal/arith"
	"ggforge/test/gen"
)

// codebookTypes are the types whose encoders search a codebook.
var codebookTypes = []gguf.Type{
	gguf.TypeIQ1_S, gguf.TypeIQ1_M, gguf.TypeIQ2_XXS, gguf.TypeIQ2_XS, gguf.TypeIQ2_S, gguf.TypeIQ3_XXS, gguf.TypeIQ3_S,
}

// checkCodebookParity compares the encoders of every implementation with the scalar
// ones.
func checkCodebookParity(t *testing.T, name string, x, w []float32) {
	t.Helper()
	for _, typ := range codebookTypes {
		for _, s := range fasterCodecs(typ) {
			if w == nil && s.lookup(typ).NeedsImportance() {
				continue
			}
			if err := sameAsScalar(s.lookup(typ), x, w); err != nil {
				t.Errorf("%s, importance %v: %v", name, w != nil, err)
			}
		}
	}
}

func TestCodebookParity(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func(n int, f func() float32) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = f()
		}
		return x
	}
	pick := func(values ...float32) func() float32 {
		return func() float32 { return values[r.IntN(len(values))] }
	}
	negZero := float32(math.Copysign(0, -1))
	rows := map[string][]float32{
		"normal":    random(4096, func() float32 { return float32(r.NormFloat64()) * 0.02 }),
		"uniform":   random(2048, func() float32 { return r.Float32() - 0.5 }),
		"cubes":     random(2048, func() float32 { v := float32(r.NormFloat64()); return v * v * v }),
		"levels":    random(2048, pick(1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7)),
		"ties":      random(2048, pick(1, 2, 4, -1, -2, -4)),
		"equal":     random(512, pick(0.25)),
		"signs":     random(1024, pick(0.25, -0.25)),
		"zeros":     random(512, pick(0, negZero)),
		"rare":      random(2048, pick(0, 0, 0, 0, 0, 0, 0, negZero, 1, -1)),
		"subnormal": random(1024, func() float32 { return math.Float32frombits(r.Uint32() & 0x800FFFFF) }),
		"tiny":      random(1024, func() float32 { return float32(r.NormFloat64()) * 1e-20 }),
		"limits":    random(2048, pick(1e-7, 1e-8, 1e-12, 1e-15, -1e-7, -1e-8, 1e-16, 0)),
		"huge":      random(1024, func() float32 { return float32(r.NormFloat64()) * 1e18 }),
		"beyond":    random(1024, func() float32 { return float32(r.NormFloat64()) * 1e37 }),
		"bits": random(2048, func() float32 {
			for {
				if v := math.Float32frombits(r.Uint32()); arith.Abs(v) <= math.MaxFloat32 {
					return v
				}
			}
		}),
	}
	oneHot := make([]float32, 256*64)
	for i := range 64 {
		oneHot[256*i+4*i+i%4] = float32(1 - 2*(i&1))
	}
	rows["one-hot"] = oneHot
	for _, dist := range gen.Dists() {
		rows["gen "+dist], _ = gen.Input(dist + "/1x1024")
	}
	importances := map[string]func() float32{
		"uniform": func() float32 { return r.Float32() },
		"some":    pick(0, 0, 1, 0.5),
		"zero":    pick(0),
		"small":   func() float32 { return r.Float32() * 1e-30 },
		"wide":    func() float32 { return float32(math.Exp(r.NormFloat64() * 10)) },
	}
	for name, x := range rows {
		checkCodebookParity(t, name, x, nil)
		for wName, f := range importances {
			checkCodebookParity(t, name+" "+wName, x, random(len(x), f))
		}
	}
	// Every number of superblocks in a row.
	for n := 1; n <= 5; n++ {
		x := rows["normal"][256*n:][:256*n]
		checkCodebookParity(t, fmt.Sprint(n, " superblocks"), x, nil)
		checkCodebookParity(t, fmt.Sprint(n, " superblocks"), x, random(len(x), importances["uniform"]))
	}
}

// FuzzCodebookParity compares the implementations on rows made of the data: mode
// 0 takes its words as floats, others as small integers, which tie.
func FuzzCodebookParity(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3}, uint8(0))
	f.Add(bytes.Repeat([]byte{9, 1, 255, 3, 7, 7, 128, 64}, 64), uint8(1))
	x, _ := gen.Input("normal/1x256")
	f.Add(floatBytes(x), uint8(0))
	f.Add(floatBytes(x), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, mode uint8) {
		const n = 256
		if len(data) < 4 {
			return
		}
		x, w := make([]float32, n), make([]float32, n)
		for i := range x {
			if mode == 0 {
				k := i % (len(data) / 4) * 4
				x[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[k:]))
				w[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[len(data)/4*4-4-k:]) & 0x3FFFFFFF)
			} else {
				x[i] = float32(int8(data[i%len(data)])) / float32(mode)
				w[i] = float32(data[(i*7+1)%len(data)] % mode)
			}
			if !(arith.Abs(x[i]) <= math.MaxFloat32 && w[i] <= math.MaxFloat32) {
				return
			}
		}
		checkCodebookParity(t, "fuzz", x, w)
		checkCodebookParity(t, "fuzz", x, nil)
	})
}

// Elements whose errors overflow float32, where the reference stops, give blocks
// that are not valid rather than blocks of zeros. (IQ2_XXS and IQ1 already find
// no scale for them, and zeros are the reference's blocks.)
func TestOverflowIsInvalid(t *testing.T) {
	x, n := gen.Input("normal/2x512")
	for i := range x {
		x[i] *= 1e30
	}
	for _, typ := range []gguf.Type{gguf.TypeIQ2_XS, gguf.TypeIQ2_S, gguf.TypeIQ3_XXS, gguf.TypeIQ3_S} {
		c := Lookup(typ)
		for _, variant := range variantsOf(c, "none", "uni") {
			if err := c.Validate(quantized(t, c, x, n, gen.Importance(variant, n))); !errors.Is(err, ErrBroken) {
				t.Errorf("%v %s: error %v, want ErrBroken", typ, variant, err)
			}
		}
	}
}

func TestDisplacedSubBlocks(t *testing.T) {
	set := func(x []float32, subBlocks ...int) []float32 {
		for _, j := range subBlocks {
			x[32*j+j] = 1
		}
		return x
	}
	negZero := make([]float32, 256)
	for i := range negZero {
		negZero[i] = float32(math.Copysign(0, -1))
	}
	for i, c := range []struct {
		x    []float32
		want int
	}{
		{nil, 0},
		{make([]float32, 512), 0},
		{set(make([]float32, 256), 0, 1, 2, 3, 4, 5, 6, 7), 0},
		{set(make([]float32, 256), 0, 1), 0}, // nothing after the zeros
		{set(make([]float32, 256), 7), 7},
		{set(negZero, 1, 3), 2},
		{set(make([]float32, 512), 1, 8+0, 8+5), 1 + 4},
	} {
		if got := Lookup(gguf.TypeIQ3_S).DisplacedSubBlocks(c.x); got != c.want {
			t.Errorf("case %d: %d, want %d", i, got, c.want)
		}
	}

	// Where the count is not 0 the superblock decodes wrongly, else well.
	for _, name := range []string{"normal/2x512", "zblk/2x512"} {
		x, n := gen.Input(name)
		c := Lookup(gguf.TypeIQ3_S)
		y := dequantized(t, c, quantized(t, c, x, n, nil), len(x))
		for off := 0; off < len(x); off += 256 {
			x, y := x[off:][:256], y[off:][:256]
			zeros := make([]float32, 256)
			rel := rmse(x, y) / max(rmse(x, zeros), 1e-30)
			if hit := Lookup(gguf.TypeIQ3_S).DisplacedSubBlocks(x) > 0; hit != (rel > 0.5) {
				t.Errorf("%s at %d: displaced %v, relative error %.2f", name, off, hit, rel)
			}
		}
	}
}
