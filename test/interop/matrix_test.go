package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/imatrix/imatrixtest"
	"ggforge/quantize"
	"ggforge/test/gen"
)

// run is one comparison of the two quantizers. Paths are file names in the work
// folder, so that both tools record the same ones.
type run struct {
	in     string
	recipe string
	matrix string // "" for none
	flags  []string
	compat bool // ours with --compat reference
	fails  bool // set afterwards: both refuse
}

// compare runs both quantizers on r. If the reference fails, ours must.
func (o *oracle) compare(t *testing.T, r *run) {
	t.Helper()
	flags := slices.Clone(r.flags)
	if r.matrix != "" {
		flags = append(flags, "--imatrix", r.matrix)
	}
	removeOutputs()
	ref := append([]string{root, "env", "-C", work, "llama-quantize"}, flags...)
	out, refErr := exec.Command("chroot", append(ref, r.in, "ref.gguf", r.recipe)...).CombinedOutput()
	if r.compat {
		flags = append(flags, "--compat", "reference")
	}
	cmd := exec.Command(filepath.Join(bin, "ggquant"), append(flags, "--progress", "none", r.in, "ours.gguf",
		r.recipe)...)
	cmd.Dir = root + work
	text, err := cmd.CombinedOutput()
	if r.fails = refErr != nil; r.fails {
		if err == nil {
			t.Errorf("%s %s %v: the reference fails, ours does not:\n%s", r.in, r.recipe, flags, tail(out))
		}
		return
	}
	if err != nil {
		t.Errorf("%s %s %v: %v\n%s", r.in, r.recipe, flags, err, text)
		return
	}
	refs, _ := filepath.Glob(root + work + "/ref*.gguf")
	mine, _ := filepath.Glob(root + work + "/ours*.gguf")
	if len(refs) != len(mine) || len(refs) == 0 {
		t.Errorf("%s %s %v: reference wrote %v, ours %v", r.in, r.recipe, flags, refs, mine)
		return
	}
	failed := t.Failed()
	for i := range refs {
		same(t, mine[i], refs[i])
	}
	if t.Failed() && !failed {
		t.Errorf("the files above are those of %s %s %v", r.in, r.recipe, flags)
	}
}

// removeOutputs removes what both tools wrote last.
func removeOutputs() {
	for _, pattern := range []string{"ref*.gguf", "ours*.gguf"} {
		old, _ := filepath.Glob(filepath.Join(root+work, pattern))
		for _, f := range old {
			os.Remove(f)
		}
	}
}

// tail returns the last lines of a log.
func tail(log []byte) string {
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "\n")
}

// allRecipes returns the names of all recipes.
func allRecipes() []string {
	var names []string
	for _, r := range quantize.Recipes() {
		names = append(names, r.Name)
	}
	return names
}

// synthesize writes an importance matrix for the model into the work folder: an
// entry for every matrix in a layer, some experts of which were never used.
func synthesize(t *testing.T, model, name string, legacy bool) {
	t.Helper()
	f, err := gguf.Open(filepath.Join(root+work, model))
	must(t, err)
	defer f.Close()
	var entries []imatrixtest.Entry
	for _, x := range f.Tensors {
		if len(x.NE) < 2 || !strings.HasPrefix(x.Name, "blk.") || strings.Contains(x.Name, "norm") {
			continue
		}
		slices := int64(1)
		if len(x.NE) > 2 {
			slices = x.NE[2]
		}
		e := imatrixtest.Entry{Name: x.Name, Calls: 7, Sums: gen.SaltedImportance(x.Name, "skew", int(x.NE[0]*slices))}
		for i := range slices {
			e.Counts = append(e.Counts, float32((i+3)%4*5))
		}
		entries = append(entries, e)
	}
	data := imatrixtest.GGUF(entries, []string{"made up"}, 12)
	if legacy {
		data = imatrixtest.Legacy(entries, &imatrixtest.Trailer{Chunks: 7, Dataset: "made up"})
	}
	must(t, imatrixtest.Write(filepath.Join(root+work, name), data))
}

// TestQuantizeMatrixGollama quantizes the real model by every recipe, with the reference's importance matrix.
func TestQuantizeMatrixGollama(t *testing.T) {
	o := start(t)
	hf := gollama(t)
	text := evalText(t)
	o.script(t, "refconvert.py", hf, work+"/f16.gguf", "--outtype", "f16", "--quiet")
	for _, format := range []string{"gguf", "dat"} {
		o.tool(t, "llama-imatrix", "-m", work+"/f16.gguf", "-f", text, "-c", "128", "--chunks", "8", "--no-ppl",
			"-o", work+"/real."+format, "--output-format", format)
	}
	refused := 0
	for i, r := range allRecipes() {
		t.Run(r, func(t *testing.T) {
			// the matrix has the path of its text, of which we write the base name only
			o.compare(t, &run{in: "f16.gguf", recipe: r, matrix: "real." + []string{"gguf", "dat"}[i%2], compat: true})
			if !slices.Contains(recipes, r) { // TestGollama has the others
				none := run{in: "f16.gguf", recipe: r}
				o.compare(t, &none)
				if none.fails {
					refused++
				}
			}
		})
	}
	t.Logf("%d recipes refused without a matrix", refused)
}

// matrixFlags are tried in turn, besides no flags.
var matrixFlags = [][]string{
	{"--pure"},
	{"--leave-output-tensor", "--tensor-type", `attn_(v|qkv)=q8_0`, "--tensor-type", `FFN_.*=iq4_nl`},
	{"--prune-layers", "1", "--override-kv", "a.b=int:-3", "--override-kv", "general.name=str:other"},
	{"--output-tensor-type", "q5_0", "--token-embedding-type", "q4_1"},
	{"--include-weights", "attn", "--override-kv", "a.f=float:0.1"},
	{"--exclude-weights", "ffn_down", "--pure"},
	{"--prune-layers", "0", "--tensor-type-file", "rules.txt", "--keep-split"},
}

// TestQuantizeMatrix quantizes made-up models of several architectures by every recipe, with and without a matrix and
// with flags.
func TestQuantizeMatrix(t *testing.T) {
	o := start(t)
	must(t, os.WriteFile(root+work+"/rules.txt", []byte("attn_k=q5_1 attn_output=iq4_xs\n\tblk.0.ffn=q6_k\n"), 0o666))
	for n, m := range []struct{ dir, args, pre string }{
		{"llama", "llama", ""},
		{"mixtral", "mixtral", ""},
		{"qwen3_moe", "qwen3_moe", "qwen2"},
		{"gpt2", "gpt2", "gpt-2"},
		{"falcon-40b", "falcon-40b", "falcon"},
		{"odd-rows", "llama --set hidden_size=96 num_attention_heads=4 intermediate_size=520", ""},
	} {
		t.Run(m.dir, func(t *testing.T) {
			in := m.dir + ".gguf"
			arch, rest, _ := strings.Cut(m.args, " ")
			o.script(t, "mkhf.py", append([]string{arch, work + "/" + m.dir}, strings.Fields(rest)...)...)
			argv := []string{work + "/" + m.dir, work + "/" + in, "--outtype", "auto", "--quiet"}
			if m.pre != "" {
				argv = append(argv, "--pre", m.pre)
			}
			o.script(t, "refconvert.py", argv...)
			synthesize(t, in, "im.dat", true)
			synthesize(t, in, "im.gguf", false)
			runs, refused := 0, 0
			for i, r := range allRecipes() {
				none := run{flags: append(matrixFlags[:4:4], nil)[i%5]}
				flags := run{matrix: "im.dat", flags: matrixFlags[i%len(matrixFlags)]}
				for _, c := range []run{{matrix: "im.gguf"}, []run{none, flags}[(i+n)%2]} {
					c.in, c.recipe = in, r
					o.compare(t, &c)
					runs++
					if c.fails {
						refused++
					}
				}
			}
			t.Logf("%d runs, of which both tools refuse %d", runs, refused)
		})
	}
}

// TestQuantizeAgain takes the output of every recipe as input.
func TestQuantizeAgain(t *testing.T) {
	o := start(t)
	o.script(t, "mkhf.py", "llama", work+"/llama", "--opt", "edge=1")
	o.script(t, "refconvert.py", work+"/llama", work+"/llama.gguf", "--outtype", "f32", "--quiet")
	synthesize(t, "llama.gguf", "im.dat", true)
	for i, r := range allRecipes() {
		flags := []string{"llama-quantize", "--imatrix", work + "/im.dat", work + "/llama.gguf",
			work + "/quant.gguf", r}
		o.tool(t, flags...)
		for _, to := range []string{"F32", allRecipes()[(i+11)%len(allRecipes())]} {
			o.compare(t, &run{in: "quant.gguf", recipe: to, matrix: "im.dat", flags: []string{"--allow-requantize"}})
		}
	}
}

// TestQuantizeShards takes shards as input and writes shards.
func TestQuantizeShards(t *testing.T) {
	o := start(t)
	hf := gollama(t)
	o.script(t, "refconvert.py", hf, work+"/f16.gguf", "--outtype", "f16", "--quiet")
	synthesize(t, "f16.gguf", "im.dat", true)
	o.tool(t, "llama-gguf-split", "--split", "--split-max-tensors", "9", work+"/f16.gguf", work+"/in")
	first := gguf.ShardName("in", 0, 7)
	for _, c := range []run{
		{recipe: "Q4_K_M"},
		{recipe: "Q4_K_M", flags: []string{"--keep-split"}},
		{recipe: "IQ3_M", matrix: "im.dat", flags: []string{"--keep-split", "--override-kv", "x=bool:true"}},
		{recipe: "COPY"},
		{recipe: "COPY", flags: []string{"--keep-split"}},
		{recipe: "Q8_0", flags: []string{"--keep-split", "--prune-layers", "2"}},
		{recipe: "Q5_K_M", flags: []string{"--prune-layers", "0,3"}, matrix: "im.dat"},
	} {
		c.in = first
		if o.compare(t, &c); c.fails {
			t.Errorf("the reference refuses %+v", c)
		}
	}
	// The reference's splitter fails when a tensor is larger than a shard.
	for _, c := range []struct{ flag, value, recipe string }{
		{"--split-max-tensors", "10", "Q4_K_M"}, {"--split-max-tensors", "1", "Q8_0"},
		{"--split-max-tensors", "56", "COPY"},
		{"--split-max-size", "1M", "Q4_K_M"}, {"--split-max-size", "3M", "COPY"}, {"--split-max-size", "4M", "COPY"},
	} {
		split := []string{c.flag, c.value}
		removeOutputs()
		o.tool(t, "llama-quantize", work+"/f16.gguf", work+"/whole.gguf", c.recipe)
		o.tool(t, append(append([]string{"llama-gguf-split", "--split"}, split...), work+"/whole.gguf", work+"/ref")...)
		ours(t, "ggquant", append(split, "--progress", "none", root+work+"/f16.gguf", root+work+"/ours", c.recipe)...)
		refs, _ := filepath.Glob(root + work + "/ref*.gguf")
		mine, _ := filepath.Glob(root + work + "/ours*.gguf")
		if len(refs) < 2 || len(refs) != len(mine) {
			t.Errorf("%v %s: %d shards, reference %d", split, c.recipe, len(mine), len(refs))
			continue
		}
		for i := range refs {
			same(t, mine[i], refs[i])
		}
		t.Log(fmt.Sprint(split, " ", c.recipe, ": ", len(refs), " shards"))
	}
}
