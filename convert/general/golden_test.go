package general

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
)

// rows reads a golden file; see testdata/README.md.
func rows[T any](t *testing.T, name string) []T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var list []T
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Fatalf("%s: no cases", name)
	}
	return list
}

// columns decodes a row of a table.
func columns(t *testing.T, row []json.RawMessage, into ...any) {
	t.Helper()
	for i := range into {
		if err := json.Unmarshal(row[i], into[i]); err != nil {
			t.Fatal(err)
		}
	}
}

func optional(t text) *string {
	if !t.set {
		return nil
	}
	return &t.s
}

func show(list ...*string) string {
	var b strings.Builder
	for _, s := range list {
		if s == nil {
			b.WriteString(" -")
		} else {
			fmt.Fprintf(&b, " %q", *s)
		}
	}
	return b.String()
}

func TestIDs(t *testing.T) {
	for _, row := range rows[[]json.RawMessage](t, "ids.json") {
		var s string
		var total int64
		var want []*string
		var name, org *string
		columns(t, row, &s, &total, &want, &name, &org)
		id := parseID(s, total)
		got := show(optional(id.name), optional(id.org), optional(id.base), optional(id.finetune), optional(id.version),
			optional(id.size),
			optional(title(id.name)), optional(title(id.org)))
		if want := show(append(want, name, org)...); got != want {
			t.Errorf("%q, %d parameters:\ngot  %s\nwant %s", s, total, got, want)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, row := range rows[[]json.RawMessage](t, "sizes.json") {
		var n Counts
		var want string
		columns(t, row, &n.Total, &n.Shared, &n.Expert, &n.Experts, &want)
		if got := n.SizeLabel(); got != want {
			t.Errorf("%+v: got %s, want %s", n, got, want)
		}
	}
}

// tree returns a value in the form of the golden file.
func tree(v any) any {
	switch v := v.(type) {
	case json.Number:
		if !pyjson.IsFloat(v) {
			return map[string]any{"int": string(v)}
		}
		f, _ := strconv.ParseFloat(string(v), 64)
		if math.IsNaN(f) {
			return map[string]any{"float": "nan"}
		}
		return map[string]any{"float": fmt.Sprintf("%016x", math.Float64bits(f))}
	case date:
		return map[string]any{"date": true}
	case []any:
		list := []any{}
		for _, e := range v {
			list = append(list, tree(e))
		}
		return list
	case *pyjson.Object:
		m := map[string]any{}
		for key, e := range v.Values {
			m[key] = tree(e)
		}
		return map[string]any{"map": m, "others": float64(v.Others)}
	}
	return v
}

func TestYAML(t *testing.T) {
	for _, row := range rows[[]json.RawMessage](t, "scalars.json") {
		var src string
		var want any
		columns(t, row, &src, &want)
		v, _, err := parseYAML("F", src, 0)
		got := tree(v)
		if err != nil {
			got = "error"
			if strings.Contains(err.Error(), "want a blank after the colon") {
				continue
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, %v, want %v", src, got, err, want)
		}
	}
}

// counts are the parameter counts that the rows of models.json refer to.
var counts = []Counts{
	{7_241_732_096, 7_241_732_096, 0, 0}, {1_656_576, 1_656_576, 0, 0},
	{46_702_792_704, 1_605_636_096, 5_637_144_576, 8},
	{0, 0, 0, 0}, {494_032_768, 494_032_768, 0, 0},
}

// model is a row of models.json.
type model struct {
	Dir      *string // default tiny-model
	Counts   int     // index into counts
	Front    *string // README.md with this front matter
	Raw      bool    // files are in hexadecimal
	Files    map[string]string
	Override *string
	Name     *string
	KVs      []any
	File     string
	Error    string
}

// refused reports whether err is for an input that the reference accepts and Load does not; see the
// package documentation.
func refused(err error) bool {
	return slices.ContainsFunc([]string{
		`over.json: key "general.tags": want a list, found `,
		`config.json: want an object, found null`,
		`want a list of objects, found `,
		`want a string, found a list`,
		`want a string as author, found a list`,
	}, func(s string) bool { return strings.Contains(err.Error(), s) })
}

// plain returns a value in the form of the golden file: type and value.
func plain(v gguf.Value) []any {
	switch v.Type() {
	case gguf.StringType:
		s, _ := v.Str()
		return []any{"str", s}
	case gguf.BoolType:
		b, _ := v.Bool()
		return []any{"bool", b}
	case gguf.Float32Type:
		f, _ := v.Float()
		return []any{"f32", float64(math.Float32bits(float32(f)))}
	case gguf.ArrayType:
		list := []any{}
		for e := range v.Elems() {
			list = append(list, plain(e))
		}
		return []any{"arr", list}
	}
	i, _ := v.Int()
	return []any{v.Type().String(), float64(i)}
}

func TestModels(t *testing.T) {
	nRefused := 0
	for _, c := range rows[model](t, "models.json") {
		fsys := fstest.MapFS{}
		for name, text := range c.Files {
			data := []byte(text)
			if c.Raw {
				var err error
				if data, err = hex.DecodeString(text); err != nil {
					t.Fatal(err)
				}
			}
			fsys[name] = &fstest.MapFile{Data: data}
		}
		if c.Front != nil {
			fsys["README.md"] = &fstest.MapFile{Data: []byte("---\n" + *c.Front + "\n---\n# Title\n\nname: not this\n")}
		}
		dir := "tiny-model"
		if c.Dir != nil {
			dir = *c.Dir
		}
		opt := Options{Name: c.Name, OverrideFile: "over.json"}
		if c.Override != nil {
			opt.Override = []byte(*c.Override)
		}
		n := counts[c.Counts]
		where := fmt.Sprintf("%s %q %s", dir, c.Files, show(c.Front, c.Override, c.Name))
		m, err := Load(fsys, DirName(dir), opt)
		if err != nil {
			if !errors.Is(err, fault.Broken) {
				t.Errorf("%s: error is not of kind fault.Broken: %v", where, err)
			}
			if c.Error == "" {
				nRefused++
				if !refused(err) {
					t.Errorf("%s: unexpected error: %v", where, err)
				}
			}
			continue
		}
		if c.Error != "" {
			t.Errorf("%s: no error, want one (reference: %s)", where, c.Error)
			continue
		}
		got := []any{}
		for _, kv := range m.KVs(n) {
			p := plain(kv.Value)
			if kv.Value.Type() == gguf.StringType {
				p = p[1:]
			}
			got = append(got, append([]any{kv.Key}, p...))
		}
		if !reflect.DeepEqual(got, c.KVs) {
			t.Errorf("%s:\ngot  %v\nwant %v", where, got, c.KVs)
		}
		if got := m.stem(n) + "-F16.gguf"; c.File != "" && got != c.File {
			t.Errorf("%s: file name %q, want %q", where, got, c.File)
		}
	}
	t.Logf("%d inputs refused that the reference accepts", nRefused)
}
