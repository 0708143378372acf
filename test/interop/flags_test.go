package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/test/hftest"
)

// TestFlags runs both converters with the flags that change the output.
func TestFlags(t *testing.T) {
	o := start(t)
	in, ref := work+"/hf/gollama", work+"/flags"
	mine := t.TempDir()
	must(t, os.MkdirAll(root+work+"/hf", 0o777))
	must(t, os.CopyFS(root+in, os.DirFS("../testdata/gollama")))
	must(t, os.WriteFile(root+work+"/meta.json",
		[]byte(`{"general.name": "Other Name", "general.author": "me", "general.tags": ["a", "b"]}`), 0o666))
	for i, flags := range []string{
		"--vocab-only", "--bigendian --outtype f16", "--bigendian --outtype f32", "--bigendian --outtype bf16",
		"--bigendian --outtype q8_0", "--fuse-qkv", "--split-max-tensors 7", "--split-max-size 2M",
		"--split-max-size 2M --no-tensor-first-split", "--split-max-size 900G", "--no-tensor-first-split",
		"--outtype tq1_0", "--outtype tq2_0",
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
			o.script(t, "refconvert.py", append([]string{in, ref + "/" + dir + "/x.gguf", "--"},
				args(work+"/meta.json")...)...)
			ours(t, "ggconv", append([]string{"--progress", "none", root + in, "--compat", "reference", "--outfile",
				filepath.Join(mine, dir, "x.gguf")}, args(root+work+"/meta.json")...)...)
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

// TestDense converts an embedding model with its dense modules.
func TestDense(t *testing.T) {
	o := start(t)
	specs := hftest.Specs()
	s := specs[slices.IndexFunc(specs, func(s *hftest.Spec) bool { return s.Name == "embeddinggemma" })]
	dir, err := s.Write(root+work+"/dense", s.All()[0])
	must(t, err)
	modules := `[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
		{"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}`
	for i, shape := range [][2]int64{{96, 64}, {64, 96}} {
		name := fmt.Sprintf("%d_Dense", i+2)
		modules += fmt.Sprintf(
			`, {"idx": %d, "name": "%[1]d", "path": %q, "type": "sentence_transformers.models.Dense"}`, i+2, name)
		must(t, os.MkdirAll(filepath.Join(dir, name), 0o777))
		must(t, os.WriteFile(filepath.Join(dir, name, "config.json"), fmt.Appendf(nil,
			`{"in_features": %d, "out_features": %d, "bias": false, "activation_function": "torch.nn.modules.linear.Identity"}`, shape[1], shape[0]), 0o666))
		weights := make([]float32, shape[0]*shape[1])
		for k := range weights {
			weights[k] = float32(k%251)/17 - 7
		}
		must(t, safetensorstest.Write(filepath.Join(dir, name, "model.safetensors"), []safetensorstest.Tensor{
			{Name: "linear.weight", DType: safetensors.F32, Shape: shape[:], Data: safetensorstest.F32(weights...)},
		}, nil))
	}
	must(t, os.WriteFile(filepath.Join(dir, "modules.json"), []byte(modules+"]"), 0o666))
	mine := filepath.Join(t.TempDir(), "x.gguf")
	ref := work + "/dense/x.gguf"
	o.script(t, "refconvert.py", strings.TrimPrefix(dir, root), ref, "--", "--outtype", "bf16",
		"--sentence-transformers-dense-modules")
	ours(t, "ggconv", "--progress", "none", dir, mine, "--outtype", "bf16", "--sentence-transformers-dense-modules")
	same(t, mine, root+ref)
}
