package convert

import (
	"strings"
	"testing"

	"ggforge/internal/text/pyjson"
)

// manifest is a valid hadamardFile.
const manifest = `{"schema_version": 1, "kind": "hadamard-weight-fold", "status": "requires-matching-runtime",
	"transform": {"name": "normalized-signed-sylvester-walsh-hadamard", "block_size": 2, "sign_mode": "explicit"}, "signs": {"4": [1, -1, 1, 1], "2": [-1, 1]},
	"tensors": [{"name": "x.weight", "axis": -1}]}`

func foldOf(text string) (*fold, error) {
	v, err := pyjson.Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	o, _ := v.(*pyjson.Object)
	return parseFold(o)
}

func TestFold(t *testing.T) {
	f, err := foldOf(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.widths) != 2 || f.widths[0] != 2 || f.widths[1] != 4 || len(f.values) != 6 || f.values[0] != -1 ||
		f.values[3] != -1 {
		t.Errorf("signs %v of widths %v", f.values, f.widths)
	}
	for _, c := range [][3]string{
		{`"schema_version": 1`, `"schema_version": 4`, "schema_version"},
		{`"schema_version": 1`, `"schema_version": 3`, "tied_output"},
		{`"schema_version": 1`, `"schema_version": 1, "tied_output": true`, "tied_output"},
		{`weight-fold`, `else`, "kind"},
		{`requires`, `needs`, "status"},
		{`"block_size": 2`, `"block_size": 3`, "block_size"},
		{`"block_size": 2`, `"block_size": 0`, "block_size"},
		{`"block_size": 2`, `"block_size": 4`, `signs["2"]`},
		{`sylvester`, `other`, "transform.name"},
		{`"explicit"`, `"random"`, "sign_mode"},
		{`[-1, 1]`, `[-1, 2]`, "want 1 or -1"},
		{`[-1, 1]`, `[-1]`, "as many as the width"},
		{`"2": `, `"two": `, `signs["two"]`},
		{`"axis": -1`, `"axis": 0`, "axis"},
		{`"axis": -1`, `"axis": -1, "role": "other"`, "role"},
		{`"name": "x.weight"`, `"name": 3`, "no name"},
		{`[{"name": "x.weight", "axis": -1}]`, `[]`, "tensors"},
	} {
		if _, err := foldOf(strings.Replace(manifest, c[0], c[1], 1)); err == nil ||
			!strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s for %s: %v, want an error about %s", c[1], c[0], err, c[2])
		}
	}
}

// FuzzFold checks that an accepted manifest has a tensor, and as many signs as the sum of its widths.
func FuzzFold(f *testing.F) {
	f.Add(manifest)
	f.Fuzz(func(t *testing.T, text string) {
		fold, err := foldOf(text)
		if err != nil {
			return
		}
		n := 0
		for _, w := range fold.widths {
			n += int(w)
		}
		if n != len(fold.values) || len(fold.weights) == 0 {
			t.Fatalf("%d signs for widths %v, %d tensors", len(fold.values), fold.widths, len(fold.weights))
		}
	})
}
