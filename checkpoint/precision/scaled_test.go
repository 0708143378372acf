package precision

import (
	"math"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/gguf"
	"ggforge/rows"
)

// filled returns a tensor as stored does, with f(i) as its byte i.
func filled(name string, dtype safetensors.DType, f func(i int) byte, shape ...int64) *Tensor {
	t := stored(name, dtype, shape...)
	for i := range t.Mapped {
		t.Mapped[i] = f(i)
	}
	return t
}

// values returns a tensor as stored does, of F32, with f(i) as its element i.
func values(name string, f func(i int) float32, shape ...int64) *Tensor {
	t := stored(name, safetensors.F32, shape...)
	for i := range len(t.Mapped) / 4 {
		put(t.Mapped, i, f(i))
	}
	return t
}

// all decodes a source in two steps, so that one begins in the middle, with the
// tensors mapped and not.
func all(t *testing.T, parts []*Tensor, make func([]*Tensor) (rows.Source, error)) []float32 {
	t.Helper()
	var first []float32
	for _, mapped := range []bool{true, false} {
		var list []*Tensor
		for _, p := range parts {
			if p == nil {
				list = append(list, nil)
				continue
			}
			c := *p
			if !mapped {
				c.Mapped = nil
			}
			list = append(list, &c)
		}
		src, err := make(list)
		if err != nil {
			t.Fatal(err)
		}
		n, width := gguf.Rows(src.NE()), src.NE()[0]
		got := slice(n * width)
		for a := int64(0); a < n; {
			b := min(n, a+1+a%3)
			if err := rows.Decode(src, got[a*width:b*width], new([]byte), a, b); err != nil {
				t.Fatal(err)
			}
			a = b
		}
		if first == nil {
			first = got
		}
		for i := range got {
			if got[i] != first[i] && !(math.IsNaN(float64(got[i])) && math.IsNaN(float64(first[i]))) {
				t.Fatalf("element %d: %v mapped, %v read", i, first[i], got[i])
			}
		}
	}
	return first
}

func slice(n int64) []float32 { return make([]float32, n) }

// TestFloat8 checks the values of the codes of 8 bits against the definition of the
// formats.
func TestFloat8(t *testing.T) {
	for _, c := range []struct {
		dtype safetensors.DType
		code  byte
		want  float64
	}{
		{safetensors.F8_E4M3, 0x00, 0}, {safetensors.F8_E4M3, 0x01, 0x1p-9}, {safetensors.F8_E4M3, 0x08, 0x1p-6},
		{safetensors.F8_E4M3, 0x38, 1},
		{safetensors.F8_E4M3, 0x7E, 448}, {safetensors.F8_E4M3, 0xFE, -448}, {safetensors.F8_E4M3, 0x7F, math.NaN()},
		{safetensors.F8_E4M3, 0xB9, -1.125},
		{safetensors.F8_E5M2, 0x01, 0x1p-16}, {safetensors.F8_E5M2, 0x3C, 1}, {safetensors.F8_E5M2, 0x7B, 57344},
		{safetensors.F8_E5M2, 0x7C, math.Inf(1)},
		{safetensors.F8_E5M2, 0xFC, math.Inf(-1)}, {safetensors.F8_E5M2, 0x7D, math.NaN()},
		{safetensors.F8_E4M3FNUZ, 0x80, math.NaN()},
		{safetensors.F8_E4M3FNUZ, 0x7F, 240}, {safetensors.F8_E5M2FNUZ, 0x7F, 57344},
		{safetensors.F8_E5M2FNUZ, 0x01, 0x1p-17},
		{safetensors.F8_E8M0, 0, 0x1p-127}, {safetensors.F8_E8M0, 127, 1}, {safetensors.F8_E8M0, 254, 0x1p127},
		{safetensors.F8_E8M0, 255, math.NaN()},
	} {
		if got := float64(codesOf(c.dtype).table[c.code]); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%v %#x: %v, want %v", c.dtype, c.code, got, c.want)
		}
	}
	if math.Signbit(float64(codesOf(safetensors.F8_E4M3).table[0x80])) != true {
		t.Error("negative zero is lost")
	}
}

// TestScaled checks which scale belongs to which code, for each shape of scales.
func TestScaled(t *testing.T) {
	code := func(i int) byte { return byte(i*29 + 3) }
	scale := func(i int) float32 { return float32(i) + 0.5 }
	for _, c := range []struct {
		what         string
		shape, scale []int64
		config       settings
		index        func(e, r, c int64) int64 // of the scale
	}{
		{"a number", []int64{5, 7}, nil, nil, func(e, r, c int64) int64 { return 0 }},
		{"a list of one", []int64{5, 7}, []int64{1}, nil, func(e, r, c int64) int64 { return 0 }},
		{"a number although blocks are set", []int64{5, 7}, []int64{1, 1}, settings{"weight_block_size": []int64{2, 2}},
			func(e, r, c int64) int64 { return 0 }},
		{"rows", []int64{5, 7}, []int64{5}, nil, func(e, r, c int64) int64 { return r }},
		{"rows in a column", []int64{5, 7}, []int64{5, 1}, settings{"weight_block_size": []int64{2, 2}},
			func(e, r, c int64) int64 { return r }},
		{"columns", []int64{5, 7}, []int64{1, 7}, nil, func(e, r, c int64) int64 { return c }},
		{"blocks", []int64{5, 7}, []int64{3, 2}, settings{"weight_block_size": []int64{2, 4}},
			func(e, r, c int64) int64 { return r/2*2 + c/4 }},
		{"blocks of a group", []int64{5, 7}, []int64{3, 2},
			settings{"config_groups": settings{"g": settings{"weights": settings{"block_structure": []int64{2, 4}}}}},
			func(e, r, c int64) int64 { return r/2*2 + c/4 }},
		{"blocks as a text", []int64{5, 7}, []int64{3, 2},
			settings{"config_groups": settings{"g": settings{"weights": settings{"block_structure": "2x4"}}}},
			func(e, r, c int64) int64 { return r/2*2 + c/4 }},
		{"experts with blocks", []int64{2, 5, 7}, []int64{2, 3, 2}, settings{"weight_block_size": []int64{2, 4}},
			func(e, r, c int64) int64 { return e*6 + r/2*2 + c/4 }},
		{"experts", []int64{2, 5, 7}, []int64{2}, nil, func(e, r, c int64) int64 { return e }},
		{"rows of experts", []int64{2, 5, 7}, []int64{2, 5, 1}, nil, func(e, r, c int64) int64 { return e*5 + r }},
		{"columns of experts", []int64{2, 5, 7}, []int64{2, 1, 7}, nil, func(e, r, c int64) int64 { return e*7 + c }},
		{"a vector", []int64{7}, []int64{1}, nil, func(e, r, c int64) int64 { return 0 }},
	} {
		for _, dtype := range []safetensors.DType{safetensors.F8_E4M3, safetensors.F8_E5M2, safetensors.I8} {
			w := filled("w", dtype, code, c.shape...)
			s := values("s", scale, c.scale...)
			got := all(t, []*Tensor{w, s}, func(p []*Tensor) (rows.Source, error) { return scaled(p, c.config) })
			width, height := c.shape[len(c.shape)-1], int64(1)
			if len(c.shape) > 1 {
				height = c.shape[len(c.shape)-2]
			}
			for i, g := range got {
				r := int64(i) / width
				want := codesOf(dtype).table[w.Mapped[i]] * scale(int(c.index(r/height, r%height, int64(i)%width)))
				if g != want && !(math.IsNaN(float64(g)) && math.IsNaN(float64(want))) {
					t.Fatalf("%s, %v: element %d: %v, want %v", c.what, dtype, i, g, want)
				}
			}
		}
	}
	for _, c := range []struct {
		shape, scale []int64
		config       settings
		text         string
	}{
		{[]int64{5, 7}, []int64{3, 2}, nil, "no weight_block_size"},
		{[]int64{5, 7}, []int64{2, 2}, settings{"weight_block_size": []int64{2, 4}}, "each block of [2 4]"},
		{[]int64{5, 7}, []int64{5, 7, 1}, nil, "[5 7 1]"},
		{[]int64{5, 7}, []int64{7}, nil, "[7]"},
		{[]int64{5, 7}, []int64{3, 2}, settings{"weight_block_size": []int64{2}}, "weight_block_size is [2]"},
		{[]int64{5, 7}, []int64{3, 2}, settings{"weight_block_size": []int64{0, 4}}, "[0 4]"},
		{[]int64{5, 7}, []int64{3, 2},
			settings{"config_groups": settings{"g": settings{"weights": settings{"block_structure": "2 by 4"}}}},
			`"2 by 4"`},
		{[]int64{0, 7}, []int64{1}, nil, "at least 1"},
		{nil, nil, nil, "at least one dimension"},
	} {
		_, err := scaled([]*Tensor{stored("w", safetensors.F8_E4M3, c.shape...),
			stored("s", safetensors.F32, c.scale...)}, c.config)
		if err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("codes %v, scales %v: %v, want %q", c.shape, c.scale, err, c.text)
		}
	}
}

// TestZeroPoint checks that integer zero points are subtracted from the codes.
func TestZeroPoint(t *testing.T) {
	w := filled("w", safetensors.I8, func(i int) byte { return byte(i * 31) }, 4, 6)
	z := filled("z", safetensors.I8, func(i int) byte { return byte(-i) }, 4, 1)
	s := values("s", func(i int) float32 { return float32(i + 1) }, 4, 1)
	got := all(t, []*Tensor{w, s, z}, func(p []*Tensor) (rows.Source, error) { return scaled(p, settings{}) })
	for i, g := range got {
		if want := (float32(int8(w.Mapped[i])) + float32(i/6)) * float32(i/6+1); g != want {
			t.Fatalf("element %d: %v, want %v", i, g, want)
		}
	}
	if _, err := scaled([]*Tensor{w, s, stored("z", safetensors.I8, 4)}, settings{}); err == nil {
		t.Error("zero points of another shape: no error")
	}
}

// TestRanks checks that each rank of a joined projection has rows of scales of its
// own, and that a grid of scales without padding for ranks is read as one.
func TestRanks(t *testing.T) {
	config := settings{"weight_block_size": []int64{4, 4}}
	for _, c := range []struct {
		height, grid, ranks int64
	}{{40, 16, 8}, {40, 12, 4}, {32, 8, 8}, {40, 10, 1}} {
		w := filled("qkv_proj.weight", safetensors.F8_E4M3, func(i int) byte { return 0x38 }, c.height, 3)
		s := values("qkv_proj.weight_scale_inv", func(i int) float32 { return float32(i) }, c.grid, 1)
		var ranks int64
		got := all(t, []*Tensor{w, s}, func(p []*Tensor) (rows.Source, error) {
			src, err := ranked(p, config)
			if err == nil {
				ranks = Ranks(src)
			}
			return src, err
		})
		if ranks != c.ranks {
			t.Errorf("%d rows, grid of %d: %d ranks, want %d", c.height, c.grid, ranks, c.ranks)
		}
		rank := c.height / c.ranks
		for i, g := range got {
			r := int64(i) / 3
			if want := float32(r/rank*ceil(rank, 4) + r%rank/4); g != want {
				t.Fatalf("%d rows, grid of %d: row %d has scale %v, want %v", c.height, c.grid, r, g, want)
			}
		}
	}
}

// FuzzScaled makes weights of any shapes: accepted ones can be read.
func FuzzScaled(f *testing.F) {
	f.Add(uint8(5), uint8(7), uint8(0), uint8(3), uint8(2), uint8(0), int64(2), int64(4), uint8(0))
	f.Add(uint8(40), uint8(3), uint8(0), uint8(16), uint8(1), uint8(0), int64(4), int64(4), uint8(3))
	f.Add(uint8(2), uint8(5), uint8(7), uint8(2), uint8(5), uint8(1), int64(0), int64(-1), uint8(1))
	f.Fuzz(func(t *testing.T, a, b, c, d, e, g uint8, rows0, columns int64, how uint8) {
		shape := func(n ...uint8) (s []int64) {
			for _, n := range n {
				if n > 0 {
					s = append(s, int64(n%64))
				}
			}
			return s
		}
		parts := []*Tensor{stored("w", f8[how%4], shape(a, b, c)...), stored("s", scales[how/4%4], shape(d, e, g)...)}
		config := settings{"weight_block_size": []int64{rows0, columns}}
		for _, make := range []func([]*Tensor, Settings) (rows.Source, error){scaled, ranked} {
			if src, err := make(parts, config); err == nil {
				readAll(t, src)
			}
		}
	})
}

// readAll reads all rows of a source that was accepted; values may be any.
func readAll(t *testing.T, src rows.Source) {
	t.Helper()
	n := gguf.Rows(src.NE())
	raw, err := src.Raw(new([]byte), 0, n)
	if err != nil {
		t.Fatal(err)
	}
	if want := n * src.Type().RowBytes(src.NE()[0]); int64(len(raw)) != want {
		t.Fatalf("%d bytes, want %d", len(raw), want)
	}
}
