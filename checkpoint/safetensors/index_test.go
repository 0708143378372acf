package safetensors_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
)

// dirOf makes a directory of files, each with one-byte tensors of the names
// listed. A file with the list "-" holds text that is not a safetensors file, one
// with "?" a dtype that is not known. index, if not nil, is the weight map.
func dirOf(t *testing.T, files map[string]string, index map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, list := range files {
		path := filepath.Join(dir, name)
		var err error
		switch list {
		case "-":
			err = os.WriteFile(path, []byte("not one"), 0o644)
		case "?":
			err = os.WriteFile(path, safetensorstest.Raw([]byte(`{"a":{"dtype":"F7"}}`), nil), 0o644)
		default:
			var tensors []safetensorstest.Tensor
			for _, n := range strings.Fields(list) {
				tensors = append(tensors, tensor(n, safetensors.U8, []byte(n[:1]), 1))
			}
			err = safetensorstest.Write(path, tensors, map[string]string{"format": "pt"})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if index != nil {
		if err := safetensorstest.WriteIndex(filepath.Join(dir, safetensors.IndexName), index); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

type m = map[string]string

func TestOpenDir(t *testing.T) {
	for _, tt := range []struct {
		name         string
		files, index m
		want         string // file:tensor in reading order
	}{
		{"one file", m{"model.safetensors": "b a c10 c9", "consolidated.safetensors": "x",
			"adapter_model.safetensors": "y", "config.json": "-", "pytorch_model.bin": "-"}, nil,
			"model.safetensors:a model.safetensors:b model.safetensors:c10 model.safetensors:c9"},
		{"numbered", m{"model-00002-of-00002.safetensors": "a", "model-00001-of-00002.safetensors": "b"}, nil,
			"model-00001-of-00002.safetensors:b model-00002-of-00002.safetensors:a"},
		{"free names", m{"model.safetensors": "a", "model-extra.safetensors": "b"}, nil,
			"model-extra.safetensors:b model.safetensors:a"},
		{"indexed", m{"model-00001-of-00002.safetensors": "b d", "model-00002-of-00002.safetensors": "c a"},
			m{"a": "model-00002-of-00002.safetensors", "b": "model-00001-of-00002.safetensors",
				"c": "model-00002-of-00002.safetensors", "d": "model-00001-of-00002.safetensors"},
			"model-00001-of-00002.safetensors:b model-00001-of-00002.safetensors:d " +
				"model-00002-of-00002.safetensors:a model-00002-of-00002.safetensors:c"},
		{"indexed, other names", m{"weights_2.safetensors": "a", "weights_1.safetensors": "b",
			"unrelated.safetensors": "-"},
			m{"a": "weights_2.safetensors", "b": "weights_1.safetensors"},
			"weights_1.safetensors:b weights_2.safetensors:a"},
		{"consolidated", m{"consolidated-00001-of-00001.safetensors": "a", "other.safetensors": "-"}, nil,
			"consolidated-00001-of-00001.safetensors:a"},
		{"no tensors", m{"model.safetensors": ""}, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := dirOf(t, tt.files, tt.index)
			c, err := safetensorstest.OpenDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			var got, files []string
			for _, x := range c.Tensors() {
				got = append(got, filepath.Base(x.File())+":"+x.Name)
				if filepath.Dir(x.File()) != dir || string(x.Data()) != x.Name[:1] {
					t.Errorf("tensor %q: in %s with %q", x.Name, x.File(), x.Data())
				}
				if y, ok := c.Lookup(x.Name); !ok || x != y {
					t.Errorf("Lookup(%q) found another", x.Name)
				}
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("got  %s\nwant %s", s, tt.want)
			}
			if _, ok := c.Lookup("none"); ok {
				t.Error(`Lookup("none") found something`)
			}
			for _, f := range c.Files {
				files = append(files, f.Path)
			}
			if !slices.IsSorted(files) || c.Dir != dir {
				t.Errorf("dir %s, files %q", c.Dir, files)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOpenDirDefects(t *testing.T) {
	many := m{}
	for i := range 50 {
		many[fmt.Sprintf("t%02d", i)] = "model.safetensors"
	}
	for _, tt := range []struct {
		name         string
		files, index m
		want         string // the error, with DIR/ for the directory
	}{
		{"nothing", m{"config.json": "-"}, nil, "DIR: no model*.safetensors"},
		{"other name", m{"adapter_model.safetensors": "a"}, nil,
			`DIR: no model*.safetensors; "adapter_model.safetensors" has another name`},
		{"gap", m{"model-00002-of-00004.safetensors": "a", "model-00004-of-00004.safetensors": "b"}, nil,
			"DIR: 2 defects:\n\t" + `"model-00001-of-00004.safetensors": missing` + "\n\t" +
				`"model-00003-of-00004.safetensors": missing`},
		{"gap at the end", m{"model-00001-of-00002.safetensors": "a"}, nil,
			`DIR: "model-00002-of-00002.safetensors": missing`},
		{"gap without end", m{"model-1-of-999999999.safetensors": "a"}, nil,
			"DIR: 999999998 defects:\n\t" + `"model-000000002-of-999999999.safetensors": missing` + "\n"},
		{"number out of range", m{"model-00003-of-00002.safetensors": "a", "model-00002-of-00002.safetensors": "b",
			"model-00001-of-00002.safetensors": "c"}, nil,
			`DIR: "model-00003-of-00002.safetensors": the number is out of range`},
		{"duplicate", m{"model-00001-of-00002.safetensors": "a b", "model-00002-of-00002.safetensors": "b c"}, nil,
			`DIR: tensor "b": in model-00001-of-00002.safetensors and in model-00002-of-00002.safetensors`},
		{"broken shard", m{"model.safetensors": "-"}, nil,
			"DIR/model.safetensors: header (byte 0): want at least 8 bytes, the file has 7"},
		{"broken shards", m{"model-1.safetensors": "-", "model-2.safetensors": "?"}, nil,
			"DIR: 2 defects:\n\tDIR/model-1.safetensors: header (byte 0): want at least 8 bytes, the file has " +
				"7\n\tDIR/model-2.safetensors: tensor \"a\" (byte 22): dtype \"F7\" is not known"},
		{"shard missing", m{"model-1.safetensors": "a"}, m{"a": "model-1.safetensors", "b": "model-2.safetensors",
			"c": "model-2.safetensors"},
			`DIR/model.safetensors.index.json: "model-2.safetensors": missing`},
		{"all at once", m{"model-1.safetensors": "a dup extra moved", "model-2.safetensors": "b dup",
			"model-4.safetensors": "-", "model-5.safetensors": "z"},
			m{"a": "model-1.safetensors", "b": "model-2.safetensors", "dup": "model-2.safetensors",
				"moved": "model-2.safetensors",
				"lost":  "model-1.safetensors", "c": "model-3.safetensors", "d": "model-4.safetensors",
				"up": "../model-1.safetensors", "sub": `sub\model.safetensors`, "none": "", "dot": "."},
			`DIR/model.safetensors.index.json: 11 defects:
	the index puts 1 tensors into "": want the plain name of a file
	the index puts 1 tensors into ".": want the plain name of a file
	the index puts 1 tensors into "../model-1.safetensors": want the plain name of a file
	the index puts 1 tensors into "sub\\model.safetensors": want the plain name of a file
	"model-3.safetensors": missing
	model-5.safetensors: not in the index
	DIR/model-4.safetensors: header (byte 0): want at least 8 bytes, the file has 7
	tensor "dup": in model-1.safetensors and in model-2.safetensors
	tensor "moved": in model-1.safetensors, the index says "model-2.safetensors"
	tensor "extra": in model-1.safetensors but not in the index
	tensor "lost": not in model-1.safetensors, where the index puts it`},
		{"many", m{"model.safetensors": "other"}, many,
			"DIR/model.safetensors.index.json: 51 defects:\n\ttensor \"other\": in model.safetensors but not in the " +
				"index\n\ttensor \"t00\": not in model.safetensors, where the index puts it\n"},
		{"no map", m{"model.safetensors": "a"}, m{},
			"DIR/model.safetensors.index.json: index (byte 0): has no weight_map, or an empty one"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := dirOf(t, tt.files, tt.index)
			_, err := safetensorstest.OpenDir(dir)
			var fe *safetensors.FormatError
			if !errors.As(err, &fe) || !errors.Is(err, safetensors.ErrBroken) {
				t.Fatalf("got %v, want a FormatError", err)
			}
			got := strings.ReplaceAll(filepath.ToSlash(err.Error()), filepath.ToSlash(dir), "DIR")
			if tt.name == "many" || tt.name == "gap without end" {
				more := map[string]string{"many": "\n\tand 40 more of this kind",
					"gap without end": "\n\tand 999999988 more of this kind"}[tt.name]
				if !strings.HasPrefix(got, tt.want) || !strings.HasSuffix(got, more) ||
					strings.Count(got, "\n") > safetensors.MaxPerKind+2 {
					t.Errorf("got  %s\nwant %s...%s", got, tt.want, more)
				}
			} else if got != tt.want && filepath.Separator == '/' {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestOpenDirUnsupported(t *testing.T) {
	for _, tt := range []struct {
		files m
		want  string
	}{
		{m{"model.safetensors": "?"}, `model.safetensors: tensor "a" (byte 22): dtype "F7" is not known`},
	} {
		_, err := safetensorstest.OpenDir(dirOf(t, tt.files, nil))
		if !errors.Is(err, safetensors.ErrUnsupported) || errors.Is(err, safetensors.ErrBroken) ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
	}
}

// I/O errors are returned as they are.
func TestOpenDirIO(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "model.safetensors"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "none"), dir} {
		_, err := safetensorstest.OpenDir(path)
		var pe *fs.PathError
		if !errors.As(err, &pe) || errors.Is(err, safetensors.ErrBroken) || errors.Is(err, safetensors.ErrUnsupported) {
			t.Errorf("%s: got %v, want a plain *fs.PathError", path, err)
		}
	}
}

func TestIndexDefects(t *testing.T) {
	for text, want := range map[string]string{
		``:                                       "index (byte 0): want an object, the text ends",
		`[]`:                                     "want an object, got '['",
		`{"metadata":{}}`:                        "has no weight_map, or an empty one",
		`{"weight_map":["a"]}`:                   "index (byte 14): want an object of file names, got '['",
		`{"weight_map":{"a":null}}`:              `want the name of the file of tensor "a", got 'n'`,
		`{"weight_map":{"a":"x","a":"y"}}`:       `index (byte 23): tensor "a" is there twice`,
		`{"weight_map":{},"weight_map":{}}`:      "weight_map is there twice",
		`{"weight_map":{"a":"x"}} x`:             "want nothing after the last '}', got 'x'",
		`{"weight_map":{"a":"` + "\xff" + `"}}`:  "is not UTF-8: byte 0xff",
		`{"x":` + strings.Repeat("[", 1<<20):     "nested deeper than 64",
		`{"x":` + strings.Repeat(`{"x":`, 1<<20): "nested deeper than 64",
		`{"x":nul}`:                              "want a value, got 'n'",
		`{"x":}`:                                 "want a value, got '}'",
		"version https://git-lfs.github.com/spec/v1": "Git LFS pointer",
	} {
		_, err := safetensors.ParseIndex("x.json", []byte(text))
		var fe *safetensors.FormatError
		if !errors.As(err, &fe) || fe.Path != "x.json" || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// TestIndexExtras checks that members other than the weight map are skipped.
func TestIndexExtras(t *testing.T) {
	const text = `{"metadata":{"total_size":1.5e3,"x":[null,true,false,{"y":"z"},[]]},"weight_map":{"a":"f"},"more":{}}`
	if index, err := safetensors.ParseIndex("x.json", []byte(text)); err != nil || len(index) != 1 ||
		index["a"] != "f" {
		t.Errorf("got %v, %v", index, err)
	}
}
