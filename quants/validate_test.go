package quants

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"ggforge/gguf"
	"ggforge/quants/internal/scalar"
	"ggforge/test/gen"
)

// firstInvalidByField is Validate in the plain order: block by block, field by field.
func firstInvalidByField(c *Codec, src []byte) *FormatError {
	size := int(c.typ.BlockBytes())
	for off := 0; off < len(src); off += size {
		b := src[off : off+size]
		for _, f := range c.typ.Fields() {
			var bad bool
			switch f.Number {
			case gguf.NumF16:
				bad = binary.LittleEndian.Uint16(b[f.Off:])&0x7C00 == 0x7C00
			case gguf.NumBF16:
				bad = binary.LittleEndian.Uint16(b[f.Off:])&0x7F80 == 0x7F80
			case gguf.NumF32:
				bad = binary.LittleEndian.Uint32(b[f.Off:])&0x7F800000 == 0x7F800000
			case gguf.NumE8M0:
				bad = b[f.Off] == 255
			case gguf.NumIQ1_M:
				bad = scalar.ScaleIQ1_M(b)&0x7C00 == 0x7C00
			}
			if bad {
				return &FormatError{c.typ, off / size, int64(off + f.Off), f.Name, value(&f, b)}
			}
		}
	}
	return nil
}

// TestValidateFindsFirst checks lengths around words of 64 bytes, one bad value in every place of a few chunks, and
// random bytes, in which several fields of one block are bad.
func TestValidateFindsFirst(t *testing.T) {
	check := func(c *Codec, src []byte) {
		t.Helper()
		want := firstInvalidByField(c, src)
		err := c.Validate(src)
		var got *FormatError
		if want == nil && err == nil {
			return
		}
		if !errors.As(err, &got) || want == nil || *got != *want {
			t.Fatalf("%v, %d bytes: %v, want %v", c.typ, len(src), err, want)
		}
	}
	for _, typ := range decoderTypes() {
		c, size := Lookup(typ), int(typ.BlockBytes())
		random := gen.Bytes("validate/"+typ.String(), 4000*size)
		for i := range 200 {
			check(c, random[i*size:])
		}
		for n := range 80 {
			check(c, random[:n*size])
		}
		if typ != gguf.TypeF32 && typ != gguf.TypeF16 && typ != gguf.TypeBF16 {
			continue
		}
		const chunks = 3 // of vector kernels
		data := make([]byte, chunks*scalar.FiniteChunk+70*size)
		for i := range data {
			data[i] = 0x7B // finite in all three
		}
		for n := 0; n <= 70; n++ {
			check(c, data[:n*size])
		}
		for at := range len(data) / size {
			for _, v := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} {
				var b [4]byte
				if err := c.Quantize(b[:size], []float32{float32(v)}, 1, nil); err != nil {
					t.Fatal(err)
				}
				copy(data[at*size:], b[:size])
				for _, n := range []int{len(data) / size, 70, at + 1, at} {
					check(c, data[:n*size])
				}
			}
			for i := range size {
				data[at*size+i] = 0x7B
			}
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	x, n := gen.Input("normal/1x4096")
	for _, typ := range codecTypes() {
		b.Run(typ.String(), func(b *testing.B) {
			c := Lookup(typ)
			q := quantized(b, c, x, n, gen.Importance("uni", n))
			b.SetBytes(int64(len(q)))
			for b.Loop() {
				if err := c.Validate(q); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gw/s")
		})
	}
	for _, typ := range []gguf.Type{gguf.TypeF32, gguf.TypeBF16} {
		b.Run(fmt.Sprintf("%v/64MB", typ), func(b *testing.B) {
			data := make([]byte, 64<<20)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := Lookup(typ).Validate(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
