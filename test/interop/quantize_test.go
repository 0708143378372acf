package interop

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// recipes are recipes that need no importance matrix; TestQuantizeMatrixGollama runs the others.
var recipes = []string{
	"Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M", "Q5_K_S",
	"Q5_K_M", "Q6_K",
	"F16", "BF16", "F32", "COPY",
}

// quantize runs both quantizers and compares. in is a path inside the chroot.
func (o *oracle) quantize(t *testing.T, in, recipe string, flags ...string) {
	t.Helper()
	ref, mine := work+"/reference.gguf", work+"/ours.gguf"
	os.Remove(root + ref)
	os.Remove(root + mine) // F16 of an F16 model does not replace a file
	o.tool(t, append(append([]string{"llama-quantize"}, flags...), in, ref, recipe)...)
	ours(t, "ggquant", append(flags, "--progress", "none", root+in, root+mine, recipe)...)
	same(t, root+mine, root+ref)
}

// gollama puts the real model into the chroot and returns its path there.
func gollama(t *testing.T) string {
	hf := work + "/gollama"
	must(t, os.RemoveAll(root+hf))
	must(t, os.CopyFS(root+hf, os.DirFS("../testdata/gollama")))
	return hf
}

// evalText writes Go source of this repository, which the model was not trained on, into the work folder, and returns
// the path of the text in the chroot.
func evalText(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../../quants/*.go")
	must(t, err)
	more, err := filepath.Glob("../../quants/internal/*/*.go")
	must(t, err)
	files = append(files, more...)
	var text []byte
	for _, f := range files {
		data, err := os.ReadFile(f)
		must(t, err)
		if !bytes.Contains(data, []byte("DO NOT EDIT")) { // tables of numbers
			text = append(text, data...)
		}
	}
	if len(text) < evalBytes {
		t.Fatalf("%d bytes of Go source, want %d", len(text), evalBytes)
	}
	must(t, os.WriteFile(root+work+"/eval.txt", text[:evalBytes], 0o666))
	return work + "/eval.txt"
}

// evalBytes is the length of the text of evalText.
const evalBytes = 100_000

// TestGollama converts the real model to every output type and quantizes it by each of recipes.
func TestGollama(t *testing.T) {
	o := start(t)
	hf := gollama(t)
	f16 := ""
	for _, typ := range strings.Fields(every) {
		ref, mine := hf+"-"+typ+".gguf", work+"/ours.gguf"
		o.script(t, "refconvert.py", hf, ref, "--outtype", typ, "--quiet")
		ours(t, "ggconv", "--force", "--outtype", typ, "--outfile", root+mine, root+hf)
		same(t, root+mine, root+ref)
		if typ == "f16" {
			f16 = ref
		}
	}
	for _, r := range recipes {
		t.Run(r, func(t *testing.T) { o.quantize(t, f16, r) })
	}
}

// TestPerplexity loads both Q4_K_M files with the real runtime.
func TestPerplexity(t *testing.T) {
	o := start(t)
	hf := gollama(t)
	text := evalText(t)
	ref, mine := work+"/reference.gguf", work+"/ours.gguf"
	o.script(t, "refconvert.py", hf, work+"/f16.gguf", "--quiet")
	o.tool(t, "llama-quantize", work+"/f16.gguf", ref, "Q4_K_M")
	ours(t, "ggconv", root+hf, root+work+"/ours-f16.gguf")
	ours(t, "ggquant", root+work+"/ours-f16.gguf", root+mine, "q4_k_m")
	final := regexp.MustCompile(`Final estimate: PPL = \S+ \+/- \S+`)
	var got [2]string
	for i, f := range []string{mine, ref} {
		out := ""
		for range 4 { // the tool writes its log from another thread and now and then ends before the last line
			out = o.tool(t, "llama-perplexity", "-m", f, "-f", text, "-c", "512", "-t", "2")
			if got[i] = final.FindString(out); got[i] != "" {
				break
			}
		}
		if got[i] == "" {
			t.Fatalf("%s: no final estimate in\n%s", f, out)
		}
	}
	if got[0] != got[1] {
		t.Errorf("ours %s, reference %s", got[0], got[1])
	}
	t.Log(got[0])
}

// TestQuantize quantizes made-up models under every recipe and flag.
func TestQuantize(t *testing.T) {
	o := start(t)
	models := []struct{ dir, args string }{
		{"llama", "llama"},
		{"llama-bias", "llama-bias --dtype f32 --seed 2"},
		{"mistral", "mistral --set num_hidden_layers=9"},
		{"tied", "llama --set tie_word_embeddings=true"},
		{"odd-rows", "llama --set hidden_size=96 num_attention_heads=4 intermediate_size=520"},
		{"rows-without-fallback", "llama --set hidden_size=80 num_attention_heads=4 intermediate_size=152"},
		{"wide-keys", "mistral --set num_key_value_heads=8 num_hidden_layers=3"},
		{"edge", "llama --opt edge=1 --dtype bf16"},
	}
	flags := [][]string{
		{},
		{"--pure"},
		{"--leave-output-tensor"},
		{"--output-tensor-type", "q5_0"},
		{"--token-embedding-type", "Q4_1"},
		{"--output-tensor-type", "f16", "--token-embedding-type", "q8_0", "--pure"},
	}
	for _, m := range models {
		hf, in := work+"/"+m.dir, work+"/"+m.dir+".gguf"
		arch, rest, _ := strings.Cut(m.args, " ")
		o.script(t, "mkhf.py", append([]string{arch, hf}, strings.Fields(rest)...)...)
		o.script(t, "refconvert.py", hf, in, "--outtype", "auto", "--quiet")
		for _, f := range flags {
			t.Run(m.dir+strings.Join(append([]string{""}, f...), " "), func(t *testing.T) {
				if m.dir == "rows-without-fallback" && len(f) > 1 {
					t.Skip("the types named do not fit the rows; the reference fails")
				}
				for _, r := range recipes {
					o.quantize(t, in, r, f...)
				}
			})
		}
	}
}

// TestArm64 runs the golden tests as linux/arm64 under emulation, plain and with
// vector kernels.
func TestArm64(t *testing.T) {
	if root == "" {
		t.Skip("needs the reference: run make interop")
	}
	qemu, err := exec.LookPath("qemu-aarch64")
	if err != nil {
		t.Skip("arm64 untested: no qemu-aarch64 (package qemu-user)")
	}
	for name, c := range map[string]struct{ env, args []string }{
		"plain": {nil, []string{"-short", "-run", "Golden|Gollama", "../../quantize/...", "../../convert/...",
			"../../tokenizer/..."}},
		"simd": {[]string{"GOTOOLCHAIN=go1.27.4", "GOEXPERIMENT=simd"},
			[]string{"-run", "Golden|Parity", "../../quants"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("go", append([]string{"test", "-count=1", "-timeout", "30m", "-exec", qemu},
				c.args...)...)
			cmd.Env = append(append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0"), c.env...)
			out, err := cmd.CombinedOutput()
			t.Logf("%s, on %s/%s:\n%s", qemu, runtime.GOOS, runtime.GOARCH, out)
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
