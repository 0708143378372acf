package writer

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/quants"
	"ggforge/rows"
	"ggforge/test/gen"
)

// matrix is a tensor of float32 rows in memory.
type matrix struct {
	ne   []int64
	data []byte
	err  error // returned when row at is read
	at   int64
}

func newMatrix(x []float32, ne ...int64) *matrix {
	m := &matrix{ne: ne, data: make([]byte, 4*len(x))}
	if err := quants.Lookup(gguf.TypeF32).Quantize(m.data, x, len(x), nil); err != nil {
		panic(err)
	}
	return m
}

func (m *matrix) NE() []int64     { return m.ne }
func (m *matrix) Type() gguf.Type { return gguf.TypeF32 }
func (m *matrix) Cost() int64     { return 0 }
func (m *matrix) Raw(_ *[]byte, a, b int64) ([]byte, error) {
	if m.err != nil && a <= m.at && m.at < b {
		return nil, m.err
	}
	n := 4 * m.ne[0]
	return m.data[a*n : b*n], nil
}

var _ rows.Source = &matrix{}

// testFile has more blocks than workers in one tensor, several types and a
// tensor of one element.
func testFile(path string) *File {
	x, _ := gen.Input("normal/1x1024")
	var big []float32
	for len(big) < 3*blockElements {
		big = append(big, x...)
	}
	rows := int64(len(big)) / 512
	return &File{
		Path:     path,
		Metadata: gguf.Metadata{{Key: "general.architecture", Value: gguf.String("test")}},
		Tensors: []Tensor{
			{"one", gguf.TypeF32, newMatrix([]float32{1}, 1), nil, nil},
			{"k", gguf.TypeQ4_K, newMatrix(big, 512, rows), nil, nil},
			{"h", gguf.TypeF16, newMatrix(big, 512, rows/2, 2), nil, nil},
			{"copy", gguf.TypeF32, newMatrix(big[:1030], 103, 10), nil, nil},
		},
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestWorkersDoNotMatter(t *testing.T) {
	dir := t.TempDir()
	var first []byte
	for _, workers := range []int{1, 2, 8} {
		f := testFile(filepath.Join(dir, "out.gguf"))
		size := f.Size()
		var last Progress
		calls := 0
		res, err := Write(context.Background(), f,
			Options{Workers: workers, Force: true, Progress: func(p Progress) { last = p; calls++ }})
		if err != nil {
			t.Fatal(err)
		}
		b := read(t, f.Path)
		if int64(len(b)) != size || res.Bytes != size {
			t.Errorf("%d bytes, %d in the result, %d planned", len(b), res.Bytes, size)
		}
		if calls == 0 || last.Done != res.DataBytes || last.Total != res.DataBytes {
			t.Errorf("%d reports, the last %+v; want %d", calls, last, res.DataBytes)
		}
		if first == nil {
			first = b
		}
		if !bytes.Equal(b, first) {
			t.Errorf("%d workers give another file", workers)
		}
	}
	f, err := gguf.Parse("x", first)
	if err != nil {
		t.Fatal(err)
	}
	// rows of the file are those of the codec called directly
	k := testFile("").Tensors[1]
	want := make([]byte, len(f.Data(&f.Tensors[1])))
	x := make([]float32, gguf.Rows(k.Source.NE())*512)
	var buf []byte
	if err := rows.Decode(k.Source, x, &buf, 0, gguf.Rows(k.Source.NE())); err != nil {
		t.Fatal(err)
	}
	if err := quants.Lookup(gguf.TypeQ4_K).Quantize(want, x, 512, nil); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, f.Data(&f.Tensors[1])) {
		t.Error("tensor differs from its codec's output")
	}
}

// entries returns the names in a directory.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func TestErrorsLeaveNothing(t *testing.T) {
	nan := float32(math.NaN())
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	broken := errors.New("source breaks")
	row := make([]float32, 64)
	with := func(i int, v float32) []float32 {
		x := append([]float32(nil), row...)
		x[i] = v
		return x
	}
	for _, c := range []struct {
		name string
		ctx  context.Context
		t    Tensor
		kind error
		text string
	}{
		{"cancelled", cancelled, Tensor{"t", gguf.TypeF32, newMatrix(row, 64), nil, nil}, context.Canceled, ""},
		{"source", nil, Tensor{"t", gguf.TypeF32, &matrix{ne: []int64{64, 9}, data: make([]byte, 64*9*4), err: broken,
			at: 7}, nil, nil}, broken, `tensor "t"`},
		{"nan", nil, Tensor{"t", gguf.TypeQ8_0, newMatrix(with(37, nan), 32, 2), nil, nil}, fault.Broken,
			`tensor "t": row 1, column 5`},
		{"infinity-copied", nil, Tensor{"t", gguf.TypeF32, newMatrix(with(63, float32(math.Inf(-1))), 16, 4), nil, nil},
			fault.Broken, "row 3, column 15"},
		{"overflow", nil, Tensor{"t", gguf.TypeF16, newMatrix(with(3, 70000), 32, 2), nil, nil}, fault.Broken,
			"too large for F16"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			ctx := c.ctx
			if ctx == nil {
				ctx = context.Background()
			}
			_, err := Write(ctx, &File{Path: filepath.Join(dir, "out.gguf"), Tensors: []Tensor{c.t}},
				Options{Workers: 2})
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v with %q", err, c.kind, c.text)
			}
			if left := entries(t, dir); len(left) > 0 {
				t.Errorf("leftover files: %v", left)
			}
		})
	}
}

// TestCheck lets the check before the commit fail: the old file stays, no other
// file does.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.gguf")
	if err := os.WriteFile(path, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	changed := errors.New("input changed")
	check := func() error {
		if st, err := os.Stat(path + Suffix); err != nil || st.Size() != testFile(path).Size() {
			t.Errorf("not whole yet: %v", err)
		}
		return changed
	}
	if _, err := Write(context.Background(), testFile(path),
		Options{Force: true, Check: check}); !errors.Is(err, changed) {
		t.Errorf("got %v", err)
	}
	if left := entries(t, dir); len(left) != 1 || string(read(t, path)) != "old" {
		t.Errorf("leftover files: %v", left)
	}
}

func TestOverflowIsCounted(t *testing.T) {
	x := make([]float32, 64)
	x[3], x[40] = 70000, -1e30
	f := &File{Path: filepath.Join(t.TempDir(), "out.gguf"),
		Tensors: []Tensor{{"t", gguf.TypeF16, newMatrix(x, 32, 2), nil, nil}}}
	res, err := Write(context.Background(), f, Options{AllowOverflow: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Overflows) != 1 || res.Overflows[0] != (Count{"t", gguf.TypeF16, 2}) {
		t.Errorf("%+v", res.Overflows)
	}
}

func TestExistingOutput(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.gguf")
	if err := os.WriteFile(path, []byte("precious"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(context.Background(), testFile(path), Options{}); !errors.Is(err, fault.Usage) {
		t.Errorf("got %v, want an error of usage", err)
	}
	if string(read(t, path)) != "precious" {
		t.Error("output touched")
	}
	if _, err := Write(context.Background(), testFile(dir), Options{Force: true}); !errors.Is(err, fault.Usage) {
		t.Errorf("a directory as output: got %v", err)
	}
	if _, err := Write(context.Background(), testFile(path), Options{Force: true}); err != nil {
		t.Error(err)
	}
	if names := entries(t, dir); len(names) != 1 {
		t.Errorf("directory holds %v", names)
	}
	if _, err := Write(context.Background(), testFile(filepath.Join(dir, "no", "out.gguf")), Options{}); !errors.Is(err,
		fs.ErrNotExist) {
		t.Errorf("missing directory: got %v", err)
	}
}

// TestLeftovers checks that temporary files of an interrupted run are replaced, byte
// for byte, and that a run in progress is respected.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	clean := filepath.Join(dir, "clean.gguf")
	if _, err := Write(context.Background(), testFile(clean), Options{}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "out.gguf")
	if err := os.WriteFile(path+Suffix, bytes.Repeat([]byte{0xAA}, 9<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(context.Background(), testFile(path), Options{}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, path), read(t, clean)) {
		t.Error("leftovers show in the output")
	}
	if runtime.GOOS == "windows" {
		return // no locks there
	}
	p, err := create(path, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer p.discard()
	if _, err := Write(context.Background(), testFile(path), Options{Force: true}); !errors.Is(err, fault.Usage) {
		t.Errorf("second writer: got %v", err)
	}
}

func TestFullDisk(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("free space is asked for on linux only")
	}
	dir := t.TempDir()
	huge := &matrix{ne: []int64{1 << 20, 1 << 30}} // 4 PiB
	_, err := Write(context.Background(), &File{Path: filepath.Join(dir, "out.gguf"),
		Tensors: []Tensor{{"t", gguf.TypeF32, huge, nil, nil}}}, Options{})
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want no space left", err)
	}
	if left := entries(t, dir); len(left) > 0 {
		t.Errorf("leftover files: %v", left)
	}
}

func TestDistinct(t *testing.T) {
	dir := t.TempDir()
	in, link := filepath.Join(dir, "in.gguf"), filepath.Join(dir, "link.gguf")
	if err := os.WriteFile(in, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(in, link); err != nil {
		t.Skip(err)
	}
	for _, out := range []string{in, link, dir + "/./in.gguf"} {
		if err := distinct([]string{in}, []string{out}); !errors.Is(err, fault.Usage) {
			t.Errorf("%s: got %v", out, err)
		}
	}
	if err := distinct([]string{in}, []string{filepath.Join(dir, "other.gguf")}); err != nil {
		t.Error(err)
	}
}
