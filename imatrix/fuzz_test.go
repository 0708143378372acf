package imatrix_test

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/imatrix/imatrixtest"
	"ggforge/test/defects"
)

// fuzzParse checks what must hold for any bytes: no panic, memory in proportion
// to the input, an error of a known kind. It returns nil for a refused file.
func fuzzParse(t *testing.T, data []byte) *imatrix.Matrix {
	before := defects.Allocated()
	m, err := imatrix.Parse("fuzz", data)
	// Other goroutines of the test binary allocate too, hence the constant.
	if got, most := defects.Allocated()-before, uint64(len(data))*64+1<<20; got > most {
		t.Errorf("%d bytes of input made Parse allocate %d, want at most %d", len(data), got, most)
	}
	if err != nil {
		if !errors.Is(err, imatrix.ErrBroken) && !errors.Is(err, imatrix.ErrUnsupported) {
			t.Errorf("an error of no kind: %v", err)
		}
		var fe *imatrix.FormatError
		if errors.As(err, &fe) && (fe.Offset < -1 || fe.Offset > int64(len(data))) {
			t.Errorf("offset %d is outside the file of %d bytes: %v", fe.Offset, len(data), err)
		}
		return nil
	}

	if m.Len() == 0 {
		t.Error("a matrix without entries")
	}
	all := names(m)
	if c := m.Coverage(all); c.Used != m.Len() || c.Missing != nil || c.Unused != nil {
		t.Errorf("does not cover itself: %+v", c)
	}
	total, valid := 0, true
	for i := range m.Entries() {
		e := &m.Entries()[i]
		if m.Entry(e.Name) != e {
			t.Errorf("entry %q is not found", e.Name)
		}
		v := values(t, m, e.Name)
		if len(v) == 0 || len(v)%e.Matrices() != 0 || len(v) != e.Len() {
			t.Errorf("entry %q: %d values for %d matrices", e.Name, len(v), e.Matrices())
		}
		total += len(v)
		_, _, err := m.Lookup(e.Name, []int64{int64(len(v))})
		bad := slices.ContainsFunc(v, func(v float32) bool { return v < 0 || v-v != 0 })
		if valid = valid && !bad; bad != errors.Is(err, imatrix.ErrRefused) ||
			bad != (m.Validate(t.Context(), []string{e.Name}) != nil) {
			t.Errorf("entry %q: %v", e.Name, err)
		}
	}
	if total*4 > len(data) {
		t.Errorf("%d values in %d bytes", total, len(data))
	}
	if err := m.Validate(t.Context(), nil); (err == nil) != valid {
		t.Errorf("validate: %v", err)
	}
	m.Metadata(false)
	return m
}

// fuzzAgain compares a matrix with the one read from its entries written again.
func fuzzAgain(t *testing.T, m *imatrix.Matrix, file []byte) {
	again, err := imatrix.Parse("again", file)
	if err != nil {
		t.Fatalf("written again: %v", err)
	}
	if again.Len() != m.Len() || again.Chunks != m.Chunks || !slices.Equal(again.Datasets, m.Datasets) {
		t.Errorf("written again: %d entries, %d chunks, datasets %q", again.Len(), again.Chunks, again.Datasets)
	}
	for i := range m.Entries() {
		e, f := &m.Entries()[i], &again.Entries()[i]
		x, y := values(t, m, e.Name), values(t, again, e.Name)
		if e.Name != f.Name || !slices.EqualFunc(x, y, func(a, b float32) bool { return a == b || a != a && b != b }) ||
			!slices.Equal(e.Counts, f.Counts) {
			t.Errorf("entry %q changed", e.Name)
		}
	}
}

func sums(t *testing.T, m *imatrix.Matrix, e *imatrix.Entry) []float32 {
	s, err := m.Sums(e)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func FuzzLegacy(f *testing.F) {
	for _, d := range legacyDefects() {
		f.Add(d.file)
	}
	f.Add(imatrixtest.Legacy([]imatrixtest.Entry{
		{Name: "a", Sums: []float32{1, 2}, Calls: 3}, {Name: "b", Sums: []float32{1}},
		{Name: "a", Sums: []float32{-1}, Calls: -1},
	}, &imatrixtest.Trailer{Chunks: 3, Dataset: "text"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.HasPrefix(data, []byte("GGUF")) {
			return
		}
		m := fuzzParse(t, data)
		if m == nil {
			return
		}
		var entries []imatrixtest.Entry
		for i := range m.Entries() {
			e := &m.Entries()[i]
			entries = append(entries, imatrixtest.Entry{Name: e.Name, Sums: sums(t, m, e), Calls: int32(e.Calls)})
		}
		trailer := &imatrixtest.Trailer{Chunks: int32(m.Chunks)}
		if len(m.Datasets) > 0 {
			trailer.Dataset = m.Datasets[0]
		}
		fuzzAgain(t, m, imatrixtest.Legacy(entries, trailer))
	})
}

func FuzzGGUF(f *testing.F) {
	for _, d := range ggufDefects() {
		f.Add(d.file)
	}
	f.Add(imatrixtest.GGUF([]imatrixtest.Entry{
		{Name: "a", Sums: []float32{1, 2, 3, 4}, Counts: []float32{1, 0}},
		{Name: "b", Sums: []float32{1}, Counts: []float32{2.5}},
	}, []string{"text", "more"}, 3, imatrixtest.Tensor{Name: "a.stats", NE: []int64{2}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		data = slices.Concat([]byte("GGUF"), data[min(4, len(data)):])
		m := fuzzParse(t, data)
		if m == nil {
			return
		}
		var tensors []imatrixtest.Tensor
		for i := range m.Entries() {
			e := &m.Entries()[i]
			var counts []float32
			for _, c := range e.Counts {
				counts = append(counts, float32(c))
			}
			tensors = append(tensors, imatrixtest.EntryTensors(imatrixtest.Entry{Name: e.Name, Sums: sums(t, m, e),
				Counts: counts})...)
		}
		md := imatrixtest.Metadata(m.Datasets, uint32(m.Chunks))
		md.Set("imatrix.chunk_size", gguf.Uint32(uint32(m.ChunkSize)))
		fuzzAgain(t, m, imatrixtest.Encode(md, tensors))
	})
}

// FuzzMerge merges two files and writes the result: reading the file, or the state, must give the same sums.
func FuzzMerge(f *testing.F) {
	small := imatrixtest.GGUF([]imatrixtest.Entry{{Name: "blk.1.a", Sums: []float32{1, 2, 3, 4},
		Counts: []float32{1, 0}}, {Name: "blk.0.a", Sums: []float32{1, 5, 6, 7}, Counts: []float32{2, 3}}},
		[]string{"text"}, 3,
		imatrixtest.Tensor{Name: "blk.1.a.in_sum", NE: []int64{4}})
	legacy := imatrixtest.Legacy([]imatrixtest.Entry{{Name: "blk.0.a", Sums: []float32{1, 2, 3, 4}, Calls: 3}},
		&imatrixtest.Trailer{Chunks: 3, Dataset: "other"})
	f.Add(small, legacy)
	f.Add(legacy, small)
	f.Add(small, small)
	f.Fuzz(func(t *testing.T, a, b []byte) {
		s := imatrix.NewSums(512)
		for i, data := range [][]byte{a, b} {
			m, err := imatrix.Parse("fuzz", data)
			if err != nil {
				return
			}
			if _, err := s.Merge(m); err != nil {
				if !errors.Is(err, imatrix.ErrRefused) {
					t.Errorf("file %d: an error of no kind: %v", i, err)
				}
				return
			}
		}
		var file [2][]byte
		for _, format := range []imatrix.Format{imatrix.FormatGGUF, imatrix.FormatDat} {
			layout, err := s.Layout(format)
			if err != nil {
				if !errors.Is(err, imatrix.ErrRefused) && !errors.Is(err, imatrix.ErrUnsupported) {
					t.Errorf("an error of no kind: %v", err)
				}
				return
			}
			file[format] = whole(t, layout)
			if _, err := imatrix.Parse("written", file[format]); err != nil {
				t.Fatal(err)
			}
		}
		again := merged(t, 512, file[0])
		if got := written(t, again, imatrix.FormatGGUF); s.Chunks() == again.Chunks() && !bytes.Equal(got, file[0]) {
			t.Error("written and merged alone: another file")
		}
		layout, err := s.State(nil)
		if err != nil {
			t.Fatal(err)
		}
		state, _, err := imatrix.ParseState("state", whole(t, layout))
		if err != nil {
			t.Fatal(err)
		}
		if got := written(t, state, imatrix.FormatGGUF); !bytes.Equal(got, file[0]) {
			t.Error("from its state: another file")
		}
	})
}

// FuzzState reads arbitrary bytes as a state.
func FuzzState(f *testing.F) {
	s := imatrix.NewSums(3)
	tally, err := s.Tally("w", 2, 2, true)
	if err != nil {
		f.Fatal(err)
	}
	tally.Count(1, 5, true)
	layout, err := s.State(gguf.Metadata{{Key: "a", Value: gguf.Uint32(1)}})
	if err != nil {
		f.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := layout.WriteTo(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		s, _, err := imatrix.ParseState("fuzz", data)
		if err != nil {
			if !errors.Is(err, imatrix.ErrBroken) && !errors.Is(err, imatrix.ErrUnsupported) {
				t.Errorf("an error of no kind: %v", err)
			}
			return
		}
		if layout, err := s.State(nil); err == nil {
			again, _, err := imatrix.ParseState("again", whole(t, layout))
			if err != nil {
				t.Fatal(err)
			}
			if again.Len() != s.Len() || again.Chunks() != s.Chunks() {
				t.Error("changed")
			}
		}
	})
}

// BenchmarkValues measures how fast values come out of a mapped file.
func BenchmarkValues(b *testing.B) {
	const columns, experts = 4096, 64
	e := imatrixtest.Entry{Name: "w", Sums: make([]float32, columns*experts), Calls: 3}
	for i := range e.Sums {
		e.Sums[i] = float32(math.Sqrt(float64(i)))
	}
	for range experts {
		e.Counts = append(e.Counts, 7)
	}
	for name, file := range map[string][]byte{"legacy": imatrixtest.Legacy([]imatrixtest.Entry{e}, nil),
		"gguf": imatrixtest.GGUF([]imatrixtest.Entry{e}, nil, 0)} {
		path := filepath.Join(b.TempDir(), name)
		if err := os.WriteFile(path, file, 0o644); err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			m, err := imatrix.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			defer m.Close()
			b.SetBytes(4 * columns * experts)
			for b.Loop() {
				if _, _, err := m.Lookup("w", []int64{columns, 1, experts}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
