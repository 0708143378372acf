package rows

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/gguf"
	"ggforge/internal/io/mmap"
	"ggforge/internal/kernel/torchmath"
	"ggforge/quants"
)

// numbered returns a matrix of F16 bit patterns 0, 1, 2, ...
func numbered(ne ...int64) *memory {
	n := gguf.Rows(ne) * ne[0]
	m := &memory{ne: ne, typ: gguf.TypeF16, data: make([]byte, 2*n)}
	for i := range n {
		binary.LittleEndian.PutUint16(m.data[2*i:], uint16(i))
	}
	return m
}

// permuted is the reference's rule written down as index arithmetic on the shape
// [heads, 2, half, columns] with the middle dimensions swapped.
func permuted(heads, rows, columns int64) []uint16 {
	half := rows / heads / 2
	var want []uint16
	for h := range heads {
		for i := range half {
			for j := range int64(2) {
				for c := range columns {
					want = append(want, uint16(((h*2+j)*half+i)*columns+c))
				}
			}
		}
	}
	return want
}

func TestPermuteRope(t *testing.T) {
	for _, c := range []struct{ heads, rows, columns int64 }{{1, 2, 3}, {2, 8, 5}, {3, 18, 1}, {4, 64, 7}} {
		p, err := PermuteRope(numbered(c.columns, c.rows), c.heads)
		if err != nil {
			t.Fatal(err)
		}
		bias, err := PermuteRope(numbered(c.rows), c.heads)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []struct {
			src     Source
			columns int64
			rows    int64
		}{{p, c.columns, c.rows}, {bias, 1, 1}} {
			var want []byte
			for _, v := range permuted(c.heads, c.rows, s.columns) {
				want = binary.LittleEndian.AppendUint16(want, v)
			}
			// read in all ways to cut the rows in two
			for cut := int64(0); cut <= s.rows; cut++ {
				var got, buf []byte
				for _, r := range [][2]int64{{0, cut}, {cut, s.rows}} {
					if r[0] == r[1] {
						continue
					}
					raw, err := s.src.Raw(&buf, r[0], r[1])
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, raw...)
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("%+v, columns %d, cut %d: %v, want %v", c, s.columns, cut, got, want)
				}
			}
			back, err := UnpermuteRope(s.src, c.heads)
			if err != nil {
				t.Fatal(err)
			}
			var buf []byte
			got, err := back.Raw(&buf, 0, s.rows)
			if err != nil {
				t.Fatal(err)
			}
			for i := range len(got) / 2 {
				if v := binary.LittleEndian.Uint16(got[2*i:]); int(v) != i {
					t.Fatalf("%+v, columns %d: element %d is %d after both permutations", c, s.columns, i, v)
				}
			}
		}
	}
	for _, ne := range [][]int64{{4, 7}, {4, 6}, {5}, {4, 4, 2}} {
		if _, err := PermuteRope(numbered(ne...), 2); err == nil {
			t.Errorf("dimensions %v: no error for 2 heads", ne)
		}
		if _, err := UnpermuteRope(numbered(ne...), 2); err == nil {
			t.Errorf("dimensions %v: no error of UnpermuteRope for 2 heads", ne)
		}
	}
	blocks := &memory{ne: []int64{64}, typ: gguf.TypeQ8_0, data: make([]byte, 68)}
	if _, err := UnpermuteRope(blocks, 2); err == nil {
		t.Error("no error for a bias in blocks")
	}
}

func TestBigEndian(t *testing.T) {
	x := []float32{1, -2.5, 3e-5, 1000}
	little := make([]byte, 8)
	if err := quants.Lookup(gguf.TypeF16).Quantize(little, x, 4, nil); err != nil {
		t.Fatal(err)
	}
	big := bytes.Clone(little)
	gguf.TypeF16.SwapBytes(big)
	m := &memory{ne: []int64{2, 2}, typ: gguf.TypeF16, data: big, swap: true}
	var buf []byte
	for range 2 {
		raw, err := m.Raw(&buf, 0, 2)
		if err != nil || !bytes.Equal(raw, little) {
			t.Fatalf("%v %v, want %v", raw, err, little)
		}
	}
	got := make([]float32, 2)
	if err := Decode(m, got, &buf, 1, 2); err != nil || got[1] != 1000 {
		t.Errorf("%v %v", got, err)
	}
}

// TestFile checks that rows are the same from the mapping of a file and read from it.
func TestFile(t *testing.T) {
	const rowLen, n = 512, 3 * readBytes / 2 / 512
	want := numbered(rowLen, n)
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := safetensorstest.Write(path, []safetensorstest.Tensor{
		{Name: "a", DType: safetensors.F16, Shape: []int64{1}, Data: []byte{1, 2}},
		{Name: "b", DType: safetensors.F16, Shape: []int64{n, rowLen}, Data: want.data},
	}, nil); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tensor, _ := f.Lookup("b")
	src := Stored([]int64{rowLen, n}, gguf.TypeF16, tensor.Data(), tensor)
	swapped, unmapped := *src.(*memory), *src.(*memory)
	swapped.swap, unmapped.data = true, nil
	var buf []byte
	for _, r := range [][2]int64{{0, n}, {0, 1}, {n - 1, n}, {1, n}, {0, n / 3}, {n / 3, n}, {n, n}} {
		for _, swap := range []bool{false, true} {
			s, part := src, bytes.Clone(want.data[r[0]*2*rowLen:r[1]*2*rowLen])
			if swap {
				s = &swapped
				gguf.TypeF16.SwapBytes(part)
			}
			if raw, err := s.Raw(&buf, r[0], r[1]); err != nil || !bytes.Equal(raw, part) {
				t.Errorf("rows %v, swapped %v: %d bytes, %v, want the file's %d", r, swap, len(raw), err, len(part))
			}
		}
		if raw, err := unmapped.Raw(&buf, r[0], r[1]); err != nil ||
			!bytes.Equal(raw, want.data[r[0]*2*rowLen:r[1]*2*rowLen]) {
			t.Errorf("rows %v, not mapped: %d bytes, %v", r, len(raw), err)
		}
	}
	if raw, err := unmapped.Part(&buf, 1, 2, 6); err != nil || !bytes.Equal(raw, want.data[2*rowLen+2:2*rowLen+6]) {
		t.Errorf("part of a row, not mapped: %x, %v", raw, err)
	}
	if err := os.Truncate(path, f.Size-1); err != nil {
		t.Skip(err) // systems that do not shorten mapped files
	}
	if _, err := src.Raw(&buf, 0, n); !errors.Is(err, mmap.ErrChanged) {
		t.Errorf("file that has become shorter: %v, want ErrChanged", err)
	}
}

func TestConvert(t *testing.T) {
	x := []float32{1, -2.5, 3e-5, 70000, 1.0009765, 0}
	s := Convert(&memory{ne: []int64{2, 3}, typ: gguf.TypeF32, data: encode(t, gguf.TypeF32, x)}, gguf.TypeF16)
	want := encode(t, gguf.TypeF16, x)
	var buf []byte
	for a := range int64(3) {
		for b := a + 1; b <= 3; b++ {
			raw, err := s.Raw(&buf, a, b)
			if err != nil || s.Type() != gguf.TypeF16 || !bytes.Equal(raw, want[4*a:4*b]) {
				t.Errorf("rows %d to %d: %x %v, want %x", a, b, raw, err, want[4*a:4*b])
			}
		}
	}
	if m := numbered(4, 2); Convert(m, gguf.TypeF16) != Source(m) {
		t.Error("a conversion to the same type is not the source")
	}
}

func encode(t *testing.T, typ gguf.Type, x []float32) []byte {
	t.Helper()
	b := make([]byte, typ.RowBytes(int64(len(x))))
	if err := quants.Lookup(typ).Quantize(b, x, len(x), nil); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestZero(t *testing.T) {
	for _, c := range []struct {
		values []float32
		want   bool
	}{
		{make([]float32, 3*equalStep+1), true},
		{append(make([]float32, 3*equalStep), 1e-45), false},
		{[]float32{0, float32(math.Copysign(0, -1))}, true},
		{[]float32{0, float32(math.NaN())}, false},
	} {
		ne := []int64{1, int64(len(c.values))}
		s, err := Reshape(Float32s(c.values), ne)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Zero(s); got != c.want || err != nil {
			t.Errorf("%d values: %v, error %v; want %v", len(c.values), got, err, c.want)
		}
	}
}

// TestPrepared reads a tensor that is made when it is first read, once.
func TestPrepared(t *testing.T) {
	made := 0
	s := Prepared([]int64{4, 2}, gguf.TypeF16, func() (Source, error) {
		made++
		return numbered(4, 2), nil
	})
	var buf []byte
	for range 2 {
		raw, err := s.Raw(&buf, 1, 2)
		if err != nil || !bytes.Equal(raw, []byte{4, 0, 5, 0, 6, 0, 7, 0}) {
			t.Fatalf("%v, error %v", raw, err)
		}
	}
	if made != 1 {
		t.Errorf("made %d times", made)
	}
	failing := Prepared([]int64{1}, gguf.TypeF32, func() (Source, error) { return nil, errors.New("no") })
	if _, err := failing.Raw(&buf, 0, 1); err == nil {
		t.Error("no error")
	}
}

// TestCost compares the costs of views with those of their sources.
func TestCost(t *testing.T) {
	base := numbered(64, 64)
	transposed, err := Transpose(base)
	if err != nil {
		t.Fatal(err)
	}
	half, err := Slice(transposed, 0, 0, 32)
	if err != nil {
		t.Fatal(err)
	}
	both, err := Stack([]Source{base, transposed})
	if err != nil {
		t.Fatal(err)
	}
	same, err := Reshape(transposed, []int64{64 * 64})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		source Source
		want   int64
	}{
		"stored":     {base, 0},
		"transposed": {transposed, costTranspose},
		"reshaped":   {same, costTranspose},
		"columns":    {half, 2*costTranspose + costGather},
		"joined":     {both, costTranspose / 2},
		"converted": {Convert(transposed, gguf.TypeF32),
			costTranspose + costDecode + quants.Lookup(gguf.TypeF32).Cost(false)},
	} {
		if got := c.source.Cost(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// BenchmarkSources measures the values of the cost… constants.
func BenchmarkSources(b *testing.B) {
	const n = 2048
	base := numbered(n, n)
	transposed, err := Transpose(base)
	if err != nil {
		b.Fatal(err)
	}
	permuted, err := PermuteRope(base, 16)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		s    Source
	}{{"stored", base}, {"transposed", transposed}, {"gathered", permuted}, {"mapped", Map(base, Add(1))},
		{"computed", Compute([]int64{n, n}, torchmath.NewSinusoids(n, n).Rows)}} {
		b.Run(c.name, func(b *testing.B) {
			var buf []byte
			for b.Loop() {
				for i := int64(0); i < n; i += 128 {
					if _, err := c.s.Raw(&buf, i, i+128); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())*1000/float64(b.N)/(n*n), "ps/element")
		})
	}
}
