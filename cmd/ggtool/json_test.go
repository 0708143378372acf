package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	tool "ggforge/cmd/internal/cli"
	"ggforge/imatrix/imatrixtest"
)

// TestJSON decodes the JSON output of verbs, which has no fields but those of their types; exit codes are those of the
// text output.
func TestJSON(t *testing.T) {
	dir := t.TempDir()
	whole, first := shards(t, dir, 1)
	_, changed := shards(t, t.TempDir(), 2)
	at := func(name string) string { return filepath.Join(dir, name) }
	matrix := at("a.dat")
	if err := os.WriteFile(matrix, imatrixtest.Legacy([]imatrixtest.Entry{{Name: "a", Sums: make([]float32, 32),
		Calls: 2}}, &imatrixtest.Trailer{Chunks: 2, Dataset: "x/b.txt"}), 0o666); err != nil {
		t.Fatal(err)
	}
	code, list, err := call("hash", "--sha1", first)
	if code != 0 || os.WriteFile(at("list"), []byte(list), 0o666) != nil {
		t.Fatal(err)
	}
	root := command()
	for _, c := range []struct {
		args string
		code int
		want string // part of the JSON, without spaces
	}{
		{"diff WHOLE WHOLE", 0, `"same":true,"differences":[]`},
		{"diff FIRST CHANGED", 6, `"same":false,"differences":["`},
		{"hash --sha1 FIRST", 0, `"kind":"sha1","hash":"`},
		{"hash --check LIST FIRST", 0, `"right":true}`},
		{"hash --check LIST CHANGED", 6, `"right":false}`},
		{"verify --header-only WHOLE", 3, `"whole":false`},
		{"quality WHOLE FIRST", 0, `"rmse":0`},
		{"quality WHOLE FIRST FIRST", 0, `{"models":[{"ref":"`},
		{"name Model-7B-v1.0-Q4_K_M.gguf", 0, `"size_label":"7B"`},
		{"split --dry-run --max-tensors 1 FIRST PREFIX", 0, `-00003-of-00003.gguf","bytes":`},
		{"split --max-tensors 2 WHOLE PREFIX", 0, `"tensors":1}],"seconds":0.`},
		{"merge FIRST MERGED", 0, `merged.gguf","bytes":`},
		{"endian WHOLE BIG", 0, `"tensors":3}],"seconds":0.`},
		{"export WHOLE EXPORTED", 0, `"tensors":3,"files":["`},
		{"meta --dry-run --set general.name=str:x WHOLE", 0,
			`"changes":[{"action":"add","key":"general.name","value":"`},
		{"meta --set general.name=str:x --output NAMED WHOLE", 0, `"how":"anew","done":true,"bytes":`},
		{"meta --set general.architecture=llamb WHOLE", 0, `"was":"\"llama\""}],"how":"inplace","done":true}`},
		{"meta --set general.architecture=llamb WHOLE", 0, `"changes":[],"how":"nothing","done":false}`},
		{"imatrix convert MATRIX CONVERTED", 0, `"format":"gguf","bytes":`},
		{"imatrix merge MATRIX CONVERTED BOTH", 0, `"tensors":1,"chunk_count":4`},
		{"imatrix fill --force MATRIX FILLED", 0, `"tensors":1`},
		{"imatrix strip --format dat MATRIX STRIPPED", 0, `"format":"dat"`},
		{"imatrix show MATRIX", 0, `"tensor":"a"`},
		{"imatrix check --model WHOLE MATRIX", 3, `"right":0,"tensors":0,"fits":false`},
	} {
		args := strings.Fields(strings.NewReplacer("WHOLE", whole, "FIRST", first, "CHANGED", changed, "LIST",
			at("list"), "PREFIX", at("cut"), "MERGED", at("merged.gguf"), "BIG", at("big.gguf"),
			"EXPORTED", at("exported"), "NAMED", at("named.gguf"), "MATRIX", matrix, "CONVERTED", at("converted.gguf"),
			"BOTH", at("both.gguf"), "FILLED", at("filled.gguf"), "STRIPPED", at("stripped.dat")).Replace(c.args))
		code, out, err := call(append(args, "--json")...)
		verb := root.Command(args[0])
		if len(verb.Commands) > 0 {
			verb = verb.Command(args[1])
		}
		if code != c.code || !strings.Contains(strings.Join(strings.Fields(out), ""), c.want) {
			t.Errorf("%s: exit code %d, %v, want %d with %s:\n%s", c.args, code, err, c.code, c.want, out)
		}
		d := json.NewDecoder(bytes.NewReader([]byte(out)))
		d.DisallowUnknownFields()
		result := tool.AboutOf(verb).Result
		if strings.HasPrefix(c.want, `{"models"`) { // quality has a different type for several models
			result = result[1:]
		} else if args[0] == "quality" {
			result = result[:1]
		}
		if len(result) != 1 {
			t.Fatalf("%s: the definition has %d types", c.args, len(result))
		}
		if err := d.Decode(reflect.New(result[0]).Interface()); err != nil || d.More() {
			t.Errorf("%s: %v\n%s", c.args, err, out)
		}
	}
}
