package precision

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/fault"
	"ggforge/internal/kernel/half"
	"ggforge/rows"
)

// generator returns the byte generator of test/interop/oracle/comfyquant.py.
func generator(seed uint32) func() byte {
	x := seed
	return func() byte {
		x = (x*1103515245 + 12345) & 0x7fffffff
		return byte(x >> 16)
	}
}

// inTiles places scales of [height, width] as tiles of 128 x 4.
func inTiles(dtype safetensors.DType, height, width int64, scale func(r, c int64) byte) *Tensor {
	t := stored("x.weight_scale", dtype, ceil(height, 128)*128, ceil(width, 4)*4)
	for r := range height {
		for c := range width {
			tile := r/128*ceil(width, 4) + c/4
			t.Mapped[tile*512+r%32*16+r%128/32*4+c%4] = scale(r, c)
		}
	}
	return t
}

// described returns the text of a weight.
func described(text string) *Tensor {
	t := stored("x.comfy_quant", safetensors.U8, int64(len(text)))
	copy(t.Mapped, text)
	return t
}

// TestComfy compares weights of all formats with what test/interop/oracle/comfyquant.py computes with PyTorch: SHA-256 of
// the float32 values, and four of them, for the message.
func TestComfy(t *testing.T) {
	column := func(n int64) *Tensor {
		return values("x.weight_scale", func(i int) float32 { return float32(float64(i+1) * 0.001) }, n, 1)
	}
	hundredths := func(shape ...int64) *Tensor {
		return values("x.weight_scale", func(i int) float32 { return float32(float64(i+1) * 0.01) }, shape...)
	}
	codes := func(dtype safetensors.DType, g func() byte, mask byte, shape ...int64) *Tensor {
		return filled("x.weight", dtype, func(int) byte { return g() & mask }, shape...)
	}
	one := generator(1)
	fp4 := codes(safetensors.U8, one, 255, 130, 40)
	fp4Scale := func() *Tensor {
		list := make([]byte, 130*5)
		for i := range list {
			list[i] = one() % 0x7f
		}
		return inTiles(safetensors.F8_E4M3, 130, 5, func(r, c int64) byte { return list[r*5+c] })
	}()
	whole := values("x.weight_scale_2", func(int) float32 { return 0.0137 })
	pre := stored("x.pre_quant_scale", safetensors.BF16, 80)
	for i := range 80 {
		binary.LittleEndian.PutUint16(pre.Mapped[2*i:], half.ToBF16(float32(i%7+1)/8))
	}
	two := generator(2)
	mx := codes(safetensors.F8_E4M3, two, 0xf7, 130, 160)
	mxScale := func() *Tensor {
		list := make([]byte, 130*5)
		for i := range list {
			list[i] = 100 + two()%40
		}
		return inTiles(safetensors.U8, 130, 5, func(r, c int64) byte { return list[r*5+c] })
	}()
	mxTyped, flat := *mxScale, *fp4Scale
	mxTyped.DType, flat.Shape = safetensors.F8_E8M0, []int64{2048}
	six := codes(safetensors.I8, generator(6), 0xf7, 6, 9)
	typed := func(d safetensors.DType, mask byte) *Tensor {
		return filled(six.Name, d, func(i int) byte { return six.Mapped[i] & mask }, 6, 9)
	}
	rowScale, cell := hundredths(6), values("x.weight_scale", func(int) float32 { return 0.03 })
	small := values("x.weight_scale", func(int) float32 { return 0.02 }, 1)
	for _, c := range []struct {
		text              string
		codes, scale      *Tensor
		scale2, pre       *Tensor
		height, width     int64
		sum               string
		first, middle, at float32 // of the first, the middle and the last element
	}{
		{`{"format": "nvfp4"}`, fp4, fp4Scale, whole, nil, 130, 80, "5755bb6a2cfdc36db9abec8bf9dfa090",
			-0.4932, 0.0822, 5.2608},
		{`{"format": "nvfp4", "full_precision_matrix_mult": true}`, fp4, &flat, whole, pre, 130, 80,
			"156bfa8dfcd3e9226b600a7faaa3f5a1", -0.06165, 0.010275, 1.9728},
		{`{"format": "mxfp8"}`, mx, mxScale, nil, nil, 130, 160, "808a14c7dfd22aedcfa4247eb0906f98",
			-0x1p-10, -144, 0x1.cp-20},
		{`{"format": "mxfp8"}`, mx, &mxTyped, nil, nil, 130, 160, "808a14c7dfd22aedcfa4247eb0906f98",
			-0x1p-10, -144, 0x1.cp-20},
		{`{"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 256}`,
			codes(safetensors.I8, generator(256), 255, 5, 512), column(5), nil, nil, 5, 512,
			"11685701a2708b2911ea088d63e673d4", -0.0195, -0.100125, -0.539375},
		{`{"format": "int8_tensorwise", "convrot": true}`, codes(safetensors.I8, generator(256), 255, 5, 512), column(5),
			nil, nil, 5, 512, "11685701a2708b2911ea088d63e673d4", -0.0195, -0.100125, -0.539375},
		{`{"format": "int8_tensorwise", "params": {"convrot": true, "convrot_groupsize": 16}}`,
			codes(safetensors.I8, generator(16), 255, 5, 48), column(5), nil, nil, 5, 48,
			"031e0808ba186fec3d708254b921e782", 0.0635, -0.02475, 0.24499999},
		{`{"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 64}`,
			codes(safetensors.I8, generator(64), 255, 5, 64), column(5), nil, nil, 5, 64,
			"bad2744d8bd510d24128cc5212e7f285", -0.13062501, 0.123, 0.41312498},
		{`{"format": "convrot_w4a4", "linear_dtype": "int8"}`, codes(safetensors.I8, generator(4), 255, 5, 256), column(5),
			nil, nil, 5, 512, "f5dc09133b25c8d4721651c89972e498", -0.0011875001, -0.022125, 0.009374999},
		{`{"format": "int8_blockwise", "group_size": 128}`, codes(safetensors.I8, generator(5), 255, 130, 200),
			hundredths(2, 2), nil, nil, 130, 200, "b316653b883533e211b9772442df05a5", -0.33, -0.34, 3.9599998},
		{`{"format": "float8_e4m3fn_rowwise"}`, typed(safetensors.F8_E4M3, 255), rowScale, nil, nil, 6, 9,
			"cf547fee8e6467e9781bd61816ecd772", -0.0021875, -0.0325, -0.000117187497},
		{`{"format": "float8_e4m3fn"}`, typed(safetensors.F8_E4M3, 255), hundredths(6, 1), nil, nil, 6, 9,
			"cf547fee8e6467e9781bd61816ecd772", -0.0021875, -0.0325, -0.000117187497},
		{`{"format": "int8_tensorwise", "convrot": false}`, six, cell, nil, nil, 6, 9,
			"20e9d1a0bbfee23b48e5288f4ba643a5", -2.7, -2.25, -3.81},
		{`{"format": "float8_e5m2"}`, typed(safetensors.F8_E5M2, 0xfb), small, nil, nil, 6, 9,
			"2bc0dc12b9256806935ba4ada56598c1", -0.00023437499, -0.0031249998, -3.0517577e-07},
	} {
		parts := []*Tensor{c.codes, described(c.text), c.scale, c.scale2, c.pre, nil}
		got := all(t, parts, func(p []*Tensor) (rows.Source, error) { return comfy(p, nil) })
		if int64(len(got)) != c.height*c.width {
			t.Fatalf("%s: %d elements, want %d x %d", c.text, len(got), c.height, c.width)
		}
		raw := make([]byte, 4*len(got))
		for i, v := range got {
			put(raw, i, v)
		}
		sum := sha256.Sum256(raw)
		if s := hex.EncodeToString(sum[:16]); s != c.sum {
			t.Errorf("%s: %s, want %s: %v, %v, %v, want %v, %v, %v", c.text, s, c.sum, got[0], got[len(got)/2],
				got[len(got)-1], c.first, c.middle, c.at)
		}
	}
}

// TestComfyRefused has texts and tensors that are errors.
func TestComfyRefused(t *testing.T) {
	codes := func(d safetensors.DType, shape ...int64) *Tensor { return stored("x.weight", d, shape...) }
	scale := func(shape ...int64) *Tensor { return stored("x.weight_scale", safetensors.F32, shape...) }
	tiles := func(d safetensors.DType, n int64) *Tensor { return stored("x.weight_scale", d, n) }
	whole := stored("x.weight_scale_2", safetensors.F32)
	i8, e4, u8 := safetensors.I8, safetensors.F8_E4M3, safetensors.U8
	for _, c := range []struct {
		text  string
		parts []*Tensor // codes, scale, scale_2, pre_quant_scale
		kind  error
		want  string
	}{
		{`{"format": "asym_w4a8_int8"}`, []*Tensor{codes(i8, 4, 8), scale()}, fault.Unsupported, `"asym_w4a8_int8"`},
		{`{"format": "int8_tensorwise "}`, []*Tensor{codes(i8, 4, 8), scale()}, fault.Unsupported, `"int8_tensorwise "`},
		{`{"convrot": true, "per_row": true}`, []*Tensor{codes(i8, 4, 8), scale()}, fault.Broken, "format is null"},
		{`{"format": 8}`, []*Tensor{codes(i8, 4, 8), scale()}, fault.Broken, "format is the number 8"},
		{`[]`, []*Tensor{codes(i8, 4, 8), scale()}, fault.Broken, "want an object"},
		{`{"format": `, []*Tensor{codes(i8, 4, 8), scale()}, fault.Broken, "x.comfy_quant"},
		{strings.Repeat(" ", maxComfy+1), []*Tensor{codes(i8, 4, 8), scale()}, fault.Broken, "at most 4096 bytes"},
		{`{"format": "int8_tensorwise"}`, []*Tensor{codes(e4, 4, 8), scale()}, fault.Broken, "F8_E4M3"},
		{`{"format": "int8_tensorwise"}`, []*Tensor{codes(i8, 4, 8), nil}, fault.Broken, "no weight_scale"},
		{`{"format": "int8_tensorwise"}`, []*Tensor{codes(i8, 4, 0), scale()}, fault.Broken, "at least 1"},
		{`{"format": "int8_tensorwise"}`, []*Tensor{codes(i8), scale()}, fault.Broken, "at least one dimension"},
		{`{"format": "int8_tensorwise"}`, []*Tensor{codes(i8, 8, 8), scale(8)}, fault.Broken, "a column of them"},
		{`{"format": "int8_tensorwise"}`, []*Tensor{codes(i8, 4, 8), scale(1, 8)}, fault.Broken, "[1 8]"},
		{`{"format": "int8_tensorwise"}`, []*Tensor{codes(i8, 4, 8), tiles(u8, 1)}, fault.Broken, "U8"},
		{`{"format": "int8_tensorwise"}`, []*Tensor{codes(i8, 4, 8), scale(), whole}, fault.Broken, "weight_scale_2"},
		{`{"format": "int8_tensorwise", "convrot": 1, "convrot_groupsize": 8}`, []*Tensor{codes(i8, 4, 8), scale()},
			fault.Broken, "power of 4"},
		{`{"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 1}`, []*Tensor{codes(i8, 4, 8), scale()},
			fault.Broken, "power of 4"},
		{`{"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 16}`, []*Tensor{codes(i8, 4, 8), scale()},
			fault.Broken, "8 columns are not whole groups of 16"},
		{`{"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 1048576}`,
			[]*Tensor{codes(i8, 4, 8), scale()}, fault.Broken, "from 1 to 65536"},
		{`{"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": "4"}`,
			[]*Tensor{codes(i8, 4, 8), scale()}, fault.Broken, "convrot_groupsize is"},
		{`{"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 4}`,
			[]*Tensor{codes(i8, 4, 8, 1), scale()}, fault.Broken, "want a matrix"},
		{`{"format": "convrot_w4a4", "convrot_groupsize": 4}`, []*Tensor{codes(i8, 4, 8), scale()}, fault.Broken,
			"one number for each row"},
		{`{"format": "int8_blockwise", "group_size": 4}`, []*Tensor{codes(i8, 4, 8), scale(2, 1)}, fault.Broken,
			"each block of [4 4]"},
		{`{"format": "int8_blockwise", "group_size": 0}`, []*Tensor{codes(i8, 4, 8), scale(1, 2)}, fault.Broken,
			"group_size is the number 0"},
		{`{"format": "mxfp8"}`, []*Tensor{codes(e4, 4, 48), tiles(u8, 512)}, fault.Broken, "a multiple of 32"},
		{`{"format": "mxfp8"}`, []*Tensor{codes(e4, 129, 32), tiles(u8, 512)}, fault.Broken, "1024 bytes"},
		{`{"format": "mxfp8"}`, []*Tensor{codes(e4, 4, 32), scale(512)}, fault.Broken, "F32"},
		{`{"format": "mxfp8"}`, []*Tensor{codes(e4, 4, 4, 32), tiles(u8, 512)}, fault.Broken, "want a matrix"},
		{`{"format": "nvfp4"}`, []*Tensor{codes(u8, 4, 8), tiles(e4, 512)}, fault.Broken, "no weight_scale_2"},
		{`{"format": "nvfp4"}`, []*Tensor{codes(u8, 4, 9), tiles(e4, 512), whole}, fault.Broken, "multiple of 16"},
		{`{"format": "nvfp4"}`, []*Tensor{codes(u8, 4, 8), tiles(e4, 4), whole}, fault.Broken, "512 bytes"},
		{`{"format": "nvfp4"}`, []*Tensor{codes(u8, 4, 8), tiles(e4, 512), scale(2)}, fault.Broken, "want one number"},
		{`{"format": "nvfp4"}`, []*Tensor{codes(u8, 4, 8), tiles(e4, 512), whole, scale(15)}, fault.Broken,
			"one for each of 16 columns"},
	} {
		list := []*Tensor{described(c.text)}
		for i, p := range c.parts {
			if p != nil {
				p.Name = []string{"x.weight", "x.weight_scale", "x.weight_scale_2", "x.pre_quant_scale"}[i]
				list = append(list, p)
			}
		}
		weights, left, err := Weights(list, settings{})
		if err != nil || len(weights) != 1 || len(left) > 0 {
			t.Fatalf("%s: %d weights, %d left, %v", c.text, len(weights), len(left), err)
		}
		_, err = weights[0].Source()
		if !errors.Is(err, c.kind) || !strings.Contains(fmt.Sprint(err), c.want) ||
			c.kind == fault.Unsupported && errors.Is(err, fault.Broken) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
	weights, left, err := Weights([]*Tensor{codes(i8, 4, 8), described("{}"), {Name: "y.comfy_quant", DType: u8}},
		settings{})
	if err != nil || len(weights) != 1 || len(left) != 1 {
		t.Errorf("a text without a weight: %d weights, %d left, %v", len(weights), len(left), err)
	}
}
