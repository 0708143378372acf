package quants

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"ggforge/gguf"
	"ggforge/quants/internal/arith"
	"ggforge/test/gen"
)

func quantized(t testing.TB, c *Codec, x []float32, rowLen int, importance []float32) []byte {
	t.Helper()
	q := make([]byte, c.Type().RowBytes(int64(len(x))))
	if err := c.Quantize(q, x, rowLen, importance); err != nil {
		t.Fatal(err)
	}
	return q
}

func dequantized(t testing.TB, c *Codec, q []byte, n int) []float32 {
	t.Helper()
	y := make([]float32, n)
	if err := c.Dequantize(y, q); err != nil {
		t.Fatal(err)
	}
	return y
}

func TestF32(t *testing.T) {
	c := Lookup(gguf.TypeF32)
	x := []float32{0, float32(math.Copysign(0, -1)), 1, math.SmallestNonzeroFloat32, -math.MaxFloat32}
	q := quantized(t, c, x, len(x), nil)
	for i, v := range x {
		if got := binary.LittleEndian.Uint32(q[4*i:]); got != math.Float32bits(v) {
			t.Errorf("element %d stored as %#x, want %#x", i, got, math.Float32bits(v))
		}
	}
	for i, v := range dequantized(t, c, q, len(x)) {
		if math.Float32bits(v) != math.Float32bits(x[i]) {
			t.Errorf("element %d came back as %v, want %v", i, v, x[i])
		}
	}
}

func TestLookup(t *testing.T) {
	for id := range gguf.Type(100) {
		c := Lookup(id)
		if c == nil || c.Type() != id {
			t.Fatalf("Lookup(%d) = %v", id, c)
		}
		if c.CanQuantize() && !c.CanDequantize() {
			t.Errorf("%v: encoder without decoder", id)
		}
		if c.CanDequantize() {
			continue
		}
		for name, err := range map[string]error{
			"Quantize": c.Quantize(nil, nil, 1, nil), "Dequantize": c.Dequantize(nil, nil), "Validate": c.Validate(nil),
		} {
			if !errors.Is(err, ErrUnsupported) {
				t.Errorf("%s of %v: error %v, want ErrUnsupported", name, id, err)
			}
		}
	}
	for _, typ := range []gguf.Type{gguf.TypeQ8_1, gguf.TypeQ8_K} {
		if err := Lookup(typ).Quantize(nil, nil, 256, nil); !errors.Is(err, ErrUnsupported) {
			t.Errorf("Quantize to %v: error %v, want ErrUnsupported", typ, err)
		}
	}
	var needs []gguf.Type
	for _, typ := range codecTypes() {
		if c := Lookup(typ); c.NeedsImportance() {
			needs = append(needs, typ)
			if err := c.Quantize(nil, nil, 256, nil); !errors.Is(err, ErrNeedsImportance) {
				t.Errorf("Quantize to %v: error %v, want ErrNeedsImportance", typ, err)
			}
		}
	}
	if want := []gguf.Type{gguf.TypeIQ2_XXS, gguf.TypeIQ2_XS, gguf.TypeIQ1_S}; !slices.Equal(needs, want) {
		t.Errorf("types that need importance: %v, want %v", needs, want)
	}
}

func TestWrongLengthsPanic(t *testing.T) {
	c := Lookup(gguf.TypeQ4_K)
	x := make([]float32, 512)
	for name, f := range map[string]func(){
		"row length 0":      func() { c.Quantize(nil, nil, 0, nil) },
		"partial block":     func() { c.Quantize(make([]byte, 72), x[:128], 128, nil) },
		"partial row":       func() { c.Quantize(make([]byte, 144), x[:256], 512, nil) },
		"short importance":  func() { c.Quantize(make([]byte, 288), x, 512, x[:256]) },
		"empty importance":  func() { c.Quantize(make([]byte, 288), x, 512, []float32{}) },
		"short dst":         func() { c.Quantize(make([]byte, 287), x, 512, nil) },
		"long dst":          func() { c.Quantize(make([]byte, 289), x, 512, nil) },
		"partial block in":  func() { c.Dequantize(x, make([]byte, 287)) },
		"short float dst":   func() { c.Dequantize(x[:511], make([]byte, 288)) },
		"partial, validate": func() { c.Validate(make([]byte, 143)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestValidate(t *testing.T) {
	f16 := func(v uint16) []byte { return binary.LittleEndian.AppendUint16(nil, v) }
	f32 := func(v float64) []byte {
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v)))
	}
	for _, c := range []struct {
		typ   gguf.Type
		block int
		off   int // in the block
		put   []byte
		want  string
	}{
		{gguf.TypeF32, 1, 0, f32(math.NaN()), "F32 block 1 (byte offset 4): element is NaN, want a finite number"},
		{gguf.TypeF32, 2, 0, f32(math.Inf(-1)), "F32 block 2 (byte offset 8): element is -Inf, want a finite number"},
		{gguf.TypeF16, 2, 0, f16(0x7C00), "F16 block 2 (byte offset 4): element is +Inf, want a finite number"},
		{gguf.TypeBF16, 0, 0, f16(0xFF80), "BF16 block 0 (byte offset 0): element is -Inf, want a finite number"},
		{gguf.TypeQ4_1, 1, 2, f16(0x7E00), "Q4_1 block 1 (byte offset 22): m is NaN, want a finite number"},
		{gguf.TypeQ2_K, 2, 82, f16(0x7C00), "Q2_K block 2 (byte offset 250): dmin is +Inf, want a finite number"},
		{gguf.TypeQ3_K, 2, 108, f16(0xFC00), "Q3_K block 2 (byte offset 328): d is -Inf, want a finite number"},
		{gguf.TypeQ6_K, 0, 208, f16(0x7C01), "Q6_K block 0 (byte offset 208): d is NaN, want a finite number"},
		{gguf.TypeQ8_K, 1, 0, f32(math.Inf(1)), "Q8_K block 1 (byte offset 292): d is +Inf, want a finite number"},
		{gguf.TypeTQ1_0, 1, 52, f16(0x7C00), "TQ1_0 block 1 (byte offset 106): d is +Inf, want a finite number"},
		{gguf.TypeTQ2_0, 0, 64, f16(0x7C00), "TQ2_0 block 0 (byte offset 64): d is +Inf, want a finite number"},
		{gguf.TypeMXFP4, 2, 0, []byte{255}, "MXFP4 block 2 (byte offset 34): e is 0xff, want a finite number"},
		{gguf.TypeIQ1_M, 1, 48, []byte{0, 0, 0, 0, 0, 0xC0, 0, 0xF0},
			"IQ1_M block 1 (byte offset 104): d is -Inf, want a finite number"},
		{gguf.TypeIQ1_M, 0, 48, []byte{0, 0x10, 0, 0, 0, 0xC0, 0, 0x70},
			"IQ1_M block 0 (byte offset 48): d is NaN, want a finite number"},
	} {
		data := make([]byte, 3*c.typ.BlockBytes())
		if err := Lookup(c.typ).Validate(data); err != nil {
			t.Errorf("%v of zeros: %v", c.typ, err)
		}
		copy(data[c.block*int(c.typ.BlockBytes())+c.off:], c.put)
		err := Lookup(c.typ).Validate(data)
		if err == nil || err.Error() != c.want || !errors.Is(err, ErrBroken) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// A row gives the same blocks alone, in a matrix, and shifted in memory; the
// bytes after dst stay untouched and src is not written to.
func TestRowsAreIndependent(t *testing.T) {
	const guard = 0x5A
	x, n := gen.Input("heavy/3x256")
	saved := bytes.Clone(floatBytes(x))
	for _, set := range codecSets {
		for _, typ := range codecTypes() {
			c := set.lookup(typ)
			for _, variant := range variantsOf(c, "none", "uni") {
				w := gen.Importance(variant, n)
				q := quantized(t, c, x, n, w)
				size := len(q) / 3
				for r := range 3 {
					buf := bytes.Repeat([]byte{guard}, size+65)
					if err := c.Quantize(buf[1:1+size], x[r*n:][:n], n, w); err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(buf[1:1+size], q[r*size:][:size]) {
						t.Errorf("%s %v %s: row %d alone: %s", set.name, typ, variant, r,
							explainDiff(typ, buf[1:1+size], q[r*size:][:size]))
					}
					if buf[0] != guard || !bytes.Equal(buf[1+size:], bytes.Repeat([]byte{guard}, 64)) {
						t.Errorf("%s %v %s: wrote outside dst", set.name, typ, variant)
					}
				}
				y := make([]float32, len(x)+8)
				for i := range y {
					y[i] = guard
				}
				if err := c.Dequantize(y[:len(x)], q); err != nil {
					t.Fatal(err)
				}
				for _, v := range y[len(x):] {
					if v != guard {
						t.Errorf("%s %v: Dequantize wrote outside dst", set.name, typ)
					}
				}
			}
		}
	}
	if !bytes.Equal(saved, floatBytes(x)) {
		t.Error("src was changed")
	}
}

func floatBytes(x []float32) (b []byte) {
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// maxRelErr bounds rmse/rms per type for the input normal/1x4096: without
// importance, and with importance "uni" (the error is not weighted, so it may
// be larger). Measured values of the reference's own blocks are in the comments.
var maxRelErr = map[gguf.Type][2]float64{
	gguf.TypeF32:  {0, 0},             // 0.000e+00, 0.000e+00
	gguf.TypeF16:  {2.2e-04, 2.2e-04}, // 2.039e-04, 2.039e-04
	gguf.TypeQ4_0: {9.0e-02, 8.5e-02}, // 8.495e-02, 8.089e-02
	gguf.TypeQ4_1: {8.2e-02, 7.4e-02}, // 7.721e-02, 6.962e-02
	gguf.TypeQ5_0: {4.4e-02, 4.2e-02}, // 4.166e-02, 3.987e-02
	gguf.TypeQ5_1: {3.9e-02, 3.6e-02}, // 3.714e-02, 3.401e-02
	gguf.TypeQ8_0: {5.5e-03, 5.5e-03}, // 5.147e-03, 5.147e-03
	gguf.TypeQ2_K: {3.1e-01, 2.9e-01}, // 2.921e-01, 2.720e-01
	gguf.TypeQ3_K: {1.6e-01, 1.6e-01}, // 1.505e-01, 1.466e-01
	gguf.TypeQ4_K: {7.3e-02, 7.5e-02}, // 6.945e-02, 7.053e-02
	gguf.TypeQ5_K: {3.8e-02, 3.8e-02}, // 3.531e-02, 3.545e-02
	gguf.TypeQ6_K: {1.9e-02, 1.9e-02}, // 1.736e-02, 1.742e-02
	gguf.TypeBF16: {1.8e-03, 1.8e-03}, // 1.707e-03, 1.707e-03

	gguf.TypeIQ1_S:   {0, 5.4e-01},       // needs importance, 5.141e-01
	gguf.TypeIQ1_M:   {6.0e-01, 5.2e-01}, // 5.700e-01, 4.859e-01
	gguf.TypeIQ2_XXS: {0, 3.9e-01},       // needs importance, 3.710e-01
	gguf.TypeIQ2_XS:  {0, 3.4e-01},       // needs importance, 3.244e-01
	gguf.TypeIQ2_S:   {2.8e-01, 2.8e-01}, // 2.624e-01, 2.623e-01
	gguf.TypeIQ3_XXS: {2.3e-01, 2.1e-01}, // 2.137e-01, 2.015e-01
	gguf.TypeIQ3_S:   {1.7e-01, 1.5e-01}, // 1.618e-01, 1.433e-01
	gguf.TypeIQ4_NL:  {8.1e-02, 8.1e-02}, // 7.621e-02, 7.635e-02
	gguf.TypeIQ4_XS:  {8.1e-02, 8.1e-02}, // 7.668e-02, 7.656e-02
	gguf.TypeQ1_0:    {6.3e-01, 6.3e-01}, // 5.920e-01, 5.920e-01
	gguf.TypeQ2_0:    {7.6e-01, 7.6e-01}, // 7.150e-01, 7.150e-01
	gguf.TypeTQ1_0:   {8.4e-01, 8.4e-01}, // 7.883e-01, 7.883e-01
	gguf.TypeTQ2_0:   {8.4e-01, 8.4e-01}, // 7.883e-01, 7.883e-01
	gguf.TypeMXFP4:   {1.2e-01, 1.2e-01}, // 1.130e-01, 1.130e-01
	gguf.TypeNVFP4:   {1.1e-01, 1.1e-01}, // 1.038e-01, 1.038e-01
}

func TestErrorBounds(t *testing.T) {
	x, n := gen.Input("normal/1x4096")
	for _, typ := range codecTypes() {
		bound, ok := maxRelErr[typ]
		if !ok {
			t.Errorf("%v: no error bound", typ)
			continue
		}
		c := Lookup(typ)
		for i, variant := range []string{"none", "uni"} {
			if variant == "none" && c.NeedsImportance() {
				continue
			}
			y := dequantized(t, c, quantized(t, c, x, n, gen.Importance(variant, n)), len(x))
			rel := rmse(x, y) / rmse(x, make([]float32, len(x)))
			t.Logf("%v %s: %.3e", typ, variant, rel)
			if !(rel <= bound[i]) {
				t.Errorf("%v %s: relative error %.3e, want at most %.3e", typ, variant, rel, bound[i])
			}
		}
	}
}

// rmse returns the root of the mean squared difference.
func rmse(x, y []float32) float64 {
	var e float64
	for i, v := range x {
		d := float64(v) - float64(y[i])
		e += float64(d * d)
	}
	return math.Sqrt(e / float64(len(x)))
}

// Finite input of the magnitude of weights comes back finite.
func TestFiniteStaysFinite(t *testing.T) {
	for _, name := range gen.Dists() {
		if name == "beyond" || name == "huge" || name == "ratio" {
			continue // beyond the range of float16
		}
		x, n := gen.Input(name + "/2x512")
		for _, typ := range codecTypes() {
			c := Lookup(typ)
			for _, variant := range variantsOf(c, "none", "uni", "zer", "skew", "allz") {
				q := quantized(t, c, x, n, gen.Importance(variant, n))
				for i, v := range dequantized(t, c, q, len(x)) {
					if arith.Abs(v) > math.MaxFloat32 || v != v {
						t.Fatalf("%v %s %s: element %d is %v", typ, name, variant, i, v)
					}
				}
			}
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	x, n := gen.Input("normal/3x256")
	w := gen.Importance("uni", n)
	for _, typ := range codecTypes() {
		c := Lookup(typ)
		want := quantized(t, c, x, n, w)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				got := make([]byte, len(want))
				y := make([]float32, len(x))
				if err := c.Quantize(got, x, n, w); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%v: other bytes when run at the same time (error %v)", typ, err)
				}
				if err := c.Dequantize(y, got); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

func TestNoAllocation(t *testing.T) {
	x, n := gen.Input("normal/2x512")
	w := gen.Importance("uni", n)
	y := make([]float32, len(x))
	for _, typ := range codecTypes() {
		c := Lookup(typ)
		q := make([]byte, typ.RowBytes(int64(len(x))))
		if a := testing.AllocsPerRun(2, func() {
			if !c.NeedsImportance() {
				c.Quantize(q, x, n, nil)
			}
			c.Quantize(q, x, n, w)
			c.Dequantize(y, q)
			c.Validate(q)
		}); a != 0 {
			t.Errorf("%v: %v allocations per run", typ, a)
		}
	}
}

// FuzzQuantize feeds arbitrary float32 bits, NaN and infinity included: no
// panic, the same bytes every time and from every implementation for finite
// input, every byte of dst written, and any bytes can be decoded.
func FuzzQuantize(f *testing.F) {
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0, 0, 0xC0, 0x7F}, 16))
	f.Add(bytes.Repeat([]byte{0, 0, 0x80, 0x7F, 0, 0, 0x80, 0xFF, 1, 0, 0, 0, 0, 0, 0, 0x80}, 20))
	f.Add(bytes.Repeat([]byte{0xFF, 0xFF, 0x7F, 0x7F, 0xFF, 0xFF, 0x7F, 0xFF}, 40))
	for _, name := range []string{"normal/1x256", "tinyf/1x256", "beyond/1x256"} {
		x, _ := gen.Input(name)
		f.Add(floatBytes(x))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const n = 256
		// The data is repeated to fill the row and, read from its end, the
		// importance.
		x, w := make([]float32, n), make([]float32, n)
		finite := true
		for i := range x {
			if len(data) >= 4 {
				words := len(data) / 4
				x[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[i%words*4:]))
				w[i] = arith.Abs(x[i]) * math.Float32frombits(
					binary.LittleEndian.Uint32(data[(words-1-i%words)*4:])&0x3FFFFFFF)
			}
			finite = finite && arith.Abs(x[i]) <= math.MaxFloat32 && w[i] <= math.MaxFloat32
		}
		for _, typ := range codecTypes() {
			size := int(typ.RowBytes(n))
			y := make([]float32, n)
			for _, importance := range [][]float32{nil, w} {
				if importance == nil && Lookup(typ).NeedsImportance() {
					continue
				}
				var want []byte
				for i, set := range codecSets {
					c := set.lookup(typ)
					if i > 0 && c.Implementation(importance != nil) != set.name {
						continue // the scalar code, which is the last
					}
					for _, fill := range []byte{0, 0xFF} {
						q := bytes.Repeat([]byte{fill}, size)
						if err := c.Quantize(q, x, n, importance); err != nil {
							t.Fatal(err)
						}
						if i == 0 && fill == 0 {
							want = q
						} else if finite && !bytes.Equal(q, want) {
							t.Fatalf("%v %s, importance %v: %s", typ, set.name, importance != nil,
								explainDiff(typ, q, want))
						}
					}
				}
				c := Lookup(typ)
				if err := c.Dequantize(y, want); err != nil {
					t.Fatal(err)
				}
				if err := c.Validate(want); err != nil && !errors.Is(err, ErrBroken) {
					t.Fatal(err)
				}
			}
		}
		y := make([]float32, n)
		for _, typ := range decoderTypes() {
			raw := make([]byte, typ.RowBytes(n))
			for i := range raw {
				if len(data) > 0 {
					raw[i] = data[i%len(data)]
				}
			}
			if err := Lookup(typ).Dequantize(y, raw); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Speed and quality together: MB/s of float32 input, bits per weight, and the
// error of the encoded blocks.
func BenchmarkQuantize(b *testing.B) {
	x, n := gen.Input("normal/1x4096")
	for _, typ := range codecTypes() {
		for _, variant := range variantsOf(Lookup(typ), "none", "uni") {
			name := typ.String()
			if variant != "none" {
				name += "/imatrix"
			}
			w := gen.Importance(variant, n)
			seen := map[string]bool{}
			for _, set := range codecSets {
				c := set.lookup(typ)
				impl := c.Implementation(w != nil)
				if seen[impl] {
					continue
				}
				seen[impl] = true
				b.Run(fmt.Sprintf("%s/%s", name, impl), func(b *testing.B) {
					q := make([]byte, typ.RowBytes(int64(len(x))))
					b.SetBytes(int64(4 * len(x)))
					for b.Loop() {
						if err := c.Quantize(q, x, n, w); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(typ.BPW(), "bpw")
					b.ReportMetric(rmse(x, dequantized(b, c, q, len(x))), "rmse")
				})
			}
		}
	}
}

// MB/s counts the float32 output.
func BenchmarkDequantize(b *testing.B) {
	x, n := gen.Input("normal/1x4096")
	for _, typ := range codecTypes() {
		seen := map[string]bool{}
		for _, set := range codecSets {
			c := set.lookup(typ)
			name := c.decodeName
			if seen[name] {
				continue
			}
			seen[name] = true
			b.Run(typ.String()+"/"+name, func(b *testing.B) {
				q := quantized(b, c, x, n, gen.Importance("uni", n))
				y := make([]float32, len(x))
				b.SetBytes(int64(4 * len(x)))
				for b.Loop() {
					if err := c.Dequantize(y, q); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(typ.BPW(), "bpw")
				b.ReportMetric(rmse(x, y), "rmse")
			})
		}
	}
}
