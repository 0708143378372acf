package imatrix_test

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/imatrix/imatrixtest"
)

func open(t *testing.T, name string) *imatrix.Matrix {
	t.Helper()
	m, err := imatrix.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func parse(t *testing.T, file []byte) *imatrix.Matrix {
	t.Helper()
	m, err := imatrix.Parse("test", file)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func values(t *testing.T, m *imatrix.Matrix, name string) []float32 {
	t.Helper()
	e := m.Entry(name)
	if e == nil {
		t.Fatalf("no entry %q", name)
	}
	v, err := m.Values(e)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestSamples compares every entry of files that the reference made or read with the values that another reader found
// in them.
func TestSamples(t *testing.T) {
	f, err := os.Open("testdata/samples.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var m *imatrix.Matrix
	var next, total int
	finish := func() {
		if m != nil && next != m.Len() {
			t.Errorf("%s: %d entries, want %d", m.Path, m.Len(), next)
		}
		next = 0
	}
	for s := bufio.NewScanner(f); s.Scan(); {
		line := s.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		if name, ok := strings.CutPrefix(line, "file "); ok {
			finish()
			m = open(t, name)
			continue
		}
		if next >= m.Len() {
			t.Fatalf("%s: %d entries, too few", m.Path, m.Len())
		}
		e := &m.Entries()[next]
		v := values(t, m, e.Name)
		counts, calls := "-", "-"
		if e.Counts != nil {
			counts = strings.ReplaceAll(strings.Trim(fmt.Sprint(e.Counts), "[]"), " ", ",")
		} else {
			calls = fmt.Sprint(e.Calls)
		}
		got := fmt.Sprintf("%s %d %s %s %.9g %x", e.Name, len(v), counts, calls, v[0],
			sha256.Sum256(imatrixtest.F32(v...)))
		if !strings.HasPrefix(got, line) {
			t.Errorf("%s:\n got %s\nwant %s", m.Path, got, line)
		}
		next++
		total++
	}
	finish()
	if total != 135 {
		t.Errorf("%d entries in all, want 135", total)
	}
}

func TestSampleHeaders(t *testing.T) {
	for _, c := range []struct {
		name      string
		legacy    bool
		datasets  string
		chunks    int
		chunkSize int
	}{
		{"imatrix_dat_imd.dat", true, "calib.txt", 5, 0},
		{"imatrix_dat_imold.dat", true, "", 0, 0}, // no trailer
		{"imatrix_gg_imd.gguf", false, "calib.txt", 5, 512},
		{"imatrix_gg_imx.gguf", false, "a.txt b.txt", 9, 512},
		{"imatrix_real.dat", true, "text.txt", 31, 0},
		{"imatrix_real.gguf", false, "text.txt", 31, 128},
	} {
		m := open(t, c.name)
		if got := strings.Join(m.Datasets, " "); m.Legacy != c.legacy || got != c.datasets || m.Chunks != c.chunks ||
			m.ChunkSize != c.chunkSize {
			t.Errorf("%s: legacy %v, datasets %q, %d chunks of %d", c.name, m.Legacy, got, m.Chunks, m.ChunkSize)
		}
		if err := m.Validate(t.Context(), nil); err != nil {
			t.Error(err)
		}
	}
}

// same requires entries of equal names and values.
func same(t *testing.T, a, b *imatrix.Matrix) {
	t.Helper()
	if a.Len() != b.Len() {
		t.Fatalf("%d entries, %d entries", a.Len(), b.Len())
	}
	for _, e := range a.Entries() {
		if x, y := values(t, a, e.Name), values(t, b, e.Name); !slices.Equal(x, y) {
			t.Errorf("entry %q differs", e.Name)
		}
	}
	if x, y := a.Metadata(true)[1:], b.Metadata(true)[1:]; !slices.Equal(x, y) {
		t.Errorf("metadata: %v, %v", x, y)
	}
}

// The two formats with the same content are the same matrix.
func TestFormatsAgree(t *testing.T) {
	same(t, open(t, "imatrix_dat_imd.dat"), open(t, "imatrix_gg_imd.gguf"))
	same(t, open(t, "imatrix_dat_imm.dat"), open(t, "imatrix_gg_imm.gguf"))

	var legacy, newer []imatrixtest.Entry
	for i := range 20 {
		sums := make([]float32, 4*(i+1))
		for j := range sums {
			sums[j] = float32(i*31+j*j) / 7
		}
		n := float32(i*i + 1)
		e := imatrixtest.Entry{Name: fmt.Sprintf("blk.%d.x.weight", i), Sums: sums, Calls: int32(n),
			Counts: []float32{n, n, n, n}}
		legacy = append(legacy, e)
		newer = append(newer, e)
	}
	slices.Reverse(newer)
	same(t, parse(t, imatrixtest.Legacy(legacy, &imatrixtest.Trailer{Chunks: 3, Dataset: "d"})),
		parse(t, imatrixtest.GGUF(newer, []string{"d", "e"}, 3)))
}

// A legacy file of llama-imatrix holds mean times chunks for each value of the
// GGUF file of the same run.
func TestRealFilesAgree(t *testing.T) {
	dat, gg := open(t, "imatrix_real.dat"), open(t, "imatrix_real.gguf")
	for _, e := range dat.Entries() {
		stored, err := dat.Sums(&e)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range values(t, gg, e.Name) {
			if want := float32(v * float32(dat.Chunks)); stored[i] != want {
				t.Fatalf("%s, value %d: %v stored, want %v", e.Name, i, stored[i], want)
			}
		}
	}
}

func TestLegacyValues(t *testing.T) {
	sums := []float32{1, 2, 10}
	m := parse(t, imatrixtest.Legacy([]imatrixtest.Entry{
		{Name: "a", Sums: sums, Calls: 3},
		{Name: "zero", Sums: sums},
		{Name: "negative", Sums: sums, Calls: -3},
		{Name: "cut\x00off", Sums: sums, Calls: 1},
		{Name: "", Sums: sums, Calls: 1},
	}, nil))
	for name, want := range map[string][]float32{
		"a": {float32(1) / 3, float32(2) / 3, float32(10) / 3}, "zero": sums, "negative": sums, "cut": sums, "": sums,
	} {
		if got := values(t, m, name); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
		if e := m.Entry(name); e.Matrices() != 1 || e.Unseen() != nil || e.Counts != nil {
			t.Errorf("%q: %+v", name, e)
		}
	}
}

// The last of several entries of one name counts, whatever its size.
func TestLegacyDuplicate(t *testing.T) {
	m := parse(t, imatrixtest.Legacy([]imatrixtest.Entry{
		{Name: "a", Sums: []float32{1, 2}}, {Name: "b", Sums: []float32{3}}, {Name: "a", Sums: []float32{4}},
	}, nil))
	if m.Len() != 2 || m.Entries()[0].Name != "a" || !slices.Equal(values(t, m, "a"), []float32{4}) {
		t.Errorf("%+v", m.Entries())
	}
	if !slices.Equal(m.Duplicates, []string{"a"}) {
		t.Errorf("duplicates %q", m.Duplicates)
	}
}

func TestLegacyTrailer(t *testing.T) {
	file := imatrixtest.Legacy([]imatrixtest.Entry{{Name: "a", Sums: []float32{1}}}, nil)
	for name, c := range map[string]struct {
		trailer []byte
		chunks  int
		dataset string
	}{
		"none":           {nil, 0, ""},
		"chunks only":    {imatrixtest.Int32s(9), 9, ""},
		"empty dataset":  {imatrixtest.Int32s(9, 0), 9, ""},
		"negative":       {imatrixtest.Int32s(-4, 0), -4, ""},
		"dataset":        {append(imatrixtest.Int32s(9, 2), "xy"...), 9, "xy"},
		"bytes after":    {append(imatrixtest.Int32s(9, 1), "xyz"...), 9, "x"},
		"zero byte":      {append(imatrixtest.Int32s(9, 3), "x\x00z"...), 9, "x"},
		"no chunks, set": {append(imatrixtest.Int32s(0, 1), 'x'), 0, "x"},
	} {
		m := parse(t, slices.Concat(file, c.trailer))
		if got := strings.Join(m.Datasets, "|"); m.Chunks != c.chunks || got != c.dataset {
			t.Errorf("%s: %d chunks, dataset %q", name, m.Chunks, got)
		}
	}
}

func TestGGUFCounts(t *testing.T) {
	sums := []float32{1, 2, 3, 4, 5, 6, 7, 8}
	for _, c := range []struct {
		counts []float32
		want   []float32
	}{
		{[]float32{1}, sums},
		{[]float32{3, 5}, []float32{float32(1) / 3, float32(2) / 3, 1, float32(4) / 3, 1, float32(6) / 5,
			float32(7) / 5, float32(8) / 5}},
		{[]float32{1, 0, 2, -0.3}, []float32{1, 2, 1, 1, 2.5, 3, 1, 1}},
		{[]float32{0.4, 0.5, 1.5, 3.5}, []float32{1, 1, 3, 4, 2.5, 3, 1.75, 2}},
		{[]float32{2.5}, []float32{float32(1) / 3, float32(2) / 3, 1, float32(4) / 3, float32(5) / 3, 2, float32(7) / 3,
			float32(8) / 3}},
		{[]float32{1 << 62}, func() (v []float32) {
			for _, s := range sums {
				v = append(v, s/(1<<62))
			}
			return v
		}()},
	} {
		m := parse(t, imatrixtest.GGUF([]imatrixtest.Entry{{Name: "a", Sums: sums, Counts: c.counts}}, nil, 0))
		if got := values(t, m, "a"); !slices.Equal(got, c.want) {
			t.Errorf("counts %v: %v, want %v", c.counts, got, c.want)
		}
	}
}

// Only the numbers of elements matter, not the shapes.
func TestGGUFShapes(t *testing.T) {
	sums, counts := imatrixtest.F32(3, 6, 10, 20), imatrixtest.F32(3, 10)
	for _, c := range []struct{ sums, counts []int64 }{
		{[]int64{2, 2}, []int64{1, 2}}, {[]int64{4}, []int64{2}}, {[]int64{2, 1, 2}, []int64{1, 1, 2}},
		{[]int64{4, 1}, []int64{2, 1}},
	} {
		m := parse(t, imatrixtest.Encode(imatrixtest.Metadata([]string{"d"}, 1), []imatrixtest.Tensor{
			{Name: "a.in_sum2", NE: c.sums, Data: sums}, {Name: "a.counts", NE: c.counts, Data: counts},
			{Name: "a.in_sum", NE: []int64{4}}, {Name: "a.stats", Type: gguf.TypeI32, NE: []int64{3}},
			{Name: "other", Type: gguf.TypeF16, NE: []int64{3}},
		}))
		if got := values(t, m, "a"); m.Len() != 1 || !slices.Equal(got, []float32{1, 2, 1, 2}) {
			t.Errorf("%v: %v", c, got)
		}
	}
}

func TestUnseen(t *testing.T) {
	m := open(t, "imatrix_gg_imx.gguf")
	for _, e := range m.Entries() {
		var want []int
		if strings.Contains(e.Name, "_exps") {
			want = []int{1}
		}
		if got := e.Unseen(); !slices.Equal(got, want) {
			t.Errorf("%s: %v unseen, want %v", e.Name, got, want)
		}
		if want != nil {
			v := values(t, m, e.Name)
			if e.Matrices() != 4 || v[256] != 1 || v[511] != 1 || v[255] == 1 {
				t.Errorf("%s: %d matrices, values %v", e.Name, e.Matrices(), v[250:260])
			}
		}
	}
}

func names(m *imatrix.Matrix) (n []string) {
	for _, e := range m.Entries() {
		n = append(n, e.Name)
	}
	return n
}

func TestIncludeExclude(t *testing.T) {
	for _, c := range []struct {
		include, exclude []string
		want             string
	}{
		{nil, nil, "aq ak bq"},
		{[]string{"q"}, nil, "aq bq"},
		{[]string{"ak", "b"}, nil, "ak bq"},
		{[]string{""}, nil, "aq ak bq"},
		{[]string{"z"}, nil, ""},
		{nil, []string{"q"}, "ak"},
		{nil, []string{"a", "b"}, ""},
	} {
		m := parse(t, imatrixtest.Legacy([]imatrixtest.Entry{
			{Name: "aq", Sums: []float32{1}}, {Name: "ak", Sums: []float32{2}}, {Name: "bq", Sums: []float32{3}},
		}, nil))
		m.Include(c.include)
		m.Exclude(c.exclude)
		if got := strings.Join(names(m), " "); got != c.want {
			t.Errorf("include %q, exclude %q: %s, want %s", c.include, c.exclude, got, c.want)
		}
		for _, name := range []string{"aq", "ak", "bq"} {
			if e := m.Entry(name); (e != nil) != slices.Contains(strings.Fields(c.want), name) ||
				e != nil && e.Name != name {
				t.Errorf("include %q, exclude %q: entry %q is %v", c.include, c.exclude, name, e)
			}
		}
		if md := m.Metadata(false); (len(md) == 0) != (m.Len() == 0) {
			t.Errorf("%d entries, metadata %v", m.Len(), md)
		}
	}
}

func TestMetadata(t *testing.T) {
	file := func(datasets []string, chunks uint32) *imatrix.Matrix {
		return parse(t, imatrixtest.GGUF([]imatrixtest.Entry{
			{Name: "a", Sums: []float32{1}, Counts: []float32{1}},
			{Name: "b", Sums: []float32{1}, Counts: []float32{1}},
		}, datasets, chunks))
	}
	long := strings.Repeat("d", 126)
	for _, c := range []struct {
		m     *imatrix.Matrix
		path  string
		paths bool // recorded whole
		want  string
	}{
		{file([]string{"x", "y"}, 7), "im.gguf", true, `file="im.gguf" dataset="x" entries_count=2 chunks_count=7`},
		{file(nil, 0), "im.gguf", false, `file="im.gguf" entries_count=2`},
		{file([]string{"", "y"}, 1<<31-1), "", false, `file="" dataset="" entries_count=2 chunks_count=2147483647`},
		{file([]string{"x\x00y"}, 1<<31), "f", false, `file="f" dataset="x" entries_count=2`},
		{file([]string{"/home/me/calibration.txt"}, 0), "dir/f", false,
			`file="f" dataset="calibration.txt" entries_count=2`},
		{file([]string{`C:\me\calibration.txt`}, 0), "dir/f/", false,
			`file="f" dataset="calibration.txt" entries_count=2`},
		{file([]string{"/home/me/calibration.txt"}, 0), "dir/f", true,
			`file="dir/f" dataset="/home/me/calibration.txt" entries_count=2`},
		{file([]string{long + "é"}, 1<<32-1), long + "ef", false, `file="` + long + `e" dataset="` + long +
			`\xc3" entries_count=2`},
		{nil, "f", false, ""},
	} {
		var got []string
		if c.m != nil {
			c.m.Path = c.path
		}
		for _, kv := range c.m.Metadata(c.paths) {
			got = append(got, strings.TrimPrefix(kv.Key, "quantize.imatrix.")+"="+kv.Value.String())
			if kv.Value.Type() != gguf.StringType && kv.Value.Type() != gguf.Uint32Type {
				t.Errorf("key %q has type %v", kv.Key, kv.Value.Type())
			}
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("got %s\nwant %s", s, c.want)
		}
	}
}

func TestLookup(t *testing.T) {
	sums := make([]float32, 12)
	for i := range sums {
		sums[i] = float32(i)
	}
	entries := func(names ...string) (e []imatrixtest.Entry) {
		for _, n := range names {
			e = append(e, imatrixtest.Entry{Name: n, Sums: sums})
		}
		return e
	}
	const emb, perLayer = "token_embd.weight", "per_layer_token_embd.weight"
	m := parse(t, imatrixtest.Legacy(entries("w", emb, perLayer, "output.weight", "x."+emb), nil))
	for _, c := range []struct {
		name string
		ne   []int64
		want string // values, none, warning or error
	}{
		{"w", []int64{12}, "values"},
		{"w", []int64{12, 7}, "values"},
		{"w", []int64{4, 7, 3}, "values"},
		{"w", []int64{4, 7, 3, 5}, "values"},
		{"w", []int64{6, 1, 2}, "values"},
		{"w", []int64{4, 3}, "error"},
		{"w", []int64{24}, "error"},
		{"w", nil, "error"},
		{"v", []int64{12}, "none"},
		{emb, []int64{12, 3}, "values"},
		{emb, []int64{4, 3}, "warning"},
		{perLayer, []int64{4, 3}, "warning"},
		{"output.weight", []int64{4, 3}, "error"},
		{"x." + emb, []int64{4, 3}, "error"},
	} {
		ok, warning, err := m.Check(c.name, c.ne)
		v, warning2, err2 := m.Lookup(c.name, c.ne)
		got := "none"
		var size *imatrix.SizeError
		switch {
		case ok:
			got = "values"
			if !slices.Equal(v, sums) {
				t.Errorf("%s: %v", c.name, v)
			}
		case warning != nil:
			got = "warning"
			if !errors.As(warning, &size) {
				t.Errorf("%s: warning %v", c.name, warning)
			}
		case err != nil:
			got = "error"
			if !errors.As(err, &size) || !errors.Is(err, imatrix.ErrRefused) || size.Name != c.name || size.Got != 12 {
				t.Errorf("%s: error %v", c.name, err)
			}
		}
		if got != c.want || ok != (v != nil) || (warning == nil) != (warning2 == nil) || (err == nil) != (err2 == nil) {
			t.Errorf("%s %v: %s, want %s; Check %v, %v, %v; Lookup %v, %v, %v", c.name, c.ne, got, c.want, ok, warning,
				err, v, warning2, err2)
		}
	}

	// The slice is the caller's.
	v, _, _ := m.Lookup("w", []int64{12})
	clear(v)
	if v, _, _ = m.Lookup("w", []int64{12}); v[1] != 1 {
		t.Error("a change to one answer shows in the next")
	}
}

func TestNilMatrix(t *testing.T) {
	var m *imatrix.Matrix
	m.Include([]string{"a"})
	m.Exclude([]string{"a"})
	v, warning, err := m.Lookup("a", []int64{1})
	c := m.Coverage([]string{"a"})
	if v != nil || warning != nil || err != nil || m.Len() != 0 || m.Entries() != nil || m.Entry("a") != nil ||
		m.Validate(t.Context(), nil) != nil || m.Validate(t.Context(), []string{"a"}) != nil || m.Close() != nil ||
		c.Used != 0 || len(c.Missing) != 1 {
		t.Error("a nil matrix does not stand for none")
	}
}

func TestSlice(t *testing.T) {
	v := []float32{0, 1, 2, 3, 4, 5}
	ne := []int64{2, 9, 3}
	for k := range int64(3) {
		s := imatrix.Slice(v, ne, k)
		if !slices.Equal(s, v[2*k:2*k+2]) || cap(s) != 2 {
			t.Errorf("slice %d is %v", k, s)
		}
	}
	if imatrix.Slice(nil, ne, 2) != nil {
		t.Error("a slice of nil values is not nil")
	}
}

func TestBadValues(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	sums := func(v float32) []float32 { // far enough in for a second block of reading
		s := make([]float32, 5000)
		s[4999] = v
		return s
	}
	for _, bad := range []float32{nan, inf, -inf, -1, -math.SmallestNonzeroFloat32} {
		entries := []imatrixtest.Entry{
			{Name: "good", Sums: sums(math.MaxFloat32), Counts: []float32{1}},
			{Name: "zero", Sums: sums(float32(math.Copysign(0, -1))), Counts: []float32{1}},
			{Name: "bad", Sums: sums(bad), Counts: []float32{1}},
		}
		for format, file := range map[string][]byte{"legacy": imatrixtest.Legacy(entries, nil),
			"GGUF": imatrixtest.GGUF(entries, nil, 0)} {
			m := parse(t, file)
			_, _, lookup := m.Lookup("bad", []int64{5000})
			for what, err := range map[string]error{"Validate all": m.Validate(t.Context(), nil),
				"Validate": m.Validate(t.Context(), []string{"good", "no", "bad"}), "Lookup": lookup} {
				var ve *imatrix.ValueError
				if !errors.As(err, &ve) || !errors.Is(err, imatrix.ErrRefused) || ve.Name != "bad" ||
					ve.Index != 4999 ||
					math.Float32bits(ve.Value) != math.Float32bits(bad) {
					t.Errorf("%s, %v, %s: %v", format, bad, what, err)
				}
			}
			if err := m.Validate(t.Context(), []string{"good", "zero"}); err != nil {
				t.Error(err)
			}
			if err := m.Validate(t.Context(), []string{}); err != nil {
				t.Error(err)
			}
		}
	}

	// The stored sums of a matrix without activations are not used.
	m := parse(t, imatrixtest.GGUF([]imatrixtest.Entry{{Name: "a", Sums: []float32{1, nan}, Counts: []float32{1, 0}}},
		nil, 0))
	if v, _, err := m.Lookup("a", []int64{1, 3, 2}); err != nil || !slices.Equal(v, []float32{1, 1}) {
		t.Errorf("%v, %v", v, err)
	}
}

func TestCoverage(t *testing.T) {
	m := parse(t, imatrixtest.Legacy([]imatrixtest.Entry{
		{Name: "c", Sums: []float32{1}}, {Name: "a", Sums: []float32{1}}, {Name: "b", Sums: []float32{1}},
	}, nil))
	c := m.Coverage([]string{"z", "b", "y"})
	if c.Used != 1 || !slices.Equal(c.Missing, []string{"z", "y"}) || !slices.Equal(c.Unused, []string{"c", "a"}) {
		t.Errorf("%+v", c)
	}
	if c := m.Coverage(nil); c.Used != 0 || len(c.Unused) != 3 {
		t.Errorf("%+v", c)
	}
}

func TestConcurrentLookup(t *testing.T) {
	m := open(t, "imatrix_gg_imm.gguf")
	for _, name := range names(m) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if values(t, m, name)[0] <= 0 {
				t.Error("no value")
			}
		})
	}
}
