package quants

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ggforge/gguf"
	"ggforge/internal/gen"
)

// codebookTypes are the types whose encoders search a codebook.
var codebookTypes = []gguf.Type{
	gguf.TypeIQ1_S, gguf.TypeIQ1_M, gguf.TypeIQ2_XXS, gguf.TypeIQ2_XS, gguf.TypeIQ2_S, gguf.TypeIQ3_XXS, gguf.TypeIQ3_S,
}

// checkCodebookParity compares the active encoders with the scalar ones.
func checkCodebookParity(t *testing.T, name string, x, w []float32) {
	t.Helper()
	for _, typ := range codebookTypes {
		active, scalar := Lookup(typ), scalarCodec(typ)
		if w == nil && active.NeedsImportance() {
			continue
		}
		got := bytes.Repeat([]byte{0xA5}, int(typ.RowBytes(int64(len(x)))))
		want := bytes.Repeat([]byte{0x5A}, len(got))
		if err := active.Quantize(got, x, len(x), w); err != nil {
			t.Fatal(err)
		}
		if err := scalar.Quantize(want, x, len(x), w); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%v %s, importance %v: %s and scalar: %s", typ, name, w != nil, active.Implementation(w != nil), explainDiff(typ, got, want))
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
				if v := math.Float32frombits(r.Uint32()); abs32(v) <= math.MaxFloat32 {
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

// A search for cuts from a lower bound gives the fit of the search without, or
// says that it is in doubt. Both happen.
func TestCutBound(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	same, doubtful := 0, 0
	for range 300 {
		var c cutsIQ1_S
		var x [qk]float32
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		slices.Sort(x[:])
		for i, v := range x {
			w := r.Float32()
			c.sx[i+1], c.sw[i+1] = c.sx[i]+float32(w*v), c.sw[i]+w
		}
		for s := range valuesIQ1 {
			q := valuesIQ1[s][2]
			for i := range qk + 1 {
				c.a2[s][i] = float32((c.sx[qk] - c.sx[i]) * q)
				c.b2[s][i] = float32(float32((c.sw[qk]-c.sw[i])*q) * q)
			}
		}
		search := func(f cutFit) cutFit {
			for i1 := range qk + 1 {
				c.row(&f, i1, nil)
			}
			return f
		}
		want := search(noCuts)
		for e := 4; e < 24; e++ {
			best := want.best * float32(1-math.Ldexp(1, -e))
			f := search(cutFit{best: best, above: best * (1 + 0x1p-20), bounded: true, cut1: -1, cut2: -1})
			switch {
			case f.bounded || f.doubtful:
				doubtful++
			case f.cut1 != want.cut1 || f.cut2 != want.cut2 || f.kind != want.kind || f.scale != want.scale:
				t.Errorf("bound 1 - 2^-%d: got %+v, want %+v", e, f, want)
			default:
				same++
			}
		}
	}
	t.Logf("%d searches with the same fit, %d in doubt", same, doubtful)
	if same == 0 || doubtful == 0 {
		t.Error("one kind was not tested")
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
			if !(abs32(x[i]) <= math.MaxFloat32 && w[i] <= math.MaxFloat32) {
				return
			}
		}
		checkCodebookParity(t, "fuzz", x, w)
		checkCodebookParity(t, "fuzz", x, nil)
	})
}
