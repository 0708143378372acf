//go:build goexperiment.simd && go1.27

package quants

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"ggforge/gguf"
	"ggforge/internal/gen"
)

// avx2Types lists the types for which there is an encoder or decoder of AVX2.
func avx2Types(t testing.TB) (encoders, decoders []gguf.Type) {
	set := avx2Set(t)
	for _, typ := range decoderTypes() {
		if set.lookup(typ).plainName == set.name {
			encoders = append(encoders, typ)
		}
		if set.lookup(typ).decodeName == set.name {
			decoders = append(decoders, typ)
		}
	}
	return encoders, decoders
}

func avx2Set(t testing.TB) codecSet {
	for _, set := range codecSets {
		if set.name == "avx2" {
			return set
		}
	}
	t.Skip("UNTESTED: not run with vectors of 256 bits, or there is no AVX2")
	return codecSet{}
}

// edgeBlocks are the ways to fill a block in which kernels and scalar code could
// come apart; all are finite.
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

func TestEncodersAVX2(t *testing.T) {
	const guard = 0x5A
	encoders, _ := avx2Types(t)
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
				if !checkEncoder(t, typ, x, guard) {
					t.Fatalf("%v %s, %d blocks", typ, edge.name, blocks)
				}
			}
		}
	}
}

// checkEncoder compares the AVX2 with the scalar encoder, one row.
func checkEncoder(t testing.TB, typ gguf.Type, x []float32, guard byte) bool {
	size := int(typ.RowBytes(int64(len(x))))
	want, got := make([]byte, size), bytes.Repeat([]byte{guard}, size+64)
	if err := scalarCodec(typ).Quantize(want, x, len(x), nil); err != nil {
		t.Fatal(err)
	}
	if err := avx2Set(t).lookup(typ).Quantize(got[:size], x, len(x), nil); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got[:size], want) {
		t.Errorf("%v: %s", typ, explainDiff(typ, got[:size], want))
		return false
	}
	if !bytes.Equal(got[size:], bytes.Repeat([]byte{guard}, 64)) {
		t.Errorf("%v: wrote past dst", typ)
		return false
	}
	return true
}

func TestDecodersAVX2(t *testing.T) {
	_, decoders := avx2Types(t)
	for _, typ := range decoders {
		q := gen.Bytes("avx2/"+typ.String(), 600*int(typ.BlockBytes()))
		for blocks := 0; blocks < 70; blocks++ {
			if !checkDecoder(t, typ, q[:blocks*int(typ.BlockBytes())]) {
				break
			}
		}
		checkDecoder(t, typ, q)
	}
}

// checkDecoder compares the AVX2 with the scalar decoder; all NaN are equal,
// but in F32, F16 and BF16.
func checkDecoder(t testing.TB, typ gguf.Type, q []byte) bool {
	n := len(q) / int(typ.BlockBytes()) * int(typ.BlockLen())
	want, got := make([]float32, n), make([]float32, n+16)
	for i := range got {
		got[i] = 12345
	}
	if err := scalarCodec(typ).Dequantize(want, q); err != nil {
		t.Fatal(err)
	}
	if err := avx2Set(t).lookup(typ).Dequantize(got[:n], q); err != nil {
		t.Fatal(err)
	}
	for i, v := range want {
		if math.Float32bits(got[i]) != math.Float32bits(v) && (got[i] == got[i] || v == v || typ.BlockLen() == 1) {
			t.Errorf("%v: element %d of %d is %v (%#08x), want %v (%#08x)", typ, i, n, got[i], math.Float32bits(got[i]), v, math.Float32bits(v))
			return false
		}
	}
	for _, v := range got[n:] {
		if v != 12345 {
			t.Errorf("%v: wrote past dst", typ)
			return false
		}
	}
	return true
}

// Every half and every bfloat16, and floats all over their range, NaN too.
func TestConversionsAVX2(t *testing.T) {
	avx2Set(t)
	var q []byte
	for i := range 1 << 16 {
		q = binary.LittleEndian.AppendUint16(q, uint16(i))
	}
	for _, typ := range []gguf.Type{gguf.TypeF16, gguf.TypeBF16, gguf.TypeF32} {
		checkDecoder(t, typ, q)
	}
	x := make([]float32, 1<<16)
	u := uint32(0)
	for range 1 << 32 / 251 / len(x) {
		for i := range x {
			x[i] = math.Float32frombits(u)
			u += 251
		}
		for _, typ := range []gguf.Type{gguf.TypeF16, gguf.TypeBF16, gguf.TypeF32} {
			if !checkEncoder(t, typ, x, 0) {
				return
			}
		}
	}
	for h := range uint32(0x7C00) { // around the middle of two halves
		mid := uint32(0x7FFF+int32(h)) << 12
		copy(x[h%0x4000*4:], []float32{math.Float32frombits(mid - 1), math.Float32frombits(mid), math.Float32frombits(mid + 1), -math.Float32frombits(mid)})
		if h%0x4000 == 0x3FFF {
			checkEncoder(t, gguf.TypeF16, x, 0)
		}
	}
}

// FuzzAVX2 feeds arbitrary bits as elements, where they are finite, and as
// blocks.
func FuzzAVX2(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4}, uint8(1))
	f.Add(bytes.Repeat([]byte{0, 0, 0x80, 0x3F, 1, 0, 0, 0, 0xFF, 0xFF, 0x7F, 0xFF}, 30), uint8(3))
	encoders, decoders := avx2Types(f)
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
		for _, typ := range encoders {
			checkEncoder(t, typ, x, 0xA5)
		}
		for _, typ := range decoders {
			q := bytes.Repeat(data, int(typ.RowBytes(int64(n)))/len(data)+1)[:typ.RowBytes(int64(n))]
			checkDecoder(t, typ, q)
		}
	})
}
