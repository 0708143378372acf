package tokenizer

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"ggforge/gguf"
)

// goldenCase is one entry of testdata/cases.json; see testdata/README.md.
type goldenCase struct {
	Name      string
	Base      string
	Omit      []string
	Files     map[string]any
	VocabSize int `json:"vocab_size"`

	Error  string            // the reference's error, empty when it converts
	KVs    [][3]any          // key, type, value; the vocabulary's arrays only with their length
	Rows   [][4]any          // id, text, score, type of rows that differ from the base's first case
	Padded []int             // rows that are [PADi] but were not in the base's first case
	rows   map[int]goldenRow // all rows that are not [PADi]
}

type goldenRow struct {
	text  string
	score float32
	typ   TokenType
}

func decodeNumbers(t testing.TB, data []byte, v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		t.Fatal(err)
	}
}

func goldenCases(t testing.TB) []*goldenCase {
	t.Helper()
	data, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []*goldenCase
	decodeNumbers(t, data, &cases)
	base := make(map[string]map[int]goldenRow)
	for _, c := range cases {
		if c.Error != "" {
			continue
		}
		c.rows = make(map[int]goldenRow)
		if _, own := c.Files[spmFile]; !own {
			for id, r := range base[c.Base] {
				c.rows[id] = r
			}
		}
		for _, id := range c.Padded {
			delete(c.rows, id)
		}
		for _, r := range c.Rows {
			score, err := strconv.ParseFloat(fmt.Sprint(r[2]), 32)
			if err != nil {
				t.Fatal(err)
			}
			c.rows[number(t, r[0])] = goldenRow{r[1].(string), float32(score), TokenType(number(t, r[3]))}
		}
		if _, own := c.Files[spmFile]; !own && base[c.Base] == nil {
			base[c.Base] = c.rows
		}
	}
	return cases
}

func number(t testing.TB, v any) int {
	n, err := v.(json.Number).Int64()
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// Dir returns the case's checkpoint directory.
func (c *goldenCase) Dir(t testing.TB) fstest.MapFS {
	t.Helper()
	dir := make(fstest.MapFS)
	root := path.Join("testdata", c.Base)
	var entries []os.DirEntry
	var err error
	if c.Base != "" {
		if entries, err = os.ReadDir(root); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range entries {
		data, err := os.ReadFile(path.Join(root, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		dir[e.Name()] = &fstest.MapFile{Data: data}
	}
	for _, name := range c.Omit {
		delete(dir, name)
	}
	for name, v := range c.Files {
		var data []byte
		switch v := v.(type) {
		case string:
			data = []byte(v)
		case map[string]any:
			if data, err = base64.StdEncoding.DecodeString(v["base64"].(string)); err != nil {
				t.Fatal(err)
			}
		}
		dir[name] = &fstest.MapFile{Data: data}
	}
	return dir
}

func (c *goldenCase) load(t testing.TB) (*Vocab, error) {
	opt := Options{Rules: Llama{}, VocabSize: c.VocabSize}
	return Load(c.Dir(t), opt)
}

// TestGolden compares keys, their order, types and values with the reference's,
// and refuses what the reference refuses.
func TestGolden(t *testing.T) {
	refused := 0
	for _, c := range goldenCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			v, err := c.load(t)
			if c.Error != "" {
				refused++
				var format *FormatError
				if err == nil {
					t.Fatalf("converted, but the reference says: %s", c.Error)
				} else if !errors.As(err, &format) || format.Path == "" {
					t.Fatalf("want a FormatError with a file name, got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if msg := c.compare(t, v); msg != "" {
				t.Errorf("%s\nwarnings: %q", msg, v.Warnings)
			}
		})
	}
	if refused == 0 {
		t.Error("no case that the reference refuses")
	}
}

// compare returns the first difference.
func (c *goldenCase) compare(t testing.TB, v *Vocab) string {
	kvs := v.KVs()
	for i, want := range c.KVs {
		key := want[0].(string)
		if i >= len(kvs) {
			return fmt.Sprintf("pair %d: want %s, got the end", i, key)
		}
		got := kvs[i]
		if got.Key != key {
			return fmt.Sprintf("pair %d: want %s, got %s", i, key, got.Key)
		}
		if typ := typeName(got.Value); typ != want[1] {
			return fmt.Sprintf("%s: want type %v, got %s", key, want[1], typ)
		}
		switch key {
		case keyTokens, keyScores, keyTokenTypes:
			if msg := c.compareRows(key, number(t, want[2]), got.Value); msg != "" {
				return msg
			}
		default:
			if g, w := got.Value.String(), goldenText(want[2]); g != w {
				return fmt.Sprintf("%s: want %s, got %s", key, w, g)
			}
		}
	}
	if len(kvs) > len(c.KVs) {
		return fmt.Sprintf("pair %d: want the end, got %s", len(c.KVs), kvs[len(c.KVs)].Key)
	}
	return ""
}

func (c *goldenCase) compareRows(key string, n int, got gguf.Value) string {
	if got.Len() != n {
		return fmt.Sprintf("%s: want %d elements, got %d", key, n, got.Len())
	}
	id := 0
	for e := range got.Elems() {
		r, ok := c.rows[id]
		if !ok {
			r = goldenRow{fmt.Sprintf("[PAD%d]", id), -10000, Unused}
		}
		want := gguf.String(r.text)
		switch key {
		case keyScores:
			want = gguf.Float32(r.score)
		case keyTokenTypes:
			want = gguf.Int32(int32(r.typ))
		}
		if f, _ := e.Float(); e != want && !(math.IsNaN(f) && math.IsNaN(float64(r.score))) {
			return fmt.Sprintf("%s[%d]: want %v, got %v", key, id, want, e)
		}
		id++
	}
	return ""
}

// typeName spells a type as the cases do, in the words of gguf-py.
func typeName(v gguf.Value) string {
	names := map[gguf.ValueType]string{gguf.StringType: "STRING", gguf.Uint32Type: "UINT32", gguf.BoolType: "BOOL",
		gguf.Int32Type: "INT32", gguf.Float32Type: "FLOAT32", gguf.Uint8Type: "UINT8"}
	if v.Type() == gguf.ArrayType {
		return "ARRAY/" + names[v.ElemType()]
	}
	return names[v.Type()]
}

// goldenText spells a value of cases.json as gguf.Value.String does.
func goldenText(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, goldenText(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return fmt.Sprint(v)
}

// comparePairs returns the first difference. Keys of the architecture that
// set_vocab also writes are not compared.
func comparePairs(kvs gguf.Metadata, want [][3]any) string {
	want = slices.DeleteFunc(want, func(w [3]any) bool { return !strings.HasPrefix(w[0].(string), "tokenizer.") })
	for i, w := range want {
		key := w[0].(string)
		if i >= len(kvs) {
			return fmt.Sprintf("pair %d: want %s, got the end", i, key)
		}
		got := kvs[i]
		if got.Key != key {
			return fmt.Sprintf("pair %d: want %s, got %s", i, key, got.Key)
		}
		if typ := typeName(got.Value); typ != w[1] {
			return fmt.Sprintf("%s: want type %v, got %s", key, w[1], typ)
		}
		if msg := compareValue(got.Value, w[2]); msg != "" {
			return key + msg
		}
	}
	if len(kvs) > len(want) {
		return fmt.Sprintf("pair %d: want the end, got %s", len(want), kvs[len(want)].Key)
	}
	return ""
}

func compareValue(got gguf.Value, want any) string {
	switch want := want.(type) {
	case []any:
		if got.Len() != len(want) {
			return fmt.Sprintf(": want %d elements, got %d", len(want), got.Len())
		}
		i := 0
		for e := range got.Elems() {
			if msg := compareValue(e, want[i]); msg != "" {
				return fmt.Sprintf("[%d]%s", i, msg)
			}
			i++
		}
		return ""
	case map[string]any: // a long array
		if n := fmt.Sprint(got.Len()); n != fmt.Sprint(want["n"]) {
			return fmt.Sprintf(": want %v elements, got %s", want["n"], n)
		}
		if sum := arraySum(got); sum != want["sha256"] {
			return fmt.Sprintf(": want sha256 %v, got %s", want["sha256"], sum)
		}
		return ""
	case json.Number, string: // "inf" and "nan" are no JSON numbers
		if f, ok := got.Float(); ok && got.Type() == gguf.Float32Type {
			w, err := strconv.ParseFloat(fmt.Sprint(want), 32)
			if err != nil || float32(w) != float32(f) {
				return fmt.Sprintf(": want %v, got %v", want, got)
			}
			return ""
		}
	}
	if g, w := got.String(), goldenText(want); g != w {
		return fmt.Sprintf(": want %s, got %s", w, g)
	}
	return ""
}

// arraySum is the sha256 of an array's elements as a GGUF file holds them.
func arraySum(v gguf.Value) string {
	h := sha256.New()
	for e := range v.Elems() {
		switch v.ElemType() {
		case gguf.StringType:
			s, _ := e.Str()
			binary.Write(h, binary.LittleEndian, uint64(len(s)))
			h.Write([]byte(s))
		case gguf.Float32Type:
			f, _ := e.Float()
			binary.Write(h, binary.LittleEndian, float32(f))
		case gguf.Uint8Type:
			n, _ := e.Int()
			h.Write([]byte{byte(n)})
		default:
			n, _ := e.Int()
			binary.Write(h, binary.LittleEndian, int32(n))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
