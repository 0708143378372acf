package precision

import (
	"encoding/binary"
	"math"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/gguf"
	"ggforge/internal/kernel/half"
	"ggforge/rows"
)

// TestToOdd rounds numbers next to the middle between two float16: by way of float32 they become what rounding once
// gives.
func TestToOdd(t *testing.T) {
	for _, c := range []struct {
		v    float64
		want uint16
	}{
		{1 + 0x1p-11, 0x3C00},              // the middle, to the even one
		{1 + 0x1p-11 + 0x1p-40, 0x3C01},    // a little more, which float32 does not have
		{1 + 0x1p-11 - 0x1p-40, 0x3C00},    // a little less
		{1 + 3*0x1p-11, 0x3C02},            // the middle again
		{1 + 3*0x1p-11 - 0x1p-40, 0x3C01},  // a little less
		{-1 - 0x1p-11 - 0x1p-40, 0xBC01},   // negative
		{-1 - 3*0x1p-11 + 0x1p-40, 0xBC01}, //
		{65520, 0x7C00},                    // the first that is infinite
		{65520 - 0x1p-30, 0x7BFF},
		{0x1p-25, 0}, {0x1p-25 + 0x1p-60, 1}, {1e-300, 0}, {0, 0}, {math.Inf(1), 0x7C00},
	} {
		if got := half.ToF16(toOdd(c.v)); got != c.want {
			t.Errorf("%v: %#x, want %#x", c.v, got, c.want)
		}
	}
}

// TestNumbers reads a plain weight of every type.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		d    safetensors.DType
		data []byte
		want float32
	}{
		{safetensors.BOOL, []byte{1}, 1},
		{safetensors.U8, []byte{200}, 200},
		{safetensors.I8, []byte{200}, -56},
		{safetensors.U16, []byte{0, 128}, 32768},
		{safetensors.I16, []byte{0, 128}, -32768},
		{safetensors.U32, []byte{255, 255, 0, 0}, 65535},
		{safetensors.I32, []byte{255, 255, 255, 255}, -1},
		{safetensors.U64, []byte{7, 0, 0, 0, 0, 0, 0, 0}, 7},
		{safetensors.I64, binary.LittleEndian.AppendUint64(nil, math.MaxUint64-8), -9},
		{safetensors.F64, binary.LittleEndian.AppendUint64(nil, math.Float64bits(0.5)), 0.5},
		{safetensors.F32, binary.LittleEndian.AppendUint32(nil, math.Float32bits(0.25)), 0.25},
		{safetensors.BF16, []byte{0x80, 0xBF}, -1},
		{safetensors.F16, []byte{0, 0x3C}, 1},
		{safetensors.F8_E4M3, []byte{0x38}, 1},
		{safetensors.F8_E5M2, []byte{0xBC}, -1},
	} {
		for _, shape := range [][]int64{{}, {1}, {1, 1, 1, 1, 1}} {
			w := Weight{Name: "w", Tensors: []*Tensor{{Name: "w", DType: c.d, Shape: shape, Mapped: c.data}}}
			src, err := w.Numbers(gguf.TypeF32)
			if err != nil {
				t.Fatal(err)
			}
			got, buf := make([]float32, 1), []byte(nil)
			if err := rows.Decode(src, got, &buf, 0, 1); err != nil {
				t.Fatal(err)
			}
			if got[0] != c.want {
				t.Errorf("%v of %v: %v, want %v", c.d, shape, got[0], c.want)
			}
		}
	}
	w := Weight{Tensors: []*Tensor{{DType: safetensors.C64, Shape: []int64{1}}}}
	if _, err := w.Numbers(gguf.TypeF32); err == nil {
		t.Error("complex numbers are converted")
	}
}
