package imatrix_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/imatrix/imatrixtest"
)

// written returns the file of sums.
func written(t *testing.T, s *imatrix.Sums, format imatrix.Format) []byte {
	t.Helper()
	f, err := s.Layout(format)
	if err != nil {
		t.Fatal(err)
	}
	return whole(t, f)
}

func whole(t *testing.T, f *imatrix.File) []byte {
	t.Helper()
	var b bytes.Buffer
	if n, err := f.WriteTo(&b); err != nil || n != f.Size || n != int64(b.Len()) {
		t.Fatalf("%d bytes of %d, %v", n, f.Size, err)
	}
	return b.Bytes()
}

// merged returns the sums of files.
func merged(t *testing.T, chunk int, files ...[]byte) *imatrix.Sums {
	t.Helper()
	s := imatrix.NewSums(chunk)
	for i, data := range files {
		m, err := imatrix.Parse(fmt.Sprint(i), data)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Merge(m); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func sample(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/imatrix_" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestMerged compares merged files with those that llama-imatrix writes for --in-file, by
// the beginning of their SHA-256 (TestImatrixMerged of package interop compares them
// with the tool itself).
func TestMerged(t *testing.T) {
	for _, c := range []struct {
		in        string
		chunk     int
		gguf, dat string
	}{
		{"real.gguf real.gguf", 128, "cde098a4be628fe9", "593926653197d905"},
		{"gg_imm.gguf", 512, "7ad0cf09d4bf0505", "7bdf2d1d4addc762"},
		{"gg_imx.gguf dat_imm.dat", 512, "a0a6b3a25bacbca4", "8bb03e30868b12f4"},
		{"dat_imd.dat gg_imd.gguf", 512, "ff83a292a07069b4", "9d69a41e0a73f78a"},
		{"real.dat", 128, "3325d5cc6ee74f5f", "fd0a7636c427cefe"},
		{"real.dat real.gguf", 64, "b80184176d50985c", "b3ca937735f2f44c"},
		{"gg_imx.gguf", 512, "7432cbcc9844c070", "4ca7990fb789a8b3"},
		{"dat_imm.dat gg_imx.gguf", 96, "2acd6524ee85a937", "6bf33ce5078e8491"},
		{"dat_imold.dat real.gguf", 100, "ca7ac645c04f0642", "486e2d1ff0e84dae"},
	} {
		var files [][]byte
		for _, name := range strings.Fields(c.in) {
			files = append(files, sample(t, name))
		}
		s := merged(t, c.chunk, files...)
		for format, want := range map[imatrix.Format]string{imatrix.FormatGGUF: c.gguf, imatrix.FormatDat: c.dat} {
			if got := fmt.Sprintf("%x", sha256.Sum256(written(t, s, format)))[:16]; got != want {
				t.Errorf("%s in chunks of %d, %v: %s, want %s", c.in, c.chunk, format, got, want)
			}
		}
	}
}

// TestCollected checks sums of rows that come in parts, of routed matrices and of others,
// and collecting that resumes from a state.
func TestCollected(t *testing.T) {
	rows := make([]float32, 7*6)
	for i := range rows {
		rows[i] = float32(i%11) - 4.3
	}
	collect := func(s *imatrix.Sums, from, to int) {
		for _, c := range []struct {
			name     string
			matrices int
			routed   bool
		}{{"blk.0.attn_q.weight", 1, false}, {"blk.0.attn_k_b.weight", 2, false},
			{"blk.0.ffn_up_exps.weight", 3, true}} {
			for m := range c.matrices {
				if c.routed && m == 1 {
					continue // no token is routed to it
				}
				tally, err := s.Tally(c.name, 6, c.matrices, c.routed)
				if err != nil {
					t.Fatal(err)
				}
				tally.Count(m, to-from, c.routed)
				for a := 0; a < 6; a += 4 {
					if err := tally.Add(m, rows[from*6:], to-from, a, min(6, a+4)); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	s := imatrix.NewSums(3)
	s.Datasets = []string{"text"}
	collect(s, 0, 7)
	want := written(t, s, imatrix.FormatGGUF)
	m, err := imatrix.Parse("want", want)
	if err != nil {
		t.Fatal(err)
	}
	if m.Len() != 3 || m.Chunks != 2 || m.ChunkSize != 3 || !slices.Equal(m.Datasets, []string{"text"}) {
		t.Errorf("%d entries, %d chunks of %d, %q", m.Len(), m.Chunks, m.ChunkSize, m.Datasets)
	}
	for name, counts := range map[string][]int64{"blk.0.attn_q.weight": {7}, "blk.0.attn_k_b.weight": {7},
		"blk.0.ffn_up_exps.weight": {7, 0, 7}} {
		if got := m.Entry(name).Counts; !slices.Equal(got, counts) {
			t.Errorf("%s: counts %v, want %v", name, got, counts)
		}
	}
	for j, v := range sums(t, m, m.Entry("blk.0.attn_q.weight")) {
		var sum float32
		for r := range 7 {
			sum += float32(rows[6*r+j] * rows[6*r+j])
		}
		if v != sum {
			t.Errorf("column %d: %v, want %v", j, v, sum)
		}
	}
	// the matrix of the sums, without a file
	again := s.Matrix("want")
	for i := range m.Entries() {
		e, f := &m.Entries()[i], again.Entry(m.Entries()[i].Name)
		if !slices.Equal(values(t, m, e.Name), values(t, again, e.Name)) || !slices.Equal(e.Counts, f.Counts) ||
			e.Len() != f.Len() {
			t.Errorf("%s: another one without the file", e.Name)
		}
	}
	if again.Chunks != m.Chunks || again.ChunkSize != m.ChunkSize || again.Len() != m.Len() {
		t.Error("another matrix without the file")
	}
	// in two parts, the second from a state
	s = imatrix.NewSums(3)
	s.Datasets = []string{"text"}
	collect(s, 0, 4)
	state, err := s.State(gguf.Metadata{{Key: "x", Value: gguf.String("y")}})
	if err != nil {
		t.Fatal(err)
	}
	s, md, err := imatrix.ParseState("state", whole(t, state))
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := md.Get("x"); v.String() != `"y"` {
		t.Errorf("metadata %v", md)
	}
	collect(s, 4, 7)
	if !bytes.Equal(written(t, s, imatrix.FormatGGUF), want) {
		t.Error("from a state: another file")
	}
}

// TestMergeRefused checks files that cannot be merged.
func TestMergeRefused(t *testing.T) {
	entry := func(n int, counts ...float32) []byte {
		return imatrixtest.GGUF([]imatrixtest.Entry{{Name: "w", Sums: make([]float32, n), Counts: counts}}, nil, 1)
	}
	legacy := func(n int, calls int32) []byte {
		return imatrixtest.Legacy([]imatrixtest.Entry{{Name: "w", Sums: make([]float32, n), Calls: calls}}, nil)
	}
	for _, c := range []struct {
		a, b []byte
		want string
	}{
		{entry(4, 1), entry(6, 1), `entry "w": has 6 values, files before it have 4`},
		{entry(4, 1, 1), entry(4, 1), `entry "w": has 1 counts, files before it have 2`},
		{entry(4, 1), legacy(6, 1), `has 6 values`},
		{entry(4, 1), legacy(4, 0), `is of 0 chunks`},
		{entry(4, 0x1p62), entry(4, 2), `makes a count of 4611686018427387904`},
		{entry(4, 0x1p50), entry(4, 2), `chunks, want at most`},
		{entry(4, 0x1p40-0x1p17), entry(4, 99304), `chunks, want at most`}, // 61 below it, but not as a float32 number
	} {
		s := imatrix.NewSums(512)
		var err error
		for i, data := range [][]byte{c.a, c.b} {
			m, parseErr := imatrix.Parse(fmt.Sprint(i), data)
			if parseErr != nil {
				t.Fatal(parseErr)
			}
			if _, err = s.Merge(m); err != nil {
				break
			}
		}
		if !errors.Is(err, imatrix.ErrRefused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	s := merged(t, 512, entry(4, 1, 1))
	if _, err := s.Tally("w", 3, 2, true); !errors.Is(err, imatrix.ErrRefused) {
		t.Errorf("columns: %v", err)
	}
	if _, err := s.Tally("w", 1, 4, true); !errors.Is(err, imatrix.ErrRefused) {
		t.Errorf("matrices: %v", err)
	}
	if tally, err := s.Tally("w", 4, 1, false); err != nil || len(tally.Counts) != 1 {
		t.Errorf("equal counts: %v", err)
	}
	if _, err := imatrix.NewSums(1).Layout(imatrix.FormatGGUF); !errors.Is(err, imatrix.ErrRefused) {
		t.Errorf("nothing: %v", err)
	}
	if _, err := merged(t, 512, entry(4, 0)).Layout(imatrix.FormatDat); !errors.Is(err, imatrix.ErrRefused) {
		t.Errorf("nothing seen: %v", err)
	}
	long := merged(t, 512, imatrixtest.Legacy([]imatrixtest.Entry{{Name: strings.Repeat("w", 60), Sums: []float32{1},
		Calls: 1}}, nil))
	if _, err := long.Layout(imatrix.FormatGGUF); !errors.Is(err, imatrix.ErrUnsupported) {
		t.Errorf("a long name: %v", err)
	}
	written(t, long, imatrix.FormatDat)
	if _, err := imatrix.ParseFormat("GGUF"); !errors.Is(err, fault.Usage) {
		t.Errorf("format: %v", err)
	}
	for i, name := range []string{"gguf", "dat"} {
		if f, err := imatrix.ParseFormat(name); err != nil || f != imatrix.Format(i) || f.String() != name {
			t.Errorf("format %s: %v %v", name, f, err)
		}
	}
	tally, err := imatrix.NewSums(1).Tally("w", 2, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := tally.Add(0, []float32{1, 1e20}, 1, 0, 2); !errors.Is(err, imatrix.ErrBroken) ||
		!strings.Contains(err.Error(), `tensor "w": the squares of the inputs of column 1 add up to +Inf`) {
		t.Errorf("infinite: %v", err)
	}
	if err := tally.Add(0, []float32{float32(math.NaN()), 0}, 1, 0, 2); !errors.Is(err, imatrix.ErrBroken) {
		t.Errorf("not a number: %v", err)
	}
}

// TestMergeWarnings checks files that differ in settings.
func TestMergeWarnings(t *testing.T) {
	file := func(size, next uint32) *imatrix.Matrix {
		md := imatrixtest.Metadata([]string{"a"}, 1)
		md.Set("imatrix.chunk_size", gguf.Uint32(size))
		md.Set("imatrix.n_layer_nextn", gguf.Uint32(next))
		m, err := imatrix.Parse("file", imatrixtest.Encode(md,
			imatrixtest.EntryTensors(imatrixtest.Entry{Name: "w", Sums: []float32{1}, Counts: []float32{64}})))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	s := imatrix.NewSums(16)
	for i, c := range []struct {
		size, next uint32
		warnings   int
	}{{32, 1, 0}, {32, 1, 0}, {64, 2, 2}, {32, 0, 0}} {
		if w, err := s.Merge(file(c.size, c.next)); err != nil || len(w) != c.warnings {
			t.Errorf("file %d: %q, %v", i, w, err)
		}
	}
	if s.ChunkSize() != 32 || s.NextN != 1 || s.Chunks() != 4*64/32 {
		t.Errorf("%d chunks of %d, %d layers", s.Chunks(), s.ChunkSize(), s.NextN)
	}
	tally, err := s.Tally("w", 1, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	if tally.Count(0, 16, false); s.Chunks() != (4*64+16)/16 {
		t.Errorf("%d chunks with a calibration", s.Chunks())
	}
	if !bytes.Contains(written(t, s, imatrix.FormatGGUF), []byte("imatrix.n_layer_nextn")) {
		t.Error("no number of layers")
	}
}

// TestJoin checks sums of calibrations that are added to others, merged ones among them.
func TestJoin(t *testing.T) {
	seen := func(name string, columns, matrices int, rows ...float32) *imatrix.Sums {
		s := imatrix.NewSums(4)
		y, err := s.Tally(name, columns, matrices, matrices > 1)
		if err != nil {
			t.Fatal(err)
		}
		y.Count(0, len(rows)/columns, matrices > 1)
		if err := y.Add(0, rows, len(rows)/columns, 0, columns); err != nil {
			t.Fatal(err)
		}
		return s
	}
	all := seen("a", 2, 1, 1, 2, 3, 4)
	for _, s := range []*imatrix.Sums{seen("a", 2, 1, 5, -6), seen("b", 1, 3, 7)} {
		if err := all.Join(s); err != nil {
			t.Fatal(err)
		}
	}
	a, b := all.Tallies()[0], all.Tallies()[1]
	if !slices.Equal(a.Squares, []float32{35, 56}) || !slices.Equal(a.Plain, []float32{9, 0}) || a.Counts[0] != 3 ||
		!slices.Equal(b.Squares, []float32{49, 0, 0}) || !slices.Equal(b.Counts, []int64{1, 0, 0}) {
		t.Errorf("%+v, %+v", a, b)
	}
	if all.Chunks() != 1 { // 3 rows of chunks of 4
		t.Errorf("%d chunks, want 1", all.Chunks())
	}
	a.Plain = nil // as after a merged file without
	if err := all.Join(seen("a", 2, 1, 1, 1)); err != nil || a.Plain != nil || a.Squares[0] != 36 {
		t.Errorf("%+v, %v", a, err)
	}
	for _, c := range []struct {
		s    *imatrix.Sums
		kind error
	}{{seen("a", 3, 1, 1, 1, 1), imatrix.ErrRefused}, {seen("b", 1, 2, 1), imatrix.ErrRefused},
		{seen("a", 2, 1, 1.8e19, 1), nil}, {seen("a", 2, 1, 1.8e19, 1), imatrix.ErrBroken}} {
		if err := all.Join(c.s); !errors.Is(err, c.kind) {
			t.Errorf("%+v: %v, want %v", c.s.Tallies()[0], err, c.kind)
		}
	}
}

// TestPlainKept checks that the sums of activations without squares stay in files that are written, read, merged,
// remapped, filled and kept as a state, and that a merged file without them leaves none.
func TestPlainKept(t *testing.T) {
	s := imatrix.NewSums(2)
	y, err := s.Tally("blk.0.ffn_up_exps.weight", 2, 2, true)
	if err != nil {
		t.Fatal(err)
	}
	y.Count(1, 2, true)
	if err := y.Add(1, []float32{1, -3, 2, 1}, 2, 0, 2); err != nil {
		t.Fatal(err)
	}
	merged := imatrix.NewSums(2)
	for range 2 {
		m, err := imatrix.Parse("file", written(t, s, imatrix.FormatGGUF))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := merged.Merge(m); err != nil {
			t.Fatal(err)
		}
	}
	if filled := merged.Fill(imatrix.FillMean); filled["blk.0.ffn_up_exps.weight"] != 1 {
		t.Errorf("filled: %v", filled)
	}
	model := []imatrix.Weight{{Name: "blk.0.ffn_up_exps.weight", Columns: 2, Matrices: 2}}
	if _, dropped, err := merged.Remap(model); err != nil || dropped != nil {
		t.Error(dropped, err)
	}
	f, err := merged.State(nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := f.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	again, _, err := imatrix.ParseState("state", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if x := again.Tallies()[0]; !slices.Equal(x.Plain, []float32{0, 0, 6, -4}) || x.Squares[3] != 20 {
		t.Errorf("merged: %v of squares %v", x.Plain, x.Squares)
	}
	squares, err := imatrix.Parse("squares", imatrixtest.Encode(imatrixtest.Metadata([]string{"a"}, 1),
		imatrixtest.EntryTensors(imatrixtest.Entry{Name: "blk.0.ffn_up_exps.weight", Sums: []float32{1, 1, 1, 1},
			Counts: []float32{1, 1}})))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Merge(squares); err != nil || again.Tallies()[0].Plain != nil {
		t.Errorf("merged with squares alone: %v, %v", again.Tallies()[0].Plain, err)
	}
}
