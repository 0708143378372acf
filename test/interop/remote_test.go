package interop

import (
	"os"
	"path/filepath"
	"testing"

	"ggforge/test/hubtest"
)

// TestRemote has both converters read a model from a hub.
func TestRemote(t *testing.T) {
	o := start(t)
	folder, err := filepath.Abs("../testdata/gollama")
	must(t, err)
	hub := hubtest.Serve(t, "org/gollama", folder)
	for _, outtype := range []string{"auto", "q8_0"} {
		t.Run(outtype, func(t *testing.T) {
			out, mine := work+"/remote-"+outtype+".gguf", filepath.Join(t.TempDir(), "x.gguf")
			o.tool(t, "env", "HF_HOME="+work+"/hub", "python3", work+"/oracle/refremote.py", hub.URL, "org/gollama",
				out, "--outtype", outtype)
			t.Setenv("HF_ENDPOINT", hub.URL)
			ours(t, "ggconv", "--progress", "none", "--compat", "reference", "--remote", "org/gollama", "--outfile",
				mine, "--outtype", outtype)
			same(t, mine, root+out)
			must(t, os.Remove(root+out))
		})
	}
}
