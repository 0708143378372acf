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
	"ggforge/internal/kernel/cpu"
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/search"
)

// Faster encoders are compared with the scalar ones on rows of every length
// around the numbers of lanes, made of pieces of 16 elements that are likely to
// take rare paths. parity_simd_test.go runs this at every vector width.

// spoilScratch are functions that fill scratch memory kept between calls with
// NaN and other values that must not matter; vector test files append theirs.
var spoilScratch []func()

// edgeValues are magnitudes at which something changes.
var edgeValues = []float32{
	0, math.SmallestNonzeroFloat32, 3 * math.SmallestNonzeroFloat32, 0x1p-140, 0x1p-130, 0x1p-126, 0x1.fffffep-127,
	1e-38, 4e-37, 1e-30, 1e-20, search.GroupMaxEps, math.Nextafter32(search.GroupMaxEps, 0),
	math.Nextafter32(search.GroupMaxEps, 1), 1e-8,
	0x1p-24, 0x1p-14, 0.02, 0.37, 0.5, 1, 1.5, 2.5, 7.5, 15.5, 31.5, 127, 65504, 65520, 1e10, 1e19, 2e19, 1e30, 1e38,
	math.MaxFloat32 / 2, math.MaxFloat32,
}

// pieces fill 16 elements; scale is the size of the block's values.
var pieces = []struct {
	name string
	fill func(r *rand.Rand, x []float32, scale float32)
}{
	{"normal", func(r *rand.Rand, x []float32, scale float32) {
		for i := range x {
			x[i] = float32(r.NormFloat64()) * scale
		}
	}},
	{"zero", func(_ *rand.Rand, x []float32, _ float32) { clear(x) }},
	{"signed zero", func(r *rand.Rand, x []float32, _ float32) {
		for i := range x {
			x[i] = float32(math.Copysign(0, r.Float64()-0.5))
		}
	}},
	{"one-hot", func(r *rand.Rand, x []float32, scale float32) {
		clear(x)
		x[r.IntN(len(x))] = float32(r.NormFloat64()) * scale
	}},
	{"equal", func(r *rand.Rand, x []float32, scale float32) {
		v := float32(r.NormFloat64()) * scale
		for i := range x {
			x[i] = v
		}
	}},
	{"plus or minus", func(r *rand.Rand, x []float32, scale float32) {
		for i := range x {
			x[i] = scale - 2*scale*float32(r.IntN(2))
		}
	}},
	{"grid", func(r *rand.Rand, x []float32, scale float32) {
		for i := range x {
			x[i] = float32(r.IntN(33)-16) * 0.5 * scale
		}
	}},
	{"negative", func(r *rand.Rand, x []float32, scale float32) {
		for i := range x {
			x[i] = -scale * float32(1+0.01*r.Float64())
		}
	}},
	{"positive", func(r *rand.Rand, x []float32, scale float32) {
		for i := range x {
			x[i] = scale * float32(r.Float64())
		}
	}},
	{"near one value", func(r *rand.Rand, x []float32, scale float32) {
		for i := range x {
			x[i] = math.Nextafter32(-scale, float32(r.IntN(3)-1)*math.MaxFloat32)
		}
	}},
	{"edges", func(r *rand.Rand, x []float32, _ float32) {
		for i := range x {
			x[i] = edgeValues[r.IntN(len(edgeValues))] * float32(1-2*r.IntN(2))
		}
	}},
	{"one edge", func(r *rand.Rand, x []float32, _ float32) {
		e := edgeValues[r.IntN(len(edgeValues))]
		for i := range x {
			x[i] = e * float32(r.IntN(3)-1)
		}
	}},
	{"outlier", func(r *rand.Rand, x []float32, scale float32) {
		for i := range x {
			x[i] = float32(r.NormFloat64()) * scale * 0x1p-12
		}
		x[r.IntN(len(x))] = scale
	}},
}

// parityRow makes a row of n elements; kind is a piece for all of it, or -1 for
// mixed ones.
func parityRow(r *rand.Rand, n, kind int) []float32 {
	x := make([]float32, n)
	scale := float32(0.02)
	for i := 0; i < n; i += 16 {
		if i%256 == 0 {
			if scale = 0.02; r.IntN(4) == 0 {
				scale = edgeValues[r.IntN(len(edgeValues)-4)]
			}
		}
		k := kind
		if k < 0 {
			if k = r.IntN(2 * len(pieces)); k >= len(pieces) {
				k = 0
			}
		}
		pieces[k].fill(r, x[i:min(i+16, n)], scale)
	}
	return x
}

// parityImportance makes importance for n columns.
func parityImportance(r *rand.Rand, n int, kind string) []float32 {
	w := make([]float32, n)
	switch kind {
	case "none":
		return nil
	case "uniform":
		for i := range w {
			w[i] = float32(1 - r.Float64())
		}
	case "edges":
		for i := range w {
			w[i] = edgeValues[r.IntN(len(edgeValues))]
		}
	case "sparse":
		for i := range w {
			if r.IntN(8) == 0 {
				w[i] = float32(r.ExpFloat64())
			}
		}
		if n >= 64 {
			clear(w[n/2 : n/2+32])
		}
	}
	return w
}

// sameAsScalar compares an encoder with the scalar one of its type, on one row,
// and checks the bytes after dst.
func sameAsScalar(c *Codec, x, importance []float32) error {
	typ, n := c.Type(), int(c.Type().RowBytes(int64(len(x))))
	want := make([]byte, n)
	if err := scalarCodec(typ).Quantize(want, x, len(x), importance); err != nil {
		return err
	}
	for _, spoil := range spoilScratch {
		spoil()
	}
	const guard = 0x5A
	got := bytes.Repeat([]byte{guard}, n+64)
	if err := c.Quantize(got[:n], x, len(x), importance); err != nil {
		return err
	}
	if !bytes.Equal(got[:n], want) {
		return fmt.Errorf("%v %s, %d elements: %s", typ, c.Implementation(importance != nil), len(x),
			explainDiff(typ, got[:n], want))
	}
	if !bytes.Equal(got[n:], bytes.Repeat([]byte{guard}, 64)) {
		return fmt.Errorf("%v %s, %d elements: wrote outside dst", typ, c.Implementation(importance != nil), len(x))
	}
	return nil
}

// fasterCodecs lists the codecs of t of implementations that have an encoder for it.
func fasterCodecs(t gguf.Type) (list []codecSet) {
	for _, s := range codecSets[1:] {
		if c := s.lookup(t); s.name != scalarName && (c.plainName == s.name || c.weightedName == s.name) {
			list = append(list, s)
		}
	}
	return list
}

// variantsIn returns those of the importance variants for which s has an encoder of
// its own.
func (s codecSet) variantsIn(t gguf.Type, variants ...string) []string {
	c := s.lookup(t)
	return slices.DeleteFunc(variantsOf(c, variants...),
		func(v string) bool { return c.Implementation(v != "none") != s.name })
}

func TestParity(t *testing.T) {
	compared, rounds := 0, 3
	if cpu.Here().Emulated {
		rounds = 1 // it takes ten times as long
	}
	for _, typ := range codecTypes() {
		for _, s := range fasterCodecs(typ) {
			c := s.lookup(typ)
			t.Run(typ.String()+"/"+s.name, func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, uint64(typ)))
				block := int(typ.BlockLen())
				blocks := []int{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17}
				if block < pack.QK_K {
					blocks = append(blocks, 31, 32, 33, 40, 48)
				}
				for _, n := range blocks {
					for _, variant := range s.variantsIn(typ, "none", "uniform", "edges", "sparse") {
						for range rounds {
							if err := sameAsScalar(c, parityRow(r, n*block, -1),
								parityImportance(r, n*block, variant)); err != nil {
								t.Errorf("mixed, importance %s: %v", variant, err)
							}
							compared++
						}
					}
				}
				for kind, p := range pieces {
					for _, variant := range s.variantsIn(typ, "none", "uniform", "edges", "sparse") {
						n := pack.QK_K * (1 + r.IntN(9))
						if err := sameAsScalar(c, parityRow(r, n, kind), parityImportance(r, n, variant)); err != nil {
							t.Errorf("%s, importance %s: %v", p.name, variant, err)
						}
						compared++
					}
				}
			})
		}
	}
	t.Logf("%d rows compared", compared)
}

// TestParityRows compares many rows at once, which encoders get in stretches, with what the scalar code
// makes of each by itself. The lengths are of stretches of 16, 128 and 2 rows and more.
func TestParityRows(t *testing.T) {
	compared := 0
	for _, typ := range codecTypes() {
		for _, shape := range []struct{ rows, rowLen int }{{17, 256}, {133, 32}, {3, 2048}} {
			if shape.rowLen%int(typ.BlockLen()) != 0 {
				continue
			}
			n := shape.rowLen
			r := rand.New(rand.NewPCG(4, uint64(typ)))
			x := parityRow(r, shape.rows*n, -1)
			for _, variant := range variantsOf(Lookup(typ), "none", "uniform") {
				w := parityImportance(r, n, variant)
				var want []byte
				for i := range shape.rows {
					want = append(want, quantized(t, scalarCodec(typ), x[i*n:][:n], n, w)...)
				}
				for _, s := range codecSets[1:] {
					if s.name == scalarName && HasVectors || s.lookup(typ).Implementation(w != nil) != s.name {
						continue // slow, or compared already
					}
					for _, spoil := range spoilScratch {
						spoil()
					}
					if got := quantized(t, s.lookup(typ), x, n, w); !bytes.Equal(got, want) {
						t.Errorf("%s %v, importance %s, %d rows of %d elements: %s", s.name, typ, variant, shape.rows,
							n, explainDiff(typ, got, want))
					}
					compared++
				}
			}
		}
	}
	t.Logf("%d matrices compared", compared)
	if compared == 0 {
		t.Error("nothing to compare")
	}
}

// TestWholeRow checks the field wholeRow of the types: whether with importance the scalar bytes of a block depend on
// what else is in its row, and that without it they do not.
func TestWholeRow(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, typ := range codecTypes() {
		c, block := scalarCodec(typ), int(typ.BlockLen())
		for _, variant := range variantsOf(c, "none", "uniform") {
			differ := false
			for range 8 {
				n := max(block, 32)
				x, w := parityRow(r, 2*n, 0), parityImportance(r, 2*n, variant)
				other := slices.Clone(x)
				for i := range other[n:] {
					other[n+i] *= 50
				}
				a, b := quantized(t, c, x, 2*n, w), quantized(t, c, other, 2*n, w)
				differ = differ || !bytes.Equal(a[:len(a)/2], b[:len(b)/2])
			}
			if want := c.row.wholeRow && variant != "none"; differ != want {
				t.Errorf("%v, importance %s: blocks depend on the whole row: %v, want %v", typ, variant, differ, want)
			}
		}
	}
}

// fuzzParity compares the encoders of some types with the scalar ones on a row of
// data's floats, repeated to blocks of 256, with importance taken from the end.
func fuzzParity(f *testing.F, types ...gguf.Type) {
	r := rand.New(rand.NewPCG(2, uint64(types[0])))
	for kind := range pieces {
		f.Add(floatBytes(parityRow(r, 512, kind)), uint8(kind))
	}
	f.Add(floatBytes(parityRow(r, 256, -1)), uint8(17))
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		words := len(data) / 4
		if words == 0 {
			return
		}
		n := 32 * (1 + int(size%80))
		x, w := make([]float32, n), make([]float32, n)
		for i := range x {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[i%words*4:]))
			if !(arith.Abs(x[i]) <= math.MaxFloat32) {
				x[i] = 0
			}
			w[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[(words-1-i%words)*4:]) & 0x3FFFFFFF)
		}
		for _, typ := range types {
			n := n / int(typ.BlockLen()) * int(typ.BlockLen())
			for _, s := range fasterCodecs(typ) {
				c := s.lookup(typ)
				for _, importance := range [][]float32{nil, w[:n]} {
					if n == 0 || importance == nil && c.NeedsImportance() {
						continue
					}
					if err := sameAsScalar(c, x[:n], importance); err != nil {
						t.Error(err)
					}
				}
			}
		}
	})
}

func FuzzParityScaleMin(f *testing.F) { fuzzParity(f, gguf.TypeQ2_K, gguf.TypeQ4_K, gguf.TypeQ5_K) }
func FuzzParitySym(f *testing.F) {
	fuzzParity(f, gguf.TypeQ3_K, gguf.TypeQ6_K, gguf.TypeQ4_0, gguf.TypeQ5_0)
}

func FuzzParityMin(f *testing.F) { fuzzParity(f, gguf.TypeQ4_1, gguf.TypeQ5_1) }

func FuzzParityIQ4(f *testing.F) { fuzzParity(f, gguf.TypeIQ4_NL, gguf.TypeIQ4_XS) }
