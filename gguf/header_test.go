package gguf

import "testing"

// TestHeaderBytes compares the size of a header with the header itself, in both
// orders of bytes.
func TestHeaderBytes(t *testing.T) {
	m := Metadata{
		{"a.string", String("text")}, {"empty", String("")}, {"u8", Uint8(1)}, {"f64", Float64(1)}, {"bool", Bool(true)},
		{"strings", Strings([]string{"", "a", "bc"})}, {"numbers", Int32s([]int32{1, -2, 3})}, {"floats", Float32s([]float32{0.5})},
		{"flags", Bools([]bool{true, false})}, {"nested", Array(ArrayType, Strings([]string{"x"}), Int32s(nil))},
	}
	tensors := []Tensor{{Name: "one", NE: []int64{1, 2, 3}}, {Name: "", NE: nil}}
	for _, alignment := range []int64{1, 32, 4096} {
		for n := range len(m) + 1 {
			want := HeaderBytes(m[:n], tensors, alignment)
			if le, be := len(AppendHeader(nil, m[:n], tensors, alignment)), len(AppendHeaderBE(nil, m[:n], tensors, alignment)); int64(le) != want || int64(be) != want {
				t.Errorf("%d keys, alignment %d: %d and %d bytes, want %d", n, alignment, le, be, want)
			}
		}
	}
}
