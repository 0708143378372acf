package precision

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/fault"
	"ggforge/internal/kernel/half"
	"ggforge/rows"
)

// The decoders are compared with the formulas of their formats, element by element.

// random returns a tensor of any bits.
func random(r *rand.Rand, name string, dtype safetensors.DType, shape ...int64) *Tensor {
	return filled(name, dtype, func(int) byte { return byte(r.Uint32()) }, shape...)
}

// small returns a tensor of small numbers in F32, F16 or BF16.
func small(r *rand.Rand, name string, dtype safetensors.DType, shape ...int64) *Tensor {
	t := stored(name, dtype, shape...)
	for i := range t.elements() {
		v := float32(r.NormFloat64()) + 0.1
		switch dtype {
		case safetensors.F32:
			put(t.Mapped, int(i), v)
		case safetensors.F16:
			binary.LittleEndian.PutUint16(t.Mapped[2*i:], half.ToF16(v))
		case safetensors.BF16:
			binary.LittleEndian.PutUint16(t.Mapped[2*i:], half.ToBF16(v))
		}
	}
	return t
}

// at returns element i of a tensor of numbers.
func (t *Tensor) at(i int64) float32 {
	var x [1]float32
	if err := t.floats(x[:], i); err != nil {
		panic(err)
	}
	return x[0]
}

// bit returns bit n of word i of t.
func (t *Tensor) bit(i, n int64) int {
	return int(binary.LittleEndian.Uint32(t.Mapped[4*i:])>>n) & 1
}

// whole64 returns a tensor of integers.
func whole64(name string, list ...int64) *Tensor {
	t := stored(name, safetensors.I64, int64(len(list)))
	for i, n := range list {
		binary.LittleEndian.PutUint64(t.Mapped[8*i:], uint64(n))
	}
	return t
}

func whole32(name string, f func(i int64) int64, n int64) *Tensor {
	t := stored(name, safetensors.I32, n)
	for i := range n {
		binary.LittleEndian.PutUint32(t.Mapped[4*i:], uint32(f(i)))
	}
	return t
}

// compare checks a source of [out, in] against a formula.
func compare(t *testing.T, what string, parts []*Tensor, in int64, make func([]*Tensor) (rows.Source, error),
	want func(o, i int64) float32) {
	t.Helper()
	for n, g := range all(t, parts, make) {
		o, i := int64(n)/in, int64(n)%in
		if w := want(o, i); g != w {
			t.Fatalf("%s: row %d, column %d: %v, want %v", what, o, i, g, w)
		}
	}
}

func TestGPTQ(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const in, out, groups = 96, 64, 3
	for _, bits := range []int64{2, 3, 4, 8} {
		for _, order := range []*Tensor{nil, whole32("g_idx", func(i int64) int64 { return i * 7 % groups }, in)} {
			for _, format := range []string{"", "gptq", "gptq_v2"} {
				config := settings{"bits": bits, "group_size": int64(in / groups)}
				if format != "" {
					config["checkpoint_format"] = format
				}
				w, z, s := random(r, "qweight", safetensors.I32, in*bits/32, out),
					random(r, "qzeros", safetensors.I32, groups, out*bits/32),
					small(r, "scales", safetensors.F16, groups, out)
				// the codes are streams of bits, down the columns of qweight and along the rows of qzeros
				compare(t, fmt.Sprint(bits, " bits ", format), []*Tensor{w, z, s, order}, in,
					func(p []*Tensor) (rows.Source, error) { return gptq(p, config) },
					func(o, i int64) float32 {
						q, zero, g := 0, 0, i/(in/groups)
						if order != nil {
							g = i * 7 % groups
						}
						for b := range bits {
							q |= w.bit((i*bits+b)/32*out+o, (i*bits+b)%32) << b
							zero |= z.bit(g*out*bits/32+(o*bits+b)/32, (o*bits+b)%32) << b
						}
						if format != "gptq_v2" {
							zero++
						}
						return s.at(g*out+o) * float32(q-zero)
					})
			}
		}
	}
	good := func() ([]*Tensor, settings) {
		return []*Tensor{random(r, "qweight", safetensors.I32, 12, 64), random(r, "qzeros", safetensors.I32, 3, 8),
			small(r, "scales", safetensors.F16, 3, 64), nil}, settings{"bits": int64(4), "group_size": int64(32)}
	}
	for text, change := range map[string]func(p []*Tensor, s settings){
		"want 8 as": func(p []*Tensor, s settings) { s["bits"] = int64(8) },
		"want those of 2": func(p []*Tensor,
			s settings) {
			p[1] = stored("qzeros", safetensors.I32, 3, 7)
		},
		`"qzeros" of shape [2 8]`: func(p []*Tensor,
			s settings) {
			p[1] = stored("qzeros", safetensors.I32, 2, 8)
		},
		`"qweight" of shape [12 63]`: func(p []*Tensor,
			s settings) {
			p[0] = stored("qweight", safetensors.I32, 12, 63)
		},
		"scales of 3 groups, want 6":     func(p []*Tensor, s settings) { s["group_size"] = int64(16) },
		"group_size is 0":                func(p []*Tensor, s settings) { s["group_size"] = int64(0) },
		"one for each of 96 columns":     func(p []*Tensor, s settings) { p[3] = stored("g_idx", safetensors.I32, 95) },
		`checkpoint_format is "marlin"`:  func(p []*Tensor, s settings) { s["checkpoint_format"] = "marlin" },
		`packing_format is "auto_round"`: func(p []*Tensor, s settings) { s["packing_format"] = "auto_round" },
	} {
		p, s := good()
		change(p, s)
		if _, err := gptq(p, s); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want an error with %q", err, text)
		}
	}
	p, s := good()
	p[3] = whole32("g_idx", func(i int64) int64 { return i - 1 }, 96)
	src, err := gptq(p, s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Raw(new([]byte), 0, 1); err == nil ||
		!strings.Contains(err.Error(), "column 0 is of group -1, want 0 to 2") {
		t.Errorf("a group of -1: %v", err)
	}
}

func TestAWQ(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const in, out, groups = 64, 40, 2
	w, z, s := random(r, "qweight", safetensors.I32, in, out/8), random(r, "qzeros", safetensors.I32, groups, out/8),
		small(r, "scales", safetensors.F16, groups, out)
	if !isAWQ([]*Tensor{w, z, s}, nil) {
		t.Error("taken for GPTQ")
	}
	nibble := func(x *Tensor, row, o int64) int {
		n := int64([]int{0, 4, 1, 5, 2, 6, 3, 7}[o%8])
		return x.bit(row*out/8+o/8, 4*n) | x.bit(row*out/8+o/8, 4*n+1)<<1 | x.bit(row*out/8+o/8, 4*n+2)<<2 |
			x.bit(row*out/8+o/8, 4*n+3)<<3
	}
	compare(t, "awq", []*Tensor{w, z, s}, in, func(p []*Tensor) (rows.Source, error) {
		return awq(p, settings{"version": "GEMM", "bits": int64(4), "group_size": int64(32)})
	}, func(o, i int64) float32 {
		return float32(nibble(w, i, o)-nibble(z, i/32, o)) * s.at(i/32*out+o)
	})
	for text, config := range map[string]settings{"marlin": {"version": "marlin"}, "8 bits": {"bits": int64(8)},
		"want 4 for": {"group_size": int64(16)}} {
		if _, err := awq([]*Tensor{w, z, s}, config); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v", config, err)
		}
	}
}

// TestGEMV decodes AWQ's version GEMV: codes are in order, and zero points and scales have more columns than there are
// groups.
func TestGEMV(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	const in, out, width = 96, 24, 2
	for _, size := range []int64{32, 8, -1} {
		config := settings{"version": "GEMV", "bits": int64(4), "group_size": size}
		w, z, s := random(r, "a.qweight", safetensors.I32, out, in/8),
			random(r, "a.qzeros", safetensors.I32, out, width), small(r, "a.scales", safetensors.F16, out, 8*width)
		weights, _, err := Weights([]*Tensor{w, z, s}, config)
		if err != nil || len(weights) != 1 || weights[0].Name != "a.weight" || weights[0].Scheme() != "awq" {
			t.Fatalf("%v, %v", weights, err)
		}
		nibble := func(x *Tensor, row, width, i int64) int {
			return x.bit(row*width+i/8, i%8*4) | x.bit(row*width+i/8, i%8*4+1)<<1 | x.bit(row*width+i/8, i%8*4+2)<<2 |
				x.bit(row*width+i/8, i%8*4+3)<<3
		}
		compare(t, fmt.Sprint("groups of ", size), []*Tensor{w, z, s}, in,
			func(p []*Tensor) (rows.Source, error) { return gemv(p, config) }, func(o, i int64) float32 {
				g := int64(0)
				if size > 0 {
					g = i / size
				}
				return float32(nibble(w, o, in/8, i)-nibble(z, o, width, g)) * s.at(o*8*width+g)
			})
	}
	for text, c := range map[string]struct {
		config settings
		change func(p []*Tensor)
	}{
		"8 bits":             {settings{"bits": int64(8)}, func(p []*Tensor) {}},
		"group_size is 7":    {settings{"group_size": int64(7)}, func(p []*Tensor) {}},
		"group_size is 0":    {settings{"group_size": int64(0)}, func(p []*Tensor) {}},
		"points of 96 group": {settings{"group_size": int64(1)}, func(p []*Tensor) {}},
		"[24 any]": {settings{}, func(p []*Tensor) {
			p[1] = stored("qzeros", safetensors.I32,
				out-1, width)
		}},
		"[24 16]": {settings{}, func(p []*Tensor) {
			p[2] = stored("scales", safetensors.F16, out,
				8*width-1)
		}},
		"[any any]": {settings{}, func(p []*Tensor) { p[0] = stored("qweight", safetensors.I32, out) }},
	} {
		p := []*Tensor{stored("qweight", safetensors.I32, out, in/8), stored("qzeros", safetensors.I32, out, width),
			stored("scales", safetensors.F16, out, 8*width)}
		c.change(p)
		if _, err := gemv(p, c.config); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want an error with %q", err, text)
		}
	}
}

// TestTransforms refuses models with transforms at run time.
func TestTransforms(t *testing.T) {
	for where, refused := range map[string]bool{"weight_input": false, "weight_output": false, "input": true,
		"k_cache": true} {
		config := settings{"transform_config": map[string]any{"config_groups": map[string]any{"u": map[string]any{"apply": []any{map[string]any{"location": where, "targets": []any{"Linear"}}}, "type": "hadamard"}}}}
		_, _, err := Weights([]*Tensor{stored("a.weight", safetensors.F16, 2)}, config)
		if (err != nil) != refused || refused && (!errors.Is(err, fault.Unsupported) ||
			!strings.Contains(err.Error(), where)) {
			t.Errorf("%s: %v", where, err)
		}
	}
}

func TestPackedInts(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const in, out = 72, 10
	for bits := int64(1); bits <= 8; bits++ {
		for _, groups := range []int64{1, 3} {
			for _, asymmetric := range []bool{false, true} {
				for _, ordered := range []bool{false, true} {
					per := 32 / bits
					weights := settings{"num_bits": bits, "type": "int", "symmetric": !asymmetric}
					if groups > 1 {
						weights["group_size"] = in / groups
					}
					w, s := random(r, "weight_packed", safetensors.I32, out, ceil(in, per)),
						small(r, "weight_scale", safetensors.BF16, out, groups)
					var z, order *Tensor
					if asymmetric {
						z = random(r, "weight_zero_point", safetensors.I32, ceil(out, per), groups)
					}
					group := func(i int64) int64 { return i / (in / groups) }
					if ordered {
						group = func(i int64) int64 { return i * 5 % groups }
						order = whole32("weight_g_idx", group, in)
					}
					code := func(x *Tensor, word, n int64) (q int) {
						for b := range bits {
							q |= x.bit(word, n*bits+b) << b
						}
						return q
					}
					compare(t, fmt.Sprint(bits, " bits"), []*Tensor{w, s, whole64("weight_shape", out, in), z, order},
						in,
						func(p []*Tensor) (rows.Source, error) {
							return packedInts(p, settings{"config_groups": settings{"g": settings{"weights": weights}}})
						},
						func(o, i int64) float32 {
							zero := 1 << (bits - 1)
							if asymmetric {
								zero = code(z, o/per*groups+group(i), o%per)
							}
							return float32(code(w, o*ceil(in, per)+i/per, i%per)-zero) * s.at(o*groups+group(i))
						})
				}
			}
		}
	}
	four, five := settings{"weights": settings{"num_bits": int64(4)}},
		settings{"weights": settings{"num_bits": int64(5), "symmetric": false}}
	parts := func() []*Tensor {
		return []*Tensor{random(r, "weight_packed", safetensors.I32, out, 9),
			small(r, "weight_scale", safetensors.BF16, out, 1), whole64("weight_shape", out, in), nil, nil}
	}
	for _, c := range []struct {
		config settings
		change func(p []*Tensor)
		text   string
	}{
		{settings{"g": four, "h": five}, func(p []*Tensor) {}, ""}, // only one fits
		{settings{"g": five}, func(p []*Tensor) {}, "9 words for 72 columns, want 12 of 5 bits"},
		{settings{"g": settings{"weights": settings{"num_bits": int64(7)}},
			"h": settings{"weights": settings{"num_bits": int64(8)}}}, func(p []*Tensor) {
			p[0] = random(r, "weight_packed", safetensors.I32, out, in/4)
		}, "2 config_groups"},
		// the shapes decide the group
		{settings{"g": settings{"weights": settings{"num_bits": int64(4), "group_size": int64(24)}},
			"h": settings{"weights": settings{"num_bits": int64(4), "group_size": int64(36), "symmetric": false}},
			"i": four}, func(p []*Tensor) {
			p[1], p[3] = small(r, "weight_scale", safetensors.BF16, out, 2),
				random(r, "weight_zero_point", safetensors.I32, 2, 2)
		}, ""},
		{settings{}, func(p []*Tensor) {}, "no config_groups"},
		{settings{"g": settings{"weights": settings{"num_bits": int64(9)}}}, func(p []*Tensor) {}, "num_bits is 9"},
		{settings{"g": settings{"weights": settings{"num_bits": int64(4), "symmetric": false}}}, func(p []*Tensor) {},
			`"symmetric" is false`},
		{settings{"g": four}, func(p []*Tensor) { p[2] = whole64("weight_shape", out, in+8) }, "words for 80 columns"},
		{settings{"g": four}, func(p []*Tensor) { p[2] = whole64("weight_shape", out, -8) }, "want rows and columns"},
		{settings{"g": four}, func(p []*Tensor) { p[2] = whole64("weight_shape", out, in, 1) }, "want [2]"},
		{settings{"g": four}, func(p []*Tensor) { p[2] = whole64("weight_shape", out+1, in) }, "want [11 any]"},
	} {
		p := parts()
		c.change(p)
		_, err := packedInts(p, settings{"config_groups": c.config})
		if (err == nil) != (c.text == "") || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v: %v, want %q", c.config, err, c.text)
		}
	}
}

// state returns the tensor with which bitsandbytes describes a weight.
func state(t testing.TB, v map[string]any) *Tensor {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return filled("weight.quant_state.bitsandbytes__nf4", safetensors.U8, func(i int) byte { return text[i] },
		int64(len(text)))
}

func TestFourBits(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, shape := range [][2]int64{{6, 64}, {5, 33}, {7, 3}} {
		out, in := shape[0], shape[1]
		n := out * in
		for _, block := range []int64{2, 16, 64} {
			for dtype, round := range rounds {
				for _, nested := range []bool{false, true} {
					facts := map[string]any{"quant_type": "nf4", "blocksize": block, "dtype": dtype,
						"shape": []int64{out, in}}
					blocks := ceil(n, block)
					p := []*Tensor{bnbCodes: random(r, "weight", safetensors.U8, ceil(n, 2), 1),
						bnbLargest: small(r, "weight.absmax", safetensors.F32, blocks),
						bnbValues:  small(r, "weight.quant_map", safetensors.F32, 16), bnbStateNF4: nil,
						bnbStateFP4: nil, bnbNestedLargest: nil, bnbNestedValues: nil}
					largest := func(b int64) float32 { return p[bnbLargest].at(b) }
					if nested {
						facts["nested_blocksize"], facts["nested_offset"], facts["nested_dtype"] = 4, 0.25, "float32"
						p[bnbLargest] = random(r, "weight.absmax", safetensors.U8, blocks)
						p[bnbNestedLargest], p[bnbNestedValues] = small(r, "weight.nested_absmax", safetensors.F32,
							ceil(blocks, 4)), small(r, "weight.nested_quant_map", safetensors.F32, 256)
						largest = func(b int64) float32 {
							return float32(p[bnbNestedValues].at(int64(p[bnbLargest].Mapped[b]))*p[bnbNestedLargest].at(
								b/4)) + 0.25
						}
					}
					p[bnbStateNF4] = state(t, facts)
					compare(t, fmt.Sprint(shape, block, dtype, nested), p, in,
						func(p []*Tensor) (rows.Source, error) { return fourBits(p, nil) }, func(o, i int64) float32 {
							e := o*in + i
							c := p[bnbCodes].Mapped[e/2]
							if e%2 == 0 {
								c >>= 4
							}
							return round(p[bnbValues].at(int64(c&15)) * largest(e/block))
						})
				}
			}
		}
	}
	// bytes that are stored as numbers of another type
	facts := map[string]any{"blocksize": 32, "dtype": "float32", "shape": []int64{6, 12}}
	p := []*Tensor{bnbCodes: random(r, "a.weight", safetensors.BF16, 18, 1),
		bnbLargest:  small(r, "a.weight.absmax", safetensors.F32, 3),
		bnbValues:   small(r, "a.weight.quant_map", safetensors.F32, 16),
		bnbStateNF4: state(t, facts), bnbStateFP4: nil, bnbNestedLargest: nil, bnbNestedValues: nil}
	p[bnbStateNF4].Name = "a.weight.quant_state.bitsandbytes__nf4"
	if weights, _, err := Weights(p[:bnbStateFP4], settings{}); err != nil || len(weights) != 1 ||
		weights[0].Scheme() != "bitsandbytes" {
		t.Fatalf("%v, %v", weights, err)
	}
	compare(t, "stored as bfloat16", p, 12, func(p []*Tensor) (rows.Source, error) { return fourBits(p, nil) },
		func(o, i int64) float32 {
			e := o*12 + i
			return p[bnbValues].at(int64(p[bnbCodes].Mapped[e/2]>>(4*(1-e%2))&15)) * p[bnbLargest].at(e/32)
		})
	for text, change := range map[string]func(m map[string]any, p []*Tensor){
		"blocksize is 0":    func(m map[string]any, p []*Tensor) { m["blocksize"] = 0 },
		`dtype is "int4"`:   func(m map[string]any, p []*Tensor) { m["dtype"] = "int4" },
		"shape is":          func(m map[string]any, p []*Tensor) { m["shape"] = []int64{8} },
		"want 64 for a":     func(m map[string]any, p []*Tensor) { m["shape"] = []int64{8, 16} },
		"want 4 for blocks": func(m map[string]any, p []*Tensor) { m["blocksize"] = 16 },
		"nested_blocksize": func(m map[string]any,
			p []*Tensor) {
			p[bnbNestedLargest] = stored("n", safetensors.F32, 1)
		},
		"no table of 16":     func(m map[string]any, p []*Tensor) { p[bnbValues] = stored("m", safetensors.F32, 15) },
		"has no weight.quan": func(m map[string]any, p []*Tensor) { p[bnbStateNF4] = nil },
	} {
		m := map[string]any{"blocksize": 32, "dtype": "float16", "shape": []int64{8, 8}}
		p := []*Tensor{bnbCodes: stored("weight", safetensors.U8, 32, 1),
			bnbLargest: stored("weight.absmax", safetensors.F32, 2), bnbValues: stored("m", safetensors.F32, 16),
			bnbStateNF4: stored("x", safetensors.U8, 1), bnbStateFP4: nil, bnbNestedLargest: nil, bnbNestedValues: nil}
		change(m, p)
		if p[bnbStateNF4] != nil {
			p[bnbStateNF4] = state(t, m)
		}
		if _, err := fourBits(p, nil); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want an error with %q", err, text)
		}
	}
}

func TestInt8Rows(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	w, s := random(r, "weight", safetensors.I8, 5, 12), small(r, "SCB", safetensors.F32, 5)
	format := filled("weight_format", safetensors.U8, func(int) byte { return 0 })
	compare(t, "int8", []*Tensor{w, s, format}, 12, func(p []*Tensor) (rows.Source, error) { return int8Rows(p, nil) },
		func(o, i int64) float32 {
			scaled := float32(int8(w.Mapped[o*12+i])) * s.at(o)
			return float32(scaled) * float32(1.0/127)
		})
	format.Mapped[0] = 2
	if _, err := int8Rows([]*Tensor{w, s, format}, nil); err == nil || !strings.Contains(err.Error(), "is 2, want 0") {
		t.Errorf("another layout: %v", err)
	}
	if _, err := int8Rows([]*Tensor{w, stored("SCB", safetensors.F32, 4), nil}, nil); err == nil ||
		!strings.Contains(err.Error(), "each of 5 rows") {
		t.Errorf("four scales: %v", err)
	}
}

func TestTernary(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	w, s := random(r, "weight", safetensors.U8, 3, 10), small(r, "weight_scale", safetensors.BF16, 1)
	compare(t, "bitnet", []*Tensor{w, s}, 10, func(p []*Tensor) (rows.Source, error) { return ternary(p, nil) },
		func(o, i int64) float32 {
			return (float32(w.Mapped[o%3*10+i]>>(2*(o/3))&3) - 1) / s.at(0)
		})
	if _, err := ternary([]*Tensor{w, stored("weight_scale", safetensors.F32, 2)}, nil); err == nil {
		t.Error("two scales: no error")
	}
}

func TestHQQ(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	const out, in = 20, 32
	for bits, per := range map[int64]int64{8: 1, 4: 2, 3: 10, 2: 4, 1: 8} {
		for _, axis := range []int64{0, 1} {
			for _, dtype := range []safetensors.DType{safetensors.F32, safetensors.F16, safetensors.BF16} {
				const group, n = 16, out * in
				height, width := int64(n/group), int64(group)
				if axis == 0 {
					height, width = width, height
				}
				part := ceil(height, per)
				word := safetensors.U8
				if bits == 3 {
					word = safetensors.I32
				}
				p := make([]*Tensor, len(hqqParts))
				p[hqqCodes], p[hqqScale], p[hqqZero] = random(r, "W_q", word, part, width),
					small(r, "scale", dtype, n/group, 1), small(r, "zero", dtype, n/group, 1)
				p[hqqShape], p[hqqBits], p[hqqGroup], p[hqqAxis] = whole64("shape", out, in), whole64("nbits", bits),
					whole64("group_size", group), whole64("axis", axis)
				round := rounds[map[safetensors.DType]string{safetensors.F32: "float32", safetensors.F16: "float16",
					safetensors.BF16: "bfloat16"}[dtype]]
				compare(t, fmt.Sprint(bits, " bits, axis ", axis, dtype), p, in,
					func(p []*Tensor) (rows.Source, error) { return hqq(p, nil) }, func(o, i int64) float32 {
						e := o*in + i
						row, column := e/width, e%width
						at := row%part*width + column
						var w uint32
						if bits == 3 {
							w = binary.LittleEndian.Uint32(p[hqqCodes].Mapped[4*at:])
						} else {
							w = uint32(p[hqqCodes].Mapped[at])
						}
						q := w >> (bits * (per - 1 - row/part)) & (1<<bits - 1)
						k := row
						if axis == 0 {
							k = column
						}
						return round(round(float32(q)-p[hqqZero].at(k)) * p[hqqScale].at(k))
					})
			}
		}
	}
	for text, change := range map[string]func(p []*Tensor){
		"5 bits":                func(p []*Tensor) { p[hqqBits] = whole64("nbits", 5) },
		"quant_scale\" is 1":    func(p []*Tensor) { p[hqqQuantScale] = whole64("quant_scale", 1) },
		"quant_zero\" is 1":     func(p []*Tensor) { p[hqqQuantZero] = whole64("quant_zero", 1) },
		"axis 2":                func(p []*Tensor) { p[hqqAxis] = whole64("axis", 2) },
		"groups of 7":           func(p []*Tensor) { p[hqqGroup] = whole64("group_size", 7) },
		"for each of 40 groups": func(p []*Tensor) { p[hqqScale] = stored("scale", safetensors.F16, 39) },
		"want [20 16]":          func(p []*Tensor) { p[hqqCodes] = stored("W_q", safetensors.U8, 19, 16) },
		"want U8":               func(p []*Tensor) { p[hqqCodes] = stored("W_q", safetensors.I32, 20, 16) },
		"rows and columns":      func(p []*Tensor) { p[hqqShape] = whole64("shape", 0, 32) },
	} {
		p := make([]*Tensor, len(hqqParts))
		p[hqqCodes], p[hqqScale], p[hqqZero] = stored("W_q", safetensors.U8, 20, 16),
			stored("scale", safetensors.F16, 40), stored("zero", safetensors.F16, 40)
		p[hqqShape], p[hqqBits], p[hqqGroup], p[hqqAxis] = whole64("shape", out, in), whole64("nbits", 4),
			whole64("group_size", 16), whole64("axis", 1)
		change(p)
		if _, err := hqq(p, nil); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want an error with %q", err, text)
		}
	}
}

// TestNVFP4 checks the order of codes and scales, and the factors.
func TestNVFP4(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	const out, in = 3, 128
	w, s := random(r, "weight", safetensors.U8, out, in/2),
		filled("weight_scale", safetensors.F8_E4M3, func(i int) byte { return byte(i*5%120 + i%2*128) }, out, in/16)
	values := []float32{0, 0.5, 1, 1.5, 2, 3, 4, 6}
	compare(t, "nvfp4", []*Tensor{w, s}, in, func(p []*Tensor) (rows.Source, error) { return nvfp4(p, nil) },
		func(o, i int64) float32 {
			code := w.Mapped[(o*in+i)/2] >> (4 * (i % 2)) & 15
			v := values[code&7] * codesOf(safetensors.F8_E4M3).table[s.Mapped[o*in/16+i/16]&0x7F]
			if code > 7 {
				v = -v
			}
			return v
		})
	for _, c := range [][2][]int64{{{3, 64}, {3, 7}}, {{3, 16}, {3, 2}}, {{64}, {8}}, {{3, 64}, {2, 8}}} {
		if _, err := nvfp4([]*Tensor{stored("w", safetensors.U8, c[0]...), stored("s", safetensors.F8_E4M3, c[1]...)},
			nil); err == nil {
			t.Errorf("codes %v, scales %v: no error", c[0], c[1])
		}
	}
	number := func(v float32, shape ...int64) *Tensor { return values32("x", v, shape...) }
	for _, c := range []struct {
		parts         []*Tensor
		inverse       bool
		weight, input string
	}{
		{[]*Tensor{w, s, nil, nil}, false, "[]", "[]"},
		{[]*Tensor{w, s, number(0.5), number(4, 1)}, false, "[0.5]", "[4]"},
		{[]*Tensor{w, s, number(0.5, 1), number(4)}, true, "[2]", "[0.25]"},
	} {
		weight := &Weight{Tensors: c.parts, scheme: &scheme{name: "nvfp4", inverse: c.inverse}}
		got, in, ok, err := weight.Factors()
		if err != nil || !ok || fmt.Sprint(got) != c.weight || fmt.Sprint(in) != c.input {
			t.Errorf("factors %v and %v, %v, want %s and %s", got, in, err, c.weight, c.input)
		}
	}
	if _, _, _, err := (&Weight{Tensors: []*Tensor{w, s, number(1, 2), nil},
		scheme: &scheme{name: "nvfp4"}}).Factors(); err == nil {
		t.Error("two factors of a matrix: no error")
	}
}

func values32(name string, v float32, shape ...int64) *Tensor {
	return values(name, func(int) float32 { return v }, shape...)
}

// FuzzDecoders gives every scheme tensors of any shapes: accepted weights can be read, and are not larger than the
// stored tensors allow.
func FuzzDecoders(f *testing.F) {
	f.Add(uint8(0), []byte{64, 1, 2, 1, 2, 8}, uint16(4), []byte("bits"))
	f.Add(uint8(0), []byte{18, 1, 2, 1, 2, 9}, uint16(124), []byte{})
	f.Add(uint8(1), []byte{12, 64, 3, 8, 3, 64}, uint16(4), []byte{})
	f.Add(uint8(2), []byte{10, 9, 10, 1, 2}, uint16(4), []byte{10, 0, 0, 0, 72, 0, 0, 0})
	f.Add(uint8(3), []byte{32, 1, 2, 16}, uint16(0), []byte(`{"blocksize": 32, "dtype": "float16", "shape": [8, 8]}`))
	f.Add(uint8(4), []byte{20, 16, 40, 40, 2, 1, 1, 1}, uint16(0),
		[]byte{20, 0, 0, 0, 32, 0, 0, 0, 4, 0, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0})
	f.Add(uint8(8), []byte{24, 12, 24, 2, 24, 16}, uint16(4+12*33), []byte{})
	f.Add(uint8(9), []byte{5, 8, 32, 16}, uint16(0), []byte(`{"format": "nvfp4"}`))
	f.Add(uint8(9), []byte{5, 64, 32, 16}, uint16(1), []byte(`{"format": "mxfp8"}`))
	f.Add(uint8(9), []byte{5, 32, 5, 1}, uint16(2),
		[]byte(`{"format":"int8_tensorwise","convrot":1,"convrot_groupsize":16}`))
	f.Add(uint8(9), []byte{5, 8, 5, 1}, uint16(2), []byte(`{"format":"convrot_w4a4","convrot_groupsize":4}`))
	f.Add(uint8(9), []byte{5, 9, 2, 3}, uint16(2), []byte(`{"format":"int8_blockwise","group_size":4}`))
	f.Fuzz(func(t *testing.T, which uint8, dims []byte, bits uint16, data []byte) {
		next := func() int64 {
			if len(dims) == 0 {
				return 1
			}
			n := int64(dims[0] % 100)
			dims = dims[1:]
			return n
		}
		text := func(t *Tensor) *Tensor { copy(t.Mapped, data); return t }
		take := func(n int64) *Tensor { // integers from data
			x := stored("n", safetensors.I32, n)
			k := copy(x.Mapped, data)
			data = data[k:]
			return x
		}
		matrix := func(d safetensors.DType) *Tensor { return stored("m", d, next(), next()) }
		weights := settings{"num_bits": int64(bits % 12), "group_size": int64(bits/12) - 1, "symmetric": bits%2 == 0}
		config := settings{"bits": int64(bits % 12), "group_size": int64(bits/12) - 1,
			"config_groups": settings{"g": settings{"weights": weights}}}
		var src rows.Source
		var err error
		switch which % 10 {
		case 0:
			src, err = awq([]*Tensor{text(matrix(safetensors.I32)), matrix(safetensors.I32), matrix(safetensors.F16)},
				config)
		case 1:
			w, z, s := text(matrix(safetensors.I32)), matrix(safetensors.I32), matrix(safetensors.F16)
			var order *Tensor
			if bits > 1000 {
				order = stored("g_idx", safetensors.I32, next())
			}
			src, err = gptq([]*Tensor{w, z, s, order}, config)
		case 2:
			shape := take(2)
			w, s := text(matrix(safetensors.I32)), matrix(safetensors.BF16)
			var zeros *Tensor
			if bits%2 == 1 {
				zeros = matrix(safetensors.I32)
			}
			src, err = packedInts([]*Tensor{w, s, shape, zeros, nil}, config)
		case 3:
			src, err = fourBits([]*Tensor{matrix(safetensors.U8), stored("a", safetensors.F32, next()),
				stored("m", safetensors.F32, next()), text(stored("s", safetensors.U8, int64(len(data)))), nil,
				nil, nil}, nil)
		case 4:
			p := make([]*Tensor, len(hqqParts))
			p[hqqShape], p[hqqBits], p[hqqGroup], p[hqqAxis] = take(2), take(1), take(1), take(1)
			dtype := safetensors.U8
			if bits%2 == 1 {
				dtype = safetensors.I32
			}
			p[hqqCodes], p[hqqScale], p[hqqZero] = matrix(dtype), stored("s", safetensors.F16, next()),
				stored("z", safetensors.F16, next())
			src, err = hqq(p, nil)
		case 5:
			src, err = ternary([]*Tensor{matrix(safetensors.U8), stored("s", safetensors.F32, next())}, nil)
		case 6:
			src, err = int8Rows([]*Tensor{matrix(safetensors.I8), stored("s", safetensors.F32, next()), nil}, nil)
		case 7:
			how := nvfp4
			if bits%2 == 1 {
				how = nibblesMXFP4
			}
			src, err = how([]*Tensor{matrix(safetensors.U8), matrix(safetensors.U8)}, nil)
		case 8:
			src, err = gemv([]*Tensor{text(matrix(safetensors.I32)), matrix(safetensors.I32), matrix(safetensors.F16)},
				config)
		case 9:
			types := [...][2]safetensors.DType{{safetensors.U8, safetensors.F8_E4M3}, {safetensors.F8_E4M3, safetensors.U8},
				{safetensors.I8, safetensors.F32}, {safetensors.F8_E5M2, safetensors.BF16}}[bits%4]
			w, s := matrix(types[0]), matrix(types[1])
			describes := text(stored("t", safetensors.U8, int64(len(data))))
			parts := []*Tensor{comfyCodes: w, comfyText: describes, comfyScale: s, comfyInput: nil}
			if types[0] == safetensors.U8 {
				parts[comfyScale2] = stored("s", safetensors.F32)
			}
			if bits%8 > 3 {
				parts[comfyPreScale] = stored("p", safetensors.F16, next())
			}
			src, err = comfy(parts, nil)
		}
		if err != nil || src == nil {
			return
		}
		n := int64(1)
		for _, d := range src.NE() {
			n *= d
		}
		if n > 1<<24 {
			t.Fatalf("%v elements of tensors of at most 100 x 100", src.NE())
		}
		readAll(t, src)
	})
}
