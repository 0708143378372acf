package rows

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
)

// read returns all rows of s as F16 bit patterns, read in all ways to cut them in
// two; the ways must agree.
func read(t *testing.T, s Source) []uint16 {
	t.Helper()
	n := gguf.Rows(s.NE())
	var first []byte
	for cut := int64(0); cut < n; cut++ {
		var got, buf []byte
		for _, r := range [][2]int64{{0, cut}, {cut, n}} {
			if r[0] == r[1] {
				continue
			}
			raw, err := s.Raw(&buf, r[0], r[1])
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, raw...)
		}
		if first == nil {
			first = got
		}
		if !bytes.Equal(got, first) {
			t.Fatalf("cut at row %d gives other rows", cut)
		}
	}
	out := make([]uint16, len(first)/2)
	for i := range out {
		out[i] = binary.LittleEndian.Uint16(first[2*i:])
	}
	return out
}

// at returns the index of an element in a tensor of dimensions ne.
func at(ne []int64, index ...int64) uint16 {
	i, step := int64(0), int64(1)
	for d, n := range ne {
		i += index[d] * step
		step *= n
	}
	return uint16(i)
}

// want fills dimensions ne with the values that f gives.
func want(ne []int64, f func(x, y, z int64) uint16) []uint16 {
	dims := append(slices.Clone(ne), 1, 1)
	var out []uint16
	for z := range dims[2] {
		for y := range dims[1] {
			for x := range dims[0] {
				out = append(out, f(x, y, z))
			}
		}
	}
	return out
}

func TestViews(t *testing.T) {
	ne := []int64{3, 4, 5}
	src := numbered(ne...)
	must := func(s Source, err error) Source {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for name, c := range map[string]struct {
		src Source
		ne  []int64
		f   func(x, y, z int64) uint16
	}{
		"transpose": {must(Transpose(src)), []int64{4, 3, 5},
			func(x, y, z int64) uint16 { return at(ne, y, x, z) }},
		"twice": {must(Transpose(must(Transpose(src)))), ne,
			func(x, y, z int64) uint16 { return at(ne, x, y, z) }},
		"columns": {must(Slice(src, 0, 1, 3)), []int64{2, 4, 5},
			func(x, y, z int64) uint16 { return at(ne, x+1, y, z) }},
		"rows": {must(Slice(src, 1, 1, 3)), []int64{3, 2, 5},
			func(x, y, z int64) uint16 { return at(ne, x, y+1, z) }},
		"matrices": {must(Slice(src, 2, 3, 5)), []int64{3, 4, 2},
			func(x, y, z int64) uint16 { return at(ne, x, y, z+3) }},
		"reshape-wider": {must(Reshape(src, []int64{12, 5})), []int64{12, 5},
			func(x, y, _ int64) uint16 { return uint16(y*12 + x) }},
		"reshape-narrow": {must(Reshape(src, []int64{2, 30})), []int64{2, 30},
			func(x, y, _ int64) uint16 { return uint16(y*2 + x) }},
		"stack": {must(Stack([]Source{numbered(3, 4), numbered(3, 4)})), []int64{3, 4, 2},
			func(x, y, _ int64) uint16 { return uint16(y*3 + x) }},
		"concat": {must(Concat([]Source{numbered(3, 2), numbered(3, 1), numbered(3, 2)})), []int64{3, 5},
			func(x, y, _ int64) uint16 {
				return uint16([]int64{0, 1, 0, 0, 1}[y]*3 + x)
			}},
		"concat-biases": {must(Concat([]Source{numbered(2), numbered(3)})), []int64{5},
			func(x, _, _ int64) uint16 { return []uint16{0, 1, 0, 1, 2}[x] }},
		"concat-rows": {must(ConcatRows([]Source{numbered(3, 1, 2), numbered(3, 2, 2)})), []int64{3, 3, 2},
			func(x, y, z int64) uint16 {
				if y == 0 {
					return at([]int64{3, 1, 2}, x, 0, z)
				}
				return at([]int64{3, 2, 2}, x, y-1, z)
			}},
		"bias-slice": {must(Slice(numbered(7), 0, 2, 5)), []int64{3},
			func(x, _, _ int64) uint16 { return uint16(x + 2) }},
		"regroup": {must(Regroup(numbered(6), func(i int64) int64 { return i/2 + i%2*3 })), []int64{6},
			func(x, _, _ int64) uint16 { return []uint16{0, 3, 1, 4, 2, 5}[x] }},
		"ungroup": {must(UngroupQKV(numbered(1, 12), 2, 1)), []int64{1, 12}, func(_, y, _ int64) uint16 {
			return []uint16{0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11}[y] // heads of 2 rows: q k v q k v
		}},
		"ungroup-two-queries": {must(UngroupQKV(numbered(8), 2, 2)), []int64{8}, func(x, _, _ int64) uint16 {
			return []uint16{0, 1, 4, 5, 2, 6, 3, 7}[x] // q q k v q q k v
		}},
		"large-transpose": {must(Transpose(numbered(7, 200))), []int64{200, 7},
			func(x, y, _ int64) uint16 { return uint16(x*7 + y) }},
	} {
		t.Run(name, func(t *testing.T) {
			if !slices.Equal(c.src.NE(), c.ne) {
				t.Fatalf("dimensions %v, want %v", c.src.NE(), c.ne)
			}
			if got, want := read(t, c.src), want(c.ne, c.f); !slices.Equal(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
	}
}

// TestViewsRefuse: shapes that do not fit are errors, not panics later.
func TestViewsRefuse(t *testing.T) {
	src := numbered(4, 6)
	blocks := &memory{ne: []int64{64, 2}, typ: gguf.TypeQ8_0, data: make([]byte, 4*34)}
	for name, err := range map[string]error{
		"slice dimension": second(Slice(src, 2, 0, 1)),
		"slice range":     second(Slice(src, 1, 2, 7)),
		"slice empty":     second(Slice(src, 1, 2, 2)),
		"slice blocks":    second(Slice(blocks, 0, 16, 48)),
		"reshape":         second(Reshape(src, []int64{5, 5})),
		"reshape zero":    second(Reshape(src, []int64{0, 5})),
		"reshape blocks":  second(Reshape(blocks, []int64{16, 8})),
		"transpose bias":  second(Transpose(numbered(4))),
		"transpose block": second(Transpose(blocks)),
		"stack":           second(Stack([]Source{src, numbered(4, 5)})),
		"concat":          second(Concat([]Source{src, numbered(5, 6)})),
		"concat rows":     second(ConcatRows([]Source{numbered(4, 6, 2), numbered(4, 6, 3)})),
		"ungroup rows":    second(UngroupQKV(src, 4, 1)),
		"ungroup heads":   second(UngroupQKV(src, 1, 5)),
		"ungroup none":    second(UngroupQKV(src, 0, 1)),
		"ungroup many":    second(UngroupQKV(src, 1, math.MaxInt64)),
		"ungroup stack":   second(UngroupQKV(numbered(2, 3, 2), 1, 1)),
		"gather":          second(Gather(src, []int64{5, 1}, func(i int64) int64 { return i })),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second(_ Source, err error) error { return err }

// TestMap computes in the source's precision: F16 rounds after the operation,
// all others become F32.
func TestMap(t *testing.T) {
	// 1 and 2^-11, half of a step at 1
	f16 := &memory{ne: []int64{2}, typ: gguf.TypeF16, data: []byte{0x00, 0x3c, 0x00, 0x10}}
	m := Map(f16, Add(1))
	if m.Type() != gguf.TypeF16 {
		t.Fatalf("type %v", m.Type())
	}
	if got := read(t, m); !slices.Equal(got, []uint16{0x4000, 0x3c00}) {
		t.Errorf("F16: %x", got)
	}
	m = Map(Convert(f16, gguf.TypeBF16), Scale(-3))
	raw, err := m.Raw(new([]byte), 0, 1)
	if err != nil || m.Type() != gguf.TypeF32 {
		t.Fatal(m.Type(), err)
	}
	if got := math.Float32frombits(binary.LittleEndian.Uint32(raw)); got != -3 {
		t.Errorf("F32: %v", got)
	}
}

func TestCompute(t *testing.T) {
	s := Compute([]int64{3, 5}, func(dst []float32, row int64) {
		for i := range dst {
			dst[i] = float32(row*3 + int64(i))
		}
	})
	var got []float32
	for _, part := range [][2]int64{{0, 1}, {1, 4}, {4, 4}, {4, 5}} {
		x := make([]float32, 3*(part[1]-part[0]))
		if err := Decode(s, x, new([]byte), part[0], part[1]); err != nil {
			t.Fatal(err)
		}
		got = append(got, x...)
	}
	for i, v := range got {
		if v != float32(i) {
			t.Fatalf("element %d is %v", i, v)
		}
	}
	if len(got) != 15 {
		t.Errorf("%d elements", len(got))
	}
}

func TestEqual(t *testing.T) {
	a, b := numbered(3, 4), numbered(3, 4)
	if same, err := Equal(a, b); !same || err != nil {
		t.Errorf("equal ones: %v %v", same, err)
	}
	b.data[23] ^= 1
	for name, other := range map[string]Source{"a flipped bit": b, "shape": numbered(4, 3),
		"type": Convert(a, gguf.TypeF32)} {
		if same, err := Equal(a, other); same || err != nil {
			t.Errorf("%s: %v %v", name, same, err)
		}
	}
}

func BenchmarkTranspose(b *testing.B) {
	const n = 2048
	s, err := Transpose(numbered(n, n))
	if err != nil {
		b.Fatal(err)
	}
	var buf []byte
	b.SetBytes(2 * n * n)
	for b.Loop() {
		for i := int64(0); i < n; i += 128 {
			if _, err := s.Raw(&buf, i, i+128); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// TestIntegers widens and narrows integers, and refuses those that do not fit.
func TestIntegers(t *testing.T) {
	numbers := []int64{0, -1, 1, 127, -128, 5}
	sizes := map[gguf.Type]int{gguf.TypeI8: 1, gguf.TypeI16: 2, gguf.TypeI32: 4, gguf.TypeI64: 8}
	bytesOf := func(typ gguf.Type, numbers []int64) []byte {
		var b []byte
		for _, n := range numbers {
			b = append(b, binary.LittleEndian.AppendUint64(nil, uint64(n))[:sizes[typ]]...)
		}
		return b
	}
	for from := range sizes {
		for to := range sizes {
			s := Integers(Stored([]int64{2, 3}, from, bytesOf(from, numbers), nil), to)
			var buf []byte
			got, err := s.Raw(&buf, 1, 3)
			if err != nil || s.Type() != to || !bytes.Equal(got, bytesOf(to, numbers[2:])) {
				t.Errorf("%v to %v: %v %v %v", from, to, s.Type(), got, err)
			}
		}
	}
	for _, n := range []int64{1 << 31, -1<<31 - 1} {
		s := Integers(Stored([]int64{2, 2}, gguf.TypeI64, bytesOf(gguf.TypeI64, []int64{0, 0, 0, n}), nil),
			gguf.TypeI32)
		var buf []byte
		if _, err := s.Raw(&buf, 0, 1); err != nil {
			t.Error(err)
		}
		if _, err := s.Raw(&buf, 1, 2); !errors.Is(err, fault.Broken) ||
			!strings.Contains(err.Error(), "row 1, column 1") {
			t.Errorf("%d as I32: %v, want an error that names row and column", n, err)
		}
	}
}

// TestPadRows checks that rows of zeros come after those of the matrix.
func TestPadRows(t *testing.T) {
	s := &memory{ne: []int64{2, 2}, typ: gguf.TypeF16, data: []byte{1, 0, 2, 0, 3, 0, 4, 0}}
	p, err := PadRows(s, 5)
	if err != nil || !slices.Equal(p.NE(), []int64{2, 5}) {
		t.Fatal(err)
	}
	if got := read(t, p); !slices.Equal(got, []uint16{1, 2, 3, 4, 0, 0, 0, 0, 0, 0}) {
		t.Errorf("rows %v", got)
	}
	if p, err = PadRows(s, 1); p != Source(s) || err != nil {
		t.Errorf("a matrix with more rows is %v, %v", p, err)
	}
	if _, err = PadRows(&memory{ne: []int64{4}, typ: gguf.TypeF16}, 5); err == nil {
		t.Error("a vector is taken for a matrix")
	}
}

// TestScatter puts rows among rows of zeros.
func TestScatter(t *testing.T) {
	s := &memory{ne: []int64{2, 2}, typ: gguf.TypeF16, data: []byte{1, 0, 2, 0, 3, 0, 4, 0}}
	p, err := Scatter(s, 5, map[int64]int64{3: 0, 0: 1})
	if err != nil || !slices.Equal(p.NE(), []int64{2, 5}) {
		t.Fatal(err)
	}
	if got := read(t, p); !slices.Equal(got, []uint16{3, 4, 0, 0, 0, 0, 1, 2, 0, 0}) {
		t.Errorf("rows %v", got)
	}
	for _, from := range []map[int64]int64{{5: 0}, {-1: 0}, {0: 2}, {0: -1}} {
		if _, err := Scatter(s, 5, from); err == nil {
			t.Errorf("%v is taken for rows of a matrix", from)
		}
	}
	if _, err := Scatter(&memory{ne: []int64{4}, typ: gguf.TypeF16}, 5, nil); err == nil {
		t.Error("a vector is taken for a matrix")
	}
}

// TestConcatColumns joins rows next to each other.
func TestConcatColumns(t *testing.T) {
	left, right := Float32s([]float32{1, 2, 3, 4}), Float32s([]float32{5, 6})
	l, _ := Reshape(left, []int64{2, 2})
	r, _ := Reshape(right, []int64{1, 2})
	s, err := ConcatColumns([]Source{l, Convert(r, gguf.TypeF16)})
	if err != nil {
		t.Fatal(err)
	}
	for a := range int64(2) {
		got := make([]float32, 3)
		if err := Decode(s, got, new([]byte), a, a+1); err != nil {
			t.Fatal(err)
		}
		if want := [][]float32{{1, 2, 5}, {3, 4, 6}}[a]; !slices.Equal(got, want) {
			t.Errorf("row %d: %v, want %v", a, got, want)
		}
	}
	if got, err := s.Raw(new([]byte), 0, 2); err != nil || len(got) != 24 || !slices.Equal(s.NE(), []int64{3, 2}) {
		t.Errorf("both rows: %d bytes of %v, %v", len(got), s.NE(), err)
	}
	if _, err := ConcatColumns([]Source{l, left}); err == nil {
		t.Error("a matrix and a vector join")
	}
}
