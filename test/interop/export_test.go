package interop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
)

// TestExport converts checkpoints, exports the files under the checkpoints'
// names and lets the reference convert those: its files must equal ours.
func TestExport(t *testing.T) {
	o := start(t)
	for _, c := range []struct {
		dir, args, types string
		flags            []string
	}{
		{"llama", "llama", "f16 f32", nil},
		{"bias", "llama-bias --dtype bf16", "bf16", []string{"--max-shard-size", "1M"}},
		{"tied", "llama --set tie_word_embeddings=true", "f32", nil},
		{"head-dim", "mistral --set head_dim=16 num_key_value_heads=4", "f16", []string{"--type", "f32"}},
		{"rope-llama3", `llama --set rope_theta=500000.0 rope_scaling={"factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192,"rope_type":"llama3"}`,
			"f16", []string{"--max-shard-size", "300K"}},
	} {
		t.Run(c.dir, func(t *testing.T) {
			original, exported := work+"/original/"+c.dir, work+"/exported/"+c.dir
			arch, rest, _ := strings.Cut(c.args, " ")
			o.script(t, "mkhf.py", append([]string{arch, original}, strings.Fields(rest)...)...)
			must(t, os.MkdirAll(filepath.Dir(root+exported), 0o777))
			for _, typ := range strings.Fields(c.types) {
				ref, mine := work+"/reference.gguf", work+"/ours.gguf"
				must(t, os.RemoveAll(root+exported))
				os.Remove(root + ref)
				ours(t, "ggconv", "--force", "--progress", "none", "--outtype", typ, "--outfile", root+mine,
					root+original)
				ours(t, "ggtool", append(append([]string{"export", "--hf", "--progress", "none"}, c.flags...),
					root+mine, root+exported)...)
				copyRest(t, root+original, root+exported)
				o.script(t, "refconvert.py", exported, ref, "--outtype", typ, "--quiet")
				same(t, root+mine, root+ref)
			}
		})
	}
}

// copyRest copies all but the weights from one checkpoint to another.
func copyRest(t *testing.T, from, to string) {
	entries, err := os.ReadDir(from)
	must(t, err)
	for _, e := range entries {
		if !safetensors.IsModelFile(e.Name()) {
			data, err := os.ReadFile(filepath.Join(from, e.Name()))
			must(t, err)
			must(t, os.WriteFile(filepath.Join(to, e.Name()), data, 0o666))
		}
	}
}
