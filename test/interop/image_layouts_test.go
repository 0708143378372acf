package interop

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadersLayouts has diffusers' own converters rename made-up image models, and converts both checkpoints: the files
// are the same, unquantized and quantized.
func TestReadersLayouts(t *testing.T) {
	if imageReaders == "" {
		t.Skip("needs the readers of others: run make image-readers")
	}
	o := start(t)
	maker, err := os.ReadFile(filepath.Join(shared, "oracle", "mkdiff.py"))
	if err != nil {
		t.Skipf("%v: nothing compared", err)
	}
	must(t, os.WriteFile(root+work+"/oracle/mkdiff.py", maker, 0o666))
	dir := work + "/layouts"
	must(t, os.RemoveAll(root+dir))
	must(t, os.MkdirAll(root+dir, 0o777))
	o.script(t, "imagelayouts.py", imageReaders, work+"/oracle/mkdiff.py", dir)
	data, err := os.ReadFile(root + dir + "/cases.json")
	must(t, err)
	var cases []string
	must(t, json.Unmarshal(data, &cases))
	compared := 0
	for _, name := range cases {
		folder := root + dir + "/" + name
		for _, typ := range []string{"", "Q8_0"} {
			var files [2][]byte
			for i, in := range []string{"original.safetensors", "diffusers"} {
				out := folder + "/out.gguf"
				if typ == "" {
					ours(t, "ggconv", "--force", folder+"/"+in, out)
				} else {
					ours(t, "ggquant", "--force", folder+"/"+in, out, typ)
				}
				files[i], err = os.ReadFile(out)
				must(t, err)
			}
			if !bytes.Equal(files[0], files[1]) {
				t.Errorf("%s %s: the file of diffusers' names differs from that of the original's", name, typ)
			}
			compared++
		}
	}
	must(t, os.RemoveAll(root+dir))
	t.Logf("%d pairs of files equal: %s", compared, strings.Join(cases, ", "))
	if compared < 40 {
		t.Errorf("%d pairs compared", compared)
	}
}
