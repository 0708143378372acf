package writer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/quants"
	"ggforge/test/gen"
)

// asked is an Importance whose values a function returns.
type asked struct{ f func() ([]float32, error) }

func (a *asked) Values() ([]float32, error) { return a.f() }

// TestImportance checks that every slice along dimension 2 gets its own weights,
// however the rows are cut, and that slices along dimension 3 share them.
func TestImportance(t *testing.T) {
	const rowLen, rows, slices, outer = 256, 7, 5, 2
	x, _ := gen.Input("normal/70x256")
	weights := gen.Importance("skew", rowLen*slices)
	codec := quants.Lookup(gguf.TypeQ4_K)
	size := int(gguf.TypeQ4_K.RowBytes(rowLen)) * rows
	want := make([]byte, size*slices*outer)
	for s := range slices * outer {
		w := weights[s%slices*rowLen:][:rowLen]
		if err := codec.Quantize(want[s*size:][:size], x[s*rows*rowLen:][:rows*rowLen], rowLen, w); err != nil {
			t.Fatal(err)
		}
	}
	for _, opt := range []Options{{Workers: 1}, {Workers: 8}, {Workers: 8, MaxBuffer: 1},
		{Workers: 3, MaxBuffer: 12 * 3 * rowLen * 4}} {
		calls := 0
		f := &File{Path: filepath.Join(t.TempDir(), "out.gguf"), Tensors: []Tensor{
			{"t", gguf.TypeQ4_K, newMatrix(x, rowLen, rows, slices, outer),
				Weighted(&asked{func() ([]float32, error) { calls++; return weights, nil }}), nil},
			{"kept", gguf.TypeF32, newMatrix(x, rowLen, rows*slices*outer),
				Weighted(&asked{func() ([]float32, error) { return nil, errors.New("called") }}), nil},
		}}
		if _, err := Write(context.Background(), f, opt); err != nil {
			t.Fatal(err)
		}
		out, err := gguf.Parse("out", read(t, f.Path))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Data(&out.Tensors[0]), want) {
			t.Errorf("%+v: other bytes than slice by slice", opt)
		}
		if calls != 1 {
			t.Errorf("importance read %d times", calls)
		}
	}
}

// twice is an encoder with two vectors of importance for each tensor. It encodes
// with both and takes, row by row, the one whose result is nearer to the row
// without weights.
type twice struct {
	weights [2][]float32
	started int
}

func (e *twice) Begin([]int64) (RowEncoder, error) { e.started++; return e, nil }
func (e *twice) Cost(t gguf.Type) int64            { return 2 * quants.Lookup(t).Cost(true) }
func (e *twice) Encode(dst []byte, t gguf.Type, x []float32, a, b int64, s *Scratch) error {
	codec, n := quants.Lookup(t), len(x)/int(b-a)
	size := int(t.RowBytes(int64(n)))
	for i := range int(b - a) {
		row, out := x[i*n:(i+1)*n], dst[i*size:(i+1)*size]
		best := math.Inf(1)
		for _, w := range e.weights {
			try, back := s.Bytes(size), s.Float32s(n)
			if err := codec.Quantize(try, row, n, w); err != nil {
				return err
			}
			if err := codec.Dequantize(back, try); err != nil {
				return err
			}
			sum := 0.0
			for k := range row {
				sum += math.Pow(float64(row[k]-back[k]), 2)
			}
			if sum < best {
				best = sum
				copy(out, try)
			}
		}
	}
	return nil
}

// TestEncoder encodes a tensor by an encoder other than Weighted, with different numbers of workers, and checks the
// calls of the encoder.
func TestEncoder(t *testing.T) {
	const rowLen, nRows = 256, 600
	x, _ := gen.Input("normal/600x256")
	weights := [2][]float32{gen.Importance("skew", rowLen), gen.Importance("uni", rowLen)}
	want := make([]byte, gguf.TypeQ4_K.RowBytes(rowLen)*nRows)
	if err := (&twice{weights: weights}).Encode(want, gguf.TypeQ4_K, x, 0, nRows, &Scratch{}); err != nil {
		t.Fatal(err)
	}
	for w := range weights {
		single := make([]byte, len(want))
		if err := (vector{values: weights[w], rowLen: rowLen}).Encode(single, gguf.TypeQ4_K, x, 0, nRows,
			nil); err != nil || bytes.Equal(single, want) {
			t.Fatalf("vector %d alone wins everywhere (%v)", w, err)
		}
	}
	for _, workers := range []int{1, 7} {
		e := &twice{weights: weights}
		src := newMatrix(x, rowLen, nRows)
		f := &File{Path: filepath.Join(t.TempDir(), "o"), Tensors: []Tensor{{"t", gguf.TypeQ4_K, src, e, nil},
			{"again", gguf.TypeQ4_K, src, e, nil}, {"kept", gguf.TypeF32, src, e, nil}}}
		if _, err := Write(context.Background(), f, Options{Workers: workers, MaxBuffer: 1 << 20}); err != nil {
			t.Fatal(err)
		}
		out, err := gguf.Parse("out", read(t, f.Path))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			if !bytes.Equal(out.Data(&out.Tensors[i]), want) {
				t.Errorf("%d workers: tensor %d has other bytes than the encoder gives", workers, i)
			}
		}
		if e.started != 1 {
			t.Errorf("begun %d times", e.started)
		}
	}
}

func TestImportanceErrors(t *testing.T) {
	x, _ := gen.Input("normal/8x256")
	broken := errors.New("file breaks")
	for _, c := range []struct {
		f    func() ([]float32, error)
		kind error
	}{
		{func() ([]float32, error) { return nil, broken }, broken},
		{func() ([]float32, error) { return make([]float32, 255), nil }, fault.Refused},
		{func() ([]float32, error) { return nil, nil }, quants.ErrNeedsImportance},
	} {
		dir := t.TempDir()
		_, err := Write(context.Background(), &File{Path: filepath.Join(dir, "o"),
			Tensors: []Tensor{{"t", gguf.TypeIQ2_XXS, newMatrix(x, 256, 4, 2), Weighted(&asked{c.f}), nil}}}, Options{})
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), `tensor "t"`) {
			t.Errorf("got %v, want %v", err, c.kind)
		}
		if left := entries(t, dir); len(left) > 0 {
			t.Errorf("leftover files: %v", left)
		}
	}
}

// TestDisplacedIsCounted checks the count of IQ3_S's damaged sub-blocks.
func TestDisplacedIsCounted(t *testing.T) {
	x, _ := gen.Input("normal/2x512")
	clear(x[32:96])   // two, displacing what follows
	clear(x[480:512]) // at the end of a superblock: harmless
	f := &File{Path: filepath.Join(t.TempDir(), "o"), Tensors: []Tensor{
		{"a", gguf.TypeIQ3_S, newMatrix(x, 512, 2), nil, nil}, {"b", gguf.TypeQ4_K, newMatrix(x, 512, 2), nil, nil}}}
	res, err := Write(context.Background(), f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Displaced) != 1 || res.Displaced[0] != (Count{"a", gguf.TypeIQ3_S, 2}) {
		t.Errorf("%+v", res.Displaced)
	}
}

// raw is a tensor of any type in memory.
type raw struct {
	*matrix
	typ gguf.Type
}

func (r raw) Type() gguf.Type { return r.typ }
func (r raw) Raw(_ *[]byte, a, b int64) ([]byte, error) {
	n := r.typ.RowBytes(r.ne[0])
	return r.data[a*n : b*n], nil
}

// TestBadScale checks that a scale that is not finite is named by its place, also
// in a tensor that is only copied.
func TestBadScale(t *testing.T) {
	data := make([]byte, gguf.DataBytes(gguf.TypeQ8_0, []int64{64, 300, 30}))
	const row, block = 8765, 1
	at := row*gguf.TypeQ8_0.RowBytes(64) + block*gguf.TypeQ8_0.BlockBytes()
	binary.LittleEndian.PutUint16(data[at:], 0x7C00)
	for _, to := range []gguf.Type{gguf.TypeQ8_0, gguf.TypeQ4_0} {
		src := raw{&matrix{ne: []int64{64, 300, 30}, data: data}, gguf.TypeQ8_0}
		_, err := Write(context.Background(), &File{Path: filepath.Join(t.TempDir(), "o"),
			Tensors: []Tensor{{"t", to, src, nil, nil}}}, Options{})
		if want := `tensor "t": row 8765, columns 32 to 63, Q8_0 block: d is +Inf`; !errors.Is(err, fault.Broken) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func shardSet(dir string) []*File {
	var files []*File
	for i := range 3 {
		f := testFile(filepath.Join(dir, gguf.ShardName("m", i, 3)))
		f.Tensors = f.Tensors[i : i+1]
		files = append(files, f)
	}
	return files
}

func TestWriteAll(t *testing.T) {
	dir := t.TempDir()
	files := shardSet(dir)
	res, err := WriteAll(context.Background(), files, Options{Workers: 4})
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, f := range files {
		b := read(t, f.Path)
		total += int64(len(b))
		if int64(len(b)) != f.Size() {
			t.Errorf("%s: %d bytes, predicted %d", f.Path, len(b), f.Size())
		}
		alone := *f
		alone.Path = filepath.Join(t.TempDir(), "alone")
		if _, err := Write(context.Background(), &alone, Options{}); err != nil ||
			!bytes.Equal(read(t, alone.Path), b) {
			t.Errorf("%s: other bytes than written alone (%v)", f.Path, err)
		}
	}
	if res.Bytes != total || len(entries(t, dir)) != 3 {
		t.Errorf("%d bytes, want %d; %v", res.Bytes, total, entries(t, dir))
	}
	if _, err := WriteAll(context.Background(), shardSet(dir), Options{}); !errors.Is(err, fault.Usage) {
		t.Errorf("existing shards: got %v", err)
	}
	if _, err := WriteAll(context.Background(), shardSet(dir), Options{Force: true}); err != nil ||
		len(entries(t, dir)) != 3 {
		t.Errorf("replacing: %v, %v", err, entries(t, dir))
	}
}

// TestWriteAllOrNone checks that an error in one file leaves none, and old ones
// alone.
func TestWriteAllOrNone(t *testing.T) {
	for _, name := range []string{"broken-source", "name-taken", "second-exists"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := shardSet(dir)
			want := 0
			switch name {
			case "broken-source":
				files[2].Tensors[0].Source = newMatrix([]float32{1, float32(math.NaN())}, 2)
				files[2].Tensors[0].Type = gguf.TypeF32
			case "name-taken": // found before anything is written
				want = 1
				if err := os.Mkdir(files[1].Path, 0o777); err != nil {
					t.Fatal(err)
				}
			case "second-exists":
				want = 1
				if err := os.WriteFile(files[1].Path, nil, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := WriteAll(context.Background(), files, Options{}); err == nil {
				t.Fatal("no error")
			}
			if left := entries(t, dir); len(left) != want {
				t.Errorf("leftover files: %v", left)
			}
		})
	}
}

// counted is a source that counts the rows read from it.
type counted struct {
	*matrix
	rows atomic.Int64
}

func (c *counted) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	c.rows.Add(b - a)
	return c.matrix.Raw(buf, a, b)
}

// TestWriteSets writes one tensor to several models: it is read once, its
// importance asked once, and every file is the one written alone.
func TestWriteSets(t *testing.T) {
	const rowLen, nRows = 512, 900
	x, _ := gen.Input("normal/900x512")
	weights := &asked{}
	calls := 0
	weights.f = func() ([]float32, error) { calls++; return gen.Importance("skew", rowLen), nil }
	dir := t.TempDir()
	src := &counted{matrix: newMatrix(x, rowLen, nRows)}
	var models [][]*File
	for _, typ := range []gguf.Type{gguf.TypeF32, gguf.TypeQ8_0, gguf.TypeQ4_K, gguf.TypeIQ4_XS} {
		models = append(models, []*File{{Path: filepath.Join(dir, typ.String()),
			Tensors: []Tensor{{"t", typ, src, Weighted(weights), nil}}}})
	}
	results, err := WriteSets(context.Background(), models, Options{Workers: 3})
	if err != nil {
		t.Fatal(err)
	}
	if n := src.rows.Load(); n != nRows || calls != 1 {
		t.Errorf("%d rows read, want %d; importance asked %d times", n, nRows, calls)
	}
	for i, m := range models {
		alone := *m[0]
		alone.Path = filepath.Join(t.TempDir(), "alone")
		res, err := Write(context.Background(), &alone, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(read(t, alone.Path), read(t, m[0].Path)) {
			t.Errorf("%s differs from the file written alone", m[0].Path)
		}
		if results[i].Bytes != res.Bytes || results[i].DataBytes != res.DataBytes {
			t.Errorf("%s: %+v, alone %+v", m[0].Path, results[i], res)
		}
	}
	// if one fails, none is written
	bad := []*File{{Path: filepath.Join(dir, "bad"),
		Tensors: []Tensor{{"t", gguf.TypeF16, newMatrix([]float32{1e9}, 1), nil, nil}}}}
	for _, m := range models {
		m[0].Path += ".again"
	}
	if _, err := WriteSets(context.Background(), append(models, bad), Options{}); !errors.Is(err, fault.Broken) {
		t.Errorf("got %v", err)
	}
	if left := entries(t, dir); len(left) != len(models) {
		t.Errorf("leftover files: %v", left)
	}
}

// rowCount is an encoder that counts the rows it encodes.
type rowCount struct {
	weights []float32
	rows    *atomic.Int64
}

func (e *rowCount) Begin(ne []int64) (RowEncoder, error) { return e, nil }
func (e *rowCount) Cost(t gguf.Type) int64               { return quants.Lookup(t).Cost(e.weights != nil) }
func (e *rowCount) Encode(dst []byte, t gguf.Type, x []float32, a, b int64, _ *Scratch) error {
	e.rows.Add(b - a)
	return quants.Lookup(t).Quantize(dst, x, len(x)/int(b-a), e.weights)
}

// TestSameBytesOnce writes a tensor to models of which several get the same bytes: they
// are made once, and every file is the one written alone.
func TestSameBytesOnce(t *testing.T) {
	const rowLen, nRows = 512, 300
	x, _ := gen.Input("normal/300x512")
	clear(x[32:96]) // counted for IQ3_S
	var rows atomic.Int64
	plain, weighted := &rowCount{nil, &rows}, &rowCount{gen.Importance("skew", rowLen), &rows}
	src := newMatrix(x, rowLen, nRows)
	dir := t.TempDir()
	var models [][]*File
	for i, m := range []struct {
		typ gguf.Type
		e   Encoder
		big bool
	}{
		{gguf.TypeIQ3_S, plain, false}, {gguf.TypeQ4_K, plain, false}, {gguf.TypeF32, plain, false},
		{gguf.TypeQ4_K, weighted, false},
		{gguf.TypeIQ3_S, plain, false}, {gguf.TypeQ4_K, plain, true}, {gguf.TypeQ4_K, plain, false},
		{gguf.TypeQ4_K, plain, true},
		{gguf.TypeF32, weighted, true},
	} {
		f := &File{Path: filepath.Join(dir, strconv.Itoa(i)), BigEndian: m.big,
			Tensors: []Tensor{{"t", m.typ, src, m.e, nil}}}
		models = append(models, []*File{f})
	}
	var last Progress
	results, err := WriteSets(context.Background(), models,
		Options{Workers: 3, MaxBuffer: 1 << 20, Progress: func(p Progress) { last = p }})
	if err != nil {
		t.Fatal(err)
	}
	// IQ3_S, Q4_K with and without importance, and without for big-endian machines
	if n := rows.Load(); n != 4*nRows {
		t.Errorf("%d rows encoded, want %d", n, 4*nRows)
	}
	if last.Done != last.Total || last.Work != 1 {
		t.Errorf("at the end %d of %d bytes, %v of the work", last.Done, last.Total, last.Work)
	}
	for i, m := range models {
		alone := *m[0]
		alone.Path = filepath.Join(t.TempDir(), "alone")
		res, err := Write(context.Background(), &alone, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(read(t, alone.Path), read(t, m[0].Path)) {
			t.Errorf("%s differs from the file written alone", m[0].Path)
		}
		if !slices.Equal(results[i].Displaced, res.Displaced) || results[i].DataBytes != res.DataBytes {
			t.Errorf("%s: %+v, alone %+v", m[0].Path, results[i], res)
		}
	}
	if len(results[4].Displaced) != 1 {
		t.Errorf("displaced: %+v", results[4])
	}
}
