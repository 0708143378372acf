package tokenizer

import (
	"encoding/base64"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// FuzzSPM feeds any bytes as tokenizer.model: no panic, an error is a
// FormatError, and what is accepted gives one row per piece.
func FuzzSPM(f *testing.F) {
	for _, c := range goldenCases(f) {
		if v, ok := c.Files[spmFile].(map[string]any); ok {
			data, err := base64.StdEncoding.DecodeString(v["base64"].(string))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	tiny, err := os.ReadFile("testdata/tiny-spm/tokenizer.model")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(tiny)
	f.Fuzz(func(t *testing.T, data []byte) {
		var format *FormatError
		m, err := readSPM(spmFile, data)
		if err != nil {
			if !errors.As(err, &format) {
				t.Fatalf("want a FormatError, got %v", err)
			}
			if format.Offset > int64(len(data)) {
				t.Fatalf("offset %d in a file of %d bytes", format.Offset, len(data))
			}
			return
		}
		if len(m.pieces) > len(data)/2 {
			t.Fatalf("%d pieces from %d bytes", len(m.pieces), len(data))
		}
		v, err := Load(fstest.MapFS{spmFile: {Data: data}}, Options{Rules: Llama{}})
		if err != nil {
			if !errors.As(err, &format) {
				t.Fatalf("want a FormatError, got %v", err)
			}
			return
		}
		if n := len(m.pieces); len(v.Tokens) != n || len(v.Scores) != n || len(v.Types) != n {
			t.Fatalf("%d, %d, %d rows, want %d", len(v.Tokens), len(v.Scores), len(v.Types), n)
		}
	})
}

// FuzzJSON feeds any bytes as the JSON files next to a model.
func FuzzJSON(f *testing.F) {
	for _, c := range goldenCases(f) {
		for _, name := range []string{jsonFile, configFile, addedTokensFile} {
			if s, ok := c.Files[name].(string); ok {
				f.Add([]byte(s))
			}
		}
	}
	tiny, err := os.ReadFile("testdata/tiny-spm/tokenizer.model")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file := &fstest.MapFile{Data: data}
		for _, dir := range []fstest.MapFS{
			{spmFile: {Data: tiny}, jsonFile: file, configFile: file},
			{spmFile: {Data: tiny}, configFile: file, addedTokensFile: file},
		} {
			v, err := Load(dir, Options{Rules: Llama{}})
			var format *FormatError
			if err != nil && !errors.As(err, &format) && !errors.Is(err, ErrUnsupported) {
				t.Fatalf("want a FormatError or ErrUnsupported, got %v", err)
			}
			if err == nil && v.KVs() == nil {
				t.Fatal("no pairs")
			}
		}
	})
}

// TestGroups checks that a group ends with the tag of its own number, and that nested groups without an end are read
// once, not once for each group around them.
func TestGroups(t *testing.T) {
	begin, end, other := "\x0b", "\x0c", "\x14" // groups 1 and 2
	for _, c := range []struct{ text, want string }{
		{begin + end, ""},
		{begin + "\x13" + other + end, ""},
		{begin + other, "group 1 ends as group 2"},
		{begin + begin + other + end, "group 1 ends as group 2"},
		{end, endOfGroup},
		{strings.Repeat(begin, 100) + strings.Repeat(end, 100), ""},
		{strings.Repeat(begin, 101) + strings.Repeat(end, 101), "nested deeper than 100"},
		{strings.Repeat(strings.Repeat(begin, 50)+other, 2), "group 1 ends as group 2"},
	} {
		n := 0
		err := eachField("x", []byte(c.text), 0, 0, func(field) error { n++; return nil })
		if c.want == "" && (err != nil || n != 1) ||
			c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%x: %d fields, %v; want %q", c.text, n, err, c.want)
		}
	}
}
