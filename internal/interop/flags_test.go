package interop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFlags runs both converters with the flags that change the output.
func TestFlags(t *testing.T) {
	o := start(t)
	in, ref := work+"/hf/gollama", work+"/flags"
	mine := t.TempDir()
	must(t, os.MkdirAll(root+work+"/hf", 0o777))
	must(t, os.CopyFS(root+in, os.DirFS("../../testdata/gollama")))
	must(t, os.WriteFile(root+work+"/meta.json", []byte(`{"general.name": "Other Name", "general.author": "me", "general.tags": ["a", "b"]}`), 0o666))
	for i, flags := range []string{
		"--vocab-only", "--bigendian --outtype f16", "--bigendian --outtype f32", "--fuse-qkv", "--split-max-tensors 7", "--split-max-size 2M",
		"--split-max-size 2M --no-tensor-first-split", "--split-max-size 900G", "--no-tensor-first-split", "--outtype tq1_0", "--outtype tq2_0",
		"--metadata META --model-name Third",
	} {
		t.Run(strings.ReplaceAll(flags, " ", "_"), func(t *testing.T) {
			dir := string(rune('a' + i))
			must(t, os.MkdirAll(root+ref+"/"+dir, 0o777))
			must(t, os.MkdirAll(filepath.Join(mine, dir), 0o777))
			if !strings.Contains(flags, "--outtype") {
				flags += " --outtype auto"
			}
			args := func(meta string) []string { return strings.Fields(strings.ReplaceAll(flags, "META", meta)) }
			o.script(t, "refconvert.py", append([]string{in, ref + "/" + dir + "/x.gguf", "--"}, args(work+"/meta.json")...)...)
			ours(t, "ggconv", append([]string{"--progress", "none", root + in, "--outfile", filepath.Join(mine, dir, "x.gguf")}, args(root+work+"/meta.json")...)...)
			want, err := filepath.Glob(root + ref + "/" + dir + "/*")
			must(t, err)
			got, err := filepath.Glob(filepath.Join(mine, dir, "*"))
			must(t, err)
			if len(got) != len(want) || len(want) == 0 {
				t.Fatalf("%d files, want %d", len(got), len(want))
			}
			for i := range want {
				a, err := os.ReadFile(got[i])
				must(t, err)
				b, err := os.ReadFile(want[i])
				must(t, err)
				if filepath.Base(got[i]) != filepath.Base(want[i]) || string(a) != string(b) {
					t.Errorf("%s differs from %s", got[i], want[i])
				}
			}
		})
	}
}
