package precision

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/fault"
	"ggforge/rows"
)

func stored(name string, dtype safetensors.DType, shape ...int64) *Tensor {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	data := make([]byte, n*int64(dtype.Bits())/8)
	return &Tensor{Name: name, DType: dtype, Shape: shape, File: "x.safetensors", Mapped: data,
		Reader: bytes.NewReader(data)}
}

// TestMXFP4 checks the order of the codes: element i of a block is made of the
// code i and the scale of the block.
func TestMXFP4(t *testing.T) {
	const blocks, height = 2, 3
	codes, scales := stored("x_blocks", safetensors.U8, height, blocks, 16),
		stored("x_scales", safetensors.U8, height, blocks)
	for i := range codes.Mapped {
		codes.Mapped[i] = byte(i*37 + i/16)
	}
	for i := range scales.Mapped {
		scales.Mapped[i] = byte(120 + i)
	}
	for _, mapped := range []bool{true, false} {
		c, s := *codes, *scales
		if !mapped {
			c.Mapped, s.Mapped = nil, nil
		}
		src, err := mxfp4([]*Tensor{&c, &s}, nil)
		if err != nil {
			t.Fatal(err)
		}
		values := []float32{0, 0.5, 1, 1.5, 2, 3, 4, 6} // of the lower three bits; the fourth is the sign
		got := make([]float32, 64*height)
		for row := range int64(height) {
			if err := rows.Decode(src, got[64*row:64*row+64], new([]byte), row, row+1); err != nil {
				t.Fatal(err)
			}
		}
		for i, g := range got {
			code := codes.Mapped[i/2] >> (4 * (i % 2)) & 15
			want := values[code&7] * float32(math.Ldexp(1, int(scales.Mapped[i/32])-127))
			if code > 7 {
				want = -want
			}
			if g != want {
				t.Fatalf("mapped %v: element %d: %v, want %v", mapped, i, g, want)
			}
		}
	}
	for _, shapes := range [][2][]int64{{{3, 2, 16}, {2, 2}}, {{3, 2, 8}, {3, 2}}, {{16}, {}}, {{3, 0, 16}, {3, 0}}} {
		if _, err := mxfp4([]*Tensor{stored("x_blocks", safetensors.U8, shapes[0]...),
			stored("x_scales", safetensors.U8, shapes[1]...)}, nil); err == nil {
			t.Errorf("codes %v, scales %v: no error", shapes[0], shapes[1])
		}
	}
}

// TestSchemes finds the weights of each quantization scheme.
func TestSchemes(t *testing.T) {
	const (
		u8, i32, f8 = safetensors.U8, safetensors.I32, safetensors.F8_E4M3
		f16, f32    = safetensors.F16, safetensors.F32
	)
	for _, c := range []struct {
		tensors string // NAME DTYPE
		want    string // NAME SCHEME
	}{
		{"a.weight F16, a.bias F32", "a.weight , a.bias "},
		{"e_blocks U8, e_bias F32, e_scales U8", "e_bias , e_blocks mxfp4"},
		{"e_scales U8, e_blocks U8", "e_blocks mxfp4"},
		{"e_blocks F32, e_scales F32", "e_blocks , e_scales "},
		{"a.qweight I32, a.qzeros I32, a.scales F16, a.g_idx I32", "a.weight gptq"},
		{"a.qweight I32, a.qzeros I32, a.scales F16", "a.weight gptq"},
		{"a.weight F8_E4M3, a.weight_scale_inv F32, b.weight BF16", "a.weight fp8, b.weight "},
		{"a.weight U8, a.weight_scale BF16", "a.weight bitnet"},
		{"a.weight BF16, a.weight_scale BF16", "a.weight , a.weight_scale "},
		{"a.weight U8, a.weight_scale F8_E4M3, a.weight_scale_2 F32", "a.weight nvfp4"},
		{"a.weight F8_E4M3, a.weight_scale F32, a.input_scale F32", "a.weight fp8"},
		{"a.weight_packed I32, a.weight_scale F16, a.weight_shape I64", "a.weight compressed-tensors"},
		{"a.weight U8, a.weight.absmax U8, a.weight.quant_map F32", "a.weight bitsandbytes"},
		{"a.weight I8, a.SCB F32", "a.weight bitsandbytes"},
		{"a.W_q U8, a.scale F16, a.zero F16", "a.weight hqq"},
		{"a.qweight I16, a.scales F16, a.scaled_zeros F16", "a.weight awq"},
		{"a.B I32, a.s F16, a.workspace I32", "a.weight marlin"},
		{"a.compressed F16, a.bitmask U8, a.shape I64", "a.weight compressed-tensors"},
		{"blocks U8", "blocks "},
		{"xqweight I32, xqzeros I32", "xqweight , xqzeros "},
	} {
		var tensors []*Tensor
		for _, s := range strings.Split(c.tensors, ", ") {
			name, dtype, _ := strings.Cut(s, " ")
			for d := safetensors.BOOL; d <= safetensors.U64; d++ {
				if d.String() == dtype {
					tensors = append(tensors, stored(name, d, 2, 2))
				}
			}
		}
		weights, _, err := Weights(tensors, settings{})
		if err != nil {
			t.Errorf("%s: %v", c.tensors, err)
			continue
		}
		var got []string
		for _, w := range weights {
			got = append(got, w.Name+" "+w.Scheme())
			if w.Decoded() {
				continue
			}
			if _, err := w.Source(); !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), w.Scheme()) {
				t.Errorf("%s: %v, want an error that names %s", c.tensors, err, w.Scheme())
			}
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s: got %q, want %q", c.tensors, s, c.want)
		}
	}
	for _, list := range [][]*Tensor{
		{stored("a.weight", f16, 2), stored("a.qweight", i32, 2), stored("a.scales", f16, 2)},
		{stored("a.weight_packed", i32, 2), stored("a.weight_scale", f32, 2), stored("a.weight", f8, 2)},
	} {
		if _, _, err := Weights(list, settings{}); !errors.Is(err, fault.Broken) {
			t.Errorf("%s and %s: %v, want an error", list[0].Name, list[1].Name, err)
		}
	}
	if w, _, err := Weights([]*Tensor{stored("a", u8, 2)}, settings{}); err != nil {
		t.Error(err)
	} else if _, err := w[0].Source(); !errors.Is(err, fault.Unsupported) || !strings.Contains(fmt.Sprint(err), "U8") {
		t.Errorf("U8 alone: %v", err)
	}
}

// settings are made-up members of quantization_config.
type settings map[string]any

func member[T any](s settings, keys []string) (v T, ok bool, err error) {
	for _, key := range keys {
		if any, there := s[key]; there {
			if v, ok = any.(T); !ok {
				err = fault.Errorf(fault.Broken, "config.json: %s is %v", key, any)
			}
			return v, ok, err
		}
	}
	return v, false, nil
}

func (s settings) Int(keys ...string) (int64, bool, error)     { return member[int64](s, keys) }
func (s settings) Ints(keys ...string) ([]int64, bool, error)  { return member[[]int64](s, keys) }
func (s settings) String(keys ...string) (string, bool, error) { return member[string](s, keys) }
func (s settings) Members() map[string]any                     { return s }
func (s settings) Under(key string) Settings {
	m, _ := s[key].(settings)
	return m
}

// FuzzWeights checks that every stored tensor is a part of one weight.
func FuzzWeights(f *testing.F) {
	for _, s := range schemes {
		text := ""
		for _, p := range s.parts {
			dtype := safetensors.F16
			if p.types != nil {
				dtype = p.types[0]
			}
			text += fmt.Sprintf("x.%s\n%c", p.suffix, dtype)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var tensors []*Tensor
		seen := map[string]bool{}
		for line := range strings.Lines(text) {
			name, dtype := strings.TrimSuffix(line, "\n"), safetensors.DType(1+len(line)%22)
			if name != "" && name[0] < 22 {
				name, dtype = name[1:], safetensors.DType(1+name[0])
			}
			if !seen[name] {
				seen[name] = true
				tensors = append(tensors, &Tensor{Name: name, DType: dtype, Shape: []int64{2, 16},
					Mapped: make([]byte, 256)})
			}
		}
		weights, left, err := Weights(tensors, settings{})
		if err != nil {
			return
		}
		parts := map[*Tensor]bool{}
		for _, w := range weights {
			for _, p := range w.Tensors {
				if p != nil && parts[p] {
					t.Fatalf("tensor %q is a part of two weights", p.Name)
				}
				if p != nil {
					parts[p] = true
				}
			}
			w.Source()
		}
		for _, p := range left {
			if parts[p] {
				t.Fatalf("tensor %q is left over and a part of a weight", p.Name)
			}
			parts[p] = true
		}
		if len(parts) != len(tensors) {
			t.Fatalf("%d of %d tensors are parts of weights", len(parts), len(tensors))
		}
	})
}
