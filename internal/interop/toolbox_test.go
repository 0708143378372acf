package interop

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestSplit compares shards with those of llama-gguf-split, also of shards that were joined and
// cut anew, and what is joined.
func TestSplit(t *testing.T) {
	o := start(t)
	o.script(t, "refconvert.py", gollama(t), work+"/f16.gguf", "--outtype", "f16", "--quiet")
	o.tool(t, "llama-quantize", "--tensor-type", "attn_q=q2_k", work+"/f16.gguf", work+"/odd.gguf", "Q4_0")
	o.script(t, "mkhf.py", "llama", work+"/llama", "--opt", "edge=1")
	o.script(t, "refconvert.py", work+"/llama", work+"/tiny.gguf", "--outtype", "f32", "--quiet")
	for _, in := range []string{"f16", "odd", "tiny"} {
		for _, args := range []string{"", "--split-max-tensors 1", "--split-max-tensors 7", "--split-max-size 4M", "--split-max-size 1G", "--split-max-tensors 20 --no-tensor-first-split", "--split-max-size 5M --no-tensor-first-split"} {
			removeOutputs()
			flags := strings.Fields(args)
			o.tool(t, append(append([]string{"llama-gguf-split", "--split"}, flags...), work+"/"+in+".gguf", work+"/ref")...)
			ours(t, "ggtool", append(append([]string{"split", "--progress", "none"}, flags...), root+work+"/"+in+".gguf", root+work+"/ours")...)
			refs, _ := filepath.Glob(root + work + "/ref-*.gguf")
			mine, _ := filepath.Glob(root + work + "/ours-*.gguf")
			if len(refs) == 0 || len(refs) != len(mine) {
				t.Errorf("%s %s: %d shards, reference %d", in, args, len(mine), len(refs))
				continue
			}
			for i := range refs {
				same(t, mine[i], refs[i])
			}
			first := filepath.Base(refs[0])
			o.tool(t, "llama-gguf-split", "--merge", work+"/"+first, work+"/ref.gguf")
			ours(t, "ggtool", "merge", "--progress", "none", root+work+"/"+first, root+work+"/ours.gguf")
			same(t, root+work+"/ours.gguf", root+work+"/ref.gguf")
			o.tool(t, "llama-gguf-split", "--split", "--split-max-tensors", "5", work+"/ref.gguf", work+"/refa")
			ours(t, "ggtool", "split", "--progress", "none", "--max-tensors", "5", root+work+"/"+first, root+work+"/oursa")
			again, _ := filepath.Glob(root + work + "/refa-*.gguf")
			for _, ref := range again {
				same(t, strings.Replace(ref, "refa-", "oursa-", 1), ref)
			}
			t.Logf("%s %s: %d shards, then %d", in, args, len(refs), len(again))
		}
	}
}
