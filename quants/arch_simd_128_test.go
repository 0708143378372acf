//go:build goexperiment.simd && go1.27 && (amd64 || arm64)

package quants

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/quants/internal/scalar"
	"ggforge/test/gen"
)

// archSets are the codecs of the implementations that are written for this architecture.
func archSets(t testing.TB) (sets []codecSet) {
	for _, impl := range archImplementations() {
		for _, set := range codecSets {
			if set.name == impl.name {
				sets = append(sets, set)
			}
		}
	}
	if sets == nil {
		t.Skip("UNTESTED: not run with vectors of 128 bits or more")
	}
	return sets
}

// types lists the types for which a set has an encoder or decoder of its own.
func (s codecSet) types() (encoders, decoders []gguf.Type) {
	for _, typ := range decoderTypes() {
		if s.lookup(typ).plainName == s.name {
			encoders = append(encoders, typ)
		}
		if s.lookup(typ).decodeName == s.name {
			decoders = append(decoders, typ)
		}
	}
	return encoders, decoders
}

// edgeBlocks are the ways to fill a block in which kernels and scalar code could
// differ; all are finite.
var edgeBlocks = []struct {
	name string
	fill func(r *rand.Rand, x []float32)
}{
	{"normal", func(r *rand.Rand, x []float32) {
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
	}},
	{"zero", func(r *rand.Rand, x []float32) { clear(x) }},
	{"negative zero", func(r *rand.Rand, x []float32) {
		for i := range x {
			x[i] = math.Float32frombits(r.Uint32() & (1 << 31))
		}
	}},
	{"one-hot", func(r *rand.Rand, x []float32) {
		clear(x)
		x[r.IntN(len(x))] = float32(r.NormFloat64())
	}},
	{"equal", func(r *rand.Rand, x []float32) {
		v := float32(r.NormFloat64())
		for i := range x {
			x[i] = v
		}
	}},
	{"one magnitude, both signs", func(r *rand.Rand, x []float32) {
		v := math.Float32bits(float32(r.NormFloat64()))
		for i := range x {
			x[i] = math.Float32frombits(v ^ r.Uint32()&(1<<31))
		}
	}},
	{"halves", func(r *rand.Rand, x []float32) {
		for i := range x {
			x[i] = float32(r.IntN(65)-32) / 2
		}
	}},
	{"255 halves", func(r *rand.Rand, x []float32) {
		for i := range x {
			x[i] = float32(r.IntN(255)-127) / 2
		}
		x[r.IntN(len(x))] = 127
	}},
	{"near ties", func(r *rand.Rand, x []float32) {
		for i := range x {
			x[i] = math.Float32frombits(math.Float32bits(float32(r.IntN(33)-16)/2) + uint32(r.IntN(3)) - 1)
			if x[i] != x[i] {
				x[i] = 0
			}
		}
		x[r.IntN(len(x))] = 8
	}},
	{"subnormal", func(r *rand.Rand, x []float32) {
		for i := range x {
			x[i] = math.Float32frombits(r.Uint32() & 0x807FFFFF >> r.IntN(20))
		}
	}},
	{"barely normal", func(r *rand.Rand, x []float32) {
		for i := range x {
			x[i] = math.Float32frombits(r.Uint32() & 0x83FFFFFF)
		}
	}},
	{"tiny scale", func(r *rand.Rand, x []float32) {
		// Around the magnitudes whose inverse overflows.
		for i := range x {
			x[i] = float32(r.NormFloat64()) * 0x1p-126 * float32(r.IntN(300))
		}
	}},
	{"huge", func(r *rand.Rand, x []float32) {
		for i := range x {
			x[i] = math.Float32frombits(r.Uint32()&0x81FFFFFF | 0x7D000000)
		}
	}},
	{"any bits", func(r *rand.Rand, x []float32) {
		for i := range x {
			if x[i] = math.Float32frombits(r.Uint32()); x[i]-x[i] != 0 {
				x[i] = math.MaxFloat32
			}
		}
	}},
	{"powers of two", func(r *rand.Rand, x []float32) {
		e := r.IntN(250)
		for i := range x {
			x[i] = math.Float32frombits(uint32(e+r.IntN(4))<<23 + uint32(r.IntN(129)) - 64 ^ r.Uint32()&(1<<31))
			if x[i] != x[i] {
				x[i] = 0
			}
		}
	}},
}

func TestEncodersArch(t *testing.T) {
	for _, set := range archSets(t) {
		testEncoders(t, set)
	}
}

func testEncoders(t *testing.T, set codecSet) {
	const guard = 0x5A
	encoders, _ := set.types()
	r := rand.New(rand.NewPCG(1, 2))
	for _, typ := range encoders {
		n := int(typ.BlockLen())
		steps := max(1, 8/n)
		for _, edge := range edgeBlocks {
			for blocks := 1; blocks <= 40; blocks++ {
				x := make([]float32, blocks*n*steps)
				for off := 0; off < len(x); off += n * steps {
					f := edge.fill
					if blocks%3 == 0 { // mixed with others
						f = edgeBlocks[r.IntN(len(edgeBlocks))].fill
					}
					f(r, x[off:][:n*steps])
				}
				if !checkEncoder(t, set, typ, x, guard) {
					t.Fatalf("%s: %v %s, %d blocks", set.name, typ, edge.name, blocks)
				}
			}
		}
	}
}

// checkEncoder compares an encoder with the scalar one, one row.
func checkEncoder(t testing.TB, set codecSet, typ gguf.Type, x []float32, guard byte) bool {
	size := int(typ.RowBytes(int64(len(x))))
	want, got := make([]byte, size), bytes.Repeat([]byte{guard}, size+64)
	if err := scalarCodec(typ).Quantize(want, x, len(x), nil); err != nil {
		t.Fatal(err)
	}
	if err := set.lookup(typ).Quantize(got[:size], x, len(x), nil); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got[:size], want) {
		t.Errorf("%s %v: %s", set.name, typ, explainDiff(typ, got[:size], want))
		return false
	}
	if !bytes.Equal(got[size:], bytes.Repeat([]byte{guard}, 64)) {
		t.Errorf("%s %v: wrote past dst", set.name, typ)
		return false
	}
	return true
}

func TestDecodersArch(t *testing.T) {
	for _, set := range archSets(t) {
		_, decoders := set.types()
		for _, typ := range decoders {
			q := gen.Bytes("arch/"+typ.String(), 600*int(typ.BlockBytes()))
			for blocks := 0; blocks < 70; blocks++ {
				if !checkDecoder(t, set, typ, q[:blocks*int(typ.BlockBytes())]) {
					break
				}
			}
			checkDecoder(t, set, typ, q)
		}
	}
}

// checkDecoder compares a decoder with the scalar one; all NaN are equal,
// except in F32, F16 and BF16.
func checkDecoder(t testing.TB, set codecSet, typ gguf.Type, q []byte) bool {
	n := len(q) / int(typ.BlockBytes()) * int(typ.BlockLen())
	want, got := make([]float32, n), make([]float32, n+16)
	for i := range got {
		got[i] = 12345
	}
	if err := scalarCodec(typ).Dequantize(want, q); err != nil {
		t.Fatal(err)
	}
	if err := set.lookup(typ).Dequantize(got[:n], q); err != nil {
		t.Fatal(err)
	}
	for i, v := range want {
		if math.Float32bits(got[i]) != math.Float32bits(v) && (got[i] == got[i] || v == v || typ.BlockLen() == 1) {
			t.Errorf("%s %v: element %d of %d is %v (%#08x), want %v (%#08x)", set.name, typ, i, n, got[i],
				math.Float32bits(got[i]), v, math.Float32bits(v))
			return false
		}
	}
	for _, v := range got[n:] {
		if v != 12345 {
			t.Errorf("%s %v: wrote past dst", set.name, typ)
			return false
		}
	}
	return true
}

// Every half and every bfloat16, and floats all over their range, NaN too.
func TestConversionsArch(t *testing.T) {
	for _, set := range archSets(t) {
		testConversions(t, set)
	}
}

func testConversions(t *testing.T, set codecSet) {
	var q []byte
	for i := range 1 << 16 {
		q = binary.LittleEndian.AppendUint16(q, uint16(i))
	}
	for _, typ := range []gguf.Type{gguf.TypeF16, gguf.TypeBF16, gguf.TypeF32} {
		checkDecoder(t, set, typ, q)
	}
	x := make([]float32, 1<<16)
	u := uint32(0)
	for range 1 << 32 / 251 / len(x) {
		for i := range x {
			x[i] = math.Float32frombits(u)
			u += 251
		}
		for _, typ := range []gguf.Type{gguf.TypeF16, gguf.TypeBF16, gguf.TypeF32} {
			if !checkEncoder(t, set, typ, x, 0) {
				return
			}
		}
	}
	for h := range uint32(0x7C00) { // around the middle of two halves
		mid := uint32(0x7FFF+int32(h)) << 12
		copy(x[h%0x4000*4:], []float32{math.Float32frombits(mid - 1), math.Float32frombits(mid),
			math.Float32frombits(mid + 1), -math.Float32frombits(mid)})
		if h%0x4000 == 0x3FFF {
			checkEncoder(t, set, gguf.TypeF16, x, 0)
		}
	}
}

// An element that is not finite is found, whatever is around it and wherever it is.
func TestFiniteArch(t *testing.T) {
	archSets(t)
	r := rand.New(rand.NewPCG(4, 5))
	for _, impl := range archImplementations() {
		if impl.finite == nil || !impl.runs(cpu.Here()) {
			continue
		}
		for _, c := range []struct {
			exp, step uint64 // as firstInvalid gives them
			size      int
		}{{0x7C007C007C007C00, 0x0400040004000400, 2}, {0x7F807F807F807F80, 0x0080008000800080, 2},
			{0x7F8000007F800000, 0x0080000000800000, 4}} {
			exp := uint32(c.exp & (1<<(8*c.size) - 1))
			src := make([]byte, 4*scalar.FiniteChunk)
			for range 200 {
				for i := 0; i < len(src); i += c.size {
					u := r.Uint32()
					if u&exp == exp {
						u &^= uint32(c.step)
					}
					copy(src[i:i+c.size], binary.LittleEndian.AppendUint32(nil, u))
				}
				if n := impl.finite(src, c.exp, c.step); n != len(src) {
					t.Fatalf("%s: %d of %d finite bytes", impl.name, n, len(src))
				}
				at := r.IntN(len(src)/c.size) * c.size
				copy(src[at:at+c.size], binary.LittleEndian.AppendUint32(nil, r.Uint32()|exp))
				if n, want := impl.finite(src, c.exp, c.step), at&^(scalar.FiniteChunk-1); n != want {
					t.Fatalf("%s: %d bytes finite, want %d", impl.name, n, want)
				}
			}
		}
	}
}

// FuzzArch feeds arbitrary bits as elements, where they are finite, and as
// blocks.
func FuzzArch(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4}, uint8(1))
	f.Add(bytes.Repeat([]byte{0, 0, 0x80, 0x3F, 1, 0, 0, 0, 0xFF, 0xFF, 0x7F, 0xFF}, 30), uint8(3))
	sets := archSets(f)
	f.Fuzz(func(t *testing.T, data []byte, blocks uint8) {
		if len(data) < 4 {
			return
		}
		n := 256 * (1 + int(blocks)%12)
		x := make([]float32, n)
		for i := range x {
			if x[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[i%(len(data)/4)*4:])); x[i]-x[i] != 0 {
				x[i] = 1
			}
		}
		for _, set := range sets {
			encoders, decoders := set.types()
			for _, typ := range encoders {
				checkEncoder(t, set, typ, x, 0xA5)
			}
			for _, typ := range decoders {
				q := bytes.Repeat(data, int(typ.RowBytes(int64(n)))/len(data)+1)[:typ.RowBytes(int64(n))]
				checkDecoder(t, set, typ, q)
			}
		}
	})
}
