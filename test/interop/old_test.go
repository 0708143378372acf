package interop

import (
	"os"
	"testing"

	"ggforge/checkpoint/ggml/ggmltest"
	"ggforge/gguf"
)

// TestOldFiles converts files in formats older than GGUF with refggml.py, which writes as the reference's program does,
// and with ggconv, and has the runtime load them.
func TestOldFiles(t *testing.T) {
	o := start(t)
	for name, c := range map[string]struct {
		model ggmltest.Model
		flags []string // values of ggconv's --eps, --gqa and -c, which refggml.py takes as arguments
	}{
		"ggml-f16":    {ggmltest.Llama("lmgg", 0, 1, gguf.TypeF16, false), nil},
		"ggmf-f32":    {ggmltest.Llama("fmgg", 1, 0, gguf.TypeF32, false), nil},
		"ggjt1-f16":   {ggmltest.Llama("tjgg", 1, 1, gguf.TypeF16, false), nil},
		"ggjt2-q5_0":  {ggmltest.Llama("tjgg", 2, 8, gguf.TypeQ5_0, false), nil},
		"ggjt2-q4_k":  {ggmltest.Llama("tjgg", 2, 15, gguf.TypeQ4_K, true), nil},
		"ggjt3-q4_0":  {ggmltest.Llama("tjgg", 3, 2, gguf.TypeQ4_0, false), nil},
		"ggjt3-q4_1":  {ggmltest.Llama("tjgg", 3, 3, gguf.TypeQ4_1, false), nil},
		"ggjt3-q8_0":  {ggmltest.Llama("tjgg", 3, 7, gguf.TypeQ8_0, false), nil},
		"ggjt3-q6_k":  {ggmltest.Llama("tjgg", 3, 18, gguf.TypeQ6_K, true), nil},
		"ggjt3-other": {ggmltest.Llama("tjgg", 3, 1, gguf.TypeF16, false), []string{"1e-5", "1", "4096"}},
	} {
		t.Run(name, func(t *testing.T) {
			in, ref, mine := work+"/"+name+".bin", work+"/reference.gguf", work+"/ours.gguf"
			must(t, os.WriteFile(root+in, ggmltest.Encode(c.model), 0o666))
			o.script(t, "refggml.py", append([]string{in, ref}, c.flags...)...)
			argv := []string{"--force", "--progress", "none", root + in, root + mine}
			if c.flags != nil {
				argv = append(argv, "--eps", c.flags[0], "--gqa", c.flags[1], "-c", c.flags[2])
			}
			ours(t, "ggconv", argv...)
			same(t, root+mine, root+ref)
			if found, err := o.load(t, mine); err != nil {
				t.Errorf("the runtime does not load it: %v", err)
			} else {
				t.Log(found)
			}
		})
	}
}
