package interop

import (
	_ "embed"
	"encoding/binary"
	"math"
	"os"
	"testing"

	"ggforge/gguf"
)

//go:embed merge.py
var mergePy []byte

// merges are adapters to merge: arguments of mkhf.py, options of two adapters of
// mksrc.py, and their scales.
var merges = []struct{ name, args, first, second, one, two string }{
	{"llama", "llama --dtype f32", "r=8 alpha=16", "r=4 alpha=3 targets=q_proj,down_proj rslora=1", "1", "-0.5"},
	{"embedding", "llama --dtype bf16", "embed=1 alpha=5", "r=16 dtype=bf16", "0.25", "2"},
	{"experts", "mixtral --dtype f32", "targets=q_proj,w1,w2,w3", "targets=v_proj", "1", "1"},
	{"gpt2", "gpt2 --dtype f32", "targets=c_attn,c_proj,c_fc", "targets=c_fc", "1", "3"},
}

// TestMerge adds adapters to weights with PyTorch, in float32, and with ggconv: the values agree within the rounding of
// such a sum of products, which PyTorch adds in another order.
func TestMerge(t *testing.T) {
	o := start(t)
	must(t, os.WriteFile(root+work+"/oracle/merge.py", mergePy, 0o666))
	for _, m := range merges {
		t.Run(m.name, func(t *testing.T) {
			first := o.source(t, m.name, m.args, "lora", m.first)
			must(t, os.RemoveAll(root+first+"-1"))
			must(t, os.Rename(root+first, root+first+"-1"))
			second := o.source(t, m.name, m.args, "lora", m.second)
			base, merged := work+"/plain/"+m.name, work+"/merged"
			o.script(t, "merge.py", base, merged, first+"-1", m.one, second, m.two)
			want, got := root+work+"/want.gguf", root+work+"/ours.gguf"
			flags := []string{"--force", "--progress", "none", "--model-name", "x", "--outtype", "f32"}
			if m.name == "gpt2" {
				flags = append(flags, "--pre", "gpt-2")
			}
			ours(t, "ggconv", append(flags, "--outfile", want, root+merged)...)
			ours(t, "ggconv", append(flags, "--outfile", got, "--merge-lora", root+first+"-1:"+m.one, "--merge-lora",
				root+second+":"+m.two, root+base)...)
			x, err := gguf.Open(want)
			must(t, err)
			defer x.Close()
			y, err := gguf.Open(got)
			must(t, err)
			defer y.Close()
			if len(x.Tensors) != len(y.Tensors) {
				t.Fatalf("%d tensors, want %d", len(y.Tensors), len(x.Tensors))
			}
			for i := range x.Tensors {
				a, b := x.Data(&x.Tensors[i]), y.Data(&y.Tensors[i])
				worst := 0.0
				for k := 0; k < len(a); k += 4 {
					p := float64(math.Float32frombits(binary.LittleEndian.Uint32(a[k:])))
					q := float64(math.Float32frombits(binary.LittleEndian.Uint32(b[k:])))
					worst = max(worst, math.Abs(p-q))
				}
				if worst > 1e-6 { // weights and sums are below 1, of at most 16 products
					t.Errorf("%s: differs by %g", x.Tensors[i].Name, worst)
				}
			}
		})
	}
}
